//! Tells the tests which servers they have: those named in the environment.

fn main() {
    for server in ["postgres", "rabbitmq", "nats", "kafka", "sqs"] {
        let variable = format!("IDEMPOTENT_{}_URL", server.to_uppercase());
        println!("cargo::rerun-if-env-changed={variable}");
        println!("cargo::rustc-check-cfg=cfg(has_{server})");
        if std::env::var(&variable).is_ok_and(|url| !url.is_empty()) {
            println!("cargo::rustc-cfg=has_{server}");
        }
    }
}
