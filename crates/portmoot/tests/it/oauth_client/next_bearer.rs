//! A name that is revoked and issued again: whatever the former bearer owned, in every store, is out of the next one's reach.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{ANN, Service, Site, text};
use crate::builtin_proposals::data;
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::ws::Socket;

const ABLE: &str = "io.modelcontextprotocol/clientCapabilities";
const STATEFUL: &str = "new_test_input_required_result_request_state";

fn start() -> Site {
    let (service, home) = (Service::start(), Home::new().env("ANN", ANN));
    let key = home.write("key", &"5ea1ed0f".repeat(8));
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let servers = fixture("ops", &[]) + &fixture("new", &["--era", "modern"]);
    let config = format!(
        "[server]\nkey_file = {key:?}\n[topics.main]\nhistory = 50\nbuiltin = [\"room\"]\n\
         [participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\", \"chat\"]\n\
         [servers.jira]\nurl = {:?}\nera = \"legacy\"\n[servers.jira.auth]\naccount = \"caller\"\n{servers}",
        service.url()
    );
    let gateway = Gateway::start(&home, &config);
    ["ops", "new"].into_iter().for_each(|server| gateway.ready(server));
    Site { home, gateway, service }
}

/// A token for the name: its bearer may propose everything, and call at two servers.
#[track_caller]
fn issue(site: &Site) -> String {
    let mut new = vec!["token", "new", "tmp"];
    let may = ["mcp/proposal:*", "mcp/request:tools/call:jira_*", "mcp/request:tools/call:new_*", "chat"];
    may.into_iter().for_each(|one| new.extend(["--capability", one]));
    site.home.run(&new).expect(0).stdout.trim().to_owned()
}

fn get(site: &Site, token: &str, path: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    Connection::open(site.address()).exchange("GET", path, &[("authorization", bearer.as_str())], "")
}

/// Whether a participant is listed a proposal.
#[track_caller]
fn lists(site: &Site, token: &str, id: &str) -> bool {
    let all = get(site, token, "/api/v1/proposals?all=true");
    assert_eq!(all.status, 200, "{all:?}");
    all.json()["proposals"].as_array().unwrap().iter().any(|proposal| proposal["id"] == id)
}

/// A call of the tool whose state its server seals, with this much more.
fn stateful(site: &Site, token: &str, more: &Value) -> Value {
    let able = json!({ ABLE: { "elicitation": { "form": {} } } });
    let mut params = json!({ "name": STATEFUL, "arguments": {}, "_meta": able });
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    modern(&site.gateway, Some(token), "tools/call", params).json()
}

#[test]
fn nothing_that_a_bearer_of_a_name_owned_is_within_reach_of_the_next() {
    let mut site = start();
    let (first, ann) = (issue(&site), Client::of(&site.gateway, ANN));
    let client = Client::of(&site.gateway, &first);
    // An account at a server.
    let link = site.link(&client);
    site.connect(&link, &first, "first-tmp");
    until("the account is used", || {
        client.call("jira_whoami", json!({})).to_string().contains("first-tmp").then_some(())
    });
    // A proposal that has ended, with an answer.
    let held = client.begin_call("ops_echo", json!({ "text": "the first one's argument" }));
    let proposal = site.gateway.pending(&site.home, ANN);
    let id = proposal["id"].as_str().unwrap();
    let url = site.gateway.url();
    site.home.run(&["proposals", "approve", id, "--yes", "--url", &url, "--token", ANN]).expect(0);
    until("the answer", || held.next()["result"].is_object().then_some(()));
    assert!(lists(&site, &first, id) && lists(&site, ANN, id));
    // Messages to it and of it, and a cursor.
    data(&ann, "say", json!({ "text": "for everyone" }));
    data(&ann, "say", json!({ "text": "to the first tmp", "to": ["tmp"] }));
    data(&client, "say", json!({ "text": "of the first tmp", "to": ["ann"] }));
    let page = data(&client, "read_messages", json!({}));
    for words in ["for everyone", "to the first tmp", "of the first tmp"] {
        assert!(page.to_string().contains(words), "{page}");
    }
    // A state of a server.
    let asked = stateful(&site, &first, &json!({}))["result"].clone();
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let given = json!({ key: { "action": "accept", "content": { "ok": true } } });
    let back = json!({ "inputResponses": given, "requestState": asked["requestState"] });
    // A code for the pages.
    let code = site.code(&first);

    site.home.run(&["token", "revoke", "tmp"]).expect(0);
    let second = issue(&site);

    let check = |site: &Site| {
        assert!(!lists(site, &second, id) && lists(site, ANN, id));
        let shown = get(site, &second, &format!("/api/v1/proposals/{id}"));
        assert!(shown.status == 404 && !shown.body.contains("the first one's"), "{shown:?}");
        let next = Client::of(&site.gateway, &second);
        for tool in ["wait_for_proposal", "withdraw_proposal"] {
            let said = next.ask("tools/call", json!({ "name": tool, "arguments": { "id": id } }));
            assert!(said["error"].is_object() || said["result"]["isError"] == true, "{tool}: {said}");
            assert!(!said.to_string().contains("the first one's"), "{tool}: {said}");
        }
        site.link(&next);
        let bearer = format!("Bearer {second}");
        for mode in ["all", "directed"] {
            let query = format!("?mode={mode}");
            let welcome = Socket::open_with(&site.gateway, "tmp", &query, &bearer).receive();
            assert_eq!(welcome["kind"], "system/welcome", "{welcome}");
            assert!(!welcome.to_string().contains("first tmp"), "{welcome}");
        }
        let cursor = next
            .ask("tools/call", json!({ "name": "read_messages", "arguments": { "cursor": page["cursor"] } }));
        assert!(cursor["error"].is_object() || cursor["result"]["isError"] == true, "{cursor}");
        let read = data(&next, "read_messages", json!({}));
        assert!(!read.to_string().contains("first tmp"), "{read}");
        let refused = stateful(site, &second, &back);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let stolen = Client::resume(&site.gateway, Some(&second), "/mcp", &client.session);
        assert_eq!(stolen.status("tools/list", json!({})), 404);
    };
    check(&site);
    let mut browser = super::Browser::default();
    let page = browser.open(site.address(), &site.link(&Client::of(&site.gateway, &second)));
    let refused = browser.submit(site.address(), &page, &[("code", &code)]);
    assert!(!refused.body.contains("name=\"decision\""), "{refused:?}");
    // Nor after a restart. What was shared is still there.
    site.restart();
    ["ops", "new"].into_iter().for_each(|server| site.gateway.ready(server));
    check(&site);
    assert_eq!(text(&Client::of(&site.gateway, ANN).call("ops_echo", json!({ "text": "x" }))), "x");
}
