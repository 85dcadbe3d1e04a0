//! Callers that may only propose, a server that counts, and one who decides.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Reply, TIMEOUT};
use crate::peer::{Peer, worker};
use crate::support::until;
use crate::ws::token;

use super::attempt::{api, modern};
use super::nodes::{AddressBook, Nodes, SHORT};
use super::plain::PLAIN;

/// A server that counts its calls, and its table: calls are held for this time.
pub(super) struct Worker(Peer);

impl Worker {
    pub(super) fn new() -> Worker {
        Worker(worker())
    }

    pub(super) fn config(&self, hold: &str) -> String {
        let table = self.0.child("worker", "worker");
        // With one that each node calls, nodes pass requests on, and not connections.
        format!("[server.limits]\nhold = {hold:?}\n{table}{PLAIN}")
    }

    /// The number of times that each call was carried out, by the number of the call.
    pub(super) fn ran(&self) -> BTreeMap<u64, usize> {
        let mut ran = BTreeMap::new();
        for line in self.0.received() {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "tools/call" {
                *ran.entry(number_of(&message)).or_default() += 1;
            }
        }
        ran
    }
}

/// The number of a call or of a proposal.
pub(super) fn number_of(message: &Value) -> u64 {
    message["params"]["arguments"]["n"].as_u64().unwrap()
}

/// The words of a node that is the home no more: the return is to be made again.
const MOVED: &str = "another node of the cluster serves this now";

/// The answer that a caller gets.
#[derive(Debug)]
pub(super) enum Learned {
    /// The end of its call.
    End(Value),
    /// The word that it is to come back.
    Later,
    /// The word that its token is not known.
    Refused,
    /// No answer.
    Nothing,
}

/// One call of a proposer, which comes back until it learns the end.
pub(super) struct Caller {
    number: u64,
    token: String,
    /// The state by which it comes back.
    state: Option<Value>,
    /// The last answer that was none.
    refused: Option<Reply>,
}

impl Caller {
    /// A call of the agent.
    pub(super) fn new(number: u64) -> Caller {
        Caller::of(number, &token("agent"))
    }

    /// A call of the holder of this token.
    pub(super) fn of(number: u64, token: &str) -> Caller {
        Caller {
            number,
            token: token.to_owned(),
            state: None,
            refused: None,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it learned that it is to come back.
    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Makes the call, or comes back for it.
    pub(super) fn ask(&mut self, address: &str, within: Duration) -> Learned {
        let mut params = json!({ "name": "worker_work", "arguments": { "n": self.number } });
        if let Some(state) = &self.state {
            params["requestState"] = state.clone();
        }
        let reply = modern(address, within, &self.token, "tools/call", params);
        let reply = match reply {
            Some(reply) if reply.status == 200 => reply,
            Some(reply) if reply.status == 401 => return Learned::Refused,
            other => {
                self.refused = other.or(self.refused.take());
                return Learned::Nothing;
            }
        };
        let message = reply.json();
        if message["result"]["resultType"] == "input_required" {
            self.state = Some(message["result"]["requestState"].clone());
            return Learned::Later;
        }
        // A home that has just moved refuses a return, which says nothing of the call.
        if self.has_state() && message.to_string().contains(MOVED) {
            return Learned::Nothing;
        }
        Learned::End(message)
    }

    /// Asks at one node after the other until it learns the end.
    #[track_caller]
    pub(super) fn end(&mut self, book: &AddressBook) -> Value {
        let end = Instant::now() + TIMEOUT;
        for turn in 0.. {
            assert!(
                Instant::now() < end,
                "{} never learned the end: {:?}",
                self.number,
                self.refused
            );
            let Some(address) = book.in_turn(turn) else {
                continue;
            };
            if let Learned::End(message) = self.ask(&address, SHORT) {
                return message;
            }
        }
        unreachable!()
    }
}

/// The proposals that a node lists, ended ones too; `None` if it does not answer.
pub(super) fn listed(address: &str, within: Duration) -> Option<Vec<Value>> {
    pages(address, within, "?all=true&limit=500")
}

/// The proposals that a node lists as open; `None` if it does not answer.
pub(super) fn open(address: &str, within: Duration) -> Option<Vec<Value>> {
    pages(address, within, "?limit=500")
}

fn pages(address: &str, within: Duration, query: &str) -> Option<Vec<Value>> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let line = format!("GET /api/v1/proposals{query}{after}");
        let reply = api(address, within, &token("boss"), &line, &Value::Null)?;
        if reply.status != 200 {
            return None;
        }
        let page = reply.json();
        all.extend(page["proposals"].as_array()?.clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return Some(all),
        }
    }
}

/// Decides about a proposal at a node; the status of the answer, if there is one.
pub(super) fn decide(address: &str, within: Duration, proposal: &Value, what: &str) -> Option<u16> {
    let id = proposal["id"].as_str().unwrap();
    let line = format!("POST /api/v1/proposals/{id}/{what}");
    let body = match what {
        "approve" => json!({ "digest": proposal["digest"] }),
        _ => json!({}),
    };
    let reply = api(address, within, &token("boss"), &line, &body)?;
    Some(reply.status)
}

/// The proposal of this number once it has this state, as a node lists it.
#[track_caller]
pub(super) fn proposal(nodes: &Nodes, node: usize, number: u64, state: &str) -> Value {
    until(&format!("{number} is {state}"), || {
        let all = listed(nodes.node(node).address(), SHORT)?;
        let mut all = all.into_iter();
        all.find(|one| number_of(one) == number && one["state"] == state)
    })
}
