//! The tables, as statements that make them.

/// The statements that make the table `n`, and words of what is said of it.
pub(super) type Trap = (&'static str, &'static str);

pub(super) const POSTGRES_COARSE: &[Trap] = &[
    // A generated column is its expression.
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
         once text GENERATED ALWAYS AS (event_id) STORED UNIQUE, UNIQUE (event_id, channel))",
        "unique constraint `n_once_key` of table `n` is coarser than the key (event_id, channel): \
         it would refuse a row that differs in `channel` only; run ALTER TABLE \"n\" DROP CONSTRAINT \"n_once_key\"",
    ),
    // What an index includes, it does not mention.
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, account int NOT NULL DEFAULT 1, \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (event_id) INCLUDE (channel) WHERE account > 0",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, text text NOT NULL DEFAULT 'x', \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n ((event_id::varchar::text))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NOT NULL",
        "unique index `u` of table `n` may be coarser than the key (event_id, channel): its WHERE can hold for \
         different values of `channel`; run DROP INDEX \"u\"",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel varchar(9) NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IN ('EMAIL', 'PUSH')",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel = 'EMAIL' OR channel = 'PUSH'",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE lower(channel) <> 'sms'",
        "may be coarser",
    ),
    // The same columns, with other letters equal, of some rows.
    (
        "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false); \
         CREATE TABLE n (event_id text NOT NULL, channel text COLLATE \"C\" NOT NULL, account int NOT NULL DEFAULT 1, \
         UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id, channel COLLATE loose) WHERE account > 0; \
         INSERT INTO n (event_id, channel) VALUES ('7', 'push')",
        "different values are equal to it in `channel`, by collation `loose`",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel), \
         CONSTRAINT x EXCLUDE USING btree (event_id WITH =))",
        "exclusion constraint `x` of table `n` is coarser than the key (event_id, channel): \
         it would refuse a row that differs in `channel` only; run ALTER TABLE \"n\" DROP CONSTRAINT \"x\"",
    ),
    (
        "CREATE EXTENSION IF NOT EXISTS btree_gist; \
         CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel), \
         CONSTRAINT x EXCLUDE USING gist (event_id WITH =, channel WITH <>))",
        "exclusion constraint `x` of table `n` may be coarser than the key (event_id, channel): it has other \
         operators than `=`, for which different keys can be equal",
    ),
];

pub(super) const MARIADB_COARSE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         once varchar(40) COLLATE utf8mb4_bin AS (event_id) STORED UNIQUE, UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only; run ALTER TABLE `n` DROP INDEX `once`",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         small varchar(40) AS (lower(event_id)) VIRTUAL, twice varchar(80) AS (concat(small, 'it\\'s `channel`')) VIRTUAL, \
         UNIQUE u (twice), UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         start varchar(1) AS (left(channel, 1)) VIRTUAL, UNIQUE u (event_id, start), UNIQUE (event_id, channel)); \
         INSERT INTO n (event_id, channel) VALUES ('7', 'PAPER')",
        "unique index `u` of table `n` may be coarser than the key (event_id, channel): it is on an expression",
    ),
];

pub(super) const SQLITE_COARSE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
         once text GENERATED ALWAYS AS (event_id) STORED UNIQUE, UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, small text AS (lower(event_id)), \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (small || 'channel')",
        "would refuse a row that differs in `channel` only",
    ),
    // Whole names only.
    (
        "CREATE TABLE n (id integer PRIMARY KEY, event_id text NOT NULL, channel text NOT NULL, \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (lower(event_id))",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, channel_state int NOT NULL DEFAULT 1, \
         UNIQUE (event_id, channel)); CREATE UNIQUE INDEX u ON n (event_id) WHERE channel_state = 1",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, note text NOT NULL DEFAULT 'x', \
         UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE note <> 'its ''channel' /* channel */ -- channel\n",
        "would refuse a row that differs in `channel` only",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE [channel] IS NOT NULL",
        "unique index `u` of table `n` may be coarser than the key (event_id, channel): its WHERE can hold for \
         different values of `channel`; run DROP INDEX \"u\"",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE `channel` IN ('EMAIL', 'PUSH')",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text COLLATE NOCASE NOT NULL); \
         CREATE UNIQUE INDEX o ON n (event_id, channel COLLATE BINARY); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel = 'push'; \
         INSERT INTO n VALUES ('7', 'push')",
        "may be coarser",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id) ON CONFLICT FAIL, \
         UNIQUE (event_id, channel))",
        "would refuse a row that differs in `channel` only",
    ),
];

pub(super) const POSTGRES_FINE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
         CREATE TABLE old () INHERITS (n); INSERT INTO old VALUES ('7', 'EMAIL')",
        "`public.old` inherits from table `n`: no unique index of `n` covers its rows, and a duplicate there would \
         get through; run ALTER TABLE public.old NO INHERIT \"n\"",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, made date NOT NULL DEFAULT '2025-01-01', \
         PRIMARY KEY (event_id, channel, made)) PARTITION BY RANGE (made); \
         CREATE TABLE n_0 PARTITION OF n FOR VALUES FROM ('2020-01-01') TO ('2030-01-01'); \
         INSERT INTO n VALUES ('7', 'EMAIL', '2024-01-01')",
        "a duplicate with another `made` would get through; no unique constraint can be on the key while `n` is \
         partitioned by `made`: partition it by columns of the key",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, made date NOT NULL DEFAULT '2025-01-01') \
         PARTITION BY HASH (event_id); \
         CREATE TABLE n_0 PARTITION OF n FOR VALUES WITH (modulus 1, remainder 0) PARTITION BY RANGE ((made - 1)); \
         CREATE TABLE n_1 PARTITION OF n_0 FOR VALUES FROM (minvalue) TO (maxvalue)",
        "no unique constraint can be on the key while `n` is partitioned by `RANGE (((made - 1)))`",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL AND event_id > '8'",
        "`channel` may be NULL",
    ),
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
         CONSTRAINT x EXCLUDE USING btree (event_id WITH =, channel WITH =) WHERE (event_id > '8'))",
        "exclusion constraint `x` of table `n` is partial",
    ),
];

