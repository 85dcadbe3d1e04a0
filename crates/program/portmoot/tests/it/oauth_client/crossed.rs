//! Two participants with an account each at one server: no token, session, cursor, task or link of
//! one is of use to the other.

use std::time::Instant;

use serde_json::json;

use super::{ANN, BOB, Browser, Site, text};
use crate::http::Connection;
use crate::support::{Client, modern, until};

/// Calls in all.
const CALLS: usize = 10_000;
/// Connections of each participant.
const CONNECTIONS: usize = 4;

#[test]
fn ten_thousand_interleaved_calls_have_the_right_token_each() {
    let site = Site::start();
    drop((site.connected(ANN, "user-a"), site.connected(BOB, "user-b")));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for at in 0..2 * CONNECTIONS {
            let (token, user) = if at % 2 == 0 {
                (ANN, "user-a")
            } else {
                (BOB, "user-b")
            };
            let site = &site;
            scope.spawn(move || {
                let client = Client::of(&site.gateway, token);
                let wanted = format!("{user} with read");
                for _ in 0..CALLS / (2 * CONNECTIONS) {
                    assert_eq!(
                        text(&client.call("jira_whoami", json!({ "as": user }))),
                        wanted
                    );
                }
            });
        }
    });
    println!("{CALLS} calls in {:?}", begun.elapsed());
    assert_eq!(site.service.calls(), CALLS as u64);
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}

#[test]
fn what_one_participant_holds_is_of_no_use_to_the_other() {
    let site = Site::with(
        "",
        "[servers.tools]\ncommand = \"unused\"\nenabled = false\n",
    );
    // A link.
    let (client, mut browser) = (Client::of(&site.gateway, ANN), Browser::default());
    let link = site.link(&client);
    let page = browser.open(site.address(), &link);
    assert_eq!(
        browser
            .submit(site.address(), &page, &[("code", &site.code(BOB))])
            .status,
        403
    );
    let (ann, bob) = (site.connected(ANN, "user-a"), site.connected(BOB, "user-b"));
    // Names of the other's list.
    for (client, other) in [(&ann, "user-b"), (&bob, "user-a")] {
        let answer = client.ask(
            "tools/call",
            json!({ "name": format!("jira_only_{other}"), "arguments": {} }),
        );
        assert!(answer["error"].is_object(), "{answer}");
    }
    assert_eq!(text(&ann.call("jira_only_user-a", json!({}))), "mine");
    // Sessions.
    let stolen = Client::resume(&site.gateway, Some(BOB), "/mcp", &ann.session);
    let reply = stolen.status(
        "tools/call",
        json!({ "name": "jira_whoami", "arguments": {} }),
    );
    assert_eq!(reply, 404);
    // Tasks and cursors that are made up.
    for id in ["portmoot", "AAAA"] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let answer = bob.ask(method, json!({ "taskId": id }));
            assert!(answer["error"].is_object(), "{answer}");
        }
        let answer = bob.ask("tools/list", json!({ "cursor": id }));
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("cursor"),
            "{answer}"
        );
    }
    // Nothing reached the server for the wrong user.
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
    // Modern callers have sessions by participant.
    let call = |token: &str| {
        modern(
            &site.gateway,
            Some(token),
            "tools/call",
            json!({ "name": "jira_whoami", "arguments": {} }),
        )
        .json()
    };
    assert_eq!(text(&call(ANN)["result"]), "user-a with read");
    assert_eq!(text(&call(BOB)["result"]), "user-b with read");
    // A participant reads and ends accounts of its own only.
    for path in ["/api/v1/servers/jira/logout", "/api/v1/servers/jira/login"] {
        assert_eq!(
            site.post(BOB, path, &json!({ "participant": "ann" }))
                .status,
            403,
            "{path}"
        );
    }
    site.logout(BOB);
    assert_eq!(text(&call(ANN)["result"]), "user-a with read");
    assert!(text(&call(BOB)["result"]).contains("/connect/"));
}

