//! Shares: a greedy participant exhausts one bound after the other, and another participant is
//! served all the while (docs/limits.md).

mod guests;
mod held;
mod page;
mod room;
mod servers;
mod start;

use std::any::Any;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Deref;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use held::{bodies, held_bytes, requests_of_open_calls, unfinished_messages};

use crate::home::Home;
use crate::http::{Connection, Events, Reply, TIMEOUT};
use crate::peer::Peer;
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::tasks::jobs;
use crate::ws::{Socket, TEXT, home_of, masked, token};

/// A bound as docs/limits.md names it, and the attack on it. It returns what the greedy participant
/// then holds.
type Play = (&'static str, fn(&mut Stage) -> Held);

const GREEDY: &str = "greedy";
const OTHER: &str = "other";
const THIRD: &str = "third";
/// The longest that a call of the other participant may take on a busy machine.
const SOON: Duration = Duration::from_secs(5);

// The shares that follow from the configuration below.
const CONNECTIONS: usize = 300;
const BODY_BYTES: usize = 200 << 10;
const HELD_BYTES: usize = 256 << 10;
const CALLS: usize = 12;
const UPSTREAM_CALLS: usize = 8;
const UPSTREAM_SESSIONS: usize = 2;
const SESSIONS: usize = 16;
// The shares that are constants.
const SUBSCRIPTIONS: usize = 256;
const PAIRS: usize = 256;
const PROPOSALS: usize = 256;

const LIMITS: &str = "legacy_sse = true
[server.limits]
connections_max = 1200
body_bytes_max = \"200KiB\"
held_bytes_max = \"1MiB\"
sessions_max = 64
participant_calls_max = 12
upstream_calls_max = 32
upstream_sessions_max = 8
";

/// Few participants, and small proposals.
const FEW: &str = "[server.limits]
topic_participants_max = 12
proposal_bytes_max = \"4MiB\"
participant_proposal_bytes_max = \"1MiB\"
";

struct Stage {
    home: Home,
    gateway: Gateway,
    other: Client,
    /// A server with tasks.
    jobs: Peer,
}

/// How a stage's gateway is configured, and the hard limit of its descriptors.
struct Set {
    limits: &'static str,
    descriptors: Option<usize>,
}

impl Stage {
    fn new(set: &Set) -> Stage {
        let (home, jobs) = (
            home_of(&[(GREEDY, &[]), (OTHER, &[]), (THIRD, &[])]),
            jobs::server(),
        );
        let person = |name: &str| {
            let variable = format!("TOKEN_{}", name.to_uppercase());
            let may = "[\"mcp/*\", \"chat\", \"portmoot/servers\"]";
            format!(
                "[participants.{name}]\ntoken_env = {variable:?}\ncapabilities = {may}\ntopics = [\"main\", \"second\"]\n"
            )
        };
        let data = format!("[server]\ndata_dir = {:?}\n", home.path().join("data"));
        let servers = fixture("tools", &["--era", "legacy"])
            + &fixture("more", &["--era", "legacy"])
            + &jobs.child("jobs", "jobs");
        let topics = "[topics.main]\nanonymous = \"reader\"\n[topics.second]\n[profiles.reader]\ncapabilities = [\"mcp/request:tools/call:tools_*\"]\n";
        let people = [GREEDY, OTHER, THIRD].map(person).concat();
        let config = [&data, set.limits, &people, &servers, topics].concat();
        let gateway = match set.descriptors {
            None => Gateway::start(&home, &config),
            Some(count) => start::limited(&home, &config, &format!("-n {count}")),
        };
        ["tools", "more", "jobs"]
            .iter()
            .for_each(|name| gateway.ready(name));
        let other = Client::of(&gateway, &token(OTHER));
        Stage {
            home,
            gateway,
            other,
            jobs,
        }
    }

    /// The same gateway again, after the end of its process.
    fn restart(&mut self) {
        self.gateway.signal("KILL");
        self.gateway.wait();
        self.gateway = Gateway::start_with(&self.home, &["--config", "portmoot.toml"]);
        ["tools", "more", "jobs"]
            .iter()
            .for_each(|name| self.gateway.ready(name));
        self.other = Client::of(&self.gateway, &token(OTHER));
    }

    /// A participant's socket in the room. The participant may be there already.
    fn enters(&self, who: &str) -> Socket {
        Socket::welcomed(&self.gateway, who, "?mode=directed&echo=false").0
    }

    /// A plain request of a participant.
    fn get(&self, who: &str, path: &str) -> Reply {
        self.gateway.get(path, Some(&token(who)))
    }

    fn greedy(&self, path: &str, capabilities: Value) -> Greedy {
        Greedy(Client::open(
            &self.gateway,
            Some(&token(GREEDY)),
            path,
            capabilities,
        ))
    }

    /// Calls that never end.
    fn hanging(&self, client: &Client, tool: &str, count: usize) -> Vec<Events> {
        (0..count)
            .map(|_| client.begin_call(tool, json!({})))
            .collect()
    }

    /// Waits until a server has so many open calls.
    fn open_at(&self, server: &str, count: usize) {
        let path = format!("/api/v1/servers/{server}");
        until(&format!("{count} calls are open"), || {
            let calls = self.gateway.get(&path, Some(&token(OTHER))).json()["calls"].clone();
            (calls == json!(count)).then_some(())
        });
    }

    /// The other participant calls tools, on its connection and on a new one.
    #[track_caller]
    fn is_served(&self, when: &str) {
        let begun = Instant::now();
        let large = "x".repeat(100 << 10);
        for tool in ["tools_echo", "more_echo"] {
            let answer = self.other.call(tool, json!({ "text": large }));
            assert!(
                answer["content"][0]["text"]
                    .as_str()
                    .is_some_and(|text| text.len() == large.len()),
                "{when}"
            );
        }
        let new = Client::of(&self.gateway, &token(OTHER));
        assert_eq!(
            new.call("tools_echo", json!({ "text": "new" }))["content"][0]["text"],
            "new",
            "{when}"
        );
        assert_eq!(new.delete(), 204);
        assert!(begun.elapsed() < SOON, "{when}: {:?}", begun.elapsed());
    }
}

/// A session of the greedy participant. Its calls end with it.
struct Greedy(Client);

impl Deref for Greedy {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        self.0.delete();
    }
}

