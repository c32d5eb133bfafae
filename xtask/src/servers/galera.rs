use std::array;
use std::io;
use std::process::Command;

use crate::error::Error;
use crate::servers::ports::Port;
use crate::servers::throw_away::ThrowAway;
use crate::servers::{Install, Kind, MARIADB, Origin, Site, mariadb};

/// A node of a cluster: `MariaDB` with a library that replicates, and rsync, by which a node that
/// comes back gets a copy of another one's data.
pub(super) const GALERA: Kind = Kind {
    name: "Galera",
    programs: &["rsync", "mariadb-install-db", "mariadbd"],
    libraries: &[PROVIDER],
    origin: Origin::Debian(&["galera-4", "mariadb-server", "rsync"]),
    serve,
    ..MARIADB
};

const NODES: usize = 3;

/// Where Debian has it.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// Three nodes of `MariaDB` that take writes and replicate them to each other by Galera, for tests
/// that kill some. They end as a [`ThrowAway`] does.
pub struct Galera([Node; NODES]);

struct Node {
    server: ThrowAway,
    ports: Ports,
}

/// What a node has beside the port for clients.
struct Ports {
    group: Port,
    incremental: Port,
    snapshot: Port,
}

impl Galera {
    /// Starts the nodes, the second and third with a copy of the first one's data, from installed
    /// programs, which are installed first where that is allowed.
    ///
    /// A node lets clients in before it has what the others have: until `wsrep_ready` is `ON` it
    /// answers most statements with error 1047.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing or what a node said.
    pub fn start() -> Result<Self, Error> {
        let first = ThrowAway::prepared(&GALERA, Install::from_environment())?;
        let others = [first.copy()?, first.copy()?];
        let [second, third] = others.map(Node::new);
        let mut cluster = Self([Node::new(first)?, second?, third?]);
        // A cluster without members is what founds one.
        cluster.join(0, &[])?;
        let founder = [cluster.0[0].ports.group.number()];
        for node in 1..NODES {
            cluster.join(node, &founder)?;
        }
        Ok(cluster)
    }

    /// The URLs of the nodes for clients.
    #[must_use]
    pub fn urls(&self) -> [String; NODES] {
        array::from_fn(|node| self.0[node].server.url())
    }

    /// Kills a node, which has no time for anything. The others wait for it some seconds before
    /// they go on without.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn crash(&mut self, node: usize) {
        self.0[node].server.crash();
    }

    /// Starts a node again, on the same port. It joins those that run, and copies what they have.
    ///
    /// # Errors
    ///
    /// One sentence with what it said.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn rejoin(&mut self, node: usize) -> Result<(), Error> {
        self.crash(node);
        let members: [u16; NODES] = array::from_fn(|member| self.0[member].ports.group.number());
        self.join(node, &members)
    }

    fn join(&mut self, node: usize, members: &[u16]) -> Result<(), Error> {
        let Node { server, ports } = &mut self.0[node];
        let members: Vec<_> = members.iter().map(|port| here(*port)).collect();
        server.start_with(vec![
            format!("--wsrep-cluster-address=gcomm://{}", members.join(",")),
            format!("--wsrep-node-name=node-{}", node + 1),
            // One thread that applies what the others commit is the default, some are advised.
            format!("--wsrep-slave-threads={}", [1, 1, 4][node]),
            format!(
                "--wsrep-sst-receive-address={}",
                here(ports.snapshot.number())
            ),
            format!(
                "--wsrep-provider-options=gmcast.listen_addr=tcp://{};ist.recv_addr={}",
                here(ports.group.number()),
                here(ports.incremental.number())
            ),
        ])
    }
}

impl Node {
    fn new(server: ThrowAway) -> Result<Self, Error> {
        let ports = Ports::free();
        let ports = ports.map_err(|error| Error::new(format!("there is no free port: {error}")))?;
        Ok(Self { server, ports })
    }
}

impl Ports {
    fn free() -> io::Result<Self> {
        Ok(Self {
            group: Port::free()?,
            incremental: Port::free()?,
            snapshot: Port::free()?,
        })
    }
}

fn here(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// What every node has.
fn serve(site: &Site) -> Command {
    let mut mariadbd = mariadb::serve(site);
    mariadbd.arg(format!("--wsrep-provider={PROVIDER}"));
    mariadbd.args([
        "--wsrep-on=ON",
        "--wsrep-cluster-name=idempotent",
        "--wsrep-node-address=127.0.0.1",
        "--wsrep-sst-method=rsync",
        "--binlog-format=ROW",
        "--innodb-autoinc-lock-mode=2",
    ]);
    mariadbd
}
