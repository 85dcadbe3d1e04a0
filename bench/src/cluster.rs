//! What a cluster costs: calls at its home, at another node, and at both at once, beside those at a
//! gateway alone; calls that another node conveys to the home; and the time until those are answered
//! again when the home dies, or is stopped.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::flags::Flags;
use crate::stage::{LOAD, Server, Stage, absolute, split};
use crate::table::{Figures, median};

const ALONE: u16 = 19_060;
const NODES: [u16; 2] = [19_061, 19_062];
const NATS: u16 = 19_063;
/// The name of the demo server's tool, as clients have it. Each node calls it.
const TOOL: &str = "demo_echo";
/// That of a server which the home alone calls.
const KEPT: &str = "kept_echo";
/// The servers of all gateways: that of [`TOOL`], and that of [`KEPT`].
const SERVERS: &str = "[servers.demo]\ntype = \"demo\"\n[servers.kept]\ntype = \"demo\"\n";
/// The longest time that a take-over may take before the bench gives up.
const TAKEOVER_MAX: Duration = Duration::from_secs(60);

/// Measures and prints.
pub fn run(stage: &Stage, flags: &Flags) {
    let Some(nats) = nats(stage, flags) else {
        eprintln!("no nats-server: --nats FILE, or NATS_SERVER=FILE");
        return;
    };
    calls(stage, flags, &nats);
    println!();
    takeovers(stage, flags);
}

/// One NATS server that writes each record to its disk before it is acknowledged.
fn nats(stage: &Stage, flags: &Flags) -> Option<Server> {
    let from_env = std::env::var("NATS_SERVER").unwrap_or_default();
    let binary = absolute(flags.text("--nats", &from_env));
    if binary.is_empty() {
        return None;
    }
    let store = stage.home.join("nats");
    let config = format!(
        "listen: 127.0.0.1:{NATS}\njetstream {{ store_dir: {:?}, sync_interval: always }}\n",
        store.display().to_string()
    );
    let file = stage.home.join("nats.conf");
    fs::write(&file, config).ok()?;
    let words = [&*binary, "-c", &file.display().to_string()].map(str::to_owned);
    Some(stage.serve(LOAD, NATS, &words))
}

/// A gateway of the bench's cluster, with an empty data directory.
fn node(stage: &Stage, port: u16) -> Server {
    let key = stage.home.join("cluster.key");
    if !key.exists() {
        fs::write(&key, "1f".repeat(32)).expect("the cluster's key");
        let _ = Command::new("chmod").arg("600").arg(&key).status();
    }
    let config = format!(
        "[cluster]\nname = \"bench\"\nnats = [\"nats://127.0.0.1:{NATS}\"]\nkey_file = {:?}\n\
         node = \"n{port}\"\n{SERVERS}placement = \"home\"\n",
        key.display().to_string()
    );
    stage.gateway(port, &config)
}

/// One row: where calls go, and the processes that work for them.
struct Row<'s> {
    label: &'static str,
    ports: Vec<u16>,
    tool: &'static str,
    servers: Vec<&'s Server>,
    rounds: Vec<Figures>,
}

fn calls(stage: &Stage, flags: &Flags, nats: &Server) {
    let alone = stage.gateway(ALONE, SERVERS);
    // The first node is the home.
    let nodes = NODES.map(|port| {
        let node = node(stage, port);
        stage.ready(port, "legacy", TOOL);
        node
    });
    let [home, other] = &nodes;
    stage.ready(ALONE, "legacy", TOOL);
    println!(
        "| connections each | calls at | CPU us/call, all processes | ratio | calls/s | p50 us | p99 us |"
    );
    println!("|---|---|---|---|---|---|---|");
    for connections in [1, 16] {
        let mut rows = [
            Row::of("a gateway alone", &[ALONE], &[&alone]),
            Row::of("the home of a cluster", &[home.port], &[home]),
            Row::of("another node", &[other.port], &[other]),
            Row::of("both nodes", &NODES, &[home, other, nats]),
            Row {
                tool: KEPT,
                ..Row::of(
                    "the home, by another node",
                    &[other.port],
                    &[home, other, nats],
                )
            },
        ];
        for _ in 0..flags.get("--rounds", 5) {
            for row in &mut rows {
                row.measure(stage, connections, flags.get("--secs", 2.0));
            }
        }
        print(connections, &rows);
    }
}

