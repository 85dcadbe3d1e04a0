//! Rules that decide proposals on their authors' authority, through the running binary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use platform::unix_ms;
use serde_json::{Value, json};
use wire::time::rfc3339;

use crate::audit_log::AuditLog;
use crate::first_use::blocks_of;
use crate::home::Home;
use crate::http::{Connection, Events};
use crate::peer::{Peer, answer, small};
use crate::support::{Client, Gateway, until};
use crate::ws::{Socket, people, token};

/// What the author of the rules may do.
const AUTHOR: &str = "capabilities = [\"mcp/request:*\", \"mcp/proposal:*\"]";
/// An amount of which the server answers no call.
const UNANSWERED: u64 = 77;
const DAY_MS: u64 = 24 * 3_600_000;

/// A gateway with a bank whose tool `pay` scout may only propose to call; ann is the author of
/// rules, and boss sees everything.
struct Bank {
    home: Home,
    gateway: Gateway,
    server: Peer,
    config: String,
    /// Whether the bank lists another definition of its tool.
    is_changed: Arc<AtomicBool>,
    /// Lines of rules about the tool as it was first listed.
    digests: String,
}

impl Bank {
    /// A bank whose topic has no rules yet.
    fn new() -> Bank {
        let is_changed: Arc<AtomicBool> = Arc::default();
        let changed = Arc::clone(&is_changed);
        let server = Peer::stdio(move |message| {
            let said = match message["method"].as_str() {
                Some("tools/call") => {
                    let amount = &message["params"]["arguments"]["amount"];
                    let text = format!("paid {amount}");
                    let content = json!({ "content": [{ "type": "text", "text": text }] });
                    (amount.as_u64() != Some(UNANSWERED))
                        .then(|| answer(message, &content.to_string()))
                }
                _ => small(message, &tools(changed.load(Ordering::Relaxed))),
            };
            said.into_iter().map(String::into_bytes).collect()
        });
        let all: [(&str, &[&str]); 4] = [
            ("scout", &["mcp/proposal:*"]),
            ("dave", &["mcp/proposal:*"]),
            ("ann", &["mcp/request:*", "mcp/proposal:*"]),
            ("boss", &["mcp/*", "portmoot/*"]),
        ];
        let (home, config) = people(&all);
        let topic = "[topics.main]\nrules = \"rules.toml\"\nmcp_calls = \"full\"\n";
        let config = config + &server.child("bank", "bank") + topic;
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
        bank.digests = bank.digests_of_now();
        bank
    }

    /// A bank whose topic has these rules.
    fn with(rules: impl FnOnce(&Bank) -> String) -> Bank {
        let bank = Bank::new();
        let rules = rules(&bank);
        bank.put(&rules);
        bank
    }

