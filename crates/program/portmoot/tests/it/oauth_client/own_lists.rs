//! Lists of a server for one caller alone: pins, proposals, the tool `proxy` and modules of schemas
//! go by them.

use serde_json::{Value, json};

use super::{ANN, BOB, Site, text};
use crate::http::{Connection, Reply};
use crate::registry::{Buf, holds};
use crate::support::{Client, modern, until};

const SCOUT: &str = "the-token-of-scout-is-secret";

/// A site at whose server `scout` has the account of `user-s`; it may call `only_user-s`, and
/// propose the rest.
fn with_scout(server: &str) -> Site {
    let people = "[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n\
         [participants.scout]\ntoken_env = \"SCOUT\"\n\
         capabilities = [\"mcp/request:tools/call:jira_only_user-s\", \"mcp/proposal:*\"]\n";
    let site = Site::in_home(&[("SCOUT", SCOUT)], server, "", people);
    site.login(SCOUT, "user-s");
    site
}

/// Holds a call of `scout`'s as a task: its client is answered for now, and goes. Returns the
/// proposal.
#[track_caller]
fn parked(site: &Site, tool: &str) -> Value {
    let client = Client::of(&site.gateway, SCOUT);
    let call = json!({ "name": tool, "arguments": { "as": "user-s" }, "task": {} });
    let answer = client.ask("tools/call", call);
    assert!(answer["result"]["task"].is_object(), "{answer}");
    let own = tool.strip_prefix("jira_").unwrap();
    let proposal = until("it waits", || {
        let all = site.gateway.get("/api/v1/proposals", Some(ANN)).json();
        all["proposals"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["context"] == own)
            .cloned()
    });
    assert_eq!(client.delete(), 204);
    proposal
}