impl<'s> Row<'s> {
    fn of(label: &'static str, ports: &[u16], servers: &[&'s Server]) -> Self {
        Self {
            label,
            ports: ports.to_vec(),
            tool: TOOL,
            servers: servers.to_vec(),
            rounds: Vec::new(),
        }
    }

    /// Makes calls at all ports at once, by so many connections each.
    fn measure(&mut self, stage: &Stage, connections: usize, secs: f64) {
        let words = |port: &u16| {
            let mut words = split(&format!(
                "--to 127.0.0.1:{port} --era legacy --tool {} -c {connections} --warmup 0.3 --secs {secs}",
                self.tool
            ));
            for server in &self.servers {
                words.extend(["--pid".to_owned(), server.pid().to_string()]);
            }
            words
        };
        let loads: Vec<Figures> = thread::scope(|scope| {
            let begun: Vec<_> = self
                .ports
                .iter()
                .map(|port| {
                    let words = words(port);
                    scope.spawn(move || stage.load(&words))
                })
                .collect();
            let ended = begun.into_iter().map(|load| load.join());
            ended.map(|load| load.expect("a load")).collect()
        });
        self.rounds.push(together(&loads));
    }
}

/// The figures of several loads at once. Each has counted the processor time of all processes.
fn together(loads: &[Figures]) -> Figures {
    let sum = |name: &str| -> f64 { loads.iter().map(|load| load.get(name)).sum() };
    let rate = sum("calls_per_s");
    let cpu: f64 = loads
        .iter()
        .map(|load| load.get("cpu_us") * load.get("calls_per_s"))
        .sum();
    let count = loads.len() as f64;
    let mut all = loads.first().cloned().unwrap_or_default();
    all.set("calls_per_s", rate);
    all.set("cpu_us", cpu / count / rate);
    for name in ["p50_us", "p99_us"] {
        all.set(name, sum(name) / count);
    }
    all
}

fn print(connections: usize, rows: &[Row<'_>]) {
    let base = rows
        .first()
        .map_or(0.0, |row| median(&row.rounds, "cpu_us"));
    for row in rows {
        let of = |name| median(&row.rounds, name);
        println!(
            "| {connections} | {} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} |",
            row.label,
            of("cpu_us"),
            of("cpu_us") / base,
            of("calls_per_s"),
            of("p50_us"),
            of("p99_us"),
        );
    }
}

/// The ways in which a home ends.
const ENDS: [(&str, &str); 2] = [
    ("-KILL", "the home is killed"),
    ("-TERM", "the home is stopped"),
];

fn takeovers(stage: &Stage, flags: &Flags) {
    println!("| what | times | p50 s | max s |");
    println!("|---|---|---|---|");
    for (signal, label) in ENDS {
        let mut nodes = NODES.map(|port| Some(node(stage, port)));
        stage.ready(NODES[0], "legacy", TOOL);
        let mut times: Vec<f64> = Vec::new();
        for number in 0..flags.get("--takeovers", 6) {
            // The first node began, so it is the home; then they take turns.
            let (at, other) = (number % 2, 1 - number % 2);
            let ended = nodes[at].take().expect("a node that runs");
            times.push(takeover(stage, &ended, signal, NODES[other]));
            drop(ended);
            nodes[at] = Some(node(stage, NODES[at]));
            stage.ready(NODES[at], "legacy", TOOL);
        }
        times.sort_by(f64::total_cmp);
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        let most = times.last().copied().unwrap_or_default();
        println!("| {label} | {} | {middle:.2} | {most:.2} |", times.len());
    }
}

/// The seconds from the end of the home until another node answers a call.
fn takeover(stage: &Stage, home: &Server, signal: &str, other: u16) -> f64 {
    let begun = Instant::now();
    let _ = Command::new("kill")
        .args([signal, &home.pid().to_string()])
        .status();
    loop {
        // Without a session, whose end waits for the node that is lost too.
        let words = format!("--to 127.0.0.1:{other} --era modern --tool {KEPT} -c 1 --calls 1");
        let figures = stage.load(&split(&words));
        let is_gone = TcpStream::connect(("127.0.0.1", home.port)).is_err();
        if is_gone && figures.get("calls") > 0.0 && figures.get("wrong") == 0.0 {
            return begun.elapsed().as_secs_f64();
        }
        assert!(begun.elapsed() < TAKEOVER_MAX, "no node takes over");
    }
}
