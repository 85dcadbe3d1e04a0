//! Rows of the table of instructions: what is served, and the two loads whose difference is
//! measured.

use crate::collector::collect;
use crate::signers::{Signers, publish};
use crate::stage::{Stage, stdio_table};

/// Where the measured server listens.
pub const CONFIG_PORT: u16 = 19030;
/// Where its upstream listens.
pub const UPSTREAM_PORT: u16 = 19031;
/// Where the keys of its issuer are.
const ISSUER_PORT: u16 = 19032;
/// Where its telemetry goes.
const COLLECTOR_PORT: u16 = 19034;

const NO_AUDIT: &str = "[audit]\nenabled = false\n";
const DEMO: &str = "[servers.demo]\ntype = \"demo\"\n";
/// Tools of the large server: with the demo server's three there are 5,003.
const TOOLS: usize = 5_000;
/// Callers of each kind that fetch the list for the first time.
const CALLERS: usize = 4;

/// What is served.
pub enum Served {
    /// hyper with a fixed answer.
    Floor,
    /// A gateway with this configuration.
    Gateway(String),
}

/// One row.
pub struct Row {
    /// Its name.
    pub label: &'static str,
    /// The aim, instructions.
    pub aim: Option<u64>,
    /// What is served.
    pub served: Served,
    /// The era of an upstream over HTTP.
    pub upstream: Option<&'static str>,
    /// The era and tool of a call that is made until it is answered, and more words of the load.
    pub ready: Option<(&'static str, &'static str, &'static str)>,
    /// Loads before the measured ones.
    pub before: Vec<String>,
    /// The load with few operations.
    pub few: String,
    /// The load with many.
    pub many: String,
    /// How many operations more.
    pub operations: f64,
}

/// What a call goes to.
#[derive(Clone, Copy, PartialEq)]
enum To {
    Demo,
    Stdio,
    Http,
}

/// All rows, in the order of the table.
pub fn rows(stage: &Stage) -> Vec<Row> {
    let mut rows = vec![
        floor("hyper, fixed answer, 1 connection", 1),
        floor("hyper, fixed answer, 16 connections", 16),
    ];
    rows.extend(calls(stage));
    rows.extend(mixed(stage));
    rows.extend(by_tools());
    rows.extend(by_rules(stage));
    rows.extend(held(stage));
    rows.extend(traced());
    rows.extend(tokens(stage));
    rows.extend(sessions());
    rows.extend(lists(stage));
    rows.extend(growth(stage));
    rows
}

/// The loads with few and many calls.
fn loads(words: &str, connections: usize) -> (String, String, f64) {
    let (few, many) = if connections == 1 {
        (50, 450)
    } else {
        (320, 1_920)
    };
    let load = |calls: usize| format!("{words} -c {connections} --calls {calls}");
    (load(few), load(many), (many - few) as f64)
}

fn floor(label: &'static str, connections: usize) -> Row {
    let (few, many, operations) = loads("--fixed", connections);
    Row {
        label,
        aim: None,
        served: Served::Floor,
        upstream: None,
        ready: None,
        before: Vec::new(),
        few,
        many,
        operations,
    }
}

fn calls(stage: &Stage) -> Vec<Row> {
    [
        (
            "in process, legacy, 1 connection",
            To::Demo,
            "legacy",
            false,
            1,
            Some(28_000),
        ),
        (
            "in process, legacy, 16 connections",
            To::Demo,
            "legacy",
            false,
            16,
            Some(28_000),
        ),
        (
            "in process, legacy, audit, 1 connection",
            To::Demo,
            "legacy",
            true,
            1,
            Some(32_000),
        ),
        (
            "in process, legacy, audit, 16 connections",
            To::Demo,
            "legacy",
            true,
            16,
            Some(32_000),
        ),
        (
            "in process, modern, 16 connections",
            To::Demo,
            "modern",
            false,
            16,
            None,
        ),
        (
            "to stdio, legacy, 1 connection",
            To::Stdio,
            "legacy",
            false,
            1,
            None,
        ),
        (
            "to stdio, legacy, 16 connections",
            To::Stdio,
            "legacy",
            false,
            16,
            Some(34_000),
        ),
        (
            "to stdio, legacy, audit, 16 connections",
            To::Stdio,
            "legacy",
            true,
            16,
            None,
        ),
        (
            "to stdio, modern, 16 connections",
            To::Stdio,
            "modern",
            false,
            16,
            None,
        ),
        (
            "to HTTP, legacy, 1 connection",
            To::Http,
            "legacy",
            false,
            1,
            None,
        ),
        (
            "to HTTP, legacy, 16 connections",
            To::Http,
            "legacy",
            false,
            16,
            Some(55_000),
        ),
        (
            "to HTTP, legacy, audit, 16 connections",
            To::Http,
            "legacy",
            true,
            16,
            None,
        ),
        (
            "to HTTP, modern, 16 connections",
            To::Http,
            "modern",
            false,
            16,
            None,
        ),
    ]
    .into_iter()
    .map(|(label, to, era, audit, connections, aim)| Row {
        aim,
        ..call_to(stage, label, to, (era, era), audit, connections)
    })
    .collect()
}

/// Calls between eras, each with the call of the same client to a server of its own era.
fn mixed(stage: &Stage) -> Vec<Row> {
    [
        (
            "mixed: legacy client, legacy stdio",
            To::Stdio,
            "legacy",
            "legacy",
        ),
        (
            "mixed: legacy client, modern stdio",
            To::Stdio,
            "legacy",
            "modern",
        ),
        (
            "mixed: modern client, modern stdio",
            To::Stdio,
            "modern",
            "modern",
        ),
        (
            "mixed: modern client, legacy stdio",
            To::Stdio,
            "modern",
            "legacy",
        ),
        (
            "mixed: legacy client, legacy HTTP",
            To::Http,
            "legacy",
            "legacy",
        ),
        (
            "mixed: legacy client, modern HTTP",
            To::Http,
            "legacy",
            "modern",
        ),
        (
            "mixed: modern client, modern HTTP",
            To::Http,
            "modern",
            "modern",
        ),
        (
            "mixed: modern client, legacy HTTP",
            To::Http,
            "modern",
            "legacy",
        ),
    ]
    .into_iter()
    .map(|(label, to, client, server)| call_to(stage, label, to, (client, server), false, 16))
    .collect()
}

/// A call by the tool `proxy` and a search, beside a direct call.
fn by_tools() -> Vec<Row> {
    let config =
        format!("{DEMO}{NO_AUDIT}[topics.main]\nbuiltin = [\"proxy\", \"search_tools\"]\n");
    let proxied = r#"{"action":"call","type":"tool","path":"demo_echo","args":{"text":"MARK"}}"#;
    let searched = r#"{"query":"echo,MARK","limit":1}"#;
    [
        ("by tools: direct call", String::new(), "demo_echo"),
        ("by tools: proxy", format!("--arguments {proxied}"), "proxy"),
        (
            "by tools: search_tools",
            format!("--arguments {searched} --size 0 --answer demo_echo"),
            "search_tools",
        ),
    ]
    .into_iter()
    .map(|(label, words, tool)| {
        let (few, many, operations) = loads(&format!("--era legacy --tool {tool} {words}"), 16);
        Row {
            few,
            many,
            operations,
            ..call(label, config.clone(), ("legacy", "demo_echo", ""), 16)
        }
    })
    .collect()
}

/// A direct call beside rules that ask and that it does not match, and one that a rule counts.
fn by_rules(stage: &Stage) -> Vec<Row> {
    let may = "\"mcp/*\"";
    let config = format!(
        "{DEMO}{NO_AUDIT}{}{}[topics.main]\n",
        participant(stage, "ann", may),
        participant(stage, "short", may)
    );
    let asking = |number: usize, tool: &str, guard: &str| {
        format!(
            "[[rule]]\nid = \"r{number}\"\nauthor = \"ann\"\ndecision = \"ask\"\nkind = \"mcp/request:tools/call:{tool}\"\n\
             to = \"demo\"\nproposers = [\"*\"]\n{guard}\n"
        )
    };
    let stops = |number: usize, tool: &str| {
        asking(
            number,
            tool,
            &format!("[rule.when]\n\"/text\" = {{ equals = \"stop {number}\" }}"),
        )
    };
    let many: String = (1..=32).map(|number| stops(number, "echo")).collect();
    [
        ("by rules: none", String::new()),
        ("by rules: one that asks, of another tool", stops(1, "now")),
        ("by rules: one that asks, of this tool", stops(1, "echo")),
        ("by rules: 32 that ask, of this tool", many),
        (
            "by rules: one that counts",
            asking(1, "echo", "rate = \"9999/h\""),
        ),
    ]
    .into_iter()
    .map(|(label, rules)| {
        let file = format!("{}.toml", label.replace([' ', ':', ','], "_"));
        std::fs::write(stage.home.join(&file), rules).expect("a file of rules");
        let config = format!("{config}rules = \"{file}\"\n");
        let bearer = format!("--bearer {}", token("short")).leak();
        call(label, config, ("legacy", "demo_echo", bearer), 16)
    })
    .collect()
}

/// A call that is held, and rejected at once by a rule of its tool: by the only one, or by the last of
/// many that look at it. Its proposal is in the journal, with its end.
fn held(stage: &Stage) -> Vec<Row> {
    let rejecting = |id: &str, when: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
             kind = \"mcp/request:tools/call:echo\"\nto = \"demo\"\nproposers = [\"*\"]\n{when}\n"
        )
    };
    let beside = |count: usize| {
        let others = (1..=count).map(|number| {
            let when = format!("[rule.when]\n\"/text\" = {{ equals = \"stop {number}\" }}");
            rejecting(&format!("r{number}"), &when)
        });
        // The last by name, which is their order.
        others.chain([rejecting("t1", "")]).collect::<String>()
    };
    [
        ("held: rejected by the one rule", beside(0)),
        ("held: rejected by the last of 32 rules", beside(31)),
    ]
    .into_iter()
    .map(|(label, rules)| {
        let file = format!("{}.toml", label.replace([' ', ':'], "_"));
        std::fs::write(stage.home.join(&file), rules).expect("a file of rules");
        let config = format!(
            "{DEMO}{NO_AUDIT}{}{}[topics.main]\nrules = \"{file}\"\n",
            participant(stage, "ann", "\"mcp/*\""),
            participant(stage, "short", "\"mcp/request:*/list\", \"mcp/proposal:*\"")
        );
        let words = format!("--bearer {} --answer denied-not-executed", token("short"));
        call(label, config, ("legacy", "demo_echo", words.leak()), 16)
    })
    .collect()
}

