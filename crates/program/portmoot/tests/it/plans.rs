//! Plans through the program: several calls that are decided about as one, in order, each at most
//! once, up to the first that fails.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::builtin_proposals::{data, no};
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::listed_server::ListedServer;
use crate::pty::run_at_terminal;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

const TOOLS: [(&str, &str); 4] = [
    ("first", "Is first"),
    ("last", "Is last"),
    ("refuse", "Fails"),
    ("change", "Changes the list"),
];

/// A gateway with the fixture as `tools` and a server `log` that writes its calls down; a `scout` that
/// may only propose, `ann` and `dee` that may decide about everything, and `eve` about the fixture.
struct Stage {
    home: Home,
    config: String,
    gateway: Gateway,
}

impl Stage {
    fn new() -> Self {
        let (home, config) = people(&[
            ("scout", &["mcp/proposal:*"]),
            ("ann", &["mcp/*", "portmoot/*"]),
            ("dee", &["mcp/approve:*"]),
            ("eve", &["mcp/approve:tools/call:tools_*"]),
        ]);
        let log = ListedServer::new(&home, "log", &TOOLS).table();
        let more = "[servers.tools.tool.add]\napprovals = 2\n[topics.main]\n\
                    builtin = [\"proposals\"]\n[server.limits]\nhold = \"500ms\"\n";
        let config = config + &fixture("tools", &[]) + &log + more;
        let gateway = Gateway::start(&home, &config);
        let stage = Stage {
            home,
            config,
            gateway,
        };
        stage.ready();
        stage
    }

    fn ready(&self) {
        self.gateway.ready("tools");
        self.gateway.ready("log");
    }

