//! Changes of accounts and of their server's configuration: another person signs in, the server
//! becomes another one.

use serde_json::json;

use super::{ANN, Browser, Site, text};
use crate::http::Connection;
use crate::support::{Client, fixture, modern, until};

const SCOUT: &str = "the-token-of-scout-is-secret";

#[test]
fn a_sign_in_as_another_person_opens_other_sessions() {
    let more = "[participants.scout]\ntoken_env = \"SCOUT\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let site = Site::with_env("", more, &[("SCOUT", SCOUT)]);
    let (ann, scout, url) = (
        Client::of(&site.gateway, ANN),
        Client::of(&site.gateway, SCOUT),
        site.gateway.url(),
    );
    for (number, user) in ["user-a", "user-b"].iter().enumerate() {
        // Without signing out before.
        for token in [ANN, SCOUT] {
            site.login(token, user);
        }
        let said = format!("{user} with read");
        // In a client's session, in those of modern requests, and in one that no link of the
        // participant has: its approved proposal's.
        assert_eq!(text(&ann.call("jira_whoami", json!({ "as": user }))), said);
        let asked = json!({ "name": "jira_whoami", "arguments": { "as": user } });
        let answer = modern(&site.gateway, Some(ANN), "tools/call", asked).json();
        assert_eq!(text(&answer["result"]), said, "{answer}");
        let call = scout.begin_call("jira_whoami", json!({ "as": user }));
        let proposal = site.gateway.pending(&site.home, ANN);
        let id = proposal["id"].as_str().unwrap();
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
        assert_eq!(text(&answer["result"]), said, "{answer}");
        until("the list is the person's", || {
            ann.names("tools")
                .contains(&format!("jira_only_{user}"))
                .then_some(())
        });
        assert!(
            site.service.wrong().is_empty(),
            "{number} {:?}",
            site.service.wrong()
        );
    }
    drop((ann, scout));
}

#[test]
fn a_server_that_became_a_program_has_no_accounts_and_gets_them_back() {
    let capabilities = r#"["mcp/*", "portmoot/accounts"]"#;
    let one = |name: &str, env: &str| {
        format!("[participants.{name}]\ntoken_env = {env:?}\ncapabilities = {capabilities}\n")
    };
    let site = Site::of(
        "",
        "",
        &format!("{}{}", one("ann", "ANN"), one("bob", "BOB")),
    );
    site.login(ANN, "user-a");
    let http = std::fs::read_to_string(site.home.path().join("portmoot.toml")).unwrap();
    let (before, rest) = http.split_once("[servers.jira]\n").unwrap();
    let program = format!(
        "{before}{}{}",
        fixture("jira", &[]),
        rest.split_once("account = \"caller\"\n").unwrap().1
    );
    let bearer = format!("Bearer {ANN}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let login = || {
        Connection::open(site.address()).exchange(
            "POST",
            "/api/v1/servers/jira/login",
            &headers,
            r#"{"port":1}"#,
        )
    };
    let link = site.link(&Client::of(&site.gateway, super::BOB));
    let begun = login();
    assert_eq!(begun.status, 201, "{begun:?}");
    let back = site
        .service
        .approve(begun.json()["url"].as_str().unwrap(), "user-c");
    site.home.write("portmoot.toml", &program);
    site.gateway.signal("HUP");
    until("the server is a program", || {
        Client::of(&site.gateway, ANN)
            .names("tools")
            .contains(&"jira_echo".to_owned())
            .then_some(())
    });
    let refused = login();
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (409, Some("conflict")),
        "{refused:?}"
    );
    let complete = || {
        let body = json!({ "callback": back }).to_string();
        Connection::open(site.address()).exchange(
            "POST",
            "/api/v1/servers/jira/login/complete",
            &headers,
            &body,
        )
    };
    let ended = complete();
    assert_eq!(
        (ended.status, ended.body.contains("has no accounts")),
        (409, true),
        "{ended:?}"
    );
    assert_eq!(Browser::default().open(site.address(), &link).status, 404);
    site.home.write("portmoot.toml", &http);
    site.gateway.signal("HUP");
    let again = until("the server has accounts", || {
        let ann = Client::of(&site.gateway, ANN);
        ann.names("tools")
            .contains(&"jira_only_user-a".to_owned())
            .then_some(ann)
    });
    assert_eq!(
        text(&again.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    // What was begun before comes to nothing, and says so.
    let ended = complete();
    assert_eq!(
        (ended.status, ended.body.contains("configured anew")),
        (409, true),
        "{ended:?}"
    );
    assert!(!site.service.users().contains(&"user-c".to_owned()));
}