    /// The digests that a rule about the tool names, as `rules explain` shows them for a proposal.
    #[track_caller]
    fn digests_of_now(&self) -> String {
        let before = self.rejected();
        let call = self.propose(1);
        let proposal = self.pending();
        let id = proposal["id"].as_str().unwrap();
        let shown = self.portmoot(&["rules", "explain", id], 0);
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
    fn approving(&self, id: &str, lines: &str, when: &str) -> String {
        let expires = whole_seconds(unix_ms() + DAY_MS);
        format!(
            "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
             kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n{}\n\
             expires = \"{expires}\"\n{lines}\n[rule.when]\n{when}\n",
            self.digests
        )
    }

    /// Writes the rules, and waits until the gateway has them.
    #[track_caller]
    fn put(&self, rules: &str) {
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

    fn rules(&self) -> Vec<Value> {
        let all = self.portmoot(&["rules", "ls", "--json"], 0);
        let all: Value = serde_json::from_str(&all).unwrap();
        all["rules"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn rule(&self, name: &str) -> Value {
        let all = self.rules();
        let found = all.iter().find(|rule| rule["rule"] == name);
        found.unwrap_or_else(|| panic!("{all:?}")).clone()
    }

    /// Waits until a rule has this state.
    #[track_caller]
    fn comes_to(&self, name: &str, state: &str) -> Value {
        until(&format!("{name} is {state}"), || {
            Some(self.rule(name)).filter(|rule| rule["state"] == state)
        })
    }

    /// Runs the program as boss.
    #[track_caller]
    fn portmoot(&self, words: &[&str], code: i32) -> String {
        let url = self.gateway.url();
        let boss = token("boss");
        let words = [words, &["--url", &url, "--token", &boss]].concat();
        self.home.run(&words).expect(code).stdout
    }

    /// Scout begins a call.
    fn propose(&self, amount: u64) -> Events {
        let scout = Client::of(&self.gateway, &token("scout"));
        scout.begin_call("bank_pay", json!({ "amount": amount }))
    }

    /// A participant proposes a call of this tool to an addressee, as an envelope of the room.
    fn proposes(&self, who: &str, id: &str, to: &str, tool: &str) -> Socket {
        // It may be in the topic already, with its session.
        let (mut socket, _) = Socket::welcomed(&self.gateway, who, "?mode=directed&echo=false");
        let params = json!({ "name": tool, "arguments": { "amount": 9 } });
        let payload = json!({ "method": "tools/call", "params": params });
        let kind = format!("mcp/proposal:tools/call:{tool}");
        socket.send(&kind, id, &[to], json!({}), &payload);
        socket
    }

    /// Waits for a proposal to this addressee that waits for people, and has boss reject it.
    #[track_caller]
    fn waits(&self, to: &str, tool: &str) {
        let proposal = self.pending();
        let shown = proposal.to_string();
        assert!(shown.contains(&format!("\"{to}\"")), "{shown}");
        assert_eq!(proposal["params"]["name"], tool, "{shown}");
        self.reject(&proposal);
    }

    /// A call of scout's that no person decides; returns what it is answered.
    #[track_caller]
    fn pays(&self, amount: u64) -> Value {
        let answers = self.propose(amount).rest();
        let answer = answers.last().unwrap_or_else(|| panic!("no answer"));
        answer["result"].clone()
    }

    #[track_caller]
    fn is_paid(&self, amount: u64) {
        let result = self.pays(amount);
        assert_eq!(
            result["content"][0]["text"],
            format!("paid {amount}"),
            "{result}"
        );
    }

    /// A call of scout's that waits for a person, who rejects it.
    #[track_caller]
    fn asks(&self, amount: u64) {
        let before = self.server.calls("pay");
        let call = self.propose(amount);
        let proposal = self.pending();
        assert_eq!(
            proposal["params"]["arguments"]["amount"], amount,
            "{proposal}"
        );
        assert_eq!(self.server.calls("pay"), before);
        self.reject(&proposal);
        call.rest();
    }

    #[track_caller]
    fn pending(&self) -> Value {
        self.gateway.pending(&self.home, &token("boss"))
    }

    fn api(&self, method: &str, path: &str, body: &str) -> Value {
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

    fn proposals(&self) -> Vec<Value> {
        let all = self.api("GET", "proposals?all=true", "");
        all["proposals"].as_array().unwrap().clone()
    }

    fn rejected(&self) -> usize {
        let all = self.proposals();
        all.iter().filter(|one| one["state"] == "rejected").count()
    }

    #[track_caller]
    fn reject(&self, proposal: &Value) {
        let path = format!("proposals/{}/reject", proposal["id"].as_str().unwrap());
        assert_eq!(self.api("POST", &path, "{}")["state"], "rejected");
    }

    /// The proposal of an amount.
    #[track_caller]
    fn proposal_of(&self, amount: u64) -> Value {
        let all = self.proposals();
        let found = all
            .iter()
            .find(|one| one["params"]["arguments"]["amount"] == amount);
        found.unwrap_or_else(|| panic!("{all:?}")).clone()
    }

    /// Ends the gateway with this signal and starts it again.
    fn restart(&mut self, signal: &str) {
        self.gateway.signal(signal);
        self.gateway.wait();
        self.start();
    }

    fn start(&mut self) {
        self.gateway = Gateway::start(&self.home, &self.config);
        self.gateway.ready("bank");
    }

    /// Waits until what ann may do is in force.
    #[track_caller]
    fn ann_may(&self, may: bool) {
        until("what ann may do", || {
            let can = self.api("GET", "participants/ann/can", "").to_string();
            (can.contains("mcp/request:*") == may).then_some(())
        });
    }

    /// Changes the configuration, and has the gateway take it over.
    fn change(&mut self, old: &str, new: &str) {
        assert!(self.config.contains(old), "{old}: {}", self.config);
        self.config = self.config.replacen(old, new, 1);
        self.home.write("portmoot.toml", &self.config);
        self.gateway.signal("HUP");
    }
}

fn tools(is_changed: bool) -> String {
    let words = if is_changed { "Pays, and more" } else { "Pays" };
    format!(
        r#"[{{"name":"pay","description":"{words}","inputSchema":{{"type":"object"}},"annotations":{{"destructiveHint":false}}}}]"#
    )
}

/// A time as rules write it.
fn whole_seconds(at_ms: u64) -> String {
    let text = rfc3339(at_ms);
    format!("{}Z", &text[..19])
}

const UP_TO_100: &str = "\"/amount\" = { integer = [1, 100] }";

#[test]
fn a_rule_decides_and_everything_says_so() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    let mut boss = Socket::enter(&bank.gateway, "boss", "?mode=all&echo=false");
    bank.is_paid(50);
    // The room is shown the request in the name of rules.
    let request = boss.receive_until(|one| one["kind"] == "mcp/request:tools/call:pay");
    assert_eq!(request["from"], "rules", "{request}");
    let running = boss.receive_until(|one| {
        one["kind"] == "portmoot/proposal" && one["payload"]["state"] == "completed"
    });
    let payload = &running["payload"];
    assert_eq!(
        [&payload["by"], &payload["rule"], &payload["rule_author"]],
        ["rules", "r1.1", "ann"],
        "{running}"
    );
    let decided = bank.proposal_of(50);
    assert_eq!(
        [
            &decided["decided_by"],
            &decided["rule"],
            &decided["rule_author"]
        ],
        ["rules", "r1.1", "ann"],
        "{decided}"
    );
    let id = decided["id"].as_str().unwrap();
    let shown = bank.portmoot(&["proposals", "show", id], 0);
    assert!(shown.contains("by rules (rule r1.1 of ann)"), "{shown}");
    let kind = "mcp/proposal:tools/call:pay";
    let why = "by rule r1.1 of ann, proposed by scout";
    AuditLog(&bank.home).has("rules", kind, "approved", why);
    let rule = bank.rule("r1.1");
    assert_eq!(
        (&rule["used"], &rule["left"]),
        (&json!(1), &json!(8)),
        "{rule}"
    );
    // Beyond the rule people decide.
    let calls = bank.server.calls("pay");
    let call = bank.propose(500);
    let id = bank.pending()["id"].as_str().unwrap().to_owned();
    let shown = bank.portmoot(&["rules", "explain", &id], 0);
    assert!(shown.contains("r1.1 does not decide it"), "{shown}");
    assert!(shown.contains("failed   amount is"), "{shown}");
    bank.reject(&bank.pending());
    call.rest();
    assert_eq!(bank.server.calls("pay"), calls);
}

#[test]
fn a_rule_never_outlives_its_authors_capability() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    bank.change(AUTHOR, "capabilities = [\"chat\"]");
    bank.ann_may(false);
    bank.asks(2);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "its author may not do this any more", "{rule}");
    // It does not come back by itself, but as the next version.
    bank.change("capabilities = [\"chat\"]", AUTHOR);
    bank.ann_may(true);
    bank.asks(3);
    bank.restart("TERM");
    bank.asks(4);
    bank.put(&bank.approving("r1", "version = 2\nuses = 9", UP_TO_100));
    bank.is_paid(5);
    // The author need not be there; one that is not known decides nothing, and may come back.
    let table = "[participants.ann]\ntoken_env = \"TOKEN_ANN\"\n";
    bank.change(&format!("{table}{AUTHOR}\n"), "");
    bank.ann_may(false);
    bank.asks(6);
    assert_eq!(bank.rule("r1.2")["state"], "in force");
}

/// Ann may make calls of these kinds at the bank alone.
fn at_the_bank(kind: &str) -> String {
    format!(
        "capabilities = [{{ kind = \"mcp/request:tools/call:{kind}\", to = [\"bank\"] }}, \"mcp/proposal:*\"]"
    )
}

/// Puts a rule of ann's that rejects beside one of boss's that approves, with what ann may do.
fn rejecting(may: &str, scope: &str) -> Bank {
    let mut bank = Bank::new();
    bank.change(AUTHOR, may);
    bank.ann_may(false);
    let approving = bank.approving("r1", "uses = 9", UP_TO_100);
    let reject = format!(
        "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n{scope}proposers = [\"*\"]\n"
    );
    bank.put(&(approving.replace("\"ann\"", "\"boss\"") + &reject));
    bank
}

#[test]
fn a_proposal_to_another_addressee_switches_no_rule_off() {
    let kind = "kind = \"mcp/request:tools/call:pay\"\n";
    let bank = rejecting(&at_the_bank("*"), kind);
    let _scout = bank.proposes("scout", "p1", "lab", "pay");
    bank.waits("lab", "pay");
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    assert_eq!(bank.pays(9)["isError"], true);
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn a_proposal_of_another_tool_switches_no_rule_off() {
    let kind = "kind = \"mcp/request:tools/call\"\nto = \"bank\"\n";
    let bank = rejecting(&at_the_bank("bank_pay"), kind);
    let _scout = bank.proposes("scout", "p1", "bank", "get");
    bank.waits("bank", "get");
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    assert_eq!(bank.pays(9)["isError"], true);
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn what_a_rule_may_not_reject_waits_for_people() {
    let kind = "kind = \"mcp/request:tools/call:pay\"\n";
    let mut bank = rejecting("capabilities = [\"chat\"]", kind);
    bank.asks(9);
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    // A text that was changed under its version does not reject, and nothing is approved for it.
    let approving = bank.approving("r1", "version = 2\nuses = 9", UP_TO_100);
    let approving = approving.replace("\"ann\"", "\"boss\"");
    let changed = format!(
        "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n{kind}proposers = [\"scout\"]\n"
    );
    bank.put(&(approving.clone() + &changed));
    bank.comes_to("r2.1", "refused");
    bank.asks(10);
    assert_eq!(bank.server.calls("pay"), 0);
    // Without the rule, the other one approves.
    bank.put(&approving);
    bank.is_paid(11);
    bank.restart("TERM");
    bank.is_paid(12);
}

#[test]
fn a_removed_rule_decides_nothing_on_the_reload_that_removes_it() {
    let mut bank = rejecting(
        "capabilities = [\"chat\"]",
        "kind = \"mcp/request:tools/call:pay\"\n",
    );
    let _call = bank.propose(9);
    let id = bank.pending()["id"].clone();
    // Ann may reject it from the moment on at which her rule is gone.
    bank.home.write("rules.toml", "");
    bank.change("capabilities = [\"chat\"]", AUTHOR);
    bank.ann_may(true);
    until("the rules are gone", || {
        bank.rules().is_empty().then_some(())
    });
    let proposal = bank.pending();
    assert_eq!(proposal["id"], id, "{proposal}");
}

#[test]
fn a_participant_suspends_no_rule_about_others() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 1", UP_TO_100));
    bank.is_paid(1);
    let _dave = bank.proposes("dave", "p1", "bank", "pay");
    bank.waits("bank", "pay");
    assert_eq!(bank.rule("r1.1")["state"], "spent");
}

#[test]
fn a_rule_is_never_used_for_its_authors_own_proposal() {
    let reject = "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                  kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n";
    let bank = Bank::with(|_| reject.to_owned());
    let mut scout = bank.proposes("scout", "p1", "bank", "pay");
    let notified = scout.receive_until(|one| one["payload"]["state"] == "rejected");
    assert_eq!(notified["payload"]["by"], "rules", "{notified}");
    let mut ann = bank.proposes("ann", "p2", "bank", "pay");
    ann.receive_until(|one| one["kind"] == "portmoot/proposal");
    // It waits for others.
    assert_eq!(bank.pending()["by"], "ann");
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    // An approving rule that names its author is none.
    let own = bank
        .approving("r1", "uses = 9", UP_TO_100)
        .replace("[\"scout\"]", "[\"ann\"]");
    bank.home.write("rules.toml", &own);
    let check = bank
        .home
        .run(&["config", "check", "--config", "portmoot.toml"])
        .expect(2);
    let why = "a rule never decides its author's own proposals";
    assert!(check.stderr.contains(why), "{}", check.stderr);
}

#[test]
fn a_changed_tool_suspends_its_rules() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    bank.is_changed.store(true, Ordering::Relaxed);
    bank.server
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    until("the tool has changed", || {
        let tool = bank.api("GET", "tools/bank_pay", "");
        tool.to_string().contains("Pays, and more").then_some(())
    });
    bank.asks(2);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "the tool's definition changed", "{rule}");
}

#[test]
fn a_changed_server_suspends_its_rules() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    let id = bank.proposal_of(1)["id"].as_str().unwrap().to_owned();
    let path = format!("proposals/{id}/rules");
    let server = || bank.api("GET", &path, "")["server"].clone();
    let before = server();
    assert!(before.is_string(), "{before}");
    let config = bank.config.replacen("exec 3<>", "true; exec 3<>", 1);
    assert_ne!(config, bank.config);
    bank.home.write("portmoot.toml", &config);
    bank.gateway.signal("HUP");
    until("the server has changed", || {
        let now = server();
        (now.is_string() && now != before).then_some(())
    });
    bank.asks(2);
    let rule = bank.rule("r1.1");
    assert_eq!(rule["why"], "the server's configuration changed", "{rule}");
}

