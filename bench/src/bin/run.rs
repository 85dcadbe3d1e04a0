//! Runs everything and prints medians: `run calls`, `run memory`, `run cluster`, `run consoles`, `run isolation`,
//! `run fanout`, `run instructions`, `run scopes`; `run training` prepares what is shipped.
//!
//! Servers sit on core 0, load and upstreams on core 1. Variants take turns within each round, so
//! that only figures of one table may be compared. See the README for flags.

use portmoot_bench::flags::Flags;
use portmoot_bench::stage::Stage;
use portmoot_bench::{
    calls, cluster, consoles, fanout, instructions, isolation, memory, proto_calls, resolve,
    scopes, training,
};

fn main() {
    let flags = Flags::read();
    let stage = Stage::new(&flags);
    match flags.word() {
        "calls" => calls::run(&stage, &flags),
        "proto" => proto_calls::run(&stage, &flags),
        "memory" => memory::run(&stage, &flags),
        "cluster" => cluster::run(&stage, &flags),
        "consoles" => {
            if !consoles::run(&stage, &flags) {
                eprintln!("open consoles cost more than the aim allows");
                drop(stage);
                std::process::exit(1);
            }
        }
        "isolation" => isolation::run(&stage, &flags),
        "fanout" => fanout::run(&stage, &flags),
        "instructions" => instructions::run(&stage, &flags),
        "resolve" => resolve::run(&stage, &flags),
        "scopes" => scopes::run(&stage, &flags),
        "training" => training::run(&stage, &flags),
        _ => eprintln!(
            "run calls|proto|memory|cluster|consoles|isolation|fanout|instructions|resolve|scopes|training [--portmoot FILE] [--mcp-proxy FILE] [--rounds N] [--secs S]"
        ),
    }
}
