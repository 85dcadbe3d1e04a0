//! Proposals that need the approvals of several participants.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::builtin_proposals::{data, no};
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

/// A gateway with the fixture as `tools`, whose `echo` needs two approvals; a `scout` that may only
/// propose; `ann` and `eve` that may call, and `dee` that may only approve.
pub(crate) struct Stage {
    pub(crate) home: Home,
    config: String,
    pub(crate) gateway: Gateway,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage::with("", "500ms")
    }

    /// The same, with more of this in the topic's section, and this time for which calls are held.
    pub(crate) fn with(of_topic: &str, hold: &str) -> Stage {
        let people = people(&[
            ("scout", &["mcp/proposal:*"]),
            ("ann", &["mcp/*", "portmoot/*"]),
            ("eve", &["mcp/*"]),
            ("dee", &["mcp/approve:*", "portmoot/reject"]),
        ]);
        let (home, config) = people;
        let more = format!(
            "[servers.tools.tool.echo]\napprovals = 2\n[topics.main]\n{of_topic}\
             destructive_approvals = 3\nbuiltin = [\"proposals\"]\n\
             [server.limits]\nhold = \"{hold}\"\n"
        );
        let config = config + &fixture("tools", &[]) + &more;
        let gateway = Gateway::start(&home, &config);
        gateway.ready("tools");
        Stage {
            home,
            config,
            gateway,
        }
    }

    pub(crate) fn client(&self, who: &str) -> Client {
        Client::of(&self.gateway, &token(who))
    }

    /// A call of scout's that waits for decisions; returns the id of its proposal.
    #[track_caller]
    pub(crate) fn held(&self, tool: &str, arguments: Value) -> String {
        let result = self.client("scout").call(tool, arguments);
        let id = result["_meta"]["portmoot/proposal"].as_str();
        id.unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    #[track_caller]
    pub(crate) fn api(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        let bearer = format!("Bearer {}", token(who));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = format!("/api/v1/proposals/{path}");
        Connection::open(self.gateway.address()).exchange(
            method,
            &path,
            &headers,
            &body.to_string(),
        )
    }

    #[track_caller]
    pub(crate) fn shown(&self, id: &str) -> Value {
        let reply = self.api("ann", "GET", id, &json!({}));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    #[track_caller]
    pub(crate) fn approve(&self, who: &str, id: &str) -> Reply {
        let digest = self.shown(id)["digest"].clone();
        let body = json!({ "digest": digest });
        self.api(who, "POST", &format!("{id}/approve"), &body)
    }

    /// Its state, and the participants that have approved it.
    #[track_caller]
    fn is(&self, id: &str, state: &str, by: &[&str]) {
        let shown = self.shown(id);
        assert_eq!(
            (&shown["state"], &shown["approved_by"]),
            (&json!(state), &json!(by)),
            "{shown}"
        );
    }

    /// The answer of its proposer's request, which waits for it a moment.
    #[track_caller]
    pub(crate) fn waited(&self, id: &str) -> String {
        let scout = self.client("scout");
        let waited = scout.call("wait_for_proposal", json!({ "id": id }));
        waited["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Its outcome. The server may start up for it.
    #[track_caller]
    pub(crate) fn outcome(&self, id: &str) -> String {
        until("its outcome", || {
            Some(self.waited(id)).filter(|text| !text.starts_with("Not done yet"))
        })
    }

    pub(crate) fn restart(&mut self, signal: &str) {
        self.gateway.signal(signal);
        self.gateway.wait();
        self.gateway = Gateway::start(&self.home, &self.config);
        self.gateway.ready("tools");
    }

    #[track_caller]
    pub(crate) fn run(&self, who: &str, words: &[&str], code: i32) -> String {
        let url = self.gateway.url();
        let token = token(who);
        let words = [words, &["--url", &url, "--token", &token]].concat();
        let ran = self.home.run(&words).expect(code);
        ran.stdout + &ran.stderr
    }
}

#[test]
fn a_proposal_runs_with_the_second_approval_and_not_before() {
    let stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "two" }));
    let shown = stage.shown(&id);
    assert_eq!(
        (&shown["approvals"], &shown["approved_by"]),
        (&json!(2), &json!([]))
    );
    let mut room = Socket::enter(&stage.gateway, "eve", "?mode=all");
    // At the command line, which says what is still missing.
    let said = stage.run("ann", &["proposals", "approve", &id, "--yes"], 0);
    assert!(
        said.contains("is pending: approved by ann, 1 of 2 approvals"),
        "{said}"
    );
    stage.is(&id, "pending", &["ann"]);
    let state = room.receive_until(|one| one["kind"] == "portmoot/proposal");
    assert_eq!(
        (
            &state["payload"]["state"],
            &state["payload"]["approved_by"],
            &state["payload"]["approvals"]
        ),
        (&json!("pending"), &json!(["ann"]), &json!(2)),
        "{state}"
    );
    let card = stage.run("dee", &["proposals", "show", &id], 0);
    assert!(card.contains("approved by ann, 1 of 2 approvals"), "{card}");
    assert!(stage.waited(&id).contains("approved by ann, 1 of 2"));
    // The same participant, on another wire, counts once.
    assert_eq!(stage.approve("ann", &id).status, 409);
    let digest = stage.shown(&id)["digest"].clone();
    let again = no(
        &stage.client("ann"),
        "approve_proposal",
        json!({ "id": id, "digest": digest }),
    );
    assert!(
        again.contains("you have approved this proposal already"),
        "{again}"
    );
    stage.is(&id, "pending", &["ann"]);
    // The second one runs it, by the tool.
    let approval = json!({ "id": id, "digest": digest });
    data(&stage.client("dee"), "approve_proposal", approval);
    assert_eq!(stage.outcome(&id), "two");
    until("it is completed", || {
        (stage.shown(&id)["state"] == "completed").then_some(())
    });
    stage.is(&id, "completed", &["ann"]);
    assert_eq!(stage.shown(&id)["decided_by"], "dee");
    stage.gateway.signal("TERM");
    let log = AuditLog(&stage.home);
    log.has(
        "ann",
        "mcp/proposal:tools/call:echo",
        "approved",
        "proposed by scout; approved by ann, 1 of 2",
    );
    log.has(
        "dee",
        "mcp/proposal:tools/call:echo",
        "approved",
        "proposed by scout; before: approved by ann",
    );
}

