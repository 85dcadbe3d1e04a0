//! Servers of which only one process can run: all callers share it.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::asked;
use super::starts::{all_ended, marked, running};
use crate::home::Home;
use crate::support::{Client, Gateway, until};

/// A gateway with `one_port.py`, which is not used yet.
#[track_caller]
fn gateway(home: &Home) -> Gateway {
    home.write("one_port.py", include_str!("../one_port.py"));
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let command = format!(
        "python3 {} {free}",
        home.path().join("one_port.py").display()
    );
    let config = format!(
        "[server]\nidle_stop = \"1s\"\nprobes_at_once = 0\n{}",
        marked(home, "locked", &command)
    );
    let gateway = Gateway::start(home, &config);
    let client = Client::plain(&gateway);
    until("it is listed", || {
        client
            .names("tools")
            .contains(&"locked_port".to_owned())
            .then_some(())
    });
    assert_eq!(client.delete(), 204);
    all_ended(home);
    gateway
}

/// The process that answers this client.
#[track_caller]
fn process(client: &Client) -> u64 {
    let called = client.call("locked_port", json!({}));
    assert_ne!(called["isError"], true, "{called}");
    called["content"][0]["text"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("{called}"))
}

/// Every one of these clients is answered, again and again, by the one process.
#[track_caller]
fn all_are_answered(home: &Home, clients: &[&Client]) {
    for _ in 0..3 {
        let answered: Vec<u64> = clients.iter().map(|client| process(client)).collect();
        assert_eq!(running(home, "locked"), [answered[0]]);
        assert!(
            answered.iter().all(|pid| *pid == answered[0]),
            "{answered:?}"
        );
    }
}

/// The server's entry says that all clients share one process, and the log says it once.
#[track_caller]
fn it_is_said(home: &Home, gateway: &Gateway) {
    assert!(
        gateway.server("locked")["shares_one"].is_string(),
        "{}",
        gateway.server("locked")
    );
    let shown = home
        .run(&["servers", "show", "locked", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    assert!(shown.contains("shares_one"), "{shown}");
    let said = gateway
        .log()
        .lines()
        .filter(|line| line.contains("all clients share one"))
        .count();
    assert_eq!(said, 1, "{}", gateway.log());
}

#[test]
fn a_client_with_questions_shares_the_process_of_a_plain_one() {
    let home = Home::new();
    let gateway = gateway(&home);
    let plain = Client::plain(&gateway);
    process(&plain);
    let asks = asked(&gateway);
    all_are_answered(&home, &[&asks, &plain]);
    it_is_said(&home, &gateway);
}

#[test]
fn a_plain_client_shares_the_process_of_one_with_questions() {
    let home = Home::new();
    let gateway = gateway(&home);
    let asks = asked(&gateway);
    process(&asks);
    let plain = Client::plain(&gateway);
    all_are_answered(&home, &[&plain, &asks]);
    it_is_said(&home, &gateway);
}

#[test]
fn two_clients_with_questions_share_a_process() {
    let home = Home::new();
    let gateway = gateway(&home);
    let (one, other) = (asked(&gateway), asked(&gateway));
    process(&one);
    all_are_answered(&home, &[&other, &one]);
    it_is_said(&home, &gateway);
    assert_eq!((one.delete(), other.delete()), (204, 204));
    all_ended(&home);
}

#[test]
fn the_only_client_is_asked() {
    let home = Home::new();
    let gateway = gateway(&home);
    let client = asked(&gateway);
    let call = client.begin_call("locked_form", json!({}));
    let question = call.next_of("elicitation/create");
    client.answer(
        &question,
        json!({ "action": "accept", "content": { "name": "Ada" } }),
    );
    let answer = call.next();
    assert!(answer.to_string().contains("Ada"), "{answer}");
}

#[test]
fn a_call_that_would_ask_is_answered_where_no_client_can_be_asked() {
    let home = Home::new();
    let gateway = gateway(&home);
    let (plain, asks) = (Client::plain(&gateway), asked(&gateway));
    process(&plain);
    process(&asks);
    let answer: Value = asks.call("locked_form", json!({}));
    assert!(answer["content"][0]["text"].is_string(), "{answer}");
}