#[test]
fn a_rejection_of_a_rule_beats_an_approval() {
    let bank = Bank::with(|bank| {
        let reject = "[[rule]]\nid = \"r2\"\nauthor = \"boss\"\ndecision = \"reject\"\n\
                      kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n\
                      [rule.when]\n\"/amount\" = { integer = [13, 13] }\n";
        bank.approving("r1", "uses = 9", UP_TO_100) + reject
    });
    bank.is_paid(12);
    let calls = bank.server.calls("pay");
    let refused = bank.pays(13);
    assert_eq!(refused["isError"], true, "{refused}");
    let words = refused["content"][0]["text"].as_str().unwrap();
    let sentence = bank.rule("r2.1")["sentence"].as_str().unwrap().to_owned();
    assert!(words.contains("rejected by rule r2.1 of boss"), "{words}");
    assert!(words.contains(&sentence), "{words}: {sentence}");
    assert_eq!(bank.server.calls("pay"), calls);
    let kind = "mcp/proposal:tools/call:pay";
    AuditLog(&bank.home).has("rules", kind, "rejected", "by rule r2.1 of boss: ");
    assert_eq!(bank.rule("r1.1")["used"], 1);
}

#[test]
fn a_spent_rule_asks_again() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 2", UP_TO_100));
    bank.is_paid(1);
    bank.restart("KILL");
    bank.is_paid(2);
    assert_eq!(bank.rule("r1.1")["state"], "spent");
    bank.asks(3);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "its budget is used up", "{rule}");
    bank.restart("KILL");
    bank.asks(4);
    // A larger budget under the same version is no rule; the next version has one of its own.
    let larger = bank.approving("r1", "uses = 90", UP_TO_100);
    bank.put(&larger);
    let refused = bank.comes_to("r1.1", "refused");
    let why = refused["why"].as_str().unwrap();
    assert!(why.contains("write `version = 2`"), "{refused}");
    bank.asks(5);
    bank.put(&bank.approving("r1", "version = 2\nuses = 1", UP_TO_100));
    bank.is_paid(6);
    bank.asks(7);
    // The version before does not come back.
    bank.put(&bank.approving("r1", "uses = 2", UP_TO_100));
    assert_eq!(bank.comes_to("r1.1", "refused")["left"], 0);
    bank.asks(8);
}