/// A call without telemetry, one that is measured and not traced, one that is measured and could be
/// traced, and one that is traced: with what the exporter does of it.
fn traced() -> Vec<Row> {
    let collector = collect(COLLECTOR_PORT);
    let telemetry = |sample: &str| {
        format!("[telemetry]\notlp = \"{collector}\"\ninterval = \"1d\"\nsample = {sample}\n")
    };
    [
        ("traces: no telemetry", String::new(), 0),
        ("traces: measured, none traced", telemetry("0"), 600),
        ("traces: on, not sampled", telemetry("0.000000001"), 600),
        ("traces: sampled", telemetry("1"), 6_000),
    ]
    .into_iter()
    .map(|(label, telemetry, more)| {
        let config = format!("{DEMO}{NO_AUDIT}{telemetry}");
        Row {
            aim: Some(28_000 + more),
            ..call(label, config, ("legacy", "demo_echo", ""), 16)
        }
    })
    .collect()
}

/// A call with a static token, one with an access token of an issuer that is known, and one whose
/// scopes narrow it.
fn tokens(stage: &Stage) -> Vec<Row> {
    let signers = Signers::new();
    let issuer = publish(ISSUER_PORT, signers.keys());
    let public = format!("http://127.0.0.1:{CONFIG_PORT}");
    let jwt = signers.token("ES256", &issuer, &format!("{public}/mcp"), "ann");
    // Its bytes are read too: a static token that is as long tells them apart.
    let long = "t".repeat(jwt.len());
    std::fs::write(stage.home.join("long.token"), &long).expect("a token");
    let config = format!(
        "public_url = \"{public}\"\n{DEMO}{NO_AUDIT}{}[participants.long]\ntoken_file = \"long.token\"\ncapabilities = [\"mcp/*\"]\n\
         [profiles.all]\ncapabilities = [\"mcp/*\"]\n[issuers.corp]\nissuer = \"{issuer}\"\njwks_url = \"{issuer}/keys\"\nunknown = \"all\"\n",
        participant(stage, "short", "\"mcp/*\"")
    );
    let scopes =
        format!("{config}[scopes.\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\"]\n");
    [
        ("token: static", config.clone(), token("short")),
        ("token: static, as long as a JWT", config.clone(), long),
        ("token: a JWT that is known", config, jwt.clone()),
        ("token: a JWT that is known, with scopes", scopes, jwt),
    ]
    .into_iter()
    .map(|(label, config, bearer)| {
        // The rows live as long as the program.
        let bearer = format!("--bearer {bearer}").leak();
        call(label, config, ("legacy", "demo_echo", bearer), 16)
    })
    .collect()
}

