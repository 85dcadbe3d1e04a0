//! Answers to calls of participants that have no account at the server: three ways to give a link,
//! by what the client can do.

use serde_json::{Value, json};

use super::{ANN, BOB, Browser, Service, Site, text};
use crate::home::Home;
use crate::support::{Client, Gateway, modern};

const URL: &str = r#"{"elicitation": {"form": {}, "url": {}}}"#;

fn opens_urls() -> Value {
    serde_json::from_str(URL).unwrap()
}

#[test]
fn a_client_that_opens_no_urls_gets_a_sentence_with_the_link() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let link = site.link(&ann);
    // Concurrent calls of a participant share the link, whatever its clients are; another's do not.
    assert_eq!(site.link(&ann), link);
    assert_eq!(site.link(&Client::of(&site.gateway, ANN)), link);
    assert_ne!(site.link(&Client::of(&site.gateway, BOB)), link);
    // The tool that is there for it does the same on purpose.
    let asked = ann.call("jira_authorize", json!({}));
    assert!(text(&asked).contains(&link), "{asked}");
    assert_eq!(site.service.calls(), 0);
    site.connect(&link, ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    assert_eq!(text(&ann.call("jira_only_user-a", json!({}))), "mine");
    // The other participant has no account by that.
    site.link(&Client::of(&site.gateway, BOB));
    site.recorded("ann", "admitted", "consented to the scopes `read` for test");
    site.recorded("ann", "admitted", "signed in ann at jira");
}

#[test]
fn a_client_of_2025_11_25_gets_the_error_and_is_notified_of_the_end() {
    let site = Site::start();
    let ann = Client::open(&site.gateway, Some(ANN), "/mcp", opens_urls());
    let (stream, bystander) = (
        ann.listen(),
        Client::open(&site.gateway, Some(ANN), "/mcp", opens_urls()),
    );
    let other = bystander.listen();
    let answer = ann.ask(
        "tools/call",
        json!({ "name": "jira_whoami", "arguments": {} }),
    );
    let error = &answer["error"];
    assert_eq!(error["code"], -32042, "{answer}");
    let asked = &error["data"]["elicitations"];
    assert_eq!(asked.as_array().unwrap().len(), 1);
    let (id, url) = (
        asked[0]["elicitationId"].as_str().unwrap(),
        asked[0]["url"].as_str().unwrap(),
    );
    assert_eq!(
        (asked[0]["mode"].as_str(), url),
        (
            Some("url"),
            format!("{}/connect/{id}", site.gateway.url()).as_str()
        )
    );
    assert!(
        asked[0]["message"]
            .as_str()
            .unwrap()
            .starts_with("jira needs your permission.")
    );
    site.connect(url, ANN, "user-a");
    let received = stream.next_of("notifications/elicitation/complete");
    assert_eq!(received["params"], json!({ "elicitationId": id }));
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    // A session that has not asked learns that the list has changed, and nothing of the
    // elicitation.
    assert_eq!(
        bystander.call("jira_whoami", json!({}))["isError"],
        Value::Null
    );
    loop {
        let message = other.next();
        assert_ne!(message["method"], "notifications/elicitation/complete");
        if message["method"] == "notifications/tools/list_changed" {
            break;
        }
    }
}

