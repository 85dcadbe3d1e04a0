//! Faults with 1,000 calls in flight: each server is killed and started again in turn. Only the calls in flight to it are lost, no
//! call is run twice, and no child stays.
//!
//! By hand: `cargo nextest run -p portmoot faults_under_load --run-ignored only --no-capture`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Events;
use crate::peer::{Peer, answer, small, tool};
use crate::socket::MODERN;
use crate::support::{Gateway, modern, modern_stream, signal, until};

const SERVERS: [(&str, &str); 4] =
    [("old_pipe", "legacy"), ("new_pipe", "modern"), ("old_web", "legacy"), ("new_web", "modern")];
/// Calls in flight to each server.
const CALLS: usize = 250;

/// What a server knows of its calls, over all its processes.
#[derive(Default)]
struct Held {
    /// Whole calls, of a server on a pipe.
    calls: Vec<Value>,
    /// The numbers of all calls that were begun.
    begun: Vec<u64>,
    /// How often the calls were released, or the server was killed.
    turns: u64,
}

type Hold = Arc<(Mutex<Held>, Condvar)>;

fn release(hold: &Hold) -> Vec<Value> {
    let mut held = hold.0.lock().unwrap();
    held.turns += 1;
    hold.1.notify_all();
    std::mem::take(&mut held.calls)
}

fn result(message: &Value) -> String {
    answer(message, r#"{"resultType":"complete","content":[]}"#)
}

/// The answer to anything but a call.
fn aside(message: &Value, era: &str) -> Option<String> {
    let tools = format!("[{}]", tool("go"));
    let list = r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#;
    match (era, message["method"].as_str()?) {
        ("modern", "server/discover") => {
            let versions = format!(r#""supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}}"#);
            Some(answer(message, &format!("{{{list},{versions}}}")))
        }
        ("modern", "tools/list") => Some(answer(message, &format!("{{{list},\"tools\":{tools}}}"))),
        ("legacy", _) => small(message, &tools),
        (_, _) => None,
    }
}

fn on_a_pipe(era: &'static str, hold: Hold) -> Peer {
    Peer::stdio(move |message| {
        let arguments = &message["params"]["arguments"];
        hold.0.lock().unwrap().begun.extend(arguments["n"].as_u64());
        let said = match message["method"].as_str() {
            Some("tools/call") if arguments["hold"] == true => {
                hold.0.lock().unwrap().calls.push(message.clone());
                Vec::new()
            }
            Some("tools/call") if arguments["release"] == true => {
                let mut all: Vec<String> = release(&hold).iter().map(result).collect();
                all.push(result(message));
                all
            }
            Some("tools/call") => vec![result(message)],
            Some("initialize" | "server/discover") => {
                // Another process, which knows nothing of the calls of the killed one.
                release(&hold);
                aside(message, era).into_iter().collect()
            }
            _ => aside(message, era).into_iter().collect(),
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

fn over_http(era: &'static str, hold: Hold) -> Peer {
    Peer::http(move |message| {
        let arguments = &message["params"]["arguments"];
        hold.0.lock().unwrap().begun.extend(arguments["n"].as_u64());
        let said = match message["method"].as_str() {
            Some("tools/call") => {
                if arguments["hold"] == true {
                    let held = hold.0.lock().unwrap();
                    let turn = held.turns;
                    drop(hold.1.wait_while(held, |held| held.turns == turn).unwrap());
                } else if arguments["release"] == true {
                    release(&hold);
                }
                Some(result(message))
            }
            _ => aside(message, era),
        };
        let status = match (&said, message.get("id")) {
            (Some(_), _) => "200 OK\r\ncontent-type: application/json",
            (None, Some(_)) => "404 Not Found",
            (None, None) if message["method"].is_string() => "202 Accepted",
            (None, None) => "405 Method Not Allowed",
        };
        let body = said.unwrap_or_default();
        vec![format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()]
    })
}

/// Processes whose command line has this text.
fn processes(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains("/dev/tcp/127.0.0.1/") && line.contains(text)).count()
}

fn params(server: &str, arguments: &Value) -> Value {
    json!({ "name": format!("{server}_go"), "arguments": arguments })
}

fn works(gateway: &Gateway, server: &str, arguments: &Value) -> bool {
    modern(gateway, None, "tools/call", params(server, arguments)).json()["result"].is_object()
}

/// How often each numbered call was run, by all servers.
fn runs(peers: &HashMap<&str, (Peer, Hold)>) -> BTreeMap<u64, usize> {
    let mut runs = BTreeMap::new();
    for (_, hold) in peers.values() {
        for number in &hold.0.lock().unwrap().begun {
            *runs.entry(*number).or_default() += 1;
        }
    }
    runs
}

#[test]
#[ignore = "1,000 calls at a time: run by hand"]
fn a_killed_server_loses_the_calls_in_flight_to_it_and_no_other() {
    let home = Home::new();
    let (mut peers, mut config) = (HashMap::new(), String::new());
    for (server, era) in SERVERS {
        let hold = Hold::default();
        let is_pipe = server.ends_with("pipe");
        let peer = if is_pipe { on_a_pipe(era, hold.clone()) } else { over_http(era, hold.clone()) };
        config += &match is_pipe {
            true => peer.child(server, server).replace("era = \"legacy\"", &format!("era = \"{era}\"")),
            false => format!("[servers.{server}]\nurl = \"{}\"\nera = \"{era}\"\n", peer.url()),
        };
        peers.insert(server, (peer, hold));
    }
    let limits = "[server.limits]\nconnections_max = 4000\nparticipant_connections_max = 3000\n";
    let mut gateway = Gateway::start(&home, &format!("{limits}{config}"));
    SERVERS.iter().for_each(|(server, _)| gateway.ready(server));
    let (mut number, mut lost, mut answered) = (0_u64, 0, 0);
    for (victim, _) in SERVERS {
        let mut open: Vec<(&str, Events)> = Vec::new();
        for at in 0..CALLS * SERVERS.len() {
            let (server, _) = SERVERS[at % SERVERS.len()];
            let arguments = json!({ "n": number, "hold": true });
            open.push((server, modern_stream(&gateway, None, "tools/call", params(server, &arguments))));
            number += 1;
        }
        until("all are in flight", || (runs(&peers).len() as u64 == number).then_some(()));
        let (peer, hold) = &peers[victim];
        match gateway.server(victim)["pid"].as_u64() {
            Some(pid) => signal(u32::try_from(pid).unwrap(), "KILL"),
            None => {
                peer.cut();
                release(hold);
            }
        }
        until("it runs again", || works(&gateway, victim, &json!({})).then_some(()));
        for (server, _) in SERVERS.iter().filter(|(server, _)| *server != victim) {
            assert!(works(&gateway, server, &json!({ "release": true })), "{server}");
        }
        for (server, call) in open {
            let last = call.rest().pop().expect("each call ends");
            assert_eq!(last["error"].is_object(), server == victim, "{server}, {victim} was killed: {last}");
            lost += usize::from(server == victim);
            answered += usize::from(server != victim);
        }
    }
    let twice = runs(&peers).values().filter(|times| **times > 1).count();
    gateway.signal("TERM");
    gateway.wait();
    let ports: Vec<String> = peers.values().map(|(peer, _)| peer.port().to_string()).collect();
    let left: usize = ports.iter().map(|port| processes(port)).sum();
    println!(
        "{number} calls: {answered} answered, {lost} lost with their server, {twice} run twice, {left} children left"
    );
    assert_eq!((lost, twice, left), (CALLS * SERVERS.len(), 0, 0));
}
