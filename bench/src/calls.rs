//! `tools/call` against its floors, its upstreams without a gateway, and another gateway.

use std::fs;

use crate::flags::Flags;
use crate::stage::{LOAD, SERVER, Server, Stage, split, stdio_table};
use crate::table::{Figures, median};

/// One row of the table.
pub(crate) struct Variant {
    pub(crate) label: &'static str,
    /// The load's words, without connections and times.
    pub(crate) words: String,
    /// None if the load starts the server itself.
    pub(crate) pid: Option<u32>,
    rounds: Vec<Figures>,
}

/// A server that the load starts itself, on a pipe.
pub(crate) fn on_pipe(label: &'static str, words: &str) -> Variant {
    Variant {
        label,
        words: words.to_owned(),
        pid: None,
        rounds: Vec::new(),
    }
}

pub(crate) fn variant(label: &'static str, server: &Server, words: &str) -> Variant {
    let words = format!("--to 127.0.0.1:{} {words}", server.port);
    Variant {
        label,
        words,
        pid: Some(server.pid()),
        rounds: Vec::new(),
    }
}

/// Measures and prints.
pub fn run(stage: &Stage, flags: &Flags) {
    let (servers, all) = cast(stage, flags);
    let bases = [
        ("hyper", "floor: hyper, fixed answer"),
        ("byte proxy", "floor: byte proxy to HTTP"),
    ];
    table(stage, flags, bases, &|| all(&servers));
}

/// Measures these variants at each number of connections; `bases` are those that the others are
/// compared with.
pub(crate) fn table(
    stage: &Stage,
    flags: &Flags,
    bases: [(&str, &str); 2],
    all: &dyn Fn() -> Vec<Variant>,
) {
    let (rounds, secs) = (flags.get("--rounds", 5), flags.get("--secs", 1.0));
    let connections = flags
        .text("--connections", "1,16,64")
        .split(',')
        .filter_map(|n| n.parse::<usize>().ok());
    let only = flags.text("--only", "");
    let [(one, first), (two, second)] = bases;
    println!(
        "| connections | variant | CPU us/call | x {one} | x {two} | calls/s | p50 us | p99 us |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for count in connections {
        let mut variants: Vec<Variant> = all()
            .into_iter()
            .filter(|v| only.is_empty() || v.label.contains(only) || v.label.starts_with("floor"))
            .collect();
        for _ in 0..rounds {
            for variant in &mut variants {
                let times = if variant.pid.is_some() {
                    format!("-c {count}")
                } else {
                    format!("--depth {count}")
                };
                let mut words = split(&format!(
                    "{} {times} --warmup 0.3 --secs {secs}",
                    variant.words
                ));
                if let Some(at) = words.iter().position(|word| word == "--child") {
                    words[at + 1] = words[at + 1].replace('|', " ");
                }
                words.extend(
                    variant
                        .pid
                        .iter()
                        .flat_map(|pid| ["--pid".to_owned(), pid.to_string()]),
                );
                let figures = stage.load(&words);
                if figures.get("wrong") > 0.0 || figures.get("calls") == 0.0 {
                    eprintln!(
                        "{}: {} wrong answers: {}",
                        variant.label,
                        figures.get("wrong"),
                        figures.first_wrong()
                    );
                }
                variant.rounds.push(figures);
            }
        }
        print(count, &variants, [first, second]);
    }
}

fn print(count: usize, variants: &[Variant], bases: [&str; 2]) {
    let cpu = |label: &str| {
        variants
            .iter()
            .find(|variant| variant.label == label)
            .map_or(0.0, |variant| median(&variant.rounds, "cpu_us"))
    };
    let [first, second] = bases.map(cpu);
    for variant in variants {
        let of = |name| median(&variant.rounds, name);
        println!(
            "| {count} | {} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} |",
            variant.label,
            of("cpu_us"),
            of("cpu_us") / first,
            of("cpu_us") / second,
            of("calls_per_s"),
            of("p50_us"),
            of("p99_us"),
        );
    }
}

/// Everything that takes part.
struct Cast {
    hyper: Server,
    bytes: Server,
    alone: Server,
    alone_modern: Server,
    gateway: Server,
    /// The same without an audit log.
    unrecorded: Server,
    peer: Option<Server>,
    /// The command of the upstream on a pipe.
    echo: String,
    _upstreams: Vec<Server>,
}

