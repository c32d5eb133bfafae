//! Ports for throw-away servers.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Below those that clients get.
const PORTS: Range<u16> = 20_000..32_000;

/// One place for all users, whatever their `TMPDIR` is.
const LOCKS: &str = "/tmp";

const NAME: &str = "idempotent-port-";

/// A port that no other throw-away server gets while this value is there, whether something
/// listens on it or not.
pub(super) struct Port {
    number: u16,
    file: PathBuf,
    /// Goes with this process, however it ends.
    _lock: File,
}

impl Port {
    /// Takes a port on which nothing listens. Every process begins somewhere else.
    pub(super) fn free() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(Path::new(LOCKS)));
        let mut last = io::ErrorKind::AddrInUse.into();
        for _ in PORTS {
            let number = process::id()
                .wrapping_mul(32)
                .wrapping_add(NEXT.fetch_add(1, Relaxed));
            let offset = u16::try_from(number % u32::from(PORTS.end - PORTS.start));
            let number = PORTS.start + offset.map_err(io::Error::other)?;
            match Self::take(Path::new(LOCKS), number) {
                Ok(Some(port)) => return Ok(port),
                Ok(None) => {}
                // Such as the file of another user, who left it behind.
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) const fn number(&self) -> u16 {
        self.number
    }

    fn take(directory: &Path, number: u16) -> io::Result<Option<Self>> {
        let file = directory.join(format!("{NAME}{number}"));
        let Some(lock) = lock(&file)? else {
            return Ok(None);
        };
        let port = Self {
            number,
            file,
            _lock: lock,
        };
        let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok();
        Ok(is_free.then_some(port))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // Before the lock goes: nobody else's file is removed.
        let _ = fs::remove_file(&self.file);
    }
}

/// Removes the files of owners that were killed.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(NAME);
        let Some(path) = is_ours.then(|| entry.path()) else {
            continue;
        };
        if let Ok(Some(_lock)) = lock(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Locks a file that its owner removes; `None`: somebody has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let locked = file.metadata()?;
        // It may have been removed between its opening and its locking.
        let is_there = fs::metadata(path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()));
        if is_there {
            return Ok(Some(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::thread;

    use super::*;

    #[test]
    fn ports_are_not_given_twice() -> io::Result<()> {
        let (one, other) = (Port::free()?, Port::free()?);
        assert_ne!(one.number(), other.number());
        assert!(PORTS.contains(&one.number()) && PORTS.contains(&other.number()));
        Ok(())
    }

    #[test]
    fn a_port_is_held_though_nothing_listens() -> io::Result<()> {
        let directory = directory("held")?;
        let port = Port::free()?;
        let held = Port::take(&directory, port.number())?;
        let second = Port::take(&directory, port.number())?;
        assert!(held.is_some() && second.is_none());
        drop(held);
        assert!(Port::take(&directory, port.number())?.is_some());
        // Nothing stays behind.
        fs::remove_dir(&directory)
    }

    #[test]
    fn a_port_on_which_somebody_listens_is_not_taken() -> io::Result<()> {
        let directory = directory("busy")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let taken = Port::take(&directory, listener.local_addr()?.port())?;
        assert!(taken.is_none());
        fs::remove_dir(&directory)
    }

    #[test]
    fn what_the_killed_have_left_goes() -> io::Result<()> {
        let directory = directory("swept")?;
        let held = Port::take(&directory, Port::free()?.number())?;
        let other = directory.join("other");
        fs::write(&other, "")?;
        fs::write(directory.join("idempotent-port-1"), "")?;
        sweep(&directory);
        let left = fs::read_dir(&directory)?.count();
        let is_held = held.as_ref().is_some_and(|port| port.file.exists());
        drop(held);
        fs::remove_file(other)?;
        // Nothing else stays.
        fs::remove_dir(&directory)?;
        assert_eq!((left, is_held), (2, true));
        Ok(())
    }

    #[test]
    fn only_one_of_many_has_a_port() -> io::Result<()> {
        let directory = directory("many")?;
        let file = directory.join("lock");
        let count = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Ok(Some(lock)) = lock(&file) {
                            assert_eq!(count.fetch_add(1, Relaxed), 0, "two have it");
                            count.fetch_sub(1, Relaxed);
                            let _ = fs::remove_file(&file);
                            drop(lock);
                        }
                    }
                });
            }
        });
        fs::remove_dir_all(&directory)
    }

    fn directory(name: &str) -> io::Result<PathBuf> {
        let directory = env::temp_dir().join(format!("idempotent-ports-{}-{name}", process::id()));
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}
