//! Lists of servers at which each caller has an account, before and after the caller has one.

use serde_json::{Value, json};

use super::{ANN, BOB, Site, text};
use crate::support::{Client, modern, until};

const OWN: [&str; 3] = ["jira_whoami", "jira_write", "jira_only_user-a"];

/// The tools that a modern client is listed.
fn modern_names(site: &Site, token: &str) -> Vec<String> {
    let answer = modern(&site.gateway, Some(token), "tools/list", json!({})).json();
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn one_tool_is_listed_until_the_caller_has_an_account() {
    let site = Site::start();
    let (ann, bob) = (
        Client::of(&site.gateway, ANN),
        Client::of(&site.gateway, BOB),
    );
    assert_eq!(
        (ann.names("tools"), modern_names(&site, ANN)),
        (
            vec!["jira_authorize".to_owned()],
            vec!["jira_authorize".to_owned()]
        )
    );
    let stream = ann.listen();
    site.connect(&site.link(&ann), ANN, "user-a");
    stream.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), OWN);
    assert_eq!(modern_names(&site, ANN), OWN);
    assert_eq!(
        Client::of(&site.gateway, ANN).names("tools"),
        OWN,
        "another session"
    );
    assert_eq!(
        bob.names("tools"),
        ["jira_authorize"],
        "another participant"
    );
    // The tool is not listed any more, and does no harm.
    let again = ann.call("jira_authorize", json!({}));
    assert_eq!(
        (
            again["isError"].as_bool(),
            text(&again).contains("connected already")
        ),
        (Some(false), true)
    );
    // Signed out: the one tool is back, and the client learns it.
    let url = site.gateway.url();
    site.home
        .run(&["servers", "logout", "jira", "--url", &url, "--token", ANN])
        .expect(0);
    stream.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["jira_authorize"]);
    assert!(
        !site.service.users().contains(&"user-a".to_owned()),
        "revoked at the authorization server"
    );
    // Another account of the same participant is another one.
    site.connect(&site.link(&ann), ANN, "user-c");
    assert_eq!(text(&ann.call("jira_only_user-c", json!({}))), "mine");
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}

#[test]
fn a_sign_in_at_the_command_line_ends_links_and_changes_lists_too() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let (link, stream) = (site.link(&ann), ann.listen());
    site.login(ANN, "user-a");
    stream.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), OWN);
    assert_eq!(
        super::Browser::default().open(site.address(), &link).status,
        404
    );
}

#[test]
fn the_last_list_of_any_caller_can_be_shown_marked() {
    let site = Site::with("list = \"any\"", "");
    let bob = Client::of(&site.gateway, BOB);
    assert_eq!(bob.names("tools"), ["jira_authorize"], "none has been seen");
    let stream = bob.listen();
    let ann = site.connected(ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    stream.next_of("notifications/tools/list_changed");
    until("bob sees the list", || {
        (bob.names("tools") == OWN).then_some(())
    });
    let tools = |client: &Client| client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let (marked, own) = (tools(&bob), tools(&ann));
    assert_eq!(
        (
            &marked[0]["description"],
            &marked[0]["_meta"]["portmoot/account"]
        ),
        (
            &json!(
                "Does it. (You have no account at jira yet: a call answers with a link to connect one.)"
            ),
            &json!("needed")
        )
    );
    assert_eq!(
        (&own[0]["description"], &own[0]["_meta"]),
        (&json!("Does it."), &Value::Null)
    );
    // What is listed can be called, and asks.
    site.connect(&site.link(&bob), BOB, "user-b");
    until("bob sees its own", || {
        bob.names("tools")
            .contains(&"jira_only_user-b".to_owned())
            .then_some(())
    });
    assert_eq!(tools(&bob)[0]["description"], "Does it.");
}
