//! Debian's packages, and who may install them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::{run, succeeds};
use crate::error::Error;
use crate::servers::user::is_root;

/// How long another may be at it, such as the machine's own timer.
const PATIENCE: Duration = Duration::from_mins(5);

/// What Debian asks before it starts a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs packages whose services are not to start now: the answer is no, unless somebody else
/// has one, and is gone afterwards.
const INSTALL: &str = r#"
policy=$1
shift
if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
    trap 'rm -f -- "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || exit
fi
apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
"#;

/// How we become root.
pub(super) enum Root {
    Already,
    Sudo,
}

impl Root {
    /// Or says why nothing can be installed.
    pub(super) fn find() -> Result<Self, &'static str> {
        if !succeeds(Command::new("apt-get").arg("--version")) {
            return Err("there is no apt-get to install what is missing");
        }
        if is_root() {
            return Ok(Self::Already);
        }
        if succeeds(Command::new("sudo").args(["-n", "true"])) {
            return Ok(Self::Sudo);
        }
        Err("installing needs root, or sudo without a password")
    }

    pub(super) fn install(&self, packages: &[&str]) -> Result<(), Error> {
        update(|| self.command(&["apt-get", "-q", "update"]), PATIENCE);
        run(
            &mut self.installation(Path::new(POLICY), packages),
            "the installation",
        )
    }

    fn installation(&self, policy: &Path, packages: &[&str]) -> Command {
        let mut command = self.command(&["sh", "-c", INSTALL, "install"]);
        command.arg(policy).args(packages);
        command
    }

    fn command(&self, words: &[&str]) -> Command {
        // `env` because sudo does not hand on the environment.
        let environment = ["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"];
        let sudo: &[&str] = match self {
            Self::Already => &[],
            Self::Sudo => &["sudo", "-n"],
        };
        let words = [sudo, &environment, words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }
}

/// Reads the lists anew, as soon as nobody else does: `DPkg::Lock::Timeout` is not for them. One
/// list that cannot be read is no reason to give up, since what is wanted may be in another.
fn update(command: impl Fn() -> Command, patience: Duration) {
    let end = Instant::now() + patience;
    loop {
        let said = match command().output() {
            Ok(output) if output.status.success() => return,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        if !said.contains("Could not get lock") || Instant::now() > end {
            eprintln!(
                "apt-get update failed, the lists that are there are used: {}",
                said.trim()
            );
            return;
        }
        thread::sleep(Duration::from_millis(500));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::{env, fs, io, process};

    use super::*;

    /// A directory with an `apt-get` of our own.
    fn directory(name: &str, script: &str) -> io::Result<PathBuf> {
        let directory = env::temp_dir().join(format!("idempotent-apt-{}-{name}", process::id()));
        fs::create_dir_all(&directory)?;
        let program = directory.join("apt-get");
        fs::write(&program, format!("#!/bin/sh\n{script}\n"))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(directory)
    }

    fn with_path<'c>(command: &'c mut Command, directory: &Path) -> &'c mut Command {
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", directory.display()))
    }

    #[test]
    fn services_do_not_start_and_the_answer_goes() -> io::Result<()> {
        let script = r#""$POLICY" mysql start; echo "$? $*" >"$(dirname "$0")/asked""#;
        let directory = directory("policy", script)?;
        let policy = directory.join("policy-rc.d");
        let mut command = Root::Already.installation(&policy, &["one", "two"]);
        let status = with_path(&mut command, &directory)
            .env("POLICY", &policy)
            .status()?;
        let asked = fs::read_to_string(directory.join("asked"))?;
        let stays = policy.exists();
        fs::remove_dir_all(&directory)?;
        assert!(status.success() && !stays);
        assert!(
            asked.starts_with("101 ") && asked.ends_with(" one two\n"),
            "{asked}"
        );
        Ok(())
    }

    #[test]
    fn an_answer_of_somebody_else_stays() -> io::Result<()> {
        let directory = directory("other", "exit 3")?;
        let policy = directory.join("policy-rc.d");
        fs::write(&policy, "theirs")?;
        let mut command = Root::Already.installation(&policy, &["one"]);
        let status = with_path(&mut command, &directory).status()?;
        let found = fs::read_to_string(&policy)?;
        fs::remove_dir_all(&directory)?;
        assert_eq!((status.code(), &*found), (Some(3), "theirs"));
        Ok(())
    }

    #[test]
    fn lists_are_waited_for_while_somebody_has_them() -> io::Result<()> {
        let script = r#"
            tries=$(dirname "$0")/tries
            echo >>"$tries"
            [ "$(wc -l <"$tries")" -lt 2 ] || exit 0
            echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1" >&2
            exit 100"#;
        let directory = directory("lock", script)?;
        let program = directory.join("apt-get");
        update(|| Command::new(&program), PATIENCE);
        let tries = fs::read_to_string(directory.join("tries"))?;
        fs::remove_dir_all(&directory)?;
        assert_eq!(tries.lines().count(), 2);
        Ok(())
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_waited_for() -> io::Result<()> {
        let script = r#"echo >>"$(dirname "$0")/tries"; echo "E: no Release file" >&2; exit 100"#;
        let directory = directory("broken", script)?;
        let program = directory.join("apt-get");
        update(|| Command::new(&program), PATIENCE);
        let tries = fs::read_to_string(directory.join("tries"))?;
        fs::remove_dir_all(&directory)?;
        assert_eq!(tries.lines().count(), 1);
        Ok(())
    }

    #[test]
    fn sudo_does_not_lose_the_environment() {
        let command = Root::Sudo.command(&["apt-get", "update"]);
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        assert_eq!(words[..3], ["-n", "env", "DEBIAN_FRONTEND=noninteractive"]);
        assert_eq!(words.last().map(AsRef::as_ref), Some("update"));
    }
}
