//! Tells the tests which servers there are, so that those that have none are
//! listed as ignored, with the reason.

fn main() {
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