#[test]
fn a_cursor_of_one_participant_is_of_no_use_to_the_other() {
    let site = Site::start();
    let (ann, bob) = (
        site.connected(ANN, "user-of-many"),
        site.connected(BOB, "user-b"),
    );
    let page = ann.ask("tools/list", json!({}));
    let cursor = page["result"]["nextCursor"]
        .as_str()
        .unwrap_or_else(|| panic!("one page"));
    let stolen = bob.ask("tools/list", json!({ "cursor": cursor }));
    assert!(
        stolen["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cursor"),
        "{stolen}"
    );
    let rest = ann.ask("tools/list", json!({ "cursor": cursor }));
    assert_eq!(
        rest["result"]["tools"].as_array().unwrap().len(),
        3,
        "{rest}"
    );
}

#[test]
fn neither_a_callers_token_nor_one_of_a_server_is_where_it_must_not_be() {
    let site = Site::start();
    let ann = site.connected(ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    let bearer = format!("Bearer {ANN}");
    let accounts = Connection::open(site.address()).exchange(
        "GET",
        "/api/v1/accounts",
        &[("authorization", &bearer)],
        "",
    );
    let metrics = site.gateway.get("/metrics", None);
    let (home, log) = (site.home.path().to_owned(), site.gateway.log());
    site.gateway.stop();
    let mut searched = vec![accounts.body, metrics.body, log];
    let mut folders = vec![home];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => searched.push(
                    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned(),
                ),
            }
        }
    }
    for text in &searched {
        assert!(
            !text.contains("access-user-a-") && !text.contains(ANN),
            "{}",
            &text[..text.len().min(2_000)]
        );
    }
    assert!(searched.len() > 4);
}

#[test]
fn a_held_call_runs_with_the_account_of_its_proposer() {
    let scout = "the-token-of-scout-is-secret";
    let more = "[participants.scout]\ntoken_env = \"SCOUT\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let site = Site::with_env("", more, &[("SCOUT", scout)]);
    site.login(scout, "user-s");
    drop(site.connected(ANN, "user-a"));
    let proposer = Client::of(&site.gateway, scout);
    let call = proposer.begin_call("jira_whoami", json!({ "as": "user-s" }));
    let proposal = site.gateway.pending(&site.home, ANN);
    let id = proposal["id"].as_str().unwrap();
    let url = site.gateway.url();
    site.home
        .run(&[
            "proposals",
            "approve",
            id,
            "--yes",
            "--url",
            &url,
            "--token",
            ANN,
        ])
        .expect(0);
    let answer = loop {
        let message = call.next();
        if message["result"].is_object() {
            break message;
        }
    };
    assert_eq!(text(&answer["result"]), "user-s with read", "{answer}");
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}

#[test]
fn the_next_bearer_of_a_name_has_none_of_the_accounts_of_the_former_one() {
    let mut site = Site::start();
    let issue = |site: &Site| {
        let new = [
            "token",
            "new",
            "tmp",
            "--capability",
            "mcp/*",
            "--capability",
            "chat",
        ];
        site.home.run(&new).expect(0).stdout.trim().to_owned()
    };
    let first = issue(&site);
    let client = Client::of(&site.gateway, &first);
    let link = site.link(&client);
    site.connect(&link, &first, "first-tmp");
    until("the account is used", || {
        client
            .call("jira_whoami", json!({}))
            .to_string()
            .contains("first-tmp")
            .then_some(())
    });
    // A page that the former one has opened, and a code that it has got.
    let code = site.code(&first);
    site.home.run(&["token", "revoke", "tmp"]).expect(0);
    let second = issue(&site);
    let next = Client::of(&site.gateway, &second);
    let link = site.link(&next);
    let mut browser = Browser::default();
    let page = browser.open(site.address(), &link);
    let refused = browser.submit(site.address(), &page, &[("code", &code)]);
    assert!(!refused.body.contains("name=\"decision\""), "{refused:?}");
    // Nor after a restart.
    site.restart();
    let next = Client::of(&site.gateway, &second);
    site.link(&next);
}