#[test]
fn a_crash_between_decision_and_run_uses_the_budget_once() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 2", UP_TO_100));
    for round in 1..=2 {
        let _call = bank.propose(UNANSWERED);
        until("it runs", || {
            (bank.server.calls("pay") == round).then_some(())
        });
        bank.restart("KILL");
        // It is not run again, and its use is not given back.
        let states: Vec<Value> = bank
            .proposals()
            .iter()
            .filter(|one| one["params"]["arguments"]["amount"] == UNANSWERED)
            .map(|one| one["state"].clone())
            .collect();
        assert_eq!(states, vec![json!("failed"); round]);
        assert_eq!(bank.server.calls("pay"), round);
        let rule = bank.rule("r1.1");
        assert_eq!(rule["used"], round, "{rule}");
    }
    bank.asks(3);
}

#[test]
fn sums_and_rates_count_calls_in_flight() {
    let bank = Bank::with(|bank| {
        let sum = "uses = 9\nsum = [{ of = \"/amount\", max = 100, within = \"1d\" }]";
        bank.approving("r1", sum, UP_TO_100)
    });
    let _in_flight = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.asks(30);
    bank.is_paid(23);
    bank.asks(1);
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9\nrate = \"2/h\"", UP_TO_100));
    let _in_flight = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.is_paid(2);
    bank.asks(3);
    assert_eq!(bank.rule("r1.1")["state"], "in force");
}

