//! A bank that pays by rules: the stage of the tests of rules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use platform::unix_ms;
use serde_json::{Value, json};
use wire::time::rfc3339;

use crate::home::Home;
use crate::http::{Connection, Events};
use crate::peer::{Peer, answer, small};
use crate::stage::pages_of;
use crate::support::{Client, Gateway, until};
use crate::ws::{Socket, people, token};

/// The capabilities of the author of rules.
pub(super) const AUTHOR: &str = "capabilities = [\"mcp/request:*\", \"mcp/proposal:*\"]";
/// An amount of which the server answers no call.
pub(super) const UNANSWERED: u64 = 77;
/// An amount that the server answers with a result that is an error.
pub(super) const FAILING: u64 = 66;
/// An amount that the server answers with an error of JSON-RPC.
pub(super) const REFUSED: u64 = 65;
/// The amount of calls that show digests, and of no other.
const SHOWING: u64 = 1_000;
pub(super) const DAY_MS: u64 = 24 * 3_600_000;
const TOPIC: &str =
    "[topics.main]\nrules = \"rules.toml\"\nmcp_calls = \"full\"\nbuiltin = [\"proposals\"]\n";

/// A gateway with a bank whose tool `pay` scout may only propose to call, and payer may call, and teller
/// neither; ann is the author of rules, and boss sees everything.
pub(super) struct Bank {
    pub(super) home: Home,
    pub(super) gateway: Gateway,
    pub(super) server: Peer,
    pub(super) config: String,
    /// Whether the bank lists another definition of its tool.
    pub(super) is_changed: Arc<AtomicBool>,
    /// Lines of rules about the tool as it was first listed.
    pub(super) digests: String,
}

impl Bank {
    /// A bank whose topic has no rules yet.
    pub(super) fn new() -> Bank {
        Self::beside("")
    }

    /// The bank, beside what this configuration has.
    pub(super) fn beside(more: &str) -> Bank {
        let is_changed: Arc<AtomicBool> = Arc::default();
        let server = paying(Arc::clone(&is_changed));
        let all: [(&str, &[&str]); 6] = [
            ("scout", &["mcp/proposal:*"]),
            ("dave", &["mcp/proposal:*"]),
            ("payer", &["mcp/proposal:*", "mcp/request:*"]),
            ("ann", &["mcp/request:*", "mcp/proposal:*"]),
            ("teller", &["mcp/request:tools/list"]),
            ("boss", &["mcp/*", "portmoot/*"]),
        ];
        let (home, config) = people(&all);
        let config = config + &server.child("bank", "bank") + TOPIC + more;
        home.write("rules.toml", "");
        let gateway = Gateway::start(&home, &config);
        gateway.ready("bank");
        let mut bank = Bank {
            home,
            gateway,
            server,
            config,
            is_changed,
            digests: String::new(),
        };
        bank.digests = bank.digests_of("bank_pay");
        bank
    }

    /// A bank whose topic has these rules.
    pub(super) fn with(rules: impl FnOnce(&Bank) -> String) -> Bank {
        let bank = Bank::new();
        let rules = rules(&bank);
        bank.put(&rules);
        bank
    }

    /// The digests that a rule about this tool names, as `rules explain` shows them for a proposal.
    #[track_caller]
    pub(super) fn digests_of(&self, tool: &str) -> String {
        let before = self.rejected();
        let call = self.begins("scout", tool, SHOWING);
        let proposal = self.pending();
        let shown = self.explain(&proposal);
        let (digests, _) = shown.split_once("\n\n").unwrap();
        assert!(digests.starts_with("definition = \""), "{shown}");
        self.reject(&proposal);
        call.rest();
        until("it is rejected", || {
            (self.rejected() > before).then_some(())
        });
        digests.to_owned()
    }

    /// A rule of ann's for the proposals of scout.
    pub(super) fn approving(&self, id: &str, lines: &str, when: &str) -> String {
        // A rule of the same version is the same rule: it ends at the same second.
        static EXPIRES: LazyLock<String> = LazyLock::new(|| whole_seconds(unix_ms() + DAY_MS));
        let expires = &*EXPIRES;
        format!(
            "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
             kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n{}\n\
             expires = \"{expires}\"\n{lines}\n[rule.when]\n{when}\n",
            self.digests
        )
    }

    /// Writes the rules, and waits until the gateway has them.
    #[track_caller]
    pub(super) fn put(&self, rules: &str) {
        self.home.write("rules.toml", rules);
        self.gateway.signal("HUP");
        let count = rules.matches("[[rule]]").count();
        let texts: Vec<&str> = rules.split("[[rule]]").skip(1).collect();
        let is_there = |rule: &Value| {
            let (id, version) = rule["rule"].as_str().unwrap().rsplit_once('.').unwrap();
            texts.iter().any(|text| {
                let has_version = text.contains(&format!("version = {version}\n"));
                text.contains(&format!("id = \"{id}\"\n"))
                    && (has_version || version == "1" && !text.contains("version = "))
            })
        };
        until("the rules are there", || {
            let all = self.rules();
            (all.len() == count && all.iter().all(is_there)).then_some(())
        });
    }