fn call_to(
    stage: &Stage,
    label: &'static str,
    to: To,
    (client, server): (&'static str, &'static str),
    audit: bool,
    connections: usize,
) -> Row {
    let (config, tool) = match to {
        To::Demo => (DEMO.to_owned(), "demo_echo"),
        To::Stdio => (stdio(stage, server, 1), "s_echo"),
        To::Http => (
            format!(
                "[servers.h]\nurl = \"http://127.0.0.1:{UPSTREAM_PORT}/mcp\"\nera = \"{server}\"\n"
            ),
            "h_echo",
        ),
    };
    let config = if audit { config } else { config + NO_AUDIT };
    let upstream = (to == To::Http).then_some(server);
    Row {
        upstream,
        ..call(label, config, (client, tool, ""), connections)
    }
}

fn call(
    label: &'static str,
    config: String,
    ready: (&'static str, &'static str, &'static str),
    connections: usize,
) -> Row {
    let (era, tool, bearer) = ready;
    let (few, many, operations) =
        loads(&format!("--era {era} --tool {tool} {bearer}"), connections);
    Row {
        label,
        aim: None,
        served: Served::Gateway(config),
        upstream: None,
        ready: Some(ready),
        before: Vec::new(),
        few,
        many,
        operations,
    }
}

fn stdio(stage: &Stage, era: &str, tools: usize) -> String {
    stdio_table(
        "s",
        &stage.stdio_echo(&[era, "--tools", &tools.to_string()]),
        &format!("era = \"{era}\""),
    )
}

/// All sessions of these rows are one participant's.
const MANY_SESSIONS: &str = "[server.limits]\nparticipant_sessions_max = 10000\n";

fn sessions() -> Vec<Row> {
    [
        ("initialize, 10 sessions", 10),
        ("initialize, 10,000 sessions", 10_000),
    ]
    .into_iter()
    .map(|(label, there)| Row {
        aim: Some(40_000),
        before: vec![format!("--initialize {there}")],
        few: "--initialize 10".to_owned(),
        many: "--initialize 110".to_owned(),
        operations: 100.0,
        ..call(
            label,
            DEMO.to_owned() + NO_AUDIT + MANY_SESSIONS,
            ("legacy", "demo_echo", ""),
            1,
        )
    })
    .collect()
}

/// Configures a participant and writes the file of its token.
fn participant(stage: &Stage, name: &str, capabilities: &str) -> String {
    std::fs::write(stage.home.join(format!("{name}.token")), token(name)).expect("a token");
    format!(
        "[participants.{name}]\ntoken_file = \"{name}.token\"\ncapabilities = [{capabilities}]\n"
    )
}

fn token(name: &str) -> String {
    format!("token-of-{name}-0123456789")
}

/// Capabilities to call so many tools by their public names: every so many-th from one on, and at
/// last `echo`. Sets of callers differ, so that none has the list of another.
fn exact(count: usize, from: usize) -> String {
    let names = (0..count - 1).map(|at| format!("tool_{:05}", 1 + from + at * (TOOLS / count)));
    let names: Vec<String> = names
        .chain(["echo".to_owned()])
        .map(|name| format!("\"mcp/request:tools/call:s_{name}\""))
        .collect();
    names.join(",")
}

/// A configuration of participants: callers of lists by 200 exact names (`e`), and of all (`a`).
fn audience(stage: &Stage) -> String {
    let mut config = DEMO.to_owned() + &stdio(stage, "legacy", TOOLS) + NO_AUDIT;
    for at in 0..=CALLERS {
        for (kind, capabilities) in [("e", &*exact(200, at)), ("a", "\"mcp/*\"")] {
            let name = format!("{kind}{at}");
            config += &participant(stage, &name, capabilities);
        }
    }
    for (name, capabilities) in [
        (
            "first",
            format!("\"mcp/request:tools/call:s_echo\",{}", exact(200, 0)),
        ),
        ("one", "\"mcp/request:tools/call:s_echo\"".to_owned()),
    ] {
        config += &participant(stage, name, &capabilities);
    }
    config
}

fn lists(stage: &Stage) -> Vec<Row> {
    // The first caller of each kind has what is made once for all.
    let bearers = |kind: &str| -> String {
        (1..=CALLERS)
            .map(|at| format!("--bearer {} ", token(&format!("{kind}{at}"))))
            .collect()
    };
    [
        (
            "tools/list, 5,003 tools, 200 exact, first",
            "e",
            0,
            1,
            Some(6_000_000),
            CALLERS,
        ),
        (
            "tools/list, 5,003 tools, 200 exact, again",
            "e",
            1,
            6,
            Some(400_000),
            CALLERS * 5,
        ),
        (
            "tools/list, 5,003 tools, all, first",
            "a",
            0,
            1,
            None,
            CALLERS,
        ),
        (
            "tools/list, 5,003 tools, all, each later page",
            "a",
            1,
            3,
            Some(400_000),
            CALLERS * 2 * PAGES,
        ),
    ]
    .into_iter()
    .map(|(label, kind, few, many, aim, operations)| {
        let bearers = bearers(kind);
        let first = format!("--list 1 --bearer {}", token(&format!("{kind}0")));
        Row {
            aim,
            before: vec![first],
            few: format!("--list {few} {bearers}"),
            many: format!("--list {many} {bearers}"),
            operations: operations as f64,
            ..call(
                label,
                audience(stage),
                ("legacy", "s_echo", "--bearer token-of-a0-0123456789"),
                1,
            )
        }
    })
    .collect()
}

/// Pages of the whole list.
pub const PAGES: usize = 6;

fn growth(stage: &Stage) -> Vec<Row> {
    let demos = |count: usize| -> String {
        (0..count)
            .map(|at| format!("[servers.d{at}]\ntype = \"demo\"\n"))
            .collect::<String>()
            + NO_AUDIT
    };
    let plain = || DEMO.to_owned() + NO_AUDIT;
    let topics: String = (0..100).map(|at| format!("[topics.t{at}]\n")).collect();
    let plain_call = ("legacy", "demo_echo", "");
    let mut rows = vec![
        call(
            "growth: 5,000 tools at the server",
            stdio(stage, "legacy", TOOLS) + NO_AUDIT,
            ("legacy", "s_echo", ""),
            16,
        ),
        call(
            "growth: 9,900 sessions",
            plain() + MANY_SESSIONS,
            plain_call,
            16,
        ),
        call(
            "growth: 10 servers",
            demos(10),
            ("legacy", "d0_echo", ""),
            16,
        ),
        call(
            "growth: 100 servers",
            demos(100),
            ("legacy", "d0_echo", ""),
            16,
        ),
        call(
            "growth: 100 topics",
            plain() + "[topics.main]\n" + &topics,
            plain_call,
            16,
        ),
    ];
    rows[1].before = vec!["--initialize 9900".to_owned()];
    rows.push(participants(stage));
    rows.push(proposals(stage));
    let audience = audience(stage);
    for (label, bearer) in [
        ("growth: 1 capability", "--bearer token-of-one-0123456789"),
        (
            "growth: first of 200 capabilities",
            "--bearer token-of-first-0123456789",
        ),
        (
            "growth: last of 200 capabilities",
            "--bearer token-of-e0-0123456789",
        ),
    ] {
        rows.push(call(
            label,
            audience.clone(),
            ("legacy", "s_echo", bearer),
            16,
        ));
    }
    rows
}

/// The caller of rows with many other participants.
const CALLER: (&str, &str, &str) = ("legacy", "demo_echo", "--bearer token-of-caller-0123456789");

/// 1,000 participants that have each opened a session.
fn participants(stage: &Stage) -> Row {
    let mut config = DEMO.to_owned() + NO_AUDIT + &participant(stage, "caller", "\"mcp/*\"");
    let names: Vec<String> = (0..1_000).map(|at| format!("p{at}")).collect();
    config.extend(
        names
            .iter()
            .map(|name| participant(stage, name, "\"mcp/*\"")),
    );
    let bearers: String = names
        .iter()
        .map(|name| format!(" --bearer {}", token(name)))
        .collect();
    let before = vec![format!("--initialize 1{bearers}")];
    Row {
        before,
        ..call("growth: 1,000 participants", config, CALLER, 16)
    }
}

/// 1,000 pending proposals of four participants.
fn proposals(stage: &Stage) -> Row {
    let mut config = DEMO.to_owned() + NO_AUDIT + &participant(stage, "caller", "\"mcp/*\"");
    config += "[server.limits]\nhold = \"1ms\"\n[topics.main]\nproposal_ttl = \"1h\"\n";
    let names = ["p0", "p1", "p2", "p3"];
    for name in names {
        config += &participant(stage, name, "\"mcp/proposal:*\"");
    }
    // Each call is answered at once: it waits for approval.
    let propose = |name: &str| {
        format!(
            "--era modern --tool demo_echo --fixed -c 1 --calls 250 --bearer {}",
            token(name)
        )
    };
    Row {
        before: names.map(propose).to_vec(),
        ..call("growth: 1,000 pending proposals", config, CALLER, 16)
    }
}