#[test]
fn one_of_two_comes_back_after_a_kill_and_is_judged_by_what_its_author_may_do_then() {
    let mut stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "kept" }));
    assert_eq!(stage.approve("ann", &id).status, 200);
    stage.restart("KILL");
    stage.is(&id, "pending", &["ann"]);
    assert_eq!(stage.approve("ann", &id).status, 409);
    let eve = stage.approve("eve", &id);
    assert_eq!(eve.json()["state"], "running", "{eve:?}");
    until("it is over", || {
        (stage.shown(&id)["state"] != "running").then_some(())
    });
    let second = stage.held("tools_echo", json!({ "text": "lost" }));
    assert_eq!(stage.approve("eve", &second).status, 200);
    stage.config = stage.config.replacen(
        "token_env = \"TOKEN_EVE\"\ncapabilities = [\"mcp/*\"]",
        "token_env = \"TOKEN_EVE\"\ncapabilities = [\"chat\"]",
        1,
    );
    stage.restart("KILL");
    stage.is(&second, "pending", &[]);
    assert_eq!(stage.approve("dee", &second).json()["state"], "pending");
    stage.is(&second, "pending", &["dee"]);
    assert_eq!(stage.approve("ann", &second).json()["state"], "running");
    stage.gateway.stop().expect(0);
}

#[test]
fn an_approval_of_a_participant_that_loses_its_right_counts_no_more() {
    let mut stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "x" }));
    assert_eq!(stage.approve("dee", &id).status, 200);
    stage.is(&id, "pending", &["dee"]);
    let other = stage
        .config
        .replacen("mcp/approve:*", "mcp/approve:prompts/*", 1);
    assert_ne!(other, stage.config);
    stage.home.write("portmoot.toml", &other);
    stage.gateway.signal("HUP");
    until("dee has lost it", || {
        (stage.shown(&id)["approved_by"] == json!([])).then_some(())
    });
    assert_eq!(stage.approve("ann", &id).json()["state"], "pending");
    assert_eq!(stage.approve("eve", &id).json()["state"], "running");
    stage.config = other;
    stage.gateway.stop().expect(0);
}