    pub(super) fn rules(&self) -> Vec<Value> {
        let all = self.portmoot(&["rules", "ls", "--json"], 0);
        let all: Value = serde_json::from_str(&all).unwrap();
        all["rules"].as_array().unwrap().clone()
    }

    #[track_caller]
    pub(super) fn rule(&self, name: &str) -> Value {
        let all = self.rules();
        let found = all.iter().find(|rule| rule["rule"] == name);
        found.unwrap_or_else(|| panic!("{all:?}")).clone()
    }

    /// Waits until a rule has this state.
    #[track_caller]
    pub(super) fn comes_to(&self, name: &str, state: &str) -> Value {
        until(&format!("{name} is {state}"), || {
            Some(self.rule(name)).filter(|rule| rule["state"] == state)
        })
    }

    /// Runs the program as boss.
    #[track_caller]
    pub(super) fn portmoot(&self, words: &[&str], code: i32) -> String {
        let url = self.gateway.url();
        let boss = token("boss");
        let words = [words, &["--url", &url, "--token", &boss]].concat();
        self.home.run(&words).expect(code).stdout
    }

    /// Why rules decide a proposal, as `rules explain` shows it.
    #[track_caller]
    pub(super) fn explain(&self, proposal: &Value) -> String {
        let id = proposal["id"].as_str().unwrap();
        self.portmoot(&["rules", "explain", id], 0)
    }

    /// Scout begins a call.
    pub(super) fn propose(&self, amount: u64) -> Events {
        self.begins("scout", "bank_pay", amount)
    }

    /// A participant begins a call of a tool that pays.
    pub(super) fn begins(&self, who: &str, tool: &str, amount: u64) -> Events {
        self.begins_with(&token(who), tool, amount)
    }

    /// The participant of this token begins a call of a tool that pays.
    pub(super) fn begins_with(&self, token: &str, tool: &str, amount: u64) -> Events {
        let client = Client::of(&self.gateway, token);
        client.begin_call(tool, json!({ "amount": amount }))
    }

    /// A participant proposes a call of this tool to these addressees, as an envelope of the room.
    pub(super) fn proposes(&self, who: &str, id: &str, to: &[&str], tool: &str) -> Socket {
        // It may be in the topic already, with its session.
        let (mut socket, _) = Socket::welcomed(&self.gateway, who, "?mode=directed&echo=false");
        let params = json!({ "name": tool, "arguments": { "amount": 9 } });
        let payload = json!({ "method": "tools/call", "params": params });
        let kind = format!("mcp/proposal:tools/call:{tool}");
        socket.send(&kind, id, to, json!({}), &payload);
        socket
    }

    /// Waits for a proposal to this addressee that waits for people, and has boss reject it.
    #[track_caller]
    pub(super) fn waits(&self, to: &str, tool: &str) {
        let proposal = self.pending();
        let shown = proposal.to_string();
        assert!(shown.contains(&format!("\"{to}\"")), "{shown}");
        assert_eq!(proposal["params"]["name"], tool, "{shown}");
        self.reject(&proposal);
    }

    /// A call of scout's that no person decides; returns what it is answered.
    #[track_caller]
    pub(super) fn pays(&self, amount: u64) -> Value {
        result_of(&self.propose(amount))
    }

    #[track_caller]
    pub(super) fn is_paid(&self, amount: u64) {
        self.is_paid_by("scout", "bank_pay", amount);
    }

    /// A call of a participant's that no person decides, and which is paid.
    #[track_caller]
    pub(super) fn is_paid_by(&self, who: &str, tool: &str, amount: u64) {
        is_paid(&result_of(&self.begins(who, tool, amount)), amount);
    }

    /// A call of scout's that waits for a person, who rejects it.
    #[track_caller]
    pub(super) fn asks(&self, amount: u64) {
        self.asks_for("scout", "bank_pay", amount);
    }

    /// A call of a participant's that waits for a person, who rejects it.
    #[track_caller]
    pub(super) fn asks_for(&self, who: &str, tool: &str, amount: u64) {
        self.is_asked(self.begins(who, tool, amount), amount);
    }

    /// A call that has begun waits for a person, who rejects it.
    #[track_caller]
    pub(super) fn is_asked(&self, call: Events, amount: u64) {
        let before = self.server.calls("pay");
        let proposal = self.pending();
        assert_eq!(
            proposal["params"]["arguments"]["amount"], amount,
            "{proposal}"
        );
        self.reject(&proposal);
        call.rest();
        assert_eq!(self.server.calls("pay"), before);
    }

    #[track_caller]
    pub(super) fn pending(&self) -> Value {
        self.gateway.pending(&self.home, &token("boss"))
    }

    pub(super) fn api(&self, method: &str, path: &str, body: &str) -> Value {
        let bearer = format!("Bearer {}", token("boss"));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let mut connection = Connection::open(self.gateway.address());
        connection
            .exchange(method, &format!("/api/v1/{path}"), &headers, body)
            .json()
    }

