//! Held calls of a plain MCP client that may only propose: each form of answer that its revision
//! has, with the Python SDK. Another participant decides with `portmoot proposals`.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::Home;
use crate::listed_server::ListedServer;
use crate::support::{Client, Gateway, fixture, is_alive, signal, until};

const BOSS: &str = "token-of-the-one-who-decides";
const SCOUT: &str = "token-of-the-one-who-proposes";
/// How long calls are held before their callers receive a first answer.
const HOLD: &str = "700ms";

fn setup() -> Home {
    Home::new()
        .env("BOSS_TOKEN", BOSS)
        .env("SCOUT_TOKEN", SCOUT)
}

fn config(home: &Home) -> String {
    let data = home.path().join("data").display().to_string();
    let boss = "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/request:*\", \"mcp/response:*\"]\n";
    let scout =
        "[participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let server = format!("[server]\ndata_dir = {data:?}\n[server.limits]\nhold = {HOLD:?}\n");
    server + &fixture("a", &[]) + boss + scout
}

/// Runs `portmoot proposals ...` with this token; returns its output.
#[track_caller]
fn proposals(home: &Home, gateway: &Gateway, token: &str, words: &[&str], code: i32) -> String {
    let url = gateway.url();
    let words = [&["proposals"], words, &["--url", &url, "--token", token]].concat();
    home.run(&words).expect(code).stdout
}

#[track_caller]
fn state(home: &Home, gateway: &Gateway, id: &str) -> Value {
    serde_json::from_str(&proposals(home, gateway, BOSS, &["show", id, "--json"], 0)).unwrap()
}

fn id_of(proposal: &Value) -> String {
    proposal["id"].as_str().unwrap().to_owned()
}

