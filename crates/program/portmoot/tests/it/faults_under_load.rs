//! Faults with many calls in flight: each server is killed and started again in turn, the gateway
//! is killed and started again, it is stopped, and clients vanish. Only the calls in flight to the
//! victim are lost, no call is run twice, and no child stays.
//!
//! With 1,000 calls by hand:
//! `cargo nextest run -p portmoot faults_under_load --run-ignored only --no-capture`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Events;
use crate::peer::{Peer, answer, small, tool};
use crate::program::Program;
use crate::socket::MODERN;
use crate::support::{
    Client, Gateway, is_alive, modern, modern_request, modern_stream, signal, until,
};

const SERVERS: [(&str, &str); 4] = [
    ("old_pipe", "legacy"),
    ("new_pipe", "modern"),
    ("old_web", "legacy"),
    ("new_web", "modern"),
];
/// Calls in flight to each server: in every run of the tests, and by hand.
const FEW: usize = 25;
const MANY: usize = 250;

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
            let versions =
                format!(r#""supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}}"#);
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
        vec![
            format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
        ]
    })
}

/// Processes whose command line has this text.
fn processes(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.contains("/dev/tcp/127.0.0.1/") && line.contains(text))
        .count()
}

/// A gateway with all servers, and the calls that were made.
struct Stage {
    home: Home,
    config: String,
    gateway: Gateway,
    peers: HashMap<&'static str, (Peer, Hold)>,
    /// Calls so far.
    number: u64,
}

impl Stage {
    fn start() -> Self {
        // Its descriptors are counted from outside.
        let home = Home::new().env("PORTMOOT_DUMPABLE", "1");
        let mut peers = HashMap::new();
        let mut config =
            "[server.limits]\nconnections_max = 4000\nparticipant_connections_max = 3000\n"
                .to_owned();
        for (server, era) in SERVERS {
            let hold = Hold::default();
            let is_pipe = server.ends_with("pipe");
            let peer = if is_pipe {
                on_a_pipe(era, hold.clone())
            } else {
                over_http(era, hold.clone())
            };
            config += &match is_pipe {
                true => peer
                    .child(server, server)
                    .replace("era = \"legacy\"", &format!("era = \"{era}\"")),
                false => format!(
                    "[servers.{server}]\nurl = \"{}\"\nera = \"{era}\"\n",
                    peer.url()
                ),
            };
            peers.insert(server, (peer, hold));
        }
        let gateway = Self::serve(&home, &config);
        Self {
            home,
            config,
            gateway,
            peers,
            number: 0,
        }
    }

    fn serve(home: &Home, config: &str) -> Gateway {
        let gateway = Gateway::start(home, config);
        SERVERS.iter().for_each(|(server, _)| gateway.ready(server));
        gateway
    }

    /// The params of the next call, which its server holds.
    fn next(&mut self, server: &str) -> Value {
        self.number += 1;
        params(server, &json!({ "n": self.number, "hold": true }))
    }

    /// Begins so many calls to each server, by modern clients.
    fn begin(&mut self, calls: usize) -> Vec<(&'static str, Events)> {
        let servers = SERVERS.iter().cycle().take(calls * SERVERS.len());
        servers
            .map(|(server, _)| {
                let params = self.next(server);
                (
                    *server,
                    modern_stream(&self.gateway, None, "tools/call", params),
                )
            })
            .collect()
    }

    /// Waits until all calls have reached their servers.
    fn all_are_in_flight(&self) {
        until("all are in flight", || {
            (self.runs().len() as u64 == self.number).then_some(())
        });
    }

    /// How often each numbered call was run, by all servers.
    fn runs(&self) -> BTreeMap<u64, usize> {
        let mut runs = BTreeMap::new();
        for (_, hold) in self.peers.values() {
            for number in &hold.0.lock().unwrap().begun {
                *runs.entry(*number).or_default() += 1;
            }
        }
        runs
    }

    fn works(&self, server: &str, arguments: &Value) -> bool {
        modern(&self.gateway, None, "tools/call", params(server, arguments)).json()["result"]
            .is_object()
    }

    fn release(&self, server: &str) {
        assert!(self.works(server, &json!({ "release": true })), "{server}");
    }

