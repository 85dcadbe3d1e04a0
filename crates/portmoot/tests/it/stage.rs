//! A gateway where some propose and others decide, and what they say and hear over real sockets.

use serde_json::{Value, json};

use crate::http::{Connection, Reply};
use crate::ledger::Ledger;
use crate::runner::Home;
use crate::support::{Gateway, fixture};
use crate::ws::{Socket, people, encode_token};

const FULL: &[&str] = &["mcp/*", "chat"];
pub(crate) const ECHO: &str = "mcp/proposal:tools/call:echo";
pub(crate) const FULFIL: &str = "mcp/request:tools/call:echo";

/// A gateway with the fixture as `tools` and `more`; an `agent` who may only propose, `boss` and `chief` who may do all, a
/// `clerk` who may add only, and a `worker` who may only answer.
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
        ["tools", "more"].iter().for_each(|name| gateway.ready(name));
        let agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
        let boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
        Stage { gateway, agent, boss, asked: 0, home, config }
    }

    /// How many calls both servers have carried out, but for those that ask for it.
    #[track_caller]
    pub(crate) fn executed(&mut self) -> u64 {
        let mut sum = 0;
        for server in ["tools", "more"] {
            self.asked += 1;
            let id = format!("record {}", self.asked);
            self.boss.call(&id, &[server], "record", json!({}));
            let heard = self.boss.hear_until(|heard| heard["correlation_id"] == id);
            sum += heard["payload"]["result"]["structuredContent"]["calls"].as_u64().unwrap();
        }
        sum - self.asked
    }

    /// The agent proposes to have `tools` say this; what the boss sees of it.
    #[track_caller]
    pub(crate) fn propose(&mut self, id: &str, text: &str) -> Value {
        self.agent.say(ECHO, id, &["tools"], json!({}), &echoes(text));
        state(&mut self.agent, id, "pending");
        self.shown(id)
    }

    /// What the boss sees of the proposal that this envelope made.
    #[track_caller]
    pub(crate) fn shown(&self, envelope: &str) -> Value {
        let all = self.api("boss", "GET", "?all=true", &json!(null)).json();
        let all = all["proposals"].as_array().unwrap();
        let mut found = all.iter().filter(|proposal| proposal["envelope"] == envelope);
        let proposal = found.next().unwrap_or_else(|| panic!("{envelope} is not there: {all:?}")).clone();
        assert!(found.next().is_none(), "{envelope} is there twice");
        proposal
    }

    pub(crate) fn api(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        api(self.gateway.address(), who, method, path, body)
    }

    /// Decides over the API.
    pub(crate) fn decide(&self, who: &str, proposal: &Value, what: &str, body: &Value) -> Reply {
        self.api(who, "POST", &format!("/{}/{what}", proposal["id"].as_str().unwrap()), body)
    }

    pub(crate) fn ledger(&self) -> Ledger<'_> {
        Ledger(&self.home)
    }

    pub(crate) fn approve(&self, who: &str, proposal: &Value) -> Reply {
        self.decide(who, proposal, "approve", &json!({ "digest": proposal["digest"] }))
    }
}

pub(crate) fn api(address: &str, who: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {}", token(who));
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Connection::open(address).exchange(method, &format!("/api/v1/proposals{path}"), &headers, &body)
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

/// The next word about a proposal: that it stands so.
#[track_caller]
pub(crate) fn state(socket: &mut Socket, envelope: &str, state: &str) -> Value {
    let heard = socket.hear_until(|heard| heard["kind"] == "portmoot/proposal");
    assert_eq!(heard["from"], "portmoot", "{heard}");
    assert_eq!(heard["payload"]["proposal"], envelope, "{heard}");
    assert_eq!(heard["payload"]["state"], state, "{heard}");
    heard
}

/// Both the answer and the end come, in whatever order: the answer.
#[track_caller]
pub(crate) fn answer_and(socket: &mut Socket, envelope: &str, state: &str) -> Value {
    let (mut answer, mut over) = (None, false);
    while answer.is_none() || !over {
        let heard = socket.hear();
        if heard["kind"] == "portmoot/proposal" {
            assert_eq!(
                (&heard["payload"]["proposal"], &heard["payload"]["state"]),
                (&json!(envelope), &json!(state))
            );
            over = true;
        } else if heard["kind"].as_str().unwrap().starts_with("mcp/response") {
            assert!(answer.is_none(), "two answers: {heard}");
            answer = Some(heard);
        }
    }
    answer.unwrap()
}

#[track_caller]
pub(crate) fn says(answer: &Value, text: &str) {
    assert_eq!(answer["payload"]["result"]["content"][0]["text"], text, "{answer}");
}

#[track_caller]
pub(crate) fn fails(answer: &Value, correlation: &str) {
    assert_eq!(answer["correlation_id"], correlation, "{answer}");
    assert!(answer["payload"]["error"].is_object(), "{answer}");
}
