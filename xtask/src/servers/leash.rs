//! What ends a server when whoever started it is gone, however that came about.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::servers::user::User;

/// Waits for the end of input, which comes with the end of whoever started it; then ends the
/// server and removes its directory.
const REAPER: &str = r#"
read -r _
rm -f -- "$1/alive"
pid=$(cat "$1/pid")
if [ -n "$pid" ]; then
    kill -s "$2" -- "-$pid"
    tries=0
    while kill -s 0 -- "-$pid" && [ "$tries" -lt 100 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    kill -s KILL -- "-$pid"
fi
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
"#;

/// Says who it is before it becomes the server. Either the reaper hears that, or it has begun
/// before, and then there is no server.
const LAUNCH: &str = r#"
echo "$$" >"$1/pid" && [ -e "$1/alive" ] || exit
shift
exec "$@"
"#;

/// Starts the reaper of a server that will live in a directory.
pub(super) fn reaper(directory: &Path, user: &User, stop_signal: &str) -> io::Result<Child> {
    fs::write(directory.join("alive"), "")?;
    forget(directory)?;
    user.own(&directory.join("pid"))?;
    let mut command = Command::new("sh");
    command.args(["-c", REAPER, "reaper"]);
    command.arg(directory).arg(stop_signal);
    // A group of its own: Ctrl-C ends us, and not who cleans up after us.
    command.process_group(0).current_dir("/");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Makes a command one whose process group the reaper knows.
pub(super) fn leashed(command: &Command, directory: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", LAUNCH, "launch"]).arg(directory);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.process_group(0);
    shell
}

/// There is no process to end.
pub(super) fn forget(directory: &Path) -> io::Result<()> {
    fs::write(directory.join("pid"), "")
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::path::PathBuf;
    use std::process;

    use super::*;

    fn directory(name: &str) -> io::Result<PathBuf> {
        let directory = env::temp_dir().join(format!("idempotent-leash-{}-{name}", process::id()));
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    #[test]
    fn who_starts_is_known_before_it_does_anything() -> io::Result<()> {
        let directory = directory("known")?;
        fs::write(directory.join("alive"), "")?;
        let mut command = Command::new("sh");
        command.args(["-c", r#"[ "$(cat "$0/pid")" = "$$" ] && [ "$A" = b ]"#]);
        command.arg(&directory).env("A", "b");
        let status = leashed(&command, &directory).status()?;
        fs::remove_dir_all(&directory)?;
        assert!(status.success(), "{status}");
        Ok(())
    }

    #[test]
    fn nothing_starts_once_the_reaper_has_begun() -> io::Result<()> {
        let directory = directory("late")?;
        let started = directory.join("started");
        let mut command = Command::new("touch");
        command.arg(&started);
        let late = leashed(&command, &directory).status()?;
        let is_started = started.exists();
        fs::remove_dir_all(&directory)?;
        let gone = leashed(&command, &directory)
            .stderr(Stdio::null())
            .status()?;
        assert!(!late.success() && !is_started && !gone.success());
        Ok(())
    }

    #[test]
    fn the_reaper_ends_what_the_dead_have_left() -> io::Result<()> {
        let directory = directory("left")?;
        let mut reaper = reaper(&directory, &User::Ourselves, "TERM")?;
        // The leader of the group ends at once, and its child stays.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 &"]);
        let mut leader = leashed(&command, &directory)
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = leader.stdout.take();
        leader.wait()?;
        drop(reaper.stdin.take());
        // It ends with the last who could write.
        io::copy(&mut stdout.ok_or(io::ErrorKind::NotFound)?, &mut io::sink())?;
        reaper.wait()?;
        assert!(!directory.exists());
        Ok(())
    }
}