#[test]
fn a_modern_client_is_asked_and_comes_back() {
    let site = Site::start();
    let call = |token: &str, more: Value| {
        let mut params = json!({ "name": "jira_whoami", "arguments": {},
            "_meta": { "io.modelcontextprotocol/clientCapabilities": opens_urls() } });
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        modern(&site.gateway, Some(token), "tools/call", params).json()
    };
    let asked = |answer: &Value| {
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required", "{answer}");
        let questions = result["inputRequests"].as_object().unwrap();
        assert_eq!(questions.len(), 1);
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!(
            (&question["method"], &question["params"]["mode"]),
            (&json!("elicitation/create"), &json!("url"))
        );
        assert!(
            question["params"].get("elicitationId").is_none(),
            "{question}"
        );
        let url = question["params"]["url"].as_str().unwrap().to_owned();
        (
            key.clone(),
            url,
            result["requestState"].as_str().unwrap().to_owned(),
        )
    };
    let (key, url, state) = asked(&call(ANN, json!({})));
    let mut answers = json!({});
    answers[&key] = json!({ "action": "accept" });
    let back = json!({ "inputResponses": answers, "requestState": state });
    // Accepted, and no token yet: the same again.
    let (_, again, _) = asked(&call(ANN, back.clone()));
    assert_eq!(again, url);
    // The state is the participant's, and for this request.
    let refused = call(BOB, back.clone());
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("requestState"),
        "{refused}"
    );
    let mut other = back.clone();
    other["arguments"] = json!({ "x": 1 });
    assert!(
        call(ANN, other)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("requestState")
    );
    site.connect(&url, ANN, "user-a");
    let answer = call(ANN, back.clone());
    assert_eq!(text(&answer["result"]), "user-a with read", "{answer}");
    // A refusal is the end of it.
    let (key, _, state) = asked(&call(BOB, json!({})));
    let mut answers = json!({});
    answers[&key] = json!({ "action": "decline" });
    let declined = call(
        BOB,
        json!({ "inputResponses": answers, "requestState": state }),
    );
    assert_eq!(declined["result"]["isError"], true, "{declined}");
    assert!(
        text(&declined["result"]).contains("refused to connect"),
        "{declined}"
    );
    // One that opens no URLs gets words.
    let params = json!({ "name": "jira_whoami", "arguments": {} });
    let plain = modern(&site.gateway, Some(BOB), "tools/call", params).json();
    assert!(text(&plain["result"]).contains("/connect/"), "{plain}");
}

#[test]
fn too_few_scopes_lead_to_a_link_for_more() {
    let site = Site::start();
    let ann = site.connected(ANN, "user-a");
    let answer = ann.call("jira_write", json!({}));
    assert_eq!(answer["isError"], true, "{answer}");
    let link = text(&answer)
        .split(' ')
        .find(|word| word.starts_with("http://"))
        .unwrap()
        .to_owned();
    let mut browser = Browser::default();
    let page = site.consent(&mut browser, &link, ANN);
    assert!(
        page.body.contains("<code>read</code>, <code>write</code>"),
        "{}",
        page.body
    );
    site.connect(&link, ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_write", json!({}))),
        "user-a with read write"
    );
}

#[test]
fn a_lost_account_leads_to_a_link_and_the_other_participants_goes_on() {
    let site = Site::start();
    let (ann, bob) = (site.connected(ANN, "user-a"), site.connected(BOB, "user-b"));
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    site.service.revoke("user-a");
    let link = site.link(&ann);
    assert_eq!(
        text(&bob.call("jira_whoami", json!({}))),
        "user-b with read"
    );
    site.connect(&link, ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    // What is kept outlasts the process.
    let Site {
        home,
        gateway,
        service,
    } = site;
    gateway.stop();
    let gateway = Gateway::start_with(&home, &["--config", "portmoot.toml"]);
    let site = Site {
        home,
        gateway,
        service,
    };
    let bob = Client::of(&site.gateway, BOB);
    // A name that the new process has not listed yet.
    assert_eq!(text(&bob.call("jira_only_user-b", json!({}))), "mine");
    let unknown = bob.ask(
        "tools/call",
        json!({ "name": "jira_only_user-a", "arguments": {} }),
    );
    assert_eq!(
        unknown["error"]["data"]["code"], "unknown_target",
        "{unknown}"
    );
}

#[test]
fn without_a_key_to_keep_accounts_with_there_is_no_link() {
    let (home, service) = (Home::new().env("ANN", ANN), Service::start());
    let config = format!(
        "[topics.main]\n[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n\
         [servers.jira]\nurl = {:?}\nera = \"legacy\"\n[servers.jira.auth]\naccount = \"caller\"\n",
        service.url()
    );
    let gateway = Gateway::start(&home, &config);
    let ann = Client::open(&gateway, Some(ANN), "/mcp", opens_urls());
    let answer = ann.ask(
        "tools/call",
        json!({ "name": "jira_whoami", "arguments": {} }),
    );
    assert_eq!(
        answer["error"]["data"]["code"], "upstream_login_needed",
        "{answer}"
    );
    assert!(!answer.to_string().contains("/connect/"), "{answer}");
}