    fn pids(&self) -> Vec<u64> {
        SERVERS
            .iter()
            .filter_map(|(server, _)| self.gateway.server(server)["pid"].as_u64())
            .collect()
    }

    /// The open descriptors of the gateway.
    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.gateway.pid()))
            .unwrap()
            .count()
    }

    /// Stops the gateway. No call was run twice, and no child stays.
    fn end(mut self, what: &str) {
        let twice = self.runs().values().filter(|times| **times > 1).count();
        self.gateway.signal("TERM");
        self.gateway.wait();
        let left: usize = self
            .peers
            .values()
            .map(|(peer, _)| processes(&peer.port().to_string()))
            .sum();
        println!(
            "{}: {} calls, {twice} run twice, {left} children left",
            what, self.number
        );
        assert_eq!((twice, left), (0, 0));
    }
}

fn params(server: &str, arguments: &Value) -> Value {
    json!({ "name": format!("{server}_go"), "arguments": arguments })
}

/// Each of these calls is answered.
#[track_caller]
fn all_are_answered(open: Vec<(&str, Events)>) {
    for (server, call) in open {
        let last = call.rest().pop().expect("each call ends");
        assert!(last["result"].is_object(), "{server}: {last}");
    }
}

fn servers_are_killed(calls: usize) {
    let mut stage = Stage::start();
    let (mut lost, mut answered) = (0, 0);
    for (victim, _) in SERVERS {
        let open = stage.begin(calls);
        stage.all_are_in_flight();
        let (peer, hold) = &stage.peers[victim];
        match stage.gateway.server(victim)["pid"].as_u64() {
            Some(pid) => signal(u32::try_from(pid).unwrap(), "KILL"),
            None => {
                peer.cut();
                release(hold);
            }
        }
        until("it runs again", || {
            stage.works(victim, &json!({})).then_some(())
        });
        SERVERS
            .iter()
            .filter(|(server, _)| *server != victim)
            .for_each(|(server, _)| stage.release(server));
        for (server, call) in open {
            let last = call.rest().pop().expect("each call ends");
            assert_eq!(
                last["error"].is_object(),
                server == victim,
                "{server}, {victim} was killed: {last}"
            );
            lost += usize::from(server == victim);
            answered += usize::from(server != victim);
        }
    }
    assert_eq!(lost, calls * SERVERS.len());
    stage.end(&format!(
        "servers killed: {answered} answered, {lost} lost with their server"
    ));
}

#[test]
fn a_killed_server_loses_the_calls_in_flight_to_it_and_no_other() {
    servers_are_killed(FEW);
}

#[test]
#[ignore = "1,000 calls at a time: run by hand"]
fn a_killed_server_of_a_thousand_calls() {
    servers_are_killed(MANY);
}

fn the_gateway_is_killed(calls: usize) {
    let mut stage = Stage::start();
    let clients = [(); 4].map(|()| Client::plain(&stage.gateway));
    let mut open = stage.begin(calls);
    for (client, (server, _)) in clients.iter().zip(SERVERS) {
        let params = stage.next(server);
        open.push((server, client.begin(&client.request("tools/call", params))));
    }
    stage.all_are_in_flight();
    let children = stage.pids();
    assert_eq!(children.len(), 2);
    stage.gateway.signal("KILL");
    let lost = open.len();
    for (server, call) in open {
        assert!(
            call.rest().is_empty(),
            "{server}: a call in flight has no answer"
        );
    }
    for pid in children {
        until("no child of the killed gateway is left", || {
            (!is_alive(pid)).then_some(())
        });
    }
    // Their callers have gone.
    stage
        .peers
        .values()
        .for_each(|(_, hold)| drop(release(hold)));
    stage.gateway = Stage::serve(&stage.home, &stage.config);
    for (client, (server, _)) in clients.iter().zip(SERVERS) {
        let client = Client::resume(&stage.gateway, None, "/mcp", &client.session);
        let called = client.ask("tools/call", params(server, &json!({})));
        assert!(
            called["result"].is_object(),
            "the session goes on: {called}"
        );
    }
    let open = stage.begin(calls);
    stage.all_are_in_flight();
    SERVERS.iter().for_each(|(server, _)| stage.release(server));
    let answered = open.len();
    all_are_answered(open);
    stage.end(&format!(
        "gateway killed: {answered} answered after it, {lost} lost with it"
    ));
}

