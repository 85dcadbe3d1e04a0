//! `tools/call` over proto-mcp beside the same call over JSON-RPC.

use crate::calls::{Variant, on_pipe, table, variant, words_of};
use crate::flags::Flags;
use crate::stage::{SERVER, Stage, stdio_table};

/// Measures and prints.
pub fn run(stage: &Stage, flags: &Flags) {
    let frames = (
        "taskset",
        ["-c", "1", &stage.own("echo"), "frames"]
            .map(str::to_owned)
            .to_vec(),
    );
    let servers = [
        "[servers.demo]\ntype = \"demo\"\n".to_owned(),
        stdio_table("sl", &stage.stdio_echo(&["legacy"]), "era = \"legacy\""),
        stdio_table("sp", &frames, "type = \"proto\""),
    ]
    .concat();
    let gateway = stage.gateway(19010, &servers);
    ["demo_echo", "sl_echo", "sp_echo"]
        .iter()
        .for_each(|tool| stage.ready(gateway.port, "legacy", tool));
    let hyper = stage.own_server(SERVER, "floor", "hyper", 19003, &[]);
    let own = stage.configured(19013, &servers);
    let config = own.last().expect("a configuration").clone();
    let pipe = words_of(&[stage.portmoot(), "stdio", "--yes", "--config", &config]);
    let echo = stage.own("echo");
    let all = || -> Vec<Variant> {
        vec![
            variant("floor: hyper, fixed answer", &hyper, "--fixed"),
            on_pipe(
                "server alone, pipe, JSON-RPC",
                &format!("--child {}", words_of(&[&echo, "stdio", "legacy"])),
            ),
            on_pipe(
                "server alone, pipe, frames",
                &format!("--wire frames --child {}", words_of(&[&echo, "frames"])),
            ),
            variant(
                "in process, JSON-RPC over HTTP",
                &gateway,
                "--tool demo_echo",
            ),
            variant("in process, gRPC", &gateway, "--tool demo_echo --wire grpc"),
            variant(
                "in process, frames over TCP",
                &gateway,
                "--tool demo_echo --wire frames",
            ),
            variant(
                "JSON-RPC over HTTP to a JSON-RPC server",
                &gateway,
                "--tool sl_echo",
            ),
            variant(
                "gRPC to a JSON-RPC server",
                &gateway,
                "--tool sl_echo --wire grpc",
            ),
            variant(
                "frames over TCP to a JSON-RPC server",
                &gateway,
                "--tool sl_echo --wire frames",
            ),
            variant(
                "JSON-RPC over HTTP to a proto-mcp server",
                &gateway,
                "--tool sp_echo",
            ),
            variant(
                "gRPC to a proto-mcp server",
                &gateway,
                "--tool sp_echo --wire grpc",
            ),
            variant(
                "frames over TCP to a proto-mcp server",
                &gateway,
                "--tool sp_echo --wire frames",
            ),
            on_pipe(
                "portmoot stdio, JSON-RPC",
                &format!("--tool demo_echo --child {pipe}"),
            ),
            on_pipe(
                "portmoot stdio, frames",
                &format!("--tool demo_echo --wire frames --child {pipe}"),
            ),
        ]
    };
    let bases = [
        ("hyper", "floor: hyper, fixed answer"),
        ("JSON-RPC, in process", "in process, JSON-RPC over HTTP"),
    ];
    table(stage, flags, bases, &all);
}
