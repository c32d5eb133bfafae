//! The workspace of the four crates, on disk.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{cargo, root, run};
use crate::compile_time::sources::{Edit, Variant};
use crate::error::Error;

/// Its own workspace, so that neither ours nor our target directory has a part in it.
const WORKSPACE: &str = r#"[workspace]
resolver = "3"
members = ["plain", "by_hand", "idempotent", "instrument"]

[workspace.dependencies]
idempotent-runtime = { path = "../../idempotent-runtime", features = ["sqlite"] }
sqlx = { version = "0.9", default-features = false, features = ["sqlite", "runtime-tokio"] }
tracing = { version = "0.1", default-features = false, features = ["attributes"] }
"#;

/// The same for all four: other features would be other builds of what they share.
const PACKAGE: &str = r#"[package]
name = "NAME"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
idempotent-runtime.workspace = true
sqlx.workspace = true
tracing.workspace = true
"#;

/// Gives the four crates, and nothing that they depend on, the options of a nightly compiler:
/// dependencies look at `RUSTC_BOOTSTRAP`, and would be built again, and not as they are.
const BOOTSTRAP: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec \"$@\"\n";

/// Whether the compiler keeps what it knows from one run to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cache {
    Off,
    On,
}

pub(super) struct Project {
    directory: PathBuf,
}

impl Project {
    /// Writes it afresh, with the versions of our own `Cargo.lock`.
    pub(super) fn generate() -> Result<Self, Error> {
        let directory = root().join("target/compile-time");
        let project = Self { directory };
        project.lay_out().map_err(|error| project.cannot(&error))?;
        for variant in Variant::ALL {
            project.write(variant, Edit::None)?;
        }
        Ok(project)
    }

    fn lay_out(&self) -> io::Result<()> {
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)?;
        }
        for variant in Variant::ALL {
            let package = self.directory.join(variant.name());
            fs::create_dir_all(package.join("src"))?;
            let manifest = PACKAGE.replace("NAME", variant.name());
            fs::write(package.join("Cargo.toml"), manifest)?;
        }
        fs::write(self.directory.join("Cargo.toml"), WORKSPACE)?;
        fs::copy(root().join("Cargo.lock"), self.directory.join("Cargo.lock"))?;
        fs::write(self.bootstrap(), BOOTSTRAP)?;
        fs::set_permissions(self.bootstrap(), fs::Permissions::from_mode(0o755))
    }

    /// Writes the source of one crate, which is then to be checked again.
    pub(super) fn write(&self, variant: Variant, edit: Edit) -> Result<(), Error> {
        let path = self.directory.join(variant.name()).join("src/lib.rs");
        fs::write(path, variant.source(edit)).map_err(|error| self.cannot(&error))
    }

    /// Checks all there is, with and without the cache: the runtime is another build in each.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        for cache in [Cache::Off, Cache::On] {
            let mut command = self.cargo(&["check", "--quiet", "--workspace"], cache);
            run(&mut command, "the check of the generated crates")?;
        }
        Ok(())
    }

    /// The command that is timed.
    pub(super) fn check(&self, variant: Variant, cache: Cache) -> Command {
        self.cargo(&["check", "--offline", "-p", variant.name()], cache)
    }

    /// A check, not timed, that says more about itself.
    pub(super) fn inspect(&self, variant: Variant, flag: &str) -> Command {
        let arguments = ["rustc", "--offline", "--profile", "check", "-p"];
        let arguments = [&arguments, &[variant.name(), "--", flag][..]].concat();
        let mut command = self.cargo(&arguments, Cache::Off);
        command.env("RUSTC_WORKSPACE_WRAPPER", self.bootstrap());
        command
    }

    fn cargo(&self, arguments: &[&str], cache: Cache) -> Command {
        let mut command = cargo(arguments);
        let incremental = match cache {
            Cache::Off => "0",
            Cache::On => "1",
        };
        command
            .current_dir(&self.directory)
            .env("CARGO_INCREMENTAL", incremental)
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            // One such as sccache would answer from its memory.
            .env("RUSTC_WRAPPER", "")
            // What we read of its output is to be there, and plain.
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_TERM_QUIET", "false");
        command
    }

    fn bootstrap(&self) -> PathBuf {
        self.directory.join("bootstrap")
    }

    fn cannot(&self, error: &io::Error) -> Error {
        let directory = self.directory.display();
        Error::new(format!("cannot write the crates in {directory}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_has_every_crate() {
        for variant in Variant::ALL {
            let member = format!("\"{}\"", variant.name());
            assert!(WORKSPACE.contains(&member), "{member}");
        }
    }

    #[test]
    fn the_runtime_is_where_the_manifest_says() {
        let runtime = "idempotent-runtime";
        assert!(WORKSPACE.contains(&format!("path = \"../../{runtime}\"")));
        assert!(root().join(runtime).join("Cargo.toml").exists());
    }
}
