//! Tells the tests which servers there are, and which compiler, so that those
//! that cannot run are listed as ignored, with the reason.

use std::process::Command;

/// The compiler that the `.stderr` files belong to.
const COMPILER: &str = "rustc 1.95.";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_expected_compiler)");
    if compiler().starts_with(COMPILER) {
        println!("cargo::rustc-cfg=has_expected_compiler");
    }
    for (variable, cfg) in [
        ("IDEMPOTENT_POSTGRES_URL", "has_postgres"),
        ("IDEMPOTENT_MARIADB_URL", "has_mariadb"),
    ] {
        println!("cargo::rerun-if-env-changed={variable}");
        println!("cargo::rustc-check-cfg=cfg({cfg})");
        if std::env::var_os(variable).is_some_and(|url| !url.is_empty()) {
            println!("cargo::rustc-cfg={cfg}");
        }
    }
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").expect("cargo names the compiler");
    let version = Command::new(rustc).arg("--version").output();
    String::from_utf8_lossy(&version.expect("the compiler runs").stdout).into_owned()
}