fn approve(site: &Site, proposal: &Value) -> Reply {
    let path = format!(
        "/api/v1/proposals/{}/approve",
        proposal["id"].as_str().unwrap()
    );
    let bearer = format!("Bearer {ANN}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let body = json!({ "digest": proposal["digest"] }).to_string();
    Connection::open(site.address()).exchange("POST", &path, &headers, &body)
}

/// The end of a proposal.
fn ended(site: &Site, proposal: &Value) -> Value {
    let path = format!("/api/v1/proposals/{}", proposal["id"].as_str().unwrap());
    until("it is over", || {
        let now = site.gateway.get(&path, Some(ANN)).json();
        let state = now["state"].as_str().unwrap().to_owned();
        (!["pending", "running"].contains(&state.as_str())).then_some(now)
    })
}

#[test]
fn a_held_call_is_shown_with_the_definition_that_its_proposer_is_listed() {
    let site = with_scout("");
    let proposal = parked(&site, "jira_whoami");
    assert_eq!(proposal["tool"]["description"], "Does it.", "{proposal}");
    let approved = approve(&site, &proposal);
    assert_eq!(approved.status, 200, "{approved:?}");
    let end = ended(&site, &proposal);
    assert_eq!(text(&end["answer"]["result"]), "user-s with read", "{end}");
    // A name that is not in its list, though it is in another's.
    let client = Client::of(&site.gateway, SCOUT);
    let call = json!({ "name": "jira_only_user-a", "arguments": {}, "task": {} });
    assert!(client.ask("tools/call", call)["error"].is_object());
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}

#[test]
fn a_tool_that_changes_between_proposal_and_approval_does_not_run() {
    let site = with_scout("");
    // Its proposer has a session by which the gateway knows the change when it is approved.
    let (first, second) = (parked(&site, "jira_whoami"), parked(&site, "jira_write"));
    site.service.describe("whoami", "Steals.");
    site.service.describe("write", "Steals.");
    let calls = site.service.calls();
    let client = Client::of(&site.gateway, SCOUT);
    assert_eq!(text(&client.call("jira_only_user-s", json!({}))), "mine");
    let refused = approve(&site, &first);
    assert_eq!(refused.status, 409, "{refused:?}");
    // It has none: the change shows when the call is about to run.
    assert_eq!(client.delete(), 204);
    let approved = approve(&site, &second);
    assert_eq!(approved.status, 200, "{approved:?}");
    let end = ended(&site, &second);
    assert_eq!(end["state"], "failed", "{end}");
    assert_eq!(site.service.calls(), calls + 1, "neither has run");
}

#[test]
fn a_withheld_tool_is_withheld_by_a_session_that_is_open_already() {
    let site = with_scout("pins = \"block\"");
    let client = Client::of(&site.gateway, SCOUT);
    assert_eq!(text(&client.call("jira_only_user-s", json!({}))), "mine");
    assert_eq!(client.delete(), 204);
    site.service.describe("only_user-s", "Steals.");
    // The approved call opens a session, which is its proposer's and none of its links'.
    let proposal = parked(&site, "jira_whoami");
    assert_eq!(approve(&site, &proposal).status, 200);
    assert_eq!(
        text(&ended(&site, &proposal)["answer"]["result"]),
        "user-s with read"
    );
    let calls = site.service.calls();
    for _ in 0..2 {
        let call = json!({ "name": "jira_only_user-s", "arguments": {} });
        let answer = modern(&site.gateway, Some(SCOUT), "tools/call", call).json();
        assert_eq!(answer["error"]["data"]["code"], "tool_changed", "{answer}");
    }
    assert_eq!(
        site.service.calls(),
        calls,
        "the server has not learnt of the calls"
    );
}

#[test]
fn the_tool_proxy_and_the_search_find_what_the_caller_is_listed() {
    let topic = "[topics.ops]\nbuiltin = [\"proxy\", \"search_tools\"]";
    let site = Site::of(
        topic,
        "",
        "[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n\
        topics = [\"main\", \"ops\"]\n[participants.bob]\ntoken_env = \"BOB\"\ncapabilities = [\"mcp/*\"]\n\
        topics = [\"main\", \"ops\"]\n",
    );
    site.login(ANN, "user-a");
    let open = |token: &str| Client::open(&site.gateway, Some(token), "/mcp/ops", json!({}));
    let (ann, bob) = (open(ANN), open(BOB));
    let list = json!({ "action": "list", "type": "tool" });
    let info = |tool: &str| json!({ "action": "info", "type": "tool", "path": tool });
    let listed = ann.call("proxy", list.clone()).to_string();
    assert!(
        listed.contains("jira_whoami") && !listed.contains("jira_authorize"),
        "{listed}"
    );
    assert!(
        ann.call("proxy", info("jira_only_user-a"))
            .to_string()
            .contains("Does it.")
    );
    assert!(
        ann.call("search_tools", json!({ "query": "whoami" }))
            .to_string()
            .contains("jira_whoami")
    );
    let listed = bob.call("proxy", list).to_string();
    assert!(
        !listed.contains("jira_whoami") && listed.contains("jira_authorize"),
        "{listed}"
    );
    assert_eq!(bob.call("proxy", info("jira_only_user-a"))["isError"], true);
}

#[test]
fn the_module_of_a_server_has_the_tools_of_its_caller_for_its_caller_alone() {
    let site = Site::start();
    let ann = site.connected(ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    let module = format!("{}/portmoot/jira", site.address());
    let build = ["build", module.as_str(), "-o", "-"];
    let of_ann = Buf::plain().succeeds(Some(ANN), &build);
    assert!(holds(&of_ann, "OnlyUserARequest") && !holds(&of_ann, "AuthorizeRequest"));
    let of_bob = Buf::plain().succeeds(Some(BOB), &build);
    assert!(!holds(&of_bob, "OnlyUserARequest") && holds(&of_bob, "AuthorizeRequest"));
    // The API lists the same.
    let names = |token: &str| {
        site.gateway
            .get("/api/v1/tools", Some(token))
            .json()
            .to_string()
    };
    assert!(names(ANN).contains("jira_only_user-a") && !names(BOB).contains("jira_only_user-a"));
}