fn client(gateway: &Gateway, way: &str, text: &str) -> Child {
    let (url, arguments) = (
        format!("{}/mcp", gateway.url()),
        json!({ "text": text }).to_string(),
    );
    let words = [
        url.as_str(),
        "--token",
        SCOUT,
        "--way",
        way,
        "a_echo",
        &arguments,
    ];
    harness::promoted_client(&words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn report(client: Child) -> Value {
    let output = client.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(
        output.status.success(),
        "{}",
        report["failure"].as_str().unwrap_or("no report")
    );
    report
}

/// Makes one call that is approved and one that is rejected; returns both reports.
#[track_caller]
fn both_ways(way: &str) -> [Value; 2] {
    let home = setup();
    let gateway = Gateway::start(&home, &config(&home));
    // A reviewer is connected.
    let _boss = Client::of(&gateway, BOSS);
    let approved = {
        let client = client(&gateway, way, "do it");
        let proposal = gateway.pending(&home, BOSS);
        assert_eq!(
            (&proposal["by"], &proposal["context"]),
            (&json!("scout"), &json!("echo")),
            "{proposal}"
        );
        assert_eq!(proposal["params"]["arguments"], json!({ "text": "do it" }));
        assert_eq!(proposal["params"].get("task"), None, "{proposal}");
        assert_eq!(proposal["to"], json!(["a"]));
        // Longer than a call is held, so that every client has to wait again.
        std::thread::sleep(std::time::Duration::from_millis(1200));
        let id = id_of(&proposal);
        let notice = proposals(
            &home,
            &gateway,
            BOSS,
            &["approve", &id, "--yes", "--no-wait"],
            0,
        );
        assert!(
            ["running\n", "completed\n"].contains(&notice.as_str()),
            "{notice}"
        );
        let report = report(client);
        until("the outcome", || {
            (state(&home, &gateway, &id)["state"] == "completed").then_some(())
        });
        assert_eq!(state(&home, &gateway, &id)["decided_by"], "boss");
        report
    };
    let client = client(&gateway, way, "do that");
    let id = id_of(&gateway.pending(&home, BOSS));
    let reason = "not before Monday";
    assert_eq!(
        proposals(
            &home,
            &gateway,
            BOSS,
            &["reject", &id, "--reason", reason],
            0
        ),
        "rejected\n"
    );
    let rejected = report(client);
    assert_eq!(
        approved["end"],
        json!({ "text": "do it", "error": false }),
        "{approved:#}"
    );
    assert_eq!(rejected["end"]["error"], true, "{rejected:#}");
    let words = rejected["end"]["text"].as_str().unwrap();
    let said = ["rejected by boss", reason, "not run"];
    assert!(said.iter().all(|said| words.contains(said)), "{words}");
    [approved, rejected]
}

#[test]
fn a_modern_client_with_tasks_gets_a_task() {
    let [approved, rejected] = both_ways("tasks");
    assert_eq!(approved["protocol"], "2026-07-28");
    assert_eq!(
        approved["able"]["extensions"]["io.modelcontextprotocol/tasks"],
        json!({})
    );
    assert_eq!(approved["first"]["resultType"], "task");
    assert_eq!(
        (&approved["first"]["status"], &approved["status"]),
        (&json!("working"), &json!("completed"))
    );
    assert!(rejected["asked"].as_u64() >= Some(1), "{rejected}");
}

#[test]
fn a_client_of_2025_gets_a_task_if_it_asks_for_one() {
    let [approved, _] = both_ways("task");
    assert_eq!(approved["protocol"], "2025-11-25");
    let able = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(approved["able"]["tasks"], able);
    assert_eq!(approved["listed"]["execution"]["taskSupport"], "optional");
    let id = &approved["first"]["task"]["taskId"];
    assert_eq!(
        (&approved["related"], &approved["status"]),
        (id, &json!("working"))
    );
}

#[test]
fn a_modern_client_without_tasks_retries_with_its_request_state() {
    let [approved, _] = both_ways("retry");
    let first = &approved["first"];
    assert_eq!(first["resultType"], "input_required");
    assert!(
        first["requestState"].is_string() && first.get("inputRequests").is_none(),
        "{first}"
    );
    assert!(approved["asked"].as_u64() >= Some(2), "{approved}");
}

#[test]
fn any_other_client_receives_an_explanation() {
    let [approved, _] = both_ways("words");
    let first = &approved["first"];
    assert_eq!(first["error"], true);
    let words = first["text"].as_str().unwrap();
    let said = ["needs approval", "`echo` of a", "boss", "wait_for_proposal"];
    assert!(said.iter().all(|said| words.contains(said)), "{words}");
    assert!(approved["asked"].as_u64() >= Some(1), "{approved}");
}

#[test]
fn closing_a_modern_stream_withdraws_the_proposal() {
    let home = setup();
    let gateway = Gateway::start(&home, &config(&home));
    let client = client(&gateway, "leave", "never mind");
    let id = id_of(&gateway.pending(&home, BOSS));
    report(client);
    until("withdrawn", || {
        (state(&home, &gateway, &id)["state"] == "withdrawn").then_some(())
    });
}

#[test]
fn decisions_count_once_and_are_bound_to_the_digest() {
    let home = setup();
    let gateway = Gateway::start(&home, &config(&home));
    let scout = Client::of(&gateway, SCOUT);
    let call = || {
        let notice = scout.call("a_echo", json!({ "text": "as proposed\u{202e}" }));
        assert_eq!(notice["isError"], true, "{notice}");
        id_of(&gateway.pending(&home, BOSS))
    };
    let id = call();
    let other = "00".repeat(32);
    proposals(
        &home,
        &gateway,
        BOSS,
        &["approve", &id, "--digest", &other],
        3,
    );
    proposals(&home, &gateway, SCOUT, &["approve", &id, "--yes"], 3);
    proposals(&home, &gateway, SCOUT, &["reject", &id], 3);
    // Without a terminal the command refuses.
    proposals(&home, &gateway, BOSS, &["approve", &id], 3);
    let shown = proposals(&home, &gateway, BOSS, &["show", &id], 0);
    assert!(
        shown.contains(r#""text": "as proposed\u{202e}""#),
        "{shown}"
    );
    for needed in [
        "proposal by scout at a: tools/call echo",
        "held: its caller may still wait",
        "digest ",
        "inputSchema",
    ] {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    let edited = [
        "approve",
        &id,
        "--yes",
        "--no-wait",
        "--arguments",
        r#"{"text":"as edited"}"#,
    ];
    proposals(&home, &gateway, BOSS, &edited, 0);
    let waited = scout.call("wait_for_proposal", json!({ "id": id }));
    assert_eq!(waited["content"][0]["text"], "as edited");
    assert_eq!(
        state(&home, &gateway, &id)["edited"]["arguments"],
        json!({ "text": "as edited" })
    );
    let again = proposals(&home, &gateway, BOSS, &["approve", &id, "--yes"], 3);
    assert_eq!(again, "");

    let url = gateway.url();
    let of_command = [
        "tools",
        "call",
        "a_echo",
        "text=held",
        "--wait",
        "500ms",
        "--url",
        &url,
        "--token",
        SCOUT,
    ];
    let begun = Instant::now();
    let held = home.run(&of_command).expect(6);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        held.stderr.contains("waiting for a decision"),
        "{}",
        held.stderr
    );
    assert!(held.stdout.contains("wait_for_proposal"), "{}", held.stdout);
    let other = id_of(&gateway.pending(&home, BOSS));
    proposals(&home, &gateway, SCOUT, &["withdraw", &other], 0);

    let id = call();
    proposals(&home, &gateway, SCOUT, &["withdraw", &id], 0);
    proposals(&home, &gateway, BOSS, &["approve", &id, "--yes"], 3);
    proposals(&home, &gateway, BOSS, &["show", "no-id"], 5);
    proposals(&home, &gateway, "not-a-token", &["ls"], 4);
}

#[test]
fn a_pending_proposal_outlives_a_restart_and_runs_once() {
    let home = setup();
    let config = config(&home).replace(HOLD, "50s");
    let gateway = Gateway::start(&home, &config);
    let client = client(&gateway, "words", "after the restart");
    let id = id_of(&gateway.pending(&home, BOSS));
    let pid = gateway.pid();
    signal(pid, "TERM");
    until("its end", || (!is_alive(pid.into())).then_some(()));
    // The caller received its first answer, and the proposal is still pending.
    let _ = client.wait_with_output();
    let gateway = Gateway::start(&home, &config);
    assert_eq!(id_of(&gateway.pending(&home, BOSS)), id);
    proposals(
        &home,
        &gateway,
        BOSS,
        &["approve", &id, "--yes", "--no-wait"],
        0,
    );
    let scout = Client::of(&gateway, SCOUT);
    let waited = scout.call("wait_for_proposal", json!({ "id": id }));
    assert_eq!(waited["content"][0]["text"], "after the restart");
}

#[test]
fn a_changed_tool_description_invalidates_an_approval() {
    let home = setup();
    let server = ListedServer::new(&home, "b", &[("act", "described as one"), ("change", "")]);
    let gateway = Gateway::start(&home, &(config(&home) + &server.table()));
    let scout = Client::of(&gateway, SCOUT);
    until("its tool", || {
        scout
            .names("tools")
            .contains(&"b_act".to_owned())
            .then_some(())
    });
    scout.call("b_act", json!({}));
    let id = id_of(&gateway.pending(&home, BOSS));
    server.list(&[("act", "described as two"), ("change", "")]);
    let boss = Client::of(&gateway, BOSS);
    boss.call("b_change", json!({}));
    until("conflict", || {
        let list = boss.ask("tools/list", json!({}));
        list.to_string().contains("described as two").then_some(())
    });
    proposals(&home, &gateway, BOSS, &["approve", &id, "--yes"], 3);
    assert_eq!(state(&home, &gateway, &id)["state"], "pending");
}

/// A server has announced other tools, and gives its list late: what was approved by then waits for the
/// list, and does not run.
#[test]
fn an_approved_call_waits_for_the_tools_that_its_server_has_announced() {
    let home = setup();
    let server = ListedServer::new(&home, "b", &[("act", "described as one"), ("change", "")]);
    let gateway = Gateway::start(&home, &(config(&home) + &server.table()));
    let scout = Client::of(&gateway, SCOUT);
    until("its tool", || {
        scout
            .names("tools")
            .contains(&"b_act".to_owned())
            .then_some(())
    });
    let id_of_call = |number: u64| {
        scout.call("b_act", json!({ "number": number }));
        id_of(&gateway.pending(&home, BOSS))
    };
    let approve = |id: &str| {
        let words = ["approve", id, "--yes", "--no-wait"];
        proposals(&home, &gateway, BOSS, &words, 0);
    };
    let ended = |id: &str, as_state: &str| {
        until("the end of the proposal", || {
            let shown = state(&home, &gateway, id);
            (shown["state"] == as_state).then_some(shown)
        })
    };
    let boss = Client::of(&gateway, BOSS);

    // The list that comes is the one that was shown.
    let unchanged = id_of_call(1);
    server.keep_list();
    boss.call("b_change", json!({}));
    approve(&unchanged);
    assert_eq!(state(&home, &gateway, &unchanged)["state"], "running");
    assert_eq!(server.calls(), "", "it waits for the list");
    server.give_list();
    ended(&unchanged, "completed");
    assert_eq!(server.calls(), "act\n");

    let changed = id_of_call(2);
    server.keep_list();
    boss.call("b_change", json!({}));
    approve(&changed);
    server.list(&[("act", "described as two"), ("change", "")]);
    server.give_list();
    let shown = ended(&changed, "failed");
    let reason = shown["reason"].as_str().unwrap();
    assert!(
        reason.contains("describes the tool otherwise now than was shown"),
        "{reason}"
    );
    assert_eq!(server.calls(), "act\n", "the server has not learnt of it");
}
