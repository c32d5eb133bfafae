//! The unix user that a throw-away server runs as.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::servers::Kind;

/// Ourselves, or, since many servers refuse to run as root, somebody else.
pub(super) enum User {
    Ourselves,
    Other { name: String, uid: u32, gid: u32 },
}

impl User {
    pub(super) fn running(kind: &Kind) -> Result<Self, Error> {
        let Some(user) = kind.unix_user.filter(|_| is_root()) else {
            return Ok(Self::Ourselves);
        };
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut candidates = [user, "nobody"].into_iter();
        candidates
            .find_map(|name| find(name, &passwd))
            .ok_or_else(|| {
                Error::new(format!(
                    "{} is not run as root, and there is no unix user `{user}` or `nobody` here",
                    kind.name
                ))
            })
    }

    pub(super) fn own(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Other { uid, gid, .. } => chown(path, Some(*uid), Some(*gid)),
        }
    }

    pub(super) fn run(&self, command: &mut Command) {
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ourselves => formatter.write_str("the current unix user"),
            Self::Other { name, .. } => write!(formatter, "unix user {name}"),
        }
    }
}

pub(super) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn find(name: &str, passwd: &str) -> Option<User> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(User::Other {
            name: name.to_owned(),
            uid,
            gid,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
                          postgres-old:x:9:9::/:/bin/sh\n\
                          postgres:x:101:104:administrator,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let Some(User::Other { uid, gid, .. }) = find("postgres", PASSWD) else {
            panic!("not found");
        };
        assert_eq!((uid, gid), (101, 104));
    }

    #[test]
    fn nobody_else_is_taken_for_a_user() {
        assert!(find("mysql", PASSWD).is_none());
        assert!(find("postgres", "postgres:x:one:two").is_none());
    }
}