#[test]
fn a_wrong_file_on_reload_changes_nothing() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    let right = bank.approving("r1", "uses = 9", UP_TO_100);
    let wrong = right.replace("uses = 9", "uses = \"many\"");
    let year = whole_seconds(unix_ms() + DAY_MS)[..4].to_owned();
    for (wrong, why, line) in [
        (wrong, "`uses`", 11),
        (right.replace("uses = 9\n", ""), "`uses` is missing", 1),
        (right.replace("\"ann\"", "\"anonymous-1\""), "a guest is the author", 1),
        (
            right.replace("uses = 9\n", "uses = 9\nafter = [{ kind = \"mcp/request:tools/call:get\", to = \"bank\", within = \"1h\" }]\n"),
            "`after` is not carried out yet",
            1,
        ),
        (
            right.replace(&format!("expires = \"{year}"), "expires = \"2999"),
            "longer than 30 days",
            1,
        ),
    ] {
        bank.home.write("rules.toml", &wrong);
        let check = bank.home.run(&["config", "check", "--config", "portmoot.toml"]).expect(2);
        assert!(check.stderr.contains(why), "{}", check.stderr);
        let place = format!("rules.toml:{line}:");
        assert!(check.stderr.contains(&place), "{place}: {}", check.stderr);
        bank.gateway.signal("HUP");
        bank.gateway.receive(why);
        bank.is_paid(3);
    }
    assert_eq!(bank.rule("r1.1")["used"], 5);
}

