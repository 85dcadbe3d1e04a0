//! Admission tests: reported capabilities, full topics, rate limits of guests, token changes.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "chat", "portmoot/tokens"];

#[test]
fn welcomes_and_refusals_name_the_addressees_of_narrowed_capabilities() {
    let (home, config) = people(&[("scout", &["narrow", "chat"]), ("boss", FULL)]);
    let narrow = "{ kind = \"mcp/request:tools/call:e*\", to = [\"one\"] }";
    let servers = fixture("one", &[]) + &fixture("two", &[]);
    let gateway = Gateway::start(&home, &(config.replace("\"narrow\"", narrow) + &servers));
    let mut boss = Socket::enter(&gateway, "boss", "");
    let (mut scout, welcome) = Socket::welcomed(&gateway, "scout", "");
    let you = json!({
        "id": "scout", "capabilities": ["mcp/request:tools/call:e*", "chat"],
        "narrowed": [{ "kind": "mcp/request:tools/call:e*", "to": ["one"] }]
    });
    assert_eq!(welcome["payload"]["you"], you);
    assert_eq!(boss.receive()["payload"]["participant"], you);
    scout.call("c1", &["two"], "echo", json!({ "text": "hi" }));
    let notice = scout.refused("c1", "capability_violation");
    assert_eq!(notice["payload"]["narrowed"], you["narrowed"], "{notice}");
    // Without narrowed capabilities the welcome is as the specification prints it.
    let boss = &welcome["payload"]["participants"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == "boss");
    assert_eq!(boss.unwrap().as_object().unwrap().len(), 2);
}

#[test]
fn a_full_topic_refuses_with_a_reason() {
    let (home, config) = people(&[("one", FULL), ("two", FULL)]);
    // The gateway itself counts as a participant.
    let gateway = Gateway::start(
        &home,
        &(config + "[server.limits]\ntopic_participants_max = 2\n"),
    );
    let one = Socket::enter(&gateway, "one", "");
    assert_eq!(Socket::open(&gateway, "two", "").closed(), 4005);
    one.leave();
    until("there is room again", || {
        let mut two = Socket::open(&gateway, "two", "");
        let frame = two.next().unwrap();
        frame.code().is_none().then_some(())
    });
}

#[test]
fn requests_without_a_token_are_rate_limited() {
    let (home, config) = people(&[("boss", FULL)]);
    let topic =
        "[topics.main]\nanonymous = \"guest\"\nanonymous_rate = { limit = \"1/min\", burst = 5 }\n";
    let profile = "[profiles.guest]\ncapabilities = [\"mcp/request:tools/call:tools_echo\"]\n";
    let gateway = Gateway::start(&home, &(config + topic + profile + &fixture("tools", &[])));
    let guest = Client::open(&gateway, None, "/mcp", json!({}));
    let asked: Vec<Value> = (0..8).map(|_| guest.ask("tools/list", json!({}))).collect();
    assert!(asked[0]["result"].is_object(), "{asked:?}");
    let last = &asked[7]["error"];
    assert!(
        last["message"]
            .as_str()
            .is_some_and(|why| why.contains("too many requests")),
        "{asked:?}"
    );
    // Other participants are not affected.
    let boss = Client::of(&gateway, &token("boss"));
    assert!((0..8).all(|_| boss.ask("tools/list", json!({}))["result"].is_object()));
}

#[test]
fn a_call_ended_by_a_revocation_is_recorded_as_refused() {
    let (home, config) = people(&[("ann", &["mcp/request:tools/call:tools_*"])]);
    let config = config + &fixture("tools", &[]);
    let gateway = Gateway::start(&home, &config);
    let ann = Client::of(&gateway, &token("ann"));
    let open = ann.begin_call("tools_hang", json!({}));
    let (audit_log, kind) = (AuditLog(&home), "mcp/request:tools/call:tools_hang");
    let admitted = audit_log.has("ann", kind, "admitted", "");
    home.write("portmoot.toml", &config.replace("tools_*", "tools_echo"));
    gateway.signal("HUP");
    let answer = open.next();
    assert!(answer["error"].is_object(), "{answer}");
    let refused = audit_log.has("ann", kind, "refused", "withdrawn");
    assert_eq!(refused["operation"], admitted["operation"]);
    assert!(refused["operation"].is_string(), "{refused}");
}

#[test]
fn concurrent_token_changes_are_in_force_when_they_are_confirmed() {
    let (home, config) = people(&[("boss", FULL)]);
    let gateway = Gateway::start(&home, &config);
    let boss = format!("Bearer {}", token("boss"));
    let headers = [
        ("authorization", boss.as_str()),
        ("content-type", "application/json"),
    ];
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (gateway, headers) = (&gateway, &headers);
            scope.spawn(move || {
                let mut api = Connection::open(gateway.address());
                for round in 0..20 {
                    let body = json!({ "name": name, "capabilities": ["chat"] }).to_string();
                    let issued = api.exchange("POST", "/api/v1/tokens", headers, &body);
                    assert_eq!(issued.status, 201, "{name} {round}: {issued:?}");
                    let token = issued.json()["token"].as_str().unwrap().to_owned();
                    assert_ne!(
                        gateway.get("/api/v1/tools", Some(&token)).status,
                        401,
                        "{name} {round}"
                    );
                    let path = format!("/api/v1/tokens/{name}");
                    assert_eq!(
                        api.exchange("DELETE", &path, headers, "").status,
                        200,
                        "{name} {round}"
                    );
                    assert_eq!(
                        gateway.get("/api/v1/tools", Some(&token)).status,
                        401,
                        "{name} {round}"
                    );
                }
            });
        }
    });
}