#[test]
fn other_arguments_void_what_was_approved_and_are_what_runs() {
    let mut stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "proposed" }));
    assert_eq!(stage.approve("ann", &id).status, 200);
    let seen = stage.shown(&id)["digest"].clone();
    let edited = json!({ "digest": seen, "arguments": { "text": "edited" } });
    let reply = stage.api("eve", "POST", &format!("{id}/approve"), &edited);
    assert_eq!(
        (&reply.json()["state"], &reply.json()["amended"]),
        (&json!("pending"), &json!(true))
    );
    stage.is(&id, "pending", &["eve"]);
    stage.restart("KILL");
    stage.is(&id, "pending", &["eve"]);
    let shown = stage.shown(&id);
    assert_eq!(
        (&shown["params"]["arguments"]["text"], &shown["amended"]),
        (&json!("edited"), &json!(true))
    );
    // What ann saw before is no more what would run.
    let old = stage.api(
        "ann",
        "POST",
        &format!("{id}/approve"),
        &json!({ "digest": seen }),
    );
    assert_eq!(old.status, 409, "{old:?}");
    assert_eq!(stage.approve("ann", &id).json()["state"], "running");
    until("it is over", || {
        (stage.shown(&id)["state"] == "completed").then_some(())
    });
    let answer = stage.shown(&id)["answer"].to_string();
    assert!(
        answer.contains("edited") && !answer.contains("proposed"),
        "{answer}"
    );
    // Also a call that is held in this run.
    let id = stage.held("tools_echo", json!({ "text": "proposed" }));
    let digest = stage.shown(&id)["digest"].clone();
    let edited = json!({ "digest": digest, "arguments": { "text": "edited" } });
    assert_eq!(
        stage
            .api("eve", "POST", &format!("{id}/approve"), &edited)
            .status,
        200
    );
    assert_eq!(stage.approve("ann", &id).status, 200);
    assert_eq!(stage.outcome(&id), "edited");
    stage.gateway.stop().expect(0);
}

#[test]
fn an_approval_with_the_proposed_arguments_in_another_spelling_is_no_edit() {
    let stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "proposed" }));
    assert_eq!(stage.approve("ann", &id).status, 200);
    let digest = stage.shown(&id)["digest"].clone();
    let same = json!({ "digest": digest, "arguments": { "text": "proposed" } });
    let reply = stage.api("eve", "POST", &format!("{id}/approve"), &same);
    let state = reply.json();
    assert_eq!(
        (&state["state"], &state["amended"], &state["edited"]),
        (&json!("running"), &json!(false), &Value::Null),
        "{state}"
    );
    assert_eq!(stage.outcome(&id), "proposed");
}

#[test]
fn one_rejection_ends_what_others_have_approved() {
    let stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "x" }));
    assert_eq!(stage.approve("ann", &id).status, 200);
    let reply = stage.api(
        "dee",
        "POST",
        &format!("{id}/reject"),
        &json!({ "reason": "no" }),
    );
    assert_eq!(reply.json()["state"], "rejected", "{reply:?}");
    assert_eq!(stage.approve("eve", &id).status, 409);
    stage.gateway.stop().expect(0);
}

#[test]
fn an_envelope_is_one_approval_and_reaches_the_server_as_the_last_one() {
    let stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "x" }));
    let envelope = stage.shown(&id)["envelope"].clone();
    let about = || json!({ "correlation_id": envelope });
    let call = |text: &str| {
        let params = json!({ "name": "echo", "arguments": { "text": text } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let mut ann = Socket::enter(&stage.gateway, "ann", "?mode=all");
    ann.send(
        "mcp/request:tools/call:echo",
        "f1",
        &["tools"],
        about(),
        &call("other"),
    );
    ann.refused("f1", "conflict");
    ann.send(
        "mcp/request:tools/call:echo",
        "f2",
        &["tools"],
        about(),
        &call("x"),
    );
    until("ann has approved", || {
        (stage.shown(&id)["approved_by"] == json!(["ann"])).then_some(())
    });
    stage.is(&id, "pending", &["ann"]);
    let mut eve = Socket::enter(&stage.gateway, "eve", "?mode=all");
    eve.send(
        "mcp/request:tools/call:echo",
        "f3",
        &["tools"],
        about(),
        &call("x"),
    );
    assert_eq!(stage.outcome(&id), "x");
    stage.gateway.stop().expect(0);
}

#[test]
fn tools_that_may_destroy_need_as_many_as_their_topic_says() {
    let stage = Stage::new();
    // It says nothing of itself.
    let id = stage.held("tools_add", json!({ "a": 1, "b": 2 }));
    assert_eq!(stage.shown(&id)["approvals"], 3);
    for who in ["ann", "dee"] {
        assert_eq!(stage.approve(who, &id).json()["state"], "pending", "{who}");
    }
    assert_eq!(stage.approve("eve", &id).json()["state"], "running");
    stage.gateway.stop().expect(0);
    for (count, is_good) in [("0", false), ("1", true), ("16", true), ("17", false)] {
        let config = stage
            .config
            .replacen("approvals = 2", &format!("approvals = {count}"), 1);
        stage.home.write("portmoot.toml", &config);
        let check = ["config", "check", "--config", "portmoot.toml"];
        stage.home.run(&check).expect(if is_good { 0 } else { 2 });
    }
}
