//! A gateway with proposers and reviewers on real sockets.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, fixture};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "chat"];
pub(crate) const ECHO: &str = "mcp/proposal:tools/call:echo";
pub(crate) const FULFIL: &str = "mcp/request:tools/call:echo";

/// A gateway with the fixture as `tools` and `more`; an `agent` that may only propose, `boss` and
/// `chief` with full access, a `clerk` that may only add, and a `worker` that may only answer.
pub(crate) struct Stage {
    pub(crate) gateway: Gateway,
    pub(crate) agent: Socket,
    pub(crate) boss: Socket,
    pub(crate) asked: u64,
    pub(crate) home: Home,
    pub(crate) config: String,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage::with("")
    }

    pub(crate) fn with(more: &str) -> Stage {
        let (home, config) = people(&[
            ("agent", &["mcp/proposal:*", "chat"]),
            ("boss", FULL),
            ("chief", FULL),
            ("clerk", &["mcp/request:tools/call:add", "chat"]),
            ("worker", &["mcp/response:*", "chat"]),
        ]);
        let config = fixture("tools", &[]) + &fixture("more", &[]) + &config + more;
        let gateway = Gateway::start(&home, &config);
        ["tools", "more"]
            .iter()
            .for_each(|name| gateway.ready(name));
        let agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
        let boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
        Stage {
            gateway,
            agent,
            boss,
            asked: 0,
            home,
            config,
        }
    }

    /// The number of calls that both servers have executed, without those that ask for it.
    #[track_caller]
    pub(crate) fn executed(&mut self) -> u64 {
        let mut sum = 0;
        for server in ["tools", "more"] {
            self.asked += 1;
            let id = format!("record {}", self.asked);
            self.boss.call(&id, &[server], "record", json!({}));
            let received = self
                .boss
                .receive_until(|received| received["correlation_id"] == id);
            sum += received["payload"]["result"]["structuredContent"]["calls"]
                .as_u64()
                .unwrap();
        }
        sum - self.asked
    }

    /// The agent proposes to call `echo` of `tools` with this text; returns the proposal as the
    /// boss sees it.
    #[track_caller]
    pub(crate) fn propose(&mut self, id: &str, text: &str) -> Value {
        self.agent
            .send(ECHO, id, &["tools"], json!({}), &echoes(text));
        state(&mut self.agent, id, "pending");
        self.shown(id)
    }

    /// The proposal of this envelope, as the boss sees it.
    #[track_caller]
    pub(crate) fn shown(&self, envelope: &str) -> Value {
        let all = pages_of(|query| {
            let query = format!("?all=true&{query}");
            self.api("boss", "GET", &query, &json!(null)).json()
        });
        let mut found = all
            .iter()
            .filter(|proposal| proposal["envelope"] == envelope);
        let proposal = found
            .next()
            .unwrap_or_else(|| panic!("{envelope} is not there: {all:?}"))
            .clone();
        assert!(found.next().is_none(), "{envelope} is there twice");
        proposal
    }

    pub(crate) fn api(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        api(self.gateway.address(), who, method, path, body)
    }

    /// Decides over the API.
    pub(crate) fn decide(&self, who: &str, proposal: &Value, what: &str, body: &Value) -> Reply {
        self.api(
            who,
            "POST",
            &format!("/{}/{what}", proposal["id"].as_str().unwrap()),
            body,
        )
    }

    pub(crate) fn audit_log(&self) -> AuditLog<'_> {
        AuditLog(&self.home)
    }

    pub(crate) fn approve(&self, who: &str, proposal: &Value) -> Reply {
        self.decide(
            who,
            proposal,
            "approve",
            &json!({ "digest": proposal["digest"] }),
        )
    }
}

/// The proposals of all pages of a list: `get` has the answer to a query.
#[track_caller]
pub(crate) fn pages_of(get: impl Fn(&str) -> Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let page = get(&format!("limit=500{after}"));
        let listed = page["proposals"].as_array();
        found.extend(listed.unwrap_or_else(|| panic!("{page}")).clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return found,
        }
    }
}

pub(crate) fn api(address: &str, who: &str, method: &str, path: &str, body: &Value) -> Reply {
    let path = format!("/api/v1/proposals{path}");
    Connection::open(address).api(method, &path, &token(who), body)
}

pub(crate) fn echoes(text: &str) -> Value {
    json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": text } } })
}

pub(crate) fn fulfilment(text: &str) -> Value {
    let mut call = echoes(text);
    call["jsonrpc"] = json!("2.0");
    call["id"] = json!(7);
    call
}

pub(crate) fn names(proposal: &str) -> Value {
    json!({ "correlation_id": proposal })
}

/// The next notice about a proposal, which has this state.
#[track_caller]
pub(crate) fn state(socket: &mut Socket, envelope: &str, state: &str) -> Value {
    let received = socket.receive_until(|received| received["kind"] == "portmoot/proposal");
    assert_eq!(received["from"], "portmoot", "{received}");
    assert_eq!(received["payload"]["proposal"], envelope, "{received}");
    assert_eq!(received["payload"]["state"], state, "{received}");
    received
}

/// Receives the answer and the final notice, in any order; returns the answer.
/// The end of a proposal, as a participant receives it.
pub(crate) struct Ended {
    /// Its states.
    pub(crate) states: Vec<Value>,
    /// The answer of its call.
    pub(crate) answer: Value,
}

/// Receives these states of a proposal, in this order, and the answer of its call. The answer is no
/// state: it may come before one of them or after all, as the call has a mailbox of its own.
#[track_caller]
pub(crate) fn ended(socket: &mut Socket, envelope: &str, expected: &[&str]) -> Ended {
    let mut states = Vec::new();
    let mut answer = None;
    while answer.is_none() || states.len() < expected.len() {
        let received = socket.receive();
        let kind = received["kind"].as_str().unwrap();
        if kind == "portmoot/proposal" {
            let payload = &received["payload"];
            assert_eq!(payload["proposal"], envelope, "{received}");
            let next = expected.get(states.len());
            assert_eq!(
                Some(&payload["state"]),
                next.map(|state| json!(state)).as_ref()
            );
            states.push(received);
        } else if kind.starts_with("mcp/response") {
            assert!(answer.is_none(), "two answers: {received}");
            answer = Some(received);
        }
    }
    Ended {
        states,
        answer: answer.unwrap(),
    }
}

#[track_caller]
pub(crate) fn says(answer: &Value, text: &str) {
    assert_eq!(
        answer["payload"]["result"]["content"][0]["text"], text,
        "{answer}"
    );
}

#[track_caller]
pub(crate) fn fails(answer: &Value, correlation: &str) {
    assert_eq!(answer["correlation_id"], correlation, "{answer}");
    assert!(answer["payload"]["error"].is_object(), "{answer}");
}