    pub(super) fn proposals(&self) -> Vec<Value> {
        pages_of(|query| self.api("GET", &format!("proposals?all=true&{query}"), ""))
    }

    pub(super) fn rejected(&self) -> usize {
        let all = self.proposals();
        all.iter().filter(|one| one["state"] == "rejected").count()
    }

    #[track_caller]
    pub(super) fn reject(&self, proposal: &Value) {
        let path = format!("proposals/{}/reject", proposal["id"].as_str().unwrap());
        assert_eq!(self.api("POST", &path, "{}")["state"], "rejected");
    }

    /// Has boss approve a proposal.
    #[track_caller]
    pub(super) fn approve(&self, proposal: &Value) {
        let id = proposal["id"].as_str().unwrap();
        self.portmoot(&["proposals", "approve", id, "--yes", "--no-wait"], 0);
    }

    /// The number of proposals of an amount.
    #[track_caller]
    pub(super) fn proposals_of(&self, amount: u64) -> usize {
        let all = self.proposals();
        let of = all.iter();
        of.filter(|one| one["params"]["arguments"]["amount"] == amount)
            .count()
    }

    /// The proposal of an amount.
    #[track_caller]
    pub(super) fn proposal_of(&self, amount: u64) -> Value {
        let all = self.proposals();
        let found = all
            .iter()
            .find(|one| one["params"]["arguments"]["amount"] == amount);
        found.unwrap_or_else(|| panic!("{all:?}")).clone()
    }

    /// Ends the gateway with this signal and starts it again.
    pub(super) fn restart(&mut self, signal: &str) {
        self.gateway.signal(signal);
        self.gateway.wait();
        self.start();
    }

    pub(super) fn start(&mut self) {
        self.gateway = Gateway::start(&self.home, &self.config);
        self.gateway.ready("bank");
    }

    /// Waits until what ann may do is in force.
    #[track_caller]
    pub(super) fn ann_may(&self, may: bool) {
        until("what ann may do", || {
            let can = self.api("GET", "participants/ann/can", "").to_string();
            (can.contains("mcp/request:*") == may).then_some(())
        });
    }

    /// Changes the configuration, and has the gateway take it over.
    pub(super) fn change(&mut self, old: &str, new: &str) {
        assert!(self.config.contains(old), "{old}: {}", self.config);
        self.config = self.config.replacen(old, new, 1);
        self.home.write("portmoot.toml", &self.config);
        self.gateway.signal("HUP");
    }
}

/// The last answer to a call, which is its result.
#[track_caller]
pub(super) fn result_of(call: &Events) -> Value {
    let answers = call.rest();
    let answer = answers.last().unwrap_or_else(|| panic!("no answer"));
    answer["result"].clone()
}

/// Checks that a result says that an amount was paid.
#[track_caller]
pub(super) fn is_paid(result: &Value, amount: u64) {
    let paid = format!("paid {amount}");
    assert_eq!(result["content"][0]["text"], paid, "{result}");
}

/// Checks that a proposal, as it is shown, was decided by ann's rule.
#[track_caller]
pub(super) fn is_by_rule(shown: &Value) {
    let decided = [&shown["decided_by"], &shown["rule"], &shown["rule_author"]];
    assert_eq!(decided, ["rules", "r1.1", "ann"], "{shown}");
}

/// Checks that an envelope of the room shows a proposal which was decided by ann's rule.
#[track_caller]
pub(super) fn is_announced_by_rule(envelope: &Value) {
    let payload = &envelope["payload"];
    let decided = [&payload["by"], &payload["rule"], &payload["rule_author"]];
    assert_eq!(decided, ["rules", "r1.1", "ann"], "{envelope}");
}

/// A server with a tool `pay`.
pub(super) fn paying(is_changed: Arc<AtomicBool>) -> Peer {
    Peer::stdio(move |message| {
        let is_call = message["method"] == "tools/call";
        let said = match message["params"]["arguments"]["amount"].as_u64() {
            Some(UNANSWERED) if is_call => None,
            Some(REFUSED) if is_call => Some(refusal(message)),
            Some(amount) if is_call => {
                let content = json!([{ "type": "text", "text": format!("paid {amount}") }]);
                let result = json!({ "content": content, "isError": amount == FAILING });
                Some(answer(message, &result.to_string()))
            }
            _ => small(message, &tools(is_changed.load(Ordering::Relaxed))),
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

fn refusal(message: &Value) -> String {
    let error = json!({ "code": -32000, "message": "there is no money" });
    json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()
}

fn tools(is_changed: bool) -> String {
    let words = if is_changed { "Pays, and more" } else { "Pays" };
    format!(
        r#"[{{"name":"pay","description":"{words}","inputSchema":{{"type":"object"}},"annotations":{{"destructiveHint":false}}}}]"#
    )
}

/// A time as rules write it.
pub(super) fn whole_seconds(at_ms: u64) -> String {
    let text = rfc3339(at_ms);
    format!("{}Z", &text[..19])
}

pub(super) const UP_TO_100: &str = "\"/amount\" = { integer = [1, 100] }";