    fn log(&self) -> ListedServer<'_> {
        ListedServer::new(&self.home, "log", &TOOLS)
    }

    fn restart(&mut self) {
        self.gateway.signal("KILL");
        self.gateway.wait();
        self.gateway = Gateway::start(&self.home, &self.config);
        self.ready();
    }

    fn client(&self, who: &str) -> Client {
        Client::of(&self.gateway, &token(who))
    }

    #[track_caller]
    fn api(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        let bearer = format!("Bearer {}", token(who));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = format!("/api/v1/{path}");
        let connection = &mut Connection::open(self.gateway.address());
        connection.exchange(method, &path, &headers, &body.to_string())
    }

    /// A plan of scout's; returns the ids of its steps.
    #[track_caller]
    fn plan(&self, steps: &[(&str, Value)]) -> Vec<String> {
        let plan = data(&self.client("scout"), "propose_plan", steps_of(steps));
        let steps = plan["steps"].as_array().unwrap().iter();
        steps
            .map(|step| step["id"].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    fn shown(&self, id: &str) -> Value {
        let reply = self.api("ann", "GET", &format!("proposals/{id}"), &json!({}));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    #[track_caller]
    fn approve(&self, who: &str, id: &str) -> Reply {
        let body = json!({ "digest": self.shown(id)["digest"] });
        self.api(who, "POST", &format!("proposals/{id}/approve"), &body)
    }

    /// The states of all steps once the last one is over.
    #[track_caller]
    fn ends(&self, steps: &[String]) -> Vec<String> {
        let scout = self.client("scout");
        until("the end of the plan", || {
            let last = json!({ "id": steps.last() });
            let waited = scout.call("wait_for_proposal", last);
            let text = waited["content"][0]["text"].as_str().unwrap().to_owned();
            (!text.starts_with("Not done yet")).then_some(())
        });
        let state = |id: &String| self.shown(id)["state"].as_str().unwrap().to_owned();
        steps.iter().map(state).collect()
    }
}

fn steps_of(steps: &[(&str, Value)]) -> Value {
    let step = |(name, arguments): &(&str, Value)| json!({ "name": name, "arguments": arguments });
    json!({ "steps": steps.iter().map(step).collect::<Vec<_>>() })
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

#[test]
fn steps_run_in_order_each_once_on_one_approval() {
    let stage = Stage::new();
    let mut room = Socket::enter(&stage.gateway, "ann", "?mode=all");
    let steps = stage.plan(&[
        ("log_first", json!({})),
        ("tools_echo", text("two")),
        ("log_last", json!({})),
    ]);
    let [first, second, last] = steps.as_slice() else {
        panic!("{steps:?}")
    };
    let state = room.receive_until(|one| one["payload"]["operation"] == json!(first));
    let place = json!({ "id": first, "step": 1, "of": 3 });
    assert_eq!(state["payload"]["plan"], place, "{state}");
    let shown = stage.shown(first);
    assert_eq!(shown["plan"], place, "{shown}");
    assert_eq!(shown["steps"][1]["params"]["arguments"]["text"], "two");
    assert_eq!(shown["steps"][2]["tool"]["description"], "Is last");
    // A later step is not decided about, and who may decide about one server alone sees nothing.
    let refused = stage.approve("ann", second);
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(
        refused.body.contains(first),
        "it names the plan: {refused:?}"
    );
    let hidden = stage.api("eve", "GET", &format!("proposals/{second}"), &json!({}));
    assert_eq!(hidden.status, 404, "{hidden:?}");
    let digest = json!({ "digest": shown["digest"], "arguments": {} });
    let edited = stage.api(
        "ann",
        "POST",
        &format!("proposals/{first}/approve"),
        &digest,
    );
    assert_eq!(edited.status, 409, "{edited:?}");
    let like = json!({ "for_seconds": 3600, "uses": 5 });
    let like = stage.api("ann", "POST", &format!("proposals/{first}/like"), &like);
    assert_eq!(like.status, 409, "{like:?}");
    assert_eq!(stage.log().calls(), "");
    assert_eq!(stage.approve("dee", first).status, 200);
    assert_eq!(stage.ends(&steps), ["completed"; 3]);
    assert_eq!(stage.log().calls(), "first\nlast\n");
    let shown = stage.shown(last);
    assert_eq!(shown["decided_by"], "dee", "{shown}");
    let scout = stage.client("scout");
    let of_second = scout.call("wait_for_proposal", json!({ "id": second }));
    assert_eq!(of_second["content"][0]["text"], "two", "{of_second}");
    stage.gateway.signal("TERM");
    let log = AuditLog(&stage.home);
    log.has(
        "dee",
        "mcp/proposal:tools/call:first",
        "approved",
        "proposed by scout",
    );
    log.has(
        "dee",
        "mcp/proposal:tools/call:last",
        "approved",
        "proposed by scout",
    );
}

#[test]
fn a_plan_stops_at_the_first_step_that_fails() {
    let stage = Stage::new();
    for failing in ["tools_fail", "log_refuse"] {
        let before = stage.log().calls();
        let steps = stage.plan(&[
            ("log_first", json!({})),
            (failing, json!({})),
            ("log_last", json!({})),
        ]);
        assert_eq!(stage.approve("ann", &steps[0]).status, 200);
        let states = stage.ends(&steps);
        assert_eq!([&*states[0], &*states[2]], ["completed", "withdrawn"]);
        let reason = stage.shown(&steps[2])["reason"].clone();
        assert_eq!(reason, "step 2 of the plan failed");
        let calls = stage.log().calls();
        let new = calls.strip_prefix(&before).unwrap();
        assert!(new.starts_with("first\n") && !new.contains("last"), "{new}");
    }
    // Rejected or withdrawn, nothing of it runs.
    let steps = stage.plan(&[("log_first", json!({})), ("log_last", json!({}))]);
    let before = stage.log().calls();
    let reject = format!("proposals/{}/reject", steps[0]);
    assert_eq!(stage.api("ann", "POST", &reject, &json!({})).status, 200);
    assert_eq!(stage.ends(&steps), ["rejected", "withdrawn"]);
    let steps = stage.plan(&[("log_first", json!({})), ("log_last", json!({}))]);
    let withdraw = format!("proposals/{}/withdraw", steps[0]);
    assert_eq!(
        stage.api("scout", "POST", &withdraw, &json!({})).status,
        200
    );
    assert_eq!(stage.ends(&steps), ["withdrawn", "withdrawn"]);
    assert_eq!(stage.log().calls(), before);
}

#[test]
fn after_a_kill_a_plan_that_ran_goes_no_further_and_one_that_waited_waits() {
    let mut stage = Stage::new();
    let waiting = stage.plan(&[("log_first", json!({})), ("log_last", json!({}))]);
    let steps = stage.plan(&[
        ("log_first", json!({})),
        ("tools_hang", json!({})),
        ("log_last", json!({})),
    ]);
    assert_eq!(stage.approve("ann", &steps[0]).status, 200);
    until("the second step runs", || {
        (stage.shown(&steps[1])["state"] == "running").then_some(())
    });
    stage.restart();
    assert_eq!(stage.ends(&steps), ["completed", "failed", "withdrawn"]);
    let reasons = [1, 2].map(|at: usize| stage.shown(&steps[at])["reason"].to_string());
    assert!(reasons[0].contains("outcome_unknown"), "{reasons:?}");
    let (url, ann) = (stage.gateway.url(), token("ann"));
    let all = ["proposals", "ls", "--all", "--url", &url, "--token", &ann];
    let all = stage.home.run(&all).expect(0).stdout;
    let row = all.lines().find(|row| row.contains("hang"));
    assert!(
        row.is_some_and(|row| row.contains("outcome_unknown")),
        "{all}"
    );
    assert!(
        reasons[1].contains("restarted while the plan ran"),
        "{reasons:?}"
    );
    assert_eq!(stage.log().calls(), "first\n");
    assert_eq!(stage.shown(&waiting[0])["steps"][1]["context"], "last");
    assert_eq!(stage.approve("ann", &waiting[1]).status, 409);
    assert_eq!(stage.approve("ann", &waiting[0]).status, 200);
    assert_eq!(stage.ends(&waiting), ["completed"; 2]);
    assert_eq!(stage.log().calls(), "first\nfirst\nlast\n");
    // Once more: what is over stays so.
    stage.restart();
    assert_eq!(stage.ends(&steps), ["completed", "failed", "withdrawn"]);
}

#[test]
fn a_plan_needs_as_many_approvals_as_its_strictest_step() {
    let stage = Stage::new();
    let steps = stage.plan(&[
        ("log_first", json!({})),
        ("tools_add", json!({ "a": 1, "b": 2 })),
    ]);
    assert_eq!(stage.shown(&steps[0])["approvals"], 2);
    assert_eq!(stage.approve("ann", &steps[0]).json()["state"], "pending");
    assert_eq!(stage.log().calls(), "");
    assert_eq!(stage.approve("dee", &steps[0]).status, 200);
    assert_eq!(stage.ends(&steps), ["completed"; 2]);
}

#[test]
fn what_was_not_shown_is_not_approved() {
    let stage = Stage::new();
    let steps = stage.plan(&[("tools_echo", text("x")), ("log_last", json!({}))]);
    let shown = stage.shown(&steps[0])["digest"].clone();
    let other = stage.plan(&[("tools_echo", text("x")), ("log_first", json!({}))]);
    let of_other = json!({ "digest": stage.shown(&other[0])["digest"] });
    let approve = format!("proposals/{}/approve", steps[0]);
    assert_eq!(stage.api("ann", "POST", &approve, &of_other).status, 409);
    // The tool of the second step is another one now.
    stage
        .log()
        .list(&[("last", "Is another"), ("change", "Changes")]);
    let ann = stage.client("ann");
    ann.call("log_change", json!({}));
    until("the other description", || {
        let listed = ann.ask("tools/list", json!({})).to_string();
        listed.contains("Is another").then_some(())
    });
    let refused = stage.api("ann", "POST", &approve, &json!({ "digest": shown }));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("otherwise now"), "{refused:?}");
    assert!(!stage.log().calls().contains("last"));
}

#[test]
fn all_of_a_plan_is_proposed_or_nothing() {
    let stage = Stage::new();
    let scout = stage.client("scout");
    let echo = || ("tools_echo", text("x"));
    for (steps, why) in [
        (vec![echo()], "2 to 16 steps"),
        (vec![echo(); 17], "2 to 16 steps"),
        (
            vec![echo(), ("log_none", json!({}))],
            "step 2: there is no tool of this name",
        ),
        (
            vec![echo(), ("show_proposal", json!({}))],
            "step 2: there is no tool of this name",
        ),
        (
            vec![("tools_echo", json!([])), echo()],
            "step 1: the arguments must be a JSON object",
        ),
    ] {
        let said = no(&scout, "propose_plan", steps_of(&steps));
        assert!(said.contains(why), "{said}");
    }
    let none = stage
        .api("ann", "GET", "proposals?all=true", &json!({}))
        .json();
    assert_eq!(none["proposals"], json!([]));
    // Over the API too.
    let body = steps_of(&[echo(), ("log_last", json!({}))]);
    let opened = stage.api("scout", "POST", "plans", &body);
    assert_eq!(opened.status, 201, "{opened:?}");
    let opened = opened.json();
    assert_eq!(opened["plan"]["of"], 2, "{opened}");
    assert_eq!(opened["steps"][1]["state"], "pending", "{opened}");
    let id = opened["id"].as_str().unwrap();
    assert_eq!(stage.approve("ann", id).status, 200);
    let last = opened["steps"][1]["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.ends(&[id.to_owned(), last]), ["completed"; 2]);
    let unknown = stage.api(
        "scout",
        "POST",
        "plans",
        &steps_of(&[echo(), ("no", json!({}))]),
    );
    assert_eq!(unknown.status, 404, "{unknown:?}");
}

#[test]
fn at_the_terminal_a_plan_is_shown_and_approved_whole() {
    let stage = Stage::new();
    let url = stage.gateway.url();
    let run = |who: &str, words: &[&str], code: i32| {
        let token = token(who);
        let words = [words, &["--url", &url, "--token", &token]].concat();
        let ran = stage.home.run(&words).expect(code);
        ran.stdout + &ran.stderr
    };
    let steps = stage.plan(&[
        ("tools_echo", text("one")),
        ("log_refuse", json!({})),
        ("log_last", json!({ "n": 3 })),
    ]);
    let shown = run("ann", &["proposals", "show", &steps[0]], 0);
    let at = |needle: &str| {
        shown
            .find(needle)
            .unwrap_or_else(|| panic!("{needle}: {shown}"))
    };
    assert!(
        at("step 1 of 3: echo at tools") < at("\"text\": \"one\""),
        "{shown}"
    );
    assert!(at("step 3 of 3: last at log") < at("\"n\": 3"), "{shown}");
    let listed = run("ann", &["proposals", "ls"], 0);
    assert!(listed.contains("last (step 3 of 3)"), "{listed}");
    let refused = run("ann", &["proposals", "approve", &steps[2], "--yes"], 3);
    assert!(refused.contains(&steps[0]), "{refused}");
    let ann = token("ann");
    let edit = ["proposals", "approve", &steps[0], "--edit"];
    let edit = [&edit[..], &["--url", &url, "--token", &ann]].concat();
    let refused = run_at_terminal(&stage.home, &edit, &[]).expect(2);
    let said = refused.stdout + &refused.stderr;
    assert!(said.contains("approved as it is, or not at all"), "{said}");
    let ended = run("ann", &["proposals", "approve", &steps[0], "--yes"], 1);
    for line in [
        "step 1 of 3: echo at tools, completed",
        "step 2 of 3: refuse at log, failed",
        "step 3 of 3: last at log, withdrawn",
        "has stopped: 1 of 3 steps are done, step 2 has failed",
    ] {
        assert!(ended.contains(line), "{ended}");
    }
    // Also the last step may fail.
    let steps = stage.plan(&[("log_first", json!({})), ("tools_fail", json!({}))]);
    let ended = run("ann", &["proposals", "approve", &steps[0], "--yes"], 1);
    let said = "has stopped: 1 of 2 steps are done, step 2 has failed";
    assert!(ended.contains(said), "{ended}");
    let shown = stage.shown(&steps[0])["steps"].clone();
    let ends = [0, 1].map(|at: usize| (shown[at]["state"].clone(), shown[at]["failed"].clone()));
    let end = |state: &str, failed: bool| (json!(state), json!(failed));
    assert_eq!(ends, [end("completed", false), end("failed", true)]);
}