/// What a greedy participant holds.
type Held = Box<dyn Any>;

fn code(answer: &Value) -> &str {
    answer
        .pointer("/error/data/code")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn bearer(name: &str) -> String {
    format!("Bearer {}", token(name))
}

/// Begins a request; nothing is read.
fn begun(stage: &Stage, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(stage.gateway.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "{head} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n",
        bearer(GREEDY)
    );
    // The gateway may answer and close before everything is written.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    stream
}

/// The status of an answer.
fn status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

fn connections(stage: &mut Stage) -> Held {
    let mut open = Vec::new();
    loop {
        let mut connection = Connection::open(stage.gateway.address());
        let reply = connection.exchange(
            "GET",
            "/api/v1/tools",
            &[("authorization", &bearer(GREEDY))],
            "",
        );
        if reply.status != 200 {
            assert_eq!((reply.status, open.len()), (503, CONNECTIONS), "{reply:?}");
            assert!(
                reply.body.contains("you have too many connections"),
                "{reply:?}"
            );
            return Box::new(open);
        }
        open.push(connection);
        assert!(open.len() <= CONNECTIONS, "no more than its share");
    }
}

fn calls_at_a_server(stage: &mut Stage) -> Held {
    // In all topics together.
    let (main, second) = (
        stage.greedy("/mcp", json!({})),
        stage.greedy("/mcp/second", json!({})),
    );
    let mut held = stage.hanging(&main, "tools_hang", UPSTREAM_CALLS / 2);
    held.extend(stage.hanging(&second, "tools_hang", UPSTREAM_CALLS / 2));
    stage.open_at("tools", UPSTREAM_CALLS);
    for client in [&main, &second] {
        let refused = client.ask(
            "tools/call",
            json!({ "name": "tools_echo", "arguments": { "text": "x" } }),
        );
        assert_eq!(code(&refused), "upstream_busy", "{refused}");
        assert!(
            refused.to_string().contains("you have too many open calls"),
            "{refused}"
        );
    }
    // And over every wire.
    let (mut socket, _) = Socket::welcomed(&stage.gateway, GREEDY, "?mode=directed");
    socket.call("c1", &["tools"], "echo", json!({ "text": "x" }));
    let refused = socket.receive_until(|envelope| envelope["correlation_id"] == "c1");
    assert!(
        refused.to_string().contains("you have too many open calls"),
        "{refused}"
    );
    Box::new((main, second, held, socket))
}

fn sessions_at_a_server(stage: &mut Stage) -> Held {
    let asked = |_| stage.greedy("/mcp", json!({ "sampling": {} }));
    let busy: Vec<Greedy> = (0..UPSTREAM_SESSIONS).map(asked).collect();
    let held: Vec<_> = busy
        .iter()
        .flat_map(|client| stage.hanging(client, "tools_hang", 1))
        .collect();
    stage.open_at("tools", UPSTREAM_SESSIONS);
    let more = asked(0);
    let refused = more.ask(
        "tools/call",
        json!({ "name": "tools_echo", "arguments": { "text": "x" } }),
    );
    assert_eq!(code(&refused), "upstream_busy", "{refused}");
    assert!(
        refused.to_string().contains("you have too many sessions"),
        "{refused}"
    );
    Box::new((busy, more, held))
}

fn subscriptions(stage: &mut Stage) -> Held {
    let clients = [
        stage.greedy("/mcp", json!({})),
        stage.greedy("/mcp/second", json!({})),
    ];
    let uri = |number: usize| json!({ "uri": format!("test://template/{number}/data") });
    for number in 0..SUBSCRIPTIONS {
        let answer = clients[number % 2].ask("resources/subscribe", uri(number));
        assert!(answer["result"].is_object(), "{number}: {answer}");
    }
    let refused = clients[0].ask("resources/subscribe", uri(SUBSCRIPTIONS));
    assert_eq!(code(&refused), "overloaded", "{refused}");
    Box::new(clients)
}

fn sessions(stage: &mut Stage) -> Held {
    // Each is in use: an idle one would make way.
    let busy = |_| {
        let client = stage.greedy("/mcp", json!({}));
        let events = client.listen();
        (client, events)
    };
    let held: Vec<_> = (0..SESSIONS).map(busy).collect();
    let client = Client::resume(&stage.gateway, Some(&token(GREEDY)), "/mcp", "");
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    assert_eq!(client.status("initialize", params), 503);
    Box::new(held)
}

fn event_streams_of_2024(stage: &mut Stage) -> Held {
    let mut open = Vec::new();
    loop {
        let mut stream = begun(stage, "GET /sse", b"accept: text/event-stream\r\n\r\n");
        let status = status(&mut stream);
        if status != 200 {
            assert_eq!((status, open.len()), (503, PAIRS));
            return Box::new(open);
        }
        open.push(stream);
        assert!(open.len() <= PAIRS, "no more than its share");
    }
}

fn calls(stage: &mut Stage) -> Held {
    let client = stage.greedy("/mcp", json!({}));
    let mut held = stage.hanging(&client, "tools_hang", UPSTREAM_CALLS);
    held.extend(stage.hanging(&client, "more_hang", CALLS - UPSTREAM_CALLS));
    stage.open_at("more", CALLS - UPSTREAM_CALLS);
    stage.open_at("tools", UPSTREAM_CALLS);
    let refused = client.ask(
        "tools/call",
        json!({ "name": "more_echo", "arguments": { "text": "x" } }),
    );
    assert_eq!(code(&refused), "overloaded", "{refused}");
    Box::new((client, held))
}

fn proposals(stage: &mut Stage) -> Held {
    let mut socket = Socket::enter(&stage.gateway, GREEDY, "?mode=directed");
    let asks = json!({ "method": "tools/call", "params": { "name": "echo", "arguments": {} } });
    for number in 0..=PROPOSALS {
        socket.send(
            "mcp/proposal:tools/call:echo",
            &format!("p{number}"),
            &["tools"],
            json!({}),
            &asks,
        );
    }
    let last = format!("p{PROPOSALS}");
    socket.receive_until(|envelope| {
        envelope["correlation_id"] == last.as_str()
            && envelope.to_string().contains("too many proposals are open")
    });
    Box::new(socket)
}

fn messages_of_the_room(stage: &mut Stage) -> Held {
    let mut socket = Socket::enter(&stage.gateway, GREEDY, "?mode=directed");
    let text = json!({ "text": "x".repeat(200 << 10) });
    let sender = std::thread::spawn(move || {
        for number in 0..200 {
            socket.send("chat", &format!("c{number}"), &[], json!({}), &text);
        }
        socket
    });
    Box::new(sender)
}

/// Small limits, so that few things exhaust them.
const SMALL: &[Play] = &[
    ("Connections", connections),
    ("Bytes that wait", bodies),
    ("Requests of open calls", requests_of_open_calls),
    ("Unfinished WebSocket messages", unfinished_messages),
    ("Calls at a server", calls_at_a_server),
    ("Callers' own sessions at a server", sessions_at_a_server),
    ("Subscriptions at a server", subscriptions),
    ("Legacy sessions", sessions),
    ("Event streams of 2024-11-05", event_streams_of_2024),
    ("Calls in a topic", calls),
    ("Proposals", proposals),
    ("Latest requests of a room", room::latest_requests),
    ("Queue of a room", messages_of_the_room),
];
/// The usual limits, and a topic of few participants.
const USUAL: &[Play] = &[
    ("Questions of a server", servers::questions),
    ("Queue to a child process", servers::queue_to_a_child),
    ("Tasks of servers", servers::tasks),
    ("Guests of a topic", room::guests),
    ("Participants of a topic", room::participants),
    ("Counts of refusals in the audit log", room::refusals),
    ("Bytes of proposals", room::bytes_of_proposals),
    ("Ended proposals", room::ended_proposals),
];

/// The plays on each stage.
const PLAYED: &[(Set, &[Play])] = &[
    (
        Set {
            limits: LIMITS,
            descriptors: None,
        },
        SMALL,
    ),
    (
        Set {
            limits: FEW,
            descriptors: None,
        },
        USUAL,
    ),
    (
        Set {
            limits: "",
            descriptors: Some(256),
        },
        &[("Descriptors", start::descriptors)],
    ),
];

/// Bounds that no client reaches in a few seconds, and why. Their rows name the tests that do.
const UNREACHED: &[(&str, &str)] = &[
    (
        "One-time codes of the console",
        "a participant has one at a time: it takes a thousand participants",
    ),
    (
        "Sessions of the console",
        "the one that was idle for longest ends, of the same participant first; its tests have them",
    ),
    (
        "Streams of the console",
        "the oldest of the same session ends; its tests have them",
    ),
    (
        "Looks at the audit log over the API and in the console",
        "a look is over in milliseconds unless the log is large; its unit test has them",
    ),
    (
        "Notifications of a route",
        "it takes a receiver outside; its tests have one",
    ),
    (
        "Requests to a topic's approver outside",
        "it takes a service outside; its tests have one",
    ),
    (
        "Answers that no client has read",
        "the kernel's buffers hold more than these shares; its tests have pipes in memory",
    ),
    (
        "Decisions about proposals",
        "10,000 decisions take minutes; its tests have them",
    ),
    (
        "Spot checks of a rule that are over",
        "64 checks take hundreds of calls; its unit tests have them",
    ),
    (
        "Proposals and calls that a rule in shadow has looked at and that are over",
        "it bounds no participant; its unit test has 129",
    ),
    (
        "Calls that one rule counts",
        "10,000 calls take minutes; its test has them",
    ),
    (
        "Answered calls for rules with `after`",
        "10,000 calls take minutes; its test has them",
    ),
    (
        "Rules that are tried on the past",
        "a trial is over before the next one comes; its test holds the places",
    ),
    (
        "Learned rules",
        "each takes three approvals that a person looked at; its test has all",
    ),
    (
        "Claims of proposals",
        "64 participants have to claim; its test has them",
    ),
    (
        "The like of a call that is approved",
        "it bounds one request and holds nothing; its test has both ends",
    ),
    (
        "Showings of proposals",
        "no call waits for it; its test has all",
    ),
    (
        "Pauses, and resumptions",
        "one is on disk before the next one comes; its test holds the places",
    ),
    (
        "Queue of the journal",
        "only a slow disk fills it; the share of the bytes of proposals is as large",
    ),
    (
        "Bytes of senders that are not known",
        "all clients here have one address",
    ),
    (
        "Starts of servers",
        "a start that waits goes on within `start_timeout` of the others",
    ),
    ("Uses of servers", "each participant has one place"),
    ("Queue of the audit log", "only a slow disk fills it"),
    (
        "Ids of proposals that were rejected on arrival",
        "4,096 rejections of each of two participants; its tests have them",
    ),
    (
        "Participants that left lately",
        "4,096 participants take minutes; its test has them",
    ),
    ("Ended sessions", "65,536 sessions take minutes"),
    (
        "Schemas of other registries",
        "participants name none; its test has all sets",
    ),
    (
        "Commits of the schema registry",
        "its answers change only with the tools; its test has all commits",
    ),
    (
        "Results that are too large for their callers",
        "64 MiB of results take long; its test has them",
    ),
    (
        "Tasks that lists have after a restart",
        "10,000 tasks take minutes",
    ),
    (
        "Checked access tokens",
        "only an issuer makes valid ones; what goes is checked again",
    ),
    (
        "Participants known by their access tokens",
        "10,000 people of an issuer",
    ),
    (
        "Bad access tokens of one address (of IPv6: its /64)",
        "all clients here have one address",
    ),
    ("Sign-ins", "of each participant by itself"),
    ("Consents on record", "of each participant by itself"),
    (
        "Authorization codes",
        "10,000 sign-ins of participants with consent",
    ),
    ("One-time codes", "one of each participant"),
    (
        "Connect links",
        "3 of each participant at a server; the fixture wants no sign-in",
    ),
    (
        "One-time codes for connect pages",
        "one of each participant",
    ),
    ("Documents of clients", "what goes is fetched again"),
    (
        "Addresses that are counted at sign-ins",
        "all clients here have one address",
    ),
];

fn play(set: &Set, plays: &[Play]) {
    let mut stage = Stage::new(set);
    stage.is_served("before");
    for (bound, exhaust) in plays {
        let held = exhaust(&mut stage);
        stage.is_served(bound);
        drop(held);
        stage.is_served(&format!("after {bound}"));
    }
}

#[test]
fn a_greedy_participant_disturbs_no_other() {
    std::thread::scope(|scope| {
        for (set, plays) in PLAYED {
            scope.spawn(|| play(set, plays));
        }
    });
}

#[test]
fn an_approved_proposal_runs_on_its_proposers_account() {
    let mut stage = crate::stage::Stage::with("[server.limits]\nupstream_calls_max = 8\n");
    let hang = json!({ "method": "tools/call", "params": { "name": "hang", "arguments": {} } });
    let proposals = ["a1", "a2", "a3"];
    for (id, approver) in proposals.into_iter().zip(["boss", "boss", "chief"]) {
        stage.agent.send(
            "mcp/proposal:tools/call:hang",
            id,
            &["tools"],
            json!({}),
            &hang,
        );
        crate::stage::state(&mut stage.agent, id, "pending");
        assert_eq!(stage.approve(approver, &stage.shown(id)).status, 200);
        stage
            .agent
            .receive_until(|envelope| envelope["payload"]["state"] == "running");
    }
    // Approved calls run side by side, so that any of the three may find the share taken.
    until("one of the three is refused", || {
        let failed = |id: &&str| stage.shown(id)["state"] == "failed";
        proposals.iter().any(failed).then_some(())
    });
    stage.boss.send(
        crate::stage::ECHO,
        "b1",
        &["tools"],
        json!({}),
        &crate::stage::echoes("mine"),
    );
    crate::stage::state(&mut stage.boss, "b1", "pending");
    assert_eq!(stage.approve("chief", &stage.shown("b1")).status, 200);
    until("the share of the boss is free", || {
        (stage.shown("b1")["state"] == "completed").then_some(())
    });
    let running = |id: &&&str| stage.shown(id)["state"] == "running";
    assert_eq!(proposals.iter().filter(running).count(), 2);
}
