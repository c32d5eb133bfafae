//! Databases at the other end of a wire.

use sqlx::mysql::{MySql, MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgSslMode, Postgres};
use sqlx::{Connection, Database};

use super::Proxy;
use super::protocol::Protocol;
use crate::engine::Engine;
use crate::fresh::Fresh;

type Options<DB> = <<DB as Database>::Connection as Connection>::Options;

/// A database under test that is reached through a socket.
pub trait Wired: Engine {
    /// How it talks.
    const PROTOCOL: Protocol;

    /// Host and port.
    fn address(options: &Options<Self>) -> (&str, u16);

    /// The same through a port of this host, in plain text.
    fn through(options: &Options<Self>, port: u16) -> Options<Self>;
}

impl Wired for Postgres {
    const PROTOCOL: Protocol = Protocol::Postgres;

    fn address(options: &PgConnectOptions) -> (&str, u16) {
        (options.get_host(), options.get_port())
    }

    fn through(options: &PgConnectOptions, port: u16) -> PgConnectOptions {
        let options = options.clone().host("127.0.0.1").port(port);
        options.ssl_mode(PgSslMode::Disable)
    }
}

impl Wired for MySql {
    const PROTOCOL: Protocol = Protocol::MariaDb;

    fn address(options: &MySqlConnectOptions) -> (&str, u16) {
        (options.get_host(), options.get_port())
    }

    fn through(options: &MySqlConnectOptions, port: u16) -> MySqlConnectOptions {
        let options = options.clone().host("127.0.0.1").port(port);
        options.ssl_mode(MySqlSslMode::Disabled)
    }
}

impl<DB: Wired> Fresh<DB> {
    /// A proxy in front of the database's server, and how to connect through it.
    pub async fn behind_proxy(&self) -> (Proxy, Options<DB>) {
        let (host, port) = DB::address(&self.options);
        let proxy = Proxy::start(DB::PROTOCOL, host, port).await;
        let options = DB::through(&self.options, proxy.port());
        (proxy, options)
    }
}
