//! What a shipped program is optimized for: a start, and every operation of the other benches,
//! without counting any of it.

use crate::flags::Flags;
use crate::instruction_rows::{CONFIG_PORT, Served, UPSTREAM_PORT, rows};
use crate::stage::{LOAD, Stage};
use crate::{fanout, memory, proto_calls};

/// Plays all operations once, briefly unless flags say otherwise.
///
/// # Panics
/// When a server does not answer, or answers wrongly.
pub fn run(stage: &Stage, flags: &Flags) {
    for row in rows(stage) {
        let Served::Gateway(config) = &row.served else {
            continue;
        };
        let _upstream = row
            .upstream
            .map(|era| stage.own_server(LOAD, "echo", "http", UPSTREAM_PORT, &[era]));
        let _gateway = stage.gateway(CONFIG_PORT, config);
        if let Some((era, tool, bearer)) = row.ready {
            stage.ready(CONFIG_PORT, era, &format!("{tool} {bearer}"));
        }
        for words in row.before.iter().chain([&row.many]) {
            stage.play(CONFIG_PORT, row.label, words);
        }
    }
    let briefly = flags.or("--rounds 1 --secs 0.2 --connections 16 --parts topics,join");
    proto_calls::run(stage, &briefly);
    fanout::run(stage, &briefly);
    memory::run(stage, &briefly);
}
