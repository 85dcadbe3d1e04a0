//! Resident memory, shared pages counted once: the idle gateway with four upstreams, a session, a
//! session with a held GET stream.

use crate::flags::Flags;
use crate::proc::{guards, pss_kib};
use crate::stage::{Stage, split, stdio_table};
use crate::table::{Figures, median};

/// Measures and prints. Each figure is from a gateway of its own, started for it.
pub fn run(stage: &Stage, flags: &Flags) {
    let rounds = flags.get("--rounds", 3);
    let (mut idle, mut sessions, mut streams) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        idle.push(Figures::read(&format!("kib={}", held(stage, 0, false))));
        sessions.push(Figures::read(&format!(
            "kib={}",
            held(stage, flags.get("--sessions", 1000), false)
        )));
        streams.push(Figures::read(&format!(
            "kib={}",
            held(stage, flags.get("--streams", 300), true)
        )));
    }
    println!("| what | KiB |");
    println!("|---|---|");
    println!(
        "| idle gateway, four stdio upstreams (guard process and keepers included) | {:.0} |",
        median(&idle, "kib")
    );
    println!("| each legacy session | {:.2} |", median(&sessions, "kib"));
    println!(
        "| each legacy session with a held GET stream | {:.2} |",
        median(&streams, "kib")
    );
}

fn held(stage: &Stage, count: usize, streams: bool) -> f64 {
    let servers: String = ["a", "b", "c", "d"]
        .map(|name| stdio_table(name, &stage.stdio_echo(&["legacy"]), "era = \"legacy\""))
        .concat();
    let gateway = stage.gateway(19020, &servers);
    stage.ready(gateway.port, "legacy", "d_echo");
    if count == 0 {
        let both: Vec<u32> = guards(gateway.pid())
            .into_iter()
            .chain([gateway.pid()])
            .collect();
        return pss_kib(&both) as f64;
    }
    let flag = if streams { "--streams" } else { "" };
    let words = format!(
        "--to 127.0.0.1:{} --hold {count} {flag} --pid {}",
        gateway.port,
        gateway.pid()
    );
    stage.load(&split(&words)).get("kib_each")
}