fn cast(stage: &Stage, flags: &Flags) -> (Cast, impl Fn(&Cast) -> Vec<Variant>) {
    let http = stage.own_server(LOAD, "echo", "http", 19001, &["legacy"]);
    let http_modern = stage.own_server(LOAD, "echo", "http", 19002, &["modern"]);
    let servers = [
        "[servers.demo]\ntype = \"demo\"\n".to_owned(),
        stdio_table("sl", &stage.stdio_echo(&["legacy"]), "era = \"legacy\""),
        stdio_table("sm", &stage.stdio_echo(&["modern"]), "era = \"modern\""),
        "[servers.hl]\nurl = \"http://127.0.0.1:19001/mcp\"\nera = \"legacy\"\n".to_owned(),
        "[servers.hm]\nurl = \"http://127.0.0.1:19002/mcp\"\nera = \"modern\"\n".to_owned(),
    ];
    let gateway = stage.gateway(19010, &servers.concat());
    let unrecorded = stage.gateway(19012, &(servers.concat() + "[audit]\nenabled = false\n"));
    for (era, tool) in [
        ("legacy", "demo_echo"),
        ("legacy", "sl_echo"),
        ("modern", "sm_echo"),
        ("legacy", "hl_echo"),
        ("modern", "hm_echo"),
    ] {
        stage.ready(gateway.port, era, tool);
        stage.ready(unrecorded.port, era, tool);
    }
    let cast = Cast {
        hyper: stage.own_server(SERVER, "floor", "hyper", 19003, &[]),
        bytes: stage.own_server(SERVER, "floor", "bytes", 19004, &["127.0.0.1:19001"]),
        alone: stage.own_server(SERVER, "echo", "http", 19005, &["legacy"]),
        alone_modern: stage.own_server(SERVER, "echo", "http", 19006, &["modern"]),
        gateway,
        unrecorded,
        peer: peer(stage, flags),
        echo: words_of(&[&stage.own("echo"), "stdio", "legacy"]),
        _upstreams: vec![http, http_modern],
    };
    (cast, variants)
}

fn variants(cast: &Cast) -> Vec<Variant> {
    let gateway = |label, words| variant(label, &cast.gateway, words);
    let unrecorded = |label, words| variant(label, &cast.unrecorded, words);
    let mut all = vec![
        variant("floor: hyper, fixed answer", &cast.hyper, "--fixed"),
        variant("floor: byte proxy to HTTP", &cast.bytes, "--era legacy"),
        variant("upstream alone, HTTP, legacy", &cast.alone, "--era legacy"),
        variant(
            "upstream alone, HTTP, modern",
            &cast.alone_modern,
            "--era modern",
        ),
        on_pipe("upstream alone, stdio", &format!("--child {}", cast.echo)),
        gateway(
            "portmoot, in process, legacy",
            "--era legacy --tool demo_echo",
        ),
        gateway(
            "portmoot, in process, modern",
            "--era modern --tool demo_echo",
        ),
        unrecorded(
            "portmoot without audit, in process, legacy",
            "--era legacy --tool demo_echo",
        ),
        unrecorded(
            "portmoot without audit, to stdio, legacy",
            "--era legacy --tool sl_echo",
        ),
        gateway("portmoot to stdio, legacy", "--era legacy --tool sl_echo"),
        gateway("portmoot to stdio, modern", "--era modern --tool sm_echo"),
        gateway("portmoot to HTTP, legacy", "--era legacy --tool hl_echo"),
        gateway("portmoot to HTTP, modern", "--era modern --tool hm_echo"),
    ];
    if let Some(peer) = &cast.peer {
        all.push(variant(
            "mcp-proxy 0.6 to stdio, legacy",
            peer,
            "--path / --era legacy --tool s/echo",
        ));
        all.push(variant(
            "mcp-proxy 0.6 to HTTP, legacy",
            peer,
            "--path / --era legacy --tool h/echo",
        ));
    }
    all
}

/// A command as one word among the load's, which `table` takes apart again.
pub(crate) fn words_of(command: &[&str]) -> String {
    command.join("|")
}

/// The other gateway, if there is a binary of it.
fn peer(stage: &Stage, flags: &Flags) -> Option<Server> {
    let from_env = std::env::var("MCP_PROXY").unwrap_or_default();
    let binary = flags.text("--mcp-proxy", &from_env);
    if binary.is_empty() {
        eprintln!("no mcp-proxy given (--mcp-proxy FILE or MCP_PROXY): it is left out");
        return None;
    }
    let (command, args) = stage.stdio_echo(&["legacy"]);
    let config = format!(
        "[proxy]\nname = \"bench\"\nseparator = \"/\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = 19011\n\
         [[backends]]\nname = \"s\"\ntransport = \"stdio\"\ncommand = {command:?}\nargs = {args:?}\n\
         [[backends]]\nname = \"h\"\ntransport = \"http\"\nurl = \"http://127.0.0.1:19001/mcp\"\n\
         [observability]\nlog_level = \"error\"\n"
    );
    let file = stage.home.join("mcp-proxy.toml");
    fs::write(&file, config).ok()?;
    Some(stage.serve(
        SERVER,
        19011,
        &[
            binary.to_owned(),
            "--config".to_owned(),
            file.display().to_string(),
        ],
    ))
}
