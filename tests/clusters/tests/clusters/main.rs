//! Databases that are several servers: a Galera cluster of `MariaDB`, and `PostgreSQL` with a
//! standby. A part of `cargo xtask test --full`.

mod copies;
mod every_point;
mod failover;
mod lag;
mod lost_nodes;
mod open_elsewhere;
mod upkeep;
