//! Fan-out: what one delivery costs, beside its floor, a Node `ws` broadcast server and NATS.

use std::process::Command;

use crate::crowd::{name, topic};
use crate::flags::Flags;
use crate::stage::{SERVER, Server, Stage, absolute, split};
use crate::table::{Figures, median};
use crate::wires::token;

/// Participants that the gateway knows.
const PARTICIPANTS: usize = 2000;
/// One of them, that may say only one thing a minute.
const HASTY: usize = 1000;
/// The topics of a silent crowd.
const TOPICS: usize = 100;
/// How many topics talk at once, and who is in each: half of them talk, all hear.
const ROOMS: usize = 10;
const ROOM_MEMBERS: usize = 20;
/// Deliveries per second in an open loop.
const MODERATE: usize = 20_000;

/// One way of talking.
struct Manner {
    label: &'static str,
    /// The load's words for so many members.
    words: fn(usize) -> String,
    /// Which floor it has.
    floor: &'static str,
}

const MANNERS: [Manner; 4] = [
    Manner {
        label: "one sender, saturated",
        words: |members| {
            format!(
                "--talkers 1 --window {0} --burst {1}",
                window(members),
                window(members) / 4
            )
        },
        floor: "batch",
    },
    Manner {
        label: "ten senders, saturated",
        words: |members| format!("--talkers 10 --window {} --burst 1", window(members)),
        floor: "batch",
    },
    Manner {
        label: "one in flight",
        words: |_| "--talkers 1 --window 1 --burst 1".to_owned(),
        floor: "each",
    },
    Manner {
        label: "20,000 deliveries/s",
        words: |members| format!("--talkers 1 --rate {}", MODERATE / members),
        floor: "each",
    },
];

fn window(members: usize) -> usize {
    if members >= 1000 { 32 } else { 64 }
}

/// One server that takes part.
struct Variant {
    label: &'static str,
    wire: &'static str,
    /// The manners that it is measured in; empty means all.
    floor: &'static str,
    server: Server,
}

/// Measures and prints.
pub fn run(stage: &Stage, flags: &Flags) {
    let parts = flags.text("--parts", "fan,topics,refused,deaf,idle,join");
    let has = |part: &str| parts.split(',').any(|other| other == part);
    if has("fan") {
        fan(stage, flags);
    }
    if has("topics") {
        topics(stage, flags);
    }
    if has("refused") {
        refused(stage, flags);
    }
    if has("deaf") {
        deaf(stage, flags);
    }
    if has("idle") {
        idle(stage, flags);
    }
    if has("join") {
        join(stage, flags);
    }
}

fn fan(stage: &Stage, flags: &Flags) {
    let (rounds, secs) = (flags.get("--rounds", 3), flags.get("--secs", 0.5));
    let variants = cast(stage, flags);
    let only = flags.text("--only", "");
    println!(
        "| receivers | how | server | CPU ns/delivery | x floor | deliveries/s | p50 us | p99 us | load's core |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for members in counts(flags) {
        for manner in MANNERS.iter().filter(|manner| manner.label.contains(only)) {
            let fits =
                |variant: &&Variant| variant.floor.is_empty() || variant.floor == manner.floor;
            let taking: Vec<&Variant> = variants.iter().filter(fits).collect();
            let mut figures = vec![Vec::new(); taking.len()];
            for _ in 0..rounds {
                for (variant, figures) in taking.iter().zip(&mut figures) {
                    let words = format!(
                        "--members {members} --secs {secs} {}",
                        (manner.words)(members)
                    );
                    figures.push(crowd(stage, variant, &words));
                }
            }
            let floor = median(&figures[0], "cpu_ns");
            for (variant, figures) in taking.iter().zip(&figures) {
                let of = |name| median(figures, name);
                println!(
                    "| {members} | {} | {} | {:.0} | {:.2} | {:.0} | {:.0} | {:.0} | {:.2} |",
                    manner.label,
                    variant.label,
                    of("cpu_ns"),
                    of("cpu_ns") / floor,
                    of("per_s"),
                    of("p50_us"),
                    of("p99_us"),
                    of("load_share"),
                );
            }
        }
    }
}

fn counts(flags: &Flags) -> Vec<usize> {
    flags
        .text("--receivers", "10,100,1000")
        .split(',')
        .filter_map(|n| n.parse().ok())
        .collect()
}