#[test]
fn rules_judge_what_waits_since_before_a_restart_and_a_reload() {
    let mut bank = Bank::new();
    let _waits = bank.propose(40);
    let first = bank.pending()["id"].clone();
    bank.gateway.signal("TERM");
    bank.gateway.wait();
    let rules = bank.approving("r1", "uses = 9", UP_TO_100);
    bank.home.write("rules.toml", &rules);
    bank.start();
    let completed = |id: &Value| {
        let all = bank.proposals();
        let one = all.iter().find(|one| one["id"] == *id).unwrap().clone();
        (one["state"] == "completed").then_some(one)
    };
    let done = until("the one of before the restart", || completed(&first));
    assert_eq!(done["decided_by"], "rules", "{done}");
    let _waits = bank.propose(400);
    let second = bank.pending()["id"].clone();
    let wider = "\"/amount\" = { integer = [1, 1000] }";
    bank.put(&bank.approving("r1", "version = 2\nuses = 9", wider));
    let done = until("the one of before the reload", || completed(&second));
    assert_eq!(done["rule"], "r1.2", "{done}");
    assert_eq!(bank.server.calls("pay"), 2);
}

/// What stands in the page in place of digests, of an end, and of the present time.
const DEFINITION: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const SERVER: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const END: &str = "2026-12-20T09:00:00Z";

#[test]
fn the_page_on_rules_shows_what_the_program_prints() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let [topic] = blocks_of(&page, "toml").try_into().unwrap();
    let [rule] = blocks_of(&page, "toml,rule").try_into().unwrap();
    assert!(topic.contains("rules = \"rules.toml\""), "{topic}");
    let bank = Bank::new();
    let (definition, server) = bank.digests.split_once('\n').unwrap();
    let digest = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    let (definition, server) = (digest(definition), digest(server));
    let end = whole_seconds(unix_ms() + DAY_MS);
    let rule = rule
        .replace(DEFINITION, &definition)
        .replace(SERVER, &server)
        .replace(END, &end);
    bank.put(&rule);
    let call = bank.propose(500);
    let proposal = bank.pending();
    let id = proposal["id"].as_str().unwrap();
    let explained = bank.portmoot(&["rules", "explain", id], 0);
    let listed = bank.portmoot(&["rules", "ls"], 0);
    bank.reject(&proposal);
    call.rest();
    let shown: Vec<String> = blocks_of(&page, "console");
    // Days and hours differ.
    let plain = |text: &str| -> Vec<String> {
        let text = text
            .replace(&definition, DEFINITION)
            .replace(&server, SERVER)
            .replace(&end[..19], &END[..19]);
        let is_of_time = |line: &&str| !line.contains("until ") && !line.contains("it is before");
        let lines = text.lines().filter(is_of_time);
        lines.map(str::to_owned).collect()
    };
    for (shown, printed) in shown.iter().zip([&explained, &listed]) {
        let (_, shown) = shown.split_once('\n').unwrap();
        assert_eq!(plain(shown), plain(printed), "{printed}");
    }
    let sentence = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.contains("until "))
            .unwrap()
            .to_owned();
        line.split_once("until ").unwrap().0.to_owned()
    };
    assert_eq!(sentence(&shown[1]), sentence(&listed), "{listed}");
}