pub(super) const MARIADB_FINE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         made date NOT NULL DEFAULT '2025-01-01', PRIMARY KEY (event_id, channel, made)) \
         PARTITION BY RANGE (to_days(made)) (PARTITION p VALUES LESS THAN maxvalue); \
         INSERT INTO n VALUES ('7', 'EMAIL', '2024-01-01')",
        "a duplicate with another `made` would get through; no unique constraint can be on the key while `n` is \
         partitioned by `made`: partition it by columns of the key",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
         made date NOT NULL DEFAULT '2025-01-01', PRIMARY KEY (event_id, channel, made)) PARTITION BY KEY () PARTITIONS 2; \
         INSERT INTO n VALUES ('7', 'EMAIL', '2024-01-01')",
        "while `n` is partitioned by `made`",
    ),
    (
        "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, code varchar(20) COLLATE utf8mb4_bin, \
         channel varchar(20) COLLATE utf8mb4_bin AS (nullif('EMAIL', 'EMAIL')) STORED, UNIQUE (event_id, channel))",
        "`channel` may be NULL: a duplicate would get through; \
         make `channel` an ordinary column that is NOT NULL",
    ),
];

pub(super) const SQLITE_FINE: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
         CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL AND event_id > '8'",
        "`channel` may be NULL",
    ),
    // Which of the two is asked first is SQLite's own business.
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel) on conflict ignore); \
         CREATE UNIQUE INDEX once ON n (channel, event_id)",
        "says ON CONFLICT IGNORE: a duplicate is passed over without an error; make the table anew without that constraint",
    ),
];

/// They say nothing, and the handler goes on.
pub(super) const SQLITE_SILENT: &[Trap] = &[
    (
        "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel) ON CONFLICT IGNORE)",
        "unique constraint `sqlite_autoindex_n_1` of table `n` says ON CONFLICT IGNORE: a duplicate is passed over \
         without an error; make the table anew without that constraint, then run CREATE UNIQUE INDEX",
    ),
    (
        "CREATE TABLE n (\"event_id\" text NOT NULL, channel text NOT NULL, other int UNIQUE ON CONFLICT FAIL, \
         PRIMARY KEY (event_id ASC, [channel]) ON CONFLICT REPLACE)",
        "the primary key of table `n` says ON CONFLICT REPLACE: a duplicate takes the place of the first; \
         make the table anew with another primary key",
    ),
];

pub(super) const POSTGRES_RIGHT: &[&str] = &[
    // One channel's own rule.
    "CREATE TABLE n (event_id text NOT NULL, channel varchar(9) NOT NULL, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel = 'SMS'; \
     CREATE UNIQUE INDEX v ON n (event_id) WHERE 'SMS' = channel AND event_id > '8' AND (event_id < '9' OR channel > 'A')",
    "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL",
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, \
     EXCLUDE USING btree (event_id WITH =, channel WITH =))",
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, span int4range NOT NULL DEFAULT 'empty', \
     UNIQUE (event_id, channel), EXCLUDE USING gist (span WITH &&))",
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, made date NOT NULL DEFAULT '2025-01-01', \
     UNIQUE (event_id, channel)) PARTITION BY HASH (event_id, channel); \
     CREATE TABLE n_0 PARTITION OF n FOR VALUES WITH (modulus 1, remainder 0)",
];

pub(super) const MARIADB_RIGHT: &[&str] = &[
    "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
     note varchar(20) NOT NULL DEFAULT 'x', small varchar(60) AS (concat(event_id, note, channel)) VIRTUAL, \
     UNIQUE (event_id, small), UNIQUE (event_id, channel))",
    "CREATE TABLE n (event_id varchar(40) COLLATE utf8mb4_bin NOT NULL, channel varchar(20) COLLATE utf8mb4_bin NOT NULL, \
     PRIMARY KEY (event_id, channel)) PARTITION BY KEY () PARTITIONS 2",
];

pub(super) const SQLITE_RIGHT: &[&str] = &[
    "CREATE TABLE n (event_id text NOT NULL, channel text NOT NULL, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel == 'SMS'; \
     CREATE UNIQUE INDEX v ON n (event_id) WHERE event_id > '8' AND (\"channel\") = 'SMS'",
    "CREATE TABLE n (event_id text NOT NULL, channel text, UNIQUE (event_id, channel)); \
     CREATE UNIQUE INDEX u ON n (event_id) WHERE channel IS NULL",
    "CREATE TABLE n (event_id text COLLATE binary NOT NULL, channel text NOT NULL); \
     CREATE UNIQUE INDEX u ON n (event_id, channel COLLATE Binary)",
    "CREATE TABLE n (event_id ANY NOT NULL, channel TEXT NOT NULL, UNIQUE (event_id, channel)) STRICT",
    "CREATE TABLE n (event_id NOT NULL, channel BLOB NOT NULL, other int UNIQUE ON CONFLICT IGNORE, \
     UNIQUE (event_id, channel) ON CONFLICT ROLLBACK)",
];
