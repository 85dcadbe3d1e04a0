//! The matrix: clients of both eras on two SDKs, servers of both eras, stdio and HTTP on both sides
//! of the gateway, and every feature of the protocol in each combination. A cell is green, or the
//! specification makes it impossible.

mod jobs;

use std::collections::BTreeSet;
use std::fmt::Write;

use harness::{CellsSeen, Running, Target, python_cells, rust_cells};
use serde_json::Value;

use crate::front::{Front, over_http, over_stdio, pipe};
use crate::home::Home;
use crate::peer::Peer;

use Era::{Legacy, Modern};
use Saw::{ByClient, Same};
use Sdk::{Python, Rust};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sdk {
    Python,
    Rust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn name(self) -> &'static str {
        match self {
            Legacy => "legacy",
            Modern => "modern",
        }
    }
}

/// A side's transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Pipe,
    Http,
}

/// What a client sees of a cell, as JSON. It is the same whatever the server's era, the transports
/// and the SDK are.
#[derive(Debug, Clone, Copy)]
enum Saw {
    Same(&'static str),
    ByClient {
        legacy: &'static str,
        modern: &'static str,
    },
}

/// Every cell.
const CELLS: &[(&str, Saw)] = &[
    (
        "era",
        ByClient {
            legacy: r#""2025-11-25""#,
            modern: r#""2026-07-28""#,
        },
    ),
    (
        "list",
        Same(
            r#"[["Answers the text",{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}],
                ["test://static-text","test://static-binary","test://watched-resource"],["test://template/{id}/data"]]"#,
        ),
    ),
    // Two pages at the client, eleven at the server.
    ("paged_list", Same(r#"[2,1005,1005,"fixture_listed_999"]"#)),
    ("call", Same(r#"["grüße",{"sum":5}]"#)),
    (
        "read",
        Same(r#"["This is the content of the static text resource.","image/png",96]"#),
    ),
    (
        "template_read",
        Same(r#""{\"data\":\"Data for ID: 42\",\"id\":\"42\",\"templateTest\":true}""#),
    ),
    (
        "get",
        Same(r#""Prompt with arguments: arg1='one', arg2='two'""#),
    ),
    (
        "complete",
        Same(r#"[["paris","park","party"],["12","123"]]"#),
    ),
    (
        "elicitation_accepted",
        Same(
            r#"["Elicitation completed: action=accept, content={\"email\":\"ada@example.com\",\"username\":\"Ada\"}",["accept"]]"#,
        ),
    ),
    (
        "elicitation_declined",
        Same(r#"["Elicitation completed: action=decline, content=null",["decline"]]"#),
    ),
    (
        "elicitation_cancelled",
        Same(r#"["Elicitation completed: action=cancel, content=null",["cancel"]]"#),
    ),
    (
        "elicitation_url",
        Same(
            r#"["Elicitation completed: action=accept, content=null",["https://example.com/visit"]]"#,
        ),
    ),
    ("elicitation_url_completed", Same("true")),
    (
        "elicitation_in_prompt",
        Same(r#"["The context is: context",["Which context?"]]"#),
    ),
    (
        "sampling",
        Same(r#"["LLM response: answer to: what?",["what?"]]"#),
    ),
    ("roots", Same(r#"[{"uri":"file:///work","name":"work"}]"#)),
    (
        "progress",
        Same(
            r#"["Progress test completed",[[0.0,100.0,"Starting"],[50.0,100.0,"Halfway"],[100.0,100.0,"Complete"]]]"#,
        ),
    ),
    (
        "log",
        Same(
            r#"["Logging test completed",[["info","Tool execution started"],["info","Tool processing data"],
                ["info","Tool execution completed"]]]"#,
        ),
    ),
    // It ran; its server counts one cancelled call.
    ("cancel", Same("[true,1]")),
    // The client was notified, and its next list agrees with the server.
    ("list_changed", Same("[true,true]")),
    ("resource_updated", Same(r#""test://watched-resource""#)),
    // The result, and whether the client had a task.
    ("task", Same(r#"["computed in 0.1 s",true]"#)),
    // Of a call; of a read, where the eras differ; of a tool.
    (
        "error",
        ByClient {
            legacy: r#"[{"code":-31999,"message":"the requested error","data":{"asked":-31999}},-32002,
                        ["This tool intentionally returns an error for testing",true]]"#,
            modern: r#"[{"code":-31999,"message":"the requested error","data":{"asked":-31999}},-32602,
                        ["This tool intentionally returns an error for testing",true]]"#,
        },
    ),
];

const NO_COMPLETION: &str = "2026-07-28, changelog, major change 11: \"Remove the `notifications/elicitation/complete` \
                             notification and the `elicitationId` field of URL mode elicitation requests\".";

/// Cells that the specification makes impossible: client, server, and the sentence.
const IMPOSSIBLE: &[(&str, Era, Era, &str)] = &[
    ("elicitation_url_completed", Legacy, Modern, NO_COMPLETION),
    ("elicitation_url_completed", Modern, Legacy, NO_COMPLETION),
    ("elicitation_url_completed", Modern, Modern, NO_COMPLETION),
];

/// Cells in which an SDK does something else in this era, because it does not support the feature.
const OTHERWISE: &[(&str, Sdk, Era, &str, &str)] = &[(
    "task",
    Rust,
    Legacy,
    r#"["computed in 0.1 s",false]"#,
    "rmcp has the tasks of the extension only; its call is an ordinary one, of the same tool",
)];

fn expected(cell: &str, saw: Saw, sdk: Sdk, client: Era) -> Value {
    let otherwise = OTHERWISE
        .iter()
        .find(|(name, of, era, ..)| (*name, *of, *era) == (cell, sdk, client));
    let text = match (otherwise, saw, client) {
        (Some((.., instead, _why)), ..) => instead,
        (None, Same(text), _) | (None, ByClient { legacy: text, .. }, Legacy) => text,
        (None, ByClient { modern: text, .. }, Modern) => text,
    };
    serde_json::from_str(text).unwrap()
}

/// A gateway between a client and a server, which run until this is dropped.
struct Between {
    target: Target,
    /// The tool that is called as a task.
    job: &'static str,
    _gateway: (Option<Front>, Option<Home>),
    _servers: (Option<Peer>, Option<Running>),
}

impl Between {
    fn start(server: Era, (before, behind): (Over, Over)) -> Self {
        let options = ["--era", server.name(), "--page", "100", "--prompts", "1000"];
        let web = (behind == Over::Http).then(|| Running::fixture(&options));
        let config = match &web {
            Some(web) => over_http(web, "fixture"),
            None => over_stdio("fixture", &options),
        };
        // The SDK under the fixture has no tasks of 2025-11-25.
        let jobs = (server == Legacy).then(|| jobs::server(web.is_some()));
        let (table, job) = match &jobs {
            Some(jobs) if web.is_some() => (
                format!("[servers.jobs]\nurl = {:?}\n", jobs.url()),
                "jobs_slow_compute",
            ),
            Some(jobs) => (jobs.child("jobs", "jobs"), "jobs_slow_compute"),
            None => (String::new(), "fixture_slow_compute"),
        };
        let config = config + &table;
        let (target, gateway) = match before {
            Over::Pipe => {
                let home = Home::new();
                (Target::Stdio(pipe(&home, &config)), (None, Some(home)))
            }
            Over::Http => {
                let front = Front::serve(&config);
                (Target::Http(front.url("/mcp"), None), (Some(front), None))
            }
        };
        Self {
            target,
            job,
            _gateway: gateway,
            _servers: (jobs, web),
        }
    }
}

/// What a client sees through each of these gateways, at the same time.
fn run(
    sdk: Sdk,
    client: Era,
    between: &[Between],
    skip: &[&str],
) -> Vec<Result<CellsSeen, String>> {
    match sdk {
        Rust => std::thread::scope(|scope| {
            let start = |one: &Between| {
                let (target, job) = (one.target.clone(), one.job);
                scope.spawn(move || rust_cells(&target, client == Modern, job, skip))
            };
            let running: Vec<_> = between.iter().map(start).collect();
            running
                .into_iter()
                .map(|one| one.join().map_err(|_panicked| "no client".to_owned()))
                .collect()
        }),
        Python => {
            let job = between[0].job;
            let mut options = vec!["--era", client.name(), "--job", job];
            options.extend(skip.iter().flat_map(|cell| ["--skip", cell]));
            let targets: Vec<&Target> = between.iter().map(|one| &one.target).collect();
            python_cells(&options, &targets)
        }
    }
}

/// All transports of one pair, at the same time.
fn pair(sdk: Sdk, client: Era, server: Era) {
    let impossible = |cell: &str| {
        IMPOSSIBLE
            .iter()
            .any(|(name, of, with, _)| (*name, *of, *with) == (cell, client, server))
    };
    let cells: Vec<_> = CELLS.iter().filter(|(cell, _)| !impossible(cell)).collect();
    let skip: Vec<&str> = CELLS
        .iter()
        .map(|(cell, _)| *cell)
        .filter(|cell| impossible(cell))
        .collect();
    let ways = [
        (Over::Pipe, Over::Pipe),
        (Over::Pipe, Over::Http),
        (Over::Http, Over::Pipe),
        (Over::Http, Over::Http),
    ];
    let between: Vec<Between> = std::thread::scope(|scope| {
        let starting = ways.map(|way| scope.spawn(move || Between::start(server, way)));
        starting.map(|one| one.join().unwrap()).into()
    });
    let results = run(sdk, client, &between, &skip);
    assert_eq!(results.len(), ways.len());
    let mut red = String::new();
    for ((first, second), result) in ways.into_iter().zip(results) {
        let place = format!("{first:?} to the gateway, {second:?} to the server");
        let mut result = match result {
            Ok(result) => result,
            Err(why) => {
                writeln!(red, "{place}: {why}").unwrap();
                continue;
            }
        };
        for (cell, saw) in &cells {
            match result.remove(*cell) {
                Some(Ok(saw_this)) if saw_this == expected(cell, *saw, sdk, client) => {}
                outcome => writeln!(red, "{place}: {cell}: {outcome:?}").unwrap(),
            }
        }
        for cell in result.keys() {
            writeln!(red, "{place}: {cell} is in no table").unwrap();
        }
    }
    assert!(
        red.is_empty(),
        "{sdk:?}, {client:?} client, {server:?} server:\n{red}"
    );
}

#[test]
fn python_legacy_client_legacy_server() {
    pair(Python, Legacy, Legacy);
}

#[test]
fn python_legacy_client_modern_server() {
    pair(Python, Legacy, Modern);
}

#[test]
fn python_modern_client_legacy_server() {
    pair(Python, Modern, Legacy);
}

#[test]
fn python_modern_client_modern_server() {
    pair(Python, Modern, Modern);
}

#[test]
fn rust_legacy_client_legacy_server() {
    pair(Rust, Legacy, Legacy);
}

#[test]
fn rust_legacy_client_modern_server() {
    pair(Rust, Legacy, Modern);
}

#[test]
fn rust_modern_client_legacy_server() {
    pair(Rust, Modern, Legacy);
}

#[test]
fn rust_modern_client_modern_server() {
    pair(Rust, Modern, Modern);
}

#[test]
fn the_tables_name_known_cells_once() {
    let cells: BTreeSet<&str> = CELLS.iter().map(|(cell, _)| *cell).collect();
    assert_eq!(cells.len(), CELLS.len());
    let named = IMPOSSIBLE
        .iter()
        .map(|row| row.0)
        .chain(OTHERWISE.iter().map(|row| row.0));
    assert!(named.into_iter().all(|cell| cells.contains(cell)));
}
