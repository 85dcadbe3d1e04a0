//! An approver outside of a topic, asked by OpenID AuthZEN.

mod failures;
pub(crate) mod pdp;
mod races;

use platform::unix_ms;
use serde_json::{Value, json};
use wire::time::rfc3339;

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};
use pdp::{Pdp, Received, Said, decision, requestable, said, task};

const SERVICE_TOKEN: &str = "token-of-the-gateway-at-the-service";
const KIND: &str = "portmoot/approver";
/// Two participants must approve a call of `echo`.
const TWO_APPROVALS: &str = "destructive_approvals = 2\n[servers.tools.tool.echo]\napprovals = 2\n";
/// All that the participant of the approver may do, unless a test says otherwise.
const MAY_APPROVE_ECHO: &[&str] = &["mcp/approve:tools/call:tools_echo"];

/// A rule that rejects, in the file `rules.toml` beside the configuration.
const REJECTING: &str = "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                         kind = \"mcp/request:tools/call:echo\"\nproposers = [\"*\"]\n";

/// A gateway with the fixture as `tools`, a `scout` that may only propose, `ann` that may do
/// everything, and the approver's participant `desk`.
struct Stage {
    home: Home,
    config: String,
    gateway: Gateway,
}

impl Stage {
    fn new(pdp: &Pdp) -> Stage {
        Stage::with(pdp, MAY_APPROVE_ECHO, "arguments = [\"/text\"]\n", "")
    }

    /// With these capabilities of the approver's participant, and more of this in its section and in
    /// the topic's.
    fn with(pdp: &Pdp, desk: &[&str], of_approver: &str, of_topic: &str) -> Stage {
        Stage::at(&pdp.base(), desk, of_approver, of_topic)
    }

    fn at(base: &str, desk: &[&str], of_approver: &str, of_topic: &str) -> Stage {
        let more = format!("request_url = \"{base}/requests\"\n{of_approver}");
        Stage::only_evaluating(base, desk, &more, of_topic)
    }

    /// Without an address for access requests, unless `of_approver` has one.
    fn only_evaluating(base: &str, desk: &[&str], of_approver: &str, of_topic: &str) -> Stage {
        let (home, config) = people(&[
            ("scout", &["mcp/proposal:*"]),
            ("ann", &["mcp/*", "portmoot/*"]),
            ("desk", desk),
        ]);
        let home = home.env("SERVICE_TOKEN", SERVICE_TOKEN);
        let more = format!(
            "[server.limits]\nhold = \"300ms\"\n[topics.main]\nbuiltin = [\"proposals\"]\n{of_topic}\
             [topics.main.approver]\nevaluation_url = \"{base}/evaluate\"\nas = \"desk\"\ntoken_env = \"SERVICE_TOKEN\"\n\
             tools = [\"tools_*\"]\n{of_approver}"
        );
        let config = config + &more + &fixture("tools", &[]);
        home.write("rules.toml", REJECTING);
        let gateway = Gateway::start(&home, &config);
        gateway.ready("tools");
        Stage {
            home,
            config,
            gateway,
        }
    }

    fn client(&self, who: &str) -> Client {
        Client::of(&self.gateway, &token(who))
    }

    /// Has scout call `echo` with this text. The result is that of the call, if it is decided soon.
    fn call(&self, text: &str) -> Value {
        self.client("scout")
            .call("tools_echo", json!({ "text": text }))
    }

    /// A call of scout's that waits for a decision; returns the id of its proposal.
    #[track_caller]
    fn held(&self, text: &str) -> String {
        proposal_of(&self.call(text))
    }

    #[track_caller]
    fn api(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.api_as("ann", method, path, body)
    }

    #[track_caller]
    fn api_as(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        let bearer = format!("Bearer {}", token(who));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = format!("/api/v1/proposals/{path}");
        let mut connection = Connection::open(self.gateway.address());
        connection.exchange(method, &path, &headers, &body.to_string())
    }