/// Many topics at once, each with many talkers.
fn topics(stage: &Stage, flags: &Flags) {
    let (rounds, secs) = (flags.get("--rounds", 3), flags.get("--secs", 0.5));
    let feed = stage.own_server(SERVER, "feed", "axum", 19034, &[]);
    let variants = [
        variant("axum, queues, feed and flush", feed),
        variant("portmoot", gateway(stage, stage.portmoot(), 19035)),
    ];
    let mut figures = vec![Vec::new(); variants.len()];
    for _ in 0..rounds {
        for (variant, figures) in variants.iter().zip(&mut figures) {
            let talkers = ROOM_MEMBERS / 2;
            let words = format!(
                "--rooms {ROOMS} --topics {TOPICS} --members {ROOM_MEMBERS} --talkers {talkers} --window 64 --burst 1 --secs {secs}"
            );
            figures.push(crowd(stage, variant, &words));
        }
    }
    println!(
        "\n| {ROOMS} topics, each of {ROOM_MEMBERS}, half of them talk | CPU ns/delivery | deliveries/s | x axum | p50 us | x axum | p99 us | load's core |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let of = |at: usize, name| median(&figures[at], name);
    for (at, variant) in variants.iter().enumerate() {
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} | {:.0} | {:.2} |",
            variant.label,
            of(at, "cpu_ns"),
            of(at, "per_s"),
            of(at, "per_s") / of(0, "per_s"),
            of(at, "p50_us"),
            of(at, "p50_us") / of(0, "p50_us"),
            of(at, "p99_us"),
            of(at, "load_share"),
        );
    }
}

/// The cost of a message that is refused: while others listen.
fn refused(stage: &Stage, flags: &Flags) {
    let (rounds, secs) = (flags.get("--rounds", 3), flags.get("--secs", 0.5));
    let gateway = variant("portmoot", gateway(stage, stage.portmoot(), 19030));
    let rows = [
        ("admitted, heard by its sender alone", "--members 1"),
        (
            "refused, 99 others hear nothing: no capability for it",
            "--members 100 --refused --kind mcp/request:tools/call:nothing",
        ),
        (
            "the same: a reserved kind",
            "--members 100 --refused --kind system/welcome",
        ),
        (
            "the same: faster than its rate",
            &format!("--members 100 --refused --first {HASTY}"),
        ),
    ];
    let mut figures = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for (row, figures) in rows.iter().zip(&mut figures) {
            let words = format!("{} --talkers 1 --window 64 --burst 16 --secs {secs}", row.1);
            figures.push(crowd(stage, &gateway, &words));
        }
    }
    println!("\n| a message | CPU us | x admitted | messages/s |");
    println!("|---|---|---|---|");
    let admitted = median(&figures[0], "cpu_ns");
    for (row, figures) in rows.iter().zip(&figures) {
        let cpu = median(figures, "cpu_ns");
        println!(
            "| {} | {:.2} | {:.2} | {:.0} |",
            row.0,
            cpu / 1e3,
            cpu / admitted,
            median(figures, "per_s")
        );
    }
}

/// What hearers cost that never read.
fn deaf(stage: &Stage, flags: &Flags) {
    let (rounds, secs) = (flags.get("--rounds", 3), flags.get("--secs", 0.5));
    println!(
        "\n| receivers | that never read | CPU ns/delivery to the others | deliveries/s | p99 us | cut off | peak memory, KiB more |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (count, figures) in [0, 5].into_iter().zip(&mut figures) {
            let gateway = variant("portmoot", gateway(stage, stage.portmoot(), 19031));
            let words = format!(
                "--members {} --deaf {count} --talkers 1 --window 64 --burst 16 --secs {secs}",
                100 + count
            );
            figures.push(crowd(stage, &gateway, &words));
        }
    }
    for (count, figures) in [0, 5].into_iter().zip(&figures) {
        let of = |name| median(figures, name);
        println!(
            "| {} | {count} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            100 + count,
            of("cpu_ns"),
            of("per_s"),
            of("p99_us"),
            of("cut"),
            of("grown_kib"),
        );
    }
}

/// Memory of connections on which nothing is said.
fn idle(stage: &Stage, flags: &Flags) {
    println!("\n| 1,000 idle connections | KiB each |");
    println!("|---|---|");
    let rounds = flags.get("--rounds", 3);
    let row = |label: &str, topics: usize, start: &dyn Fn() -> Option<Variant>| {
        let mut figures = Vec::new();
        for _ in 0..rounds {
            let Some(variant) = start() else { return };
            figures.push(crowd(
                stage,
                &variant,
                &format!("--members 1000 --idle --topics {topics}"),
            ));
        }
        println!("| {label} | {:.2} |", median(&figures, "kib_each"));
    };
    let ours = || Some(variant("portmoot", gateway(stage, stage.portmoot(), 19032)));
    row("portmoot, 100 topics", TOPICS, &ours);
    row("portmoot, one topic", 1, &ours);
    row("Node `ws`", 1, &|| node(stage, flags));
    row("NATS", 1, &|| nats(stage));
}