#[test]
fn a_killed_gateway_loses_the_calls_in_flight_and_no_session() {
    the_gateway_is_killed(FEW);
}

#[test]
#[ignore = "1,000 calls at a time: run by hand"]
fn a_killed_gateway_with_a_thousand_calls() {
    the_gateway_is_killed(MANY);
}

#[test]
#[ignore = "1,000 calls at a time: run by hand"]
fn a_stopped_gateway_with_a_thousand_calls() {
    let mut stage = Stage::start();
    let open = stage.begin(MANY);
    stage.all_are_in_flight();
    stage.gateway.signal("TERM");
    // Servers on pipes go on holding their calls: these are refused at the end.
    stage
        .peers
        .values()
        .for_each(|(_, hold)| drop(release(hold)));
    let (mut answered, mut refused) = (0, 0);
    for (server, call) in open {
        let last = call.rest().pop().expect("each call ends");
        assert_eq!(
            last["result"].is_object(),
            server.ends_with("web"),
            "{server}: {last}"
        );
        answered += usize::from(last["result"].is_object());
        refused += usize::from(last["error"]["data"]["code"] == "upstream_down");
    }
    assert_eq!((answered, refused), (MANY * 2, MANY * 2));
    stage.gateway.wait();
    let twice = stage.runs().values().filter(|times| **times > 1).count();
    let left: usize = stage
        .peers
        .values()
        .map(|(peer, _)| processes(&peer.port().to_string()))
        .sum();
    println!(
        "gateway stopped: {answered} answered, {refused} refused, {twice} run twice, {left} children left"
    );
    assert_eq!((twice, left), (0, 0));
}

fn clients_vanish(calls: usize) {
    let mut stage = Stage::start();
    let before = stage.descriptors();
    let (others, gone) = (stage.begin(calls), stage.begin(calls));
    let mut pipe = Program::start(
        stage
            .home
            .command(&["stdio", "--url", &stage.gateway.url()]),
    );
    for (server, _) in SERVERS.iter().cycle().take(calls) {
        let params = stage.next(server);
        let (_, body) = modern_request(None, "tools/call", params);
        pipe.type_line(&body.replace("\"id\":1,", &format!("\"id\":{},", stage.number)));
    }
    stage.all_are_in_flight();
    // Connections end without a goodbye, and a client is killed.
    drop(gone);
    drop(pipe);
    for (server, _) in SERVERS {
        until("their calls are cancelled", || {
            (stage.gateway.server(server)["calls"].as_u64() == Some(calls as u64)).then_some(())
        });
    }
    let vanished = stage.number as usize - others.len();
    let cancelled = |server: &str| {
        let received = stage.peers[server].0.received();
        received
            .iter()
            .filter(|line| line.contains("notifications/cancelled"))
            .count()
    };
    let at = |server: &str| {
        let of_pipe = SERVERS
            .iter()
            .cycle()
            .take(calls)
            .filter(|(one, _)| *one == server)
            .count();
        calls + of_pipe
    };
    for server in ["old_pipe", "new_pipe", "old_web"] {
        until("the servers know", || {
            (cancelled(server) == at(server)).then_some(())
        });
    }
    SERVERS.iter().for_each(|(server, _)| stage.release(server));
    let answered = others.len();
    all_are_answered(others);
    // Idle connections to servers are kept: their servers end them.
    for (peer, _) in ["old_web", "new_web"].map(|server| &stage.peers[server]) {
        peer.cut();
    }
    until("all descriptors are given back", || {
        (stage.descriptors() <= before).then_some(())
    });
    stage.end(&format!(
        "clients vanished: {answered} of the others answered, {vanished} cancelled"
    ));
}

#[test]
fn clients_that_vanish_cost_the_others_nothing() {
    clients_vanish(FEW);
}

#[test]
#[ignore = "1,000 calls at a time: run by hand"]
fn clients_that_vanish_with_a_thousand_calls() {
    // Nine for each of these: 999 in all. All are on one link, which may have 1,024 open.
    clients_vanish(MANY * 4 / 9);
}