    #[track_caller]
    fn shown(&self, id: &str) -> Value {
        let reply = self.api("GET", id, &json!({}));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    #[track_caller]
    fn approve(&self, id: &str) {
        let body = json!({ "digest": self.shown(id)["digest"] });
        let reply = self.api("POST", &format!("{id}/approve"), &body);
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    /// The outcome of a proposal, as its proposer gets it.
    #[track_caller]
    fn outcome(&self, id: &str) -> String {
        let scout = self.client("scout");
        until("its outcome", || {
            let waited = scout.call("wait_for_proposal", json!({ "id": id }));
            let text = waited["content"][0]["text"].as_str().unwrap().to_owned();
            Some(text).filter(|text| !text.starts_with("Not done yet"))
        })
    }

    /// The outcome of a call of scout's that is decided without a person, and its proposal.
    #[track_caller]
    fn decided(&self, text: &str) -> Decided {
        let before = self.asked().len();
        let result = self.call(text);
        let id = result["_meta"]["portmoot/proposal"].as_str();
        let outcome = match id {
            Some(id) => self.outcome(id),
            None => result["content"][0]["text"].as_str().unwrap().to_owned(),
        };
        // The log is written a little later.
        let id = until("the entry", || self.asked().into_iter().nth(before));
        let shown = self.shown(&id);
        Decided { outcome, shown }
    }

    /// The proposals about which the service was asked, as the audit log has them.
    fn asked(&self) -> Vec<String> {
        let all = self.audit().entries(&["--participant", "desk", KIND]);
        let sent = all.iter().filter(|one| {
            let why = one["why"].as_str().unwrap_or_default();
            why.starts_with("sent to ")
        });
        sent.map(|one| one["operation"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Kills the gateway, and starts it again.
    fn restart(&mut self) {
        self.gateway.signal("KILL");
        self.gateway.wait();
        self.gateway = Gateway::start(&self.home, &self.config);
        self.gateway.ready("tools");
    }

    fn audit(&self) -> AuditLog<'_> {
        AuditLog(&self.home)
    }
}

/// A proposal that is over.
struct Decided {
    outcome: String,
    shown: Value,
}

#[track_caller]
fn proposal_of(result: &Value) -> String {
    let id = result["_meta"]["portmoot/proposal"].as_str();
    id.unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// Answers by the text that the call has: `yes`, `no`.
fn by_text(received: &Received, _: &str) -> Said {
    decision(received.word() == "yes")
}

#[test]
fn an_approver_outside_decides_as_its_participant() {
    let pdp = Pdp::start(by_text);
    let stage = Stage::new(&pdp);
    let Decided { outcome, shown } = stage.decided("yes");
    assert_eq!(outcome, "yes");
    assert_eq!(
        (&shown["state"], &shown["decided_by"]),
        (&json!("completed"), &json!("desk"))
    );
    assert_eq!(
        shown["notes"],
        json!([{ "by": "desk", "note": "by the approver outside" }])
    );
    let id = shown["id"].clone();
    let Decided { outcome, shown } = stage.decided("no");
    assert!(
        outcome.contains("the approver outside has rejected it"),
        "{outcome}"
    );
    assert_eq!(
        (&shown["state"], &shown["decided_by"]),
        (&json!("rejected"), &json!("desk"))
    );
    // The service is asked with the gateway's own token, and each once.
    let asked = pdp.received("/");
    assert_eq!(asked.len(), 2, "{asked:?}");
    for one in &asked {
        assert_eq!(one.path, "/evaluate");
        assert_eq!(
            one.header("authorization"),
            format!("bearer {SERVICE_TOKEN}")
        );
    }
    let audit = stage.audit();
    let sent = audit.has(
        "desk",
        KIND,
        "admitted",
        "sent to 127.0.0.1: arguments /text",
    );
    assert_eq!(sent["operation"], id);
    audit.has("desk", KIND, "admitted", "127.0.0.1: permitted");
    audit.has("desk", KIND, "admitted", "127.0.0.1: denied");
    audit.has("desk", "mcp/proposal:tools/call:echo", "approved", "");
    audit.has(
        "desk",
        "mcp/proposal:tools/call:echo",
        "rejected",
        "the approver outside",
    );
    audit.is_whole();
}

#[test]
fn an_approver_outside_decides_by_a_request_that_is_approved_elsewhere() {
    // An odd spelling: it goes back byte for byte.
    const APPROVAL: &str = r#"{ "id":"apr-1", "approved_until":"2999-01-01T00:00:00Z","state":{"n":1.0e2,"e":"\u00e9"} }"#;
    let pdp = Pdp::start(|received, base| {
        let body = received.body();
        match received.path.as_str() {
            "/evaluate" if body["context"]["approval"].is_object() => decision(true),
            "/evaluate" => requestable(),
            "/requests" => Said {
                head: "retry-after: 1\r\n".to_owned(),
                ..said(202, &task(base, "t1", "pending"))
            },
            "/requests/t1" => {
                let done = r#"{"task":{"id":"t1","status":"approved"},"result":{"mode":"reevaluate","approval":APPROVAL}}"#;
                pdp::raw(200, &done.replace("APPROVAL", APPROVAL))
            }
            other => panic!("{other}"),
        }
    });
    let stage = Stage::new(&pdp);
    let id = stage.held("maybe");
    assert_eq!(stage.outcome(&id), "maybe");
    let [first, again] = pdp.received("/evaluate").try_into().unwrap();
    let [submitted] = pdp
        .received("/requests")
        .into_iter()
        .filter(|one| one.path == "/requests")
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let bound = json!({ "evaluation_id": "eval-1", "expires_at": "2999-01-01T00:00:00Z",
        "reason": "approval_required", "binding_token": "b.t.k" });
    assert_eq!(submitted.body()["denial"], bound);
    assert_eq!(submitted.header("idempotency-key").len(), 32);
    assert_eq!(
        submitted.header("authorization"),
        format!("bearer {SERVICE_TOKEN}")
    );
    // What is asked again is what was asked, and requested.
    assert!(
        again.text.contains(&format!(r#""approval":{APPROVAL}"#)),
        "{}",
        again.text
    );
    for member in ["subject", "action", "resource"] {
        assert_eq!(first.body()[member], again.body()[member]);
        assert_eq!(first.body()[member], submitted.body()[member]);
    }
    assert_eq!(first.body()["context"], submitted.body()["context"]);
    stage.audit().has(
        "desk",
        KIND,
        "admitted",
        "127.0.0.1: permitted by its approval apr-1",
    );
}

#[test]
fn a_request_that_is_denied_elsewhere_rejects() {
    let pdp = Pdp::start(|received, base| match received.path.as_str() {
        "/evaluate" => requestable(),
        _ => said(201, &task(base, "t1", "denied")),
    });
    let stage = Stage::new(&pdp);
    let Decided { outcome, .. } = stage.decided("maybe");
    assert!(outcome.contains("rejected"), "{outcome}");
    assert_eq!(pdp.received("/requests").len(), 1);
}

#[test]
fn an_approver_outside_sees_no_argument_that_is_not_listed() {
    const CANARY: &str = "canary-in-an-argument";
    let pdp = Pdp::start(|_, _| decision(true));
    let stage = Stage::with(&pdp, MAY_APPROVE_ECHO, "", "");
    let Decided { outcome, shown } = stage.decided(CANARY);
    assert_eq!(outcome, CANARY);
    let [asked] = pdp.received("/").try_into().unwrap();
    for hidden in [CANARY, &token("scout"), &token("desk"), "arguments"] {
        let all = asked.head.clone() + &asked.text;
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    let body = asked.body();
    assert_eq!(body["context"]["call"], shown["digest"]);
    assert_eq!(
        body["subject"],
        json!({ "type": "participant", "id": "scout", "properties": { "topic": "main" } })
    );
    assert_eq!(body["resource"]["id"], "tools/echo");
    stage
        .audit()
        .has("desk", KIND, "admitted", "sent to 127.0.0.1: no arguments");
}

#[test]
fn an_approver_outside_never_exceeds_its_participant() {
    let pdp = Pdp::start(|_, _| decision(true));
    let own = &["mcp/approve:tools/call:tools_echo", "mcp/proposal:*"];
    let stage = Stage::with(&pdp, own, "", "");
    // Another tool, and a call of its own participant.
    let other = stage
        .client("scout")
        .call("tools_add", json!({ "a": 1, "b": 2 }));
    let own = stage
        .client("desk")
        .call("tools_echo", json!({ "text": "own" }));
    let waiting = [other, own].map(|result| proposal_of(&result));
    // Those that come later are decided.
    assert_eq!(stage.decided("yes").outcome, "yes");
    for id in &waiting {
        assert_eq!(stage.shown(id)["state"], "pending");
    }
    assert_eq!(pdp.received("/").len(), 1);
    stage.approve(&waiting[0]);
    assert_eq!(stage.outcome(&waiting[0]), "{\"sum\":3}");
}

#[test]
fn an_approver_outside_decides_only_what_is_taken_from_it() {
    for (decides, yes, no) in [
        ("approve", "completed", "pending"),
        ("reject", "pending", "rejected"),
    ] {
        let more = format!("arguments = [\"*\"]\ndecides = \"{decides}\"\n");
        let pdp = Pdp::start(|received, _| {
            decision(received.body()["context"]["arguments"]["text"] == "yes")
        });
        let stage = Stage::with(&pdp, MAY_APPROVE_ECHO, &more, "");
        for (text, state) in [("yes", yes), ("no", no)] {
            stage.call(text);
            let word = if text == "yes" { "permitted" } else { "denied" };
            let said = stage
                .audit()
                .has("desk", KIND, "admitted", &format!("127.0.0.1: {word}"));
            let id = said["operation"].as_str().unwrap();
            until(state, || (stage.shown(id)["state"] == state).then_some(()));
        }
    }
}

#[test]
fn an_approver_outside_counts_once_in_a_quorum() {
    let pdp = Pdp::start(|_, _| decision(true));
    let mut stage = Stage::with(&pdp, MAY_APPROVE_ECHO, "", TWO_APPROVALS);
    let approved_by_desk = |stage: &Stage, id: &str| {
        until("its approval", || {
            (stage.shown(id)["approved_by"] == json!(["desk"])).then_some(())
        });
    };
    let id = stage.held("two");
    approved_by_desk(&stage, &id);
    assert_eq!(stage.shown(&id)["state"], "pending");
    // After a restart it is asked about another one alone.
    stage.restart();
    let other = stage.held("other");
    approved_by_desk(&stage, &other);
    assert_eq!(pdp.received("/").len(), 2);
    stage.approve(&id);
    assert_eq!(stage.outcome(&id), "two");
}

#[test]
fn an_approver_outside_is_asked_for_the_approval_that_a_rule_leaves_open() {
    let pdp = Pdp::start(|received, _| decision(received.word() == "covered"));
    let of_topic = format!("rules = \"rules.toml\"\n{TWO_APPROVALS}");
    let more = "arguments = [\"/text\"]\ndecides = \"approve\"\n";
    let mut stage = Stage::with(&pdp, MAY_APPROVE_ECHO, more, &of_topic);
    stage.home.write("rules.toml", "");
    stage.restart();
    let id = stage.held("shows digests");
    let url = stage.gateway.url();
    let explain = [
        "rules",
        "explain",
        &id,
        "--url",
        &url,
        "--token",
        &token("ann"),
    ];
    let shown = stage.home.run(&explain).expect(0);
    let (digests, _) = shown.stdout.split_once("\n\n").unwrap();
    let expires = rfc3339(unix_ms() / 1_000 * 1_000 + 86_400_000).replace(".000Z", "Z");
    let rule = format!(
        "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:echo\"\nto = \"tools\"\nproposers = [\"scout\"]\n{digests}\n\
         expires = \"{expires}\"\nuses = 9\ndestructive = true\n[rule.when]\n\"/text\" = {{ equals = \"covered\" }}\n"
    );
    stage.home.write("rules.toml", &rule);
    stage.restart();
    let Decided { outcome, shown } = stage.decided("covered");
    assert_eq!(outcome, "covered");
    assert_eq!(
        (&shown["approved_by"], &shown["decided_by"]),
        (&json!(["ann"]), &json!("desk"))
    );
}

#[test]
fn a_call_with_more_than_its_arguments_is_not_shown_to_the_approver_outside() {
    let pdp = Pdp::start(|_, _| decision(true));
    let stage = Stage::new(&pdp);
    let scout = stage.client("scout");
    let params = json!({ "name": "tools_echo", "arguments": { "text": "more" }, "_meta": { "mode": "live" } });
    let reply = scout.post(&scout.request("tools/call", params));
    let id = proposal_of(&reply.json()["result"]);
    assert_eq!(stage.decided("yes").outcome, "yes");
    assert_eq!(stage.shown(&id)["state"], "pending");
    assert_eq!(pdp.received("/").len(), 1);
}

#[test]
fn a_proposal_that_a_rule_decides_is_sent_nowhere() {
    let pdp = Pdp::start(|_, _| decision(true));
    let stage = Stage::with(&pdp, MAY_APPROVE_ECHO, "", "rules = \"rules.toml\"\n");
    let result = stage.call("no");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("rejected") && text.contains("r1.1"), "{text}");
    assert_eq!(pdp.received("/").len(), 0);
}