/// A thousand at once into one topic.
fn join(stage: &Stage, flags: &Flags) {
    let mut figures = Vec::new();
    for _ in 0..flags.get("--rounds", 3) {
        let gateway = variant("portmoot", gateway(stage, stage.portmoot(), 19033));
        figures.push(crowd(stage, &gateway, "--members 1000 --join"));
    }
    println!("\n| 1,000 joins into one topic | ms |");
    println!("|---|---|");
    println!(
        "| until everybody has heard of everybody | {:.0} |",
        median(&figures, "join_ms")
    );
    println!(
        "| of it until all were connected | {:.0} |",
        median(&figures, "connected_ms")
    );
    println!("| CPU of the gateway | {:.0} |", median(&figures, "cpu_ms"));
}

fn crowd(stage: &Stage, variant: &Variant, words: &str) -> Figures {
    let Variant {
        label,
        wire,
        server,
        ..
    } = variant;
    let all = format!(
        "--to 127.0.0.1:{} --wire {wire} --pid {} {words}",
        server.port,
        server.pid()
    );
    let figures = stage.figures("crowd", &split(&all));
    let one_order = *wire == "nats" || figures.get("orders") <= 1.0;
    if figures.get("wrong") + figures.get("lost") + figures.get("missing") > 0.0 || !one_order {
        eprintln!("{label}, {words}: {figures:?}");
    }
    figures
}

fn cast(stage: &Stage, flags: &Flags) -> Vec<Variant> {
    let floor = |label, kind, port| {
        let server = stage.own_server(SERVER, "floor", kind, port, &[]);
        Variant {
            wire: "bare",
            floor: kind,
            ..variant(label, server)
        }
    };
    let mut all = vec![
        floor("floor: one write for all that came", "batch", 19021),
        floor("floor: raw writes", "each", 19022),
        variant("portmoot", gateway(stage, stage.portmoot(), 19023)),
    ];
    if flags.has("--before") {
        all.push(variant(
            "portmoot, before",
            gateway(stage, flags.text("--before", ""), 19024),
        ));
    }
    all.extend(node(stage, flags));
    all.extend(nats(stage));
    all
}

fn variant(label: &'static str, server: Server) -> Variant {
    Variant {
        label,
        wire: "ws",
        floor: "",
        server,
    }
}

/// A gateway that knows everybody.
fn gateway(stage: &Stage, binary: &str, port: u16) -> Server {
    let mut config = "[topics.main]\n".to_owned();
    let mut env = Vec::new();
    for number in 0..TOPICS {
        config += &format!("[topics.{}]\n", topic(number, TOPICS));
    }
    for number in 0..PARTICIPANTS {
        let (name, topic) = (name(number), topic(number, TOPICS));
        let rate = if number == HASTY {
            "rate = \"1/min\"\n"
        } else {
            ""
        };
        config += &format!(
            "[participants.{name}]\ntoken_env = \"T_{name}\"\ncapabilities = [\"chat\"]\ntopics = [\"main\", \"{topic}\"]\n{rate}"
        );
        env.push((format!("T_{name}"), token(&name)));
    }
    stage.gateway_of(binary, port, &config, &env)
}

/// The Node server, if there is one.
fn node(stage: &Stage, flags: &Flags) -> Option<Variant> {
    let file = format!("{}/broadcast.js", flags.text("--node-dir", "bench/node"));
    let there = Command::new("node").arg("--version").output().is_ok()
        && std::fs::exists(file.replace("broadcast.js", "node_modules/ws"))
            .is_ok_and(|there| there);
    if !there {
        eprintln!("no node, or no `ws` in its folder: Node is left out");
        return None;
    }
    let words = ["node".to_owned(), absolute(&file), "19025".to_owned()];
    Some(variant("Node `ws`", stage.serve(SERVER, 19025, &words)))
}

/// NATS, if it is installed.
fn nats(stage: &Stage) -> Option<Variant> {
    if Command::new("nats-server")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("no nats-server on PATH: NATS is left out");
        return None;
    }
    let words = split("nats-server -a 127.0.0.1 -p 19026");
    Some(Variant {
        wire: "nats",
        ..variant("NATS", stage.serve(SERVER, 19026, &words))
    })
}
