//! A gateway that is killed at each step of a learned rule's life: no use counts twice or not at all, no
//! rule is in force that was not accepted, and none is lost whose acceptance was answered.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::bank::{Bank, UNANSWERED};
use super::past::approvals;
use super::renewed::next;
use crate::support::until;
use crate::ws::token;

impl Bank {
    /// Ann sends a request of the API, whose answer is never read.
    fn sends(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.gateway.address()).unwrap();
        let request = format!(
            "POST /api/v1/topics/main/rules/{path} HTTP/1.1\r\nhost: {}\r\n\
             authorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: 2\r\n\r\n{{}}",
            self.gateway.address(),
            token("ann")
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn journal(&self) -> String {
        let path = self.home.path().join("data/journal.jsonl");
        std::fs::read_to_string(path).unwrap()
    }

    /// Kills the gateway while it has a request of ann's, or once the journal has this record of it.
    fn is_killed_during(&mut self, path: &str, record: Option<&str>) {
        let sent = self.sends(path);
        if let Some(record) = record {
            until("it is written", || {
                self.journal().contains(record).then_some(())
            });
        }
        self.restart("KILL");
        drop(sent);
    }

    /// The names of the rules in force.
    fn in_force(&self) -> Vec<String> {
        let all = self.rules();
        let in_force = all.iter().filter(|rule| rule["state"] == "in force");
        in_force
            .map(|rule| rule["rule"].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    fn used(&self, name: &str) -> u64 {
        self.rule(name)["used"].as_u64().unwrap()
    }
}

/// The record of an acceptance.
fn accepted(name: &str) -> String {
    format!("\"record\":\"accepted\",\"topic\":\"main\",\"rule\":\"{name}\"")
}

fn accept(offer: &Value) -> String {
    format!("offers/{}/accept", offer["digest"].as_str().unwrap())
}

#[test]
fn a_crash_while_a_rule_is_accepted_leaves_it_in_force_or_offered() {
    for is_written in [false, true] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let offer = bank.only_offer("ann");
        // An offer is nothing.
        bank.restart("KILL");
        assert_eq!(bank.in_force(), [""; 0]);
        assert_eq!(bank.only_offer("ann"), offer);
        let name = offer["rule"].as_str().unwrap();
        bank.draws(name, &[]);
        let record = accepted(name);
        bank.is_killed_during(&accept(&offer), is_written.then_some(&record));
        let in_force = bank.in_force() == [name];
        assert!(in_force || !is_written);
        if in_force {
            assert_eq!(bank.offers("ann"), [json!(null); 0]);
            bank.is_paid(20);
        } else {
            assert_eq!(bank.only_offer("ann"), offer);
            let call = bank.propose(20);
            assert_eq!(bank.pending()["params"]["arguments"]["amount"], 20);
            drop(call);
        }
    }
}

#[test]
fn a_killed_gateway_counts_each_use_once_and_keeps_what_was_accepted() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[2]);
    bank.restart("KILL");
    assert_eq!(bank.in_force(), [name.as_str()], "it was answered");
    // Between decision and answer.
    let call = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.restart("KILL");
    drop(call);
    assert_eq!((bank.used(&name), bank.server.calls("pay")), (1, 1));
    bank.is_paid(20);
    bank.restart("KILL");
    assert_eq!((bank.used(&name), bank.server.calls("pay")), (2, 2));
    // While a spot check waits, and after its decision.
    let (call, proposal) = bank.is_left(21);
    bank.restart("KILL");
    drop(call);
    assert_eq!(bank.pending()["id"], proposal["id"]);
    assert_eq!((bank.used(&name), bank.server.calls("pay")), (2, 2));
    bank.approve(&proposal);
    until("it was paid", || {
        (bank.server.calls("pay") == 3).then_some(())
    });
    bank.restart("KILL");
    let rule = bank.rule(&name);
    let counts = ["used", "spot_checks", "spot_checks_agreed"].map(|key| rule[key].clone());
    assert_eq!(counts, [2, 1, 1], "{rule}");
    // It is no spot check twice, and is not owed.
    for amount in 22..26 {
        bank.is_paid(amount);
    }
    bank.restart("KILL");
    assert_eq!(bank.used(&name), 6);
    assert_eq!(bank.server.calls("pay"), 7);
}

#[test]
fn a_crash_while_a_rule_is_renewed_leaves_one_version_in_force() {
    for is_written in [false, true] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let name = bank.accepts_checked(&[]);
        for amount in 20..26 {
            bank.is_paid(amount);
        }
        let offer = bank.renewal_of(&name);
        let record = accepted(&next(&name));
        bank.is_killed_during(&accept(&offer), is_written.then_some(&record));
        let rules = bank.rules();
        let [rule] = rules.as_slice() else {
            panic!("{rules:?}");
        };
        let is_next = rule["rule"] == next(&name);
        assert!(is_next || !is_written, "{rule}");
        let [used, left] = if is_next { [0, 10] } else { [6, 2] };
        assert_eq!([&rule["used"], &rule["left"]], [used, left], "{rule}");
        if !is_next {
            assert_eq!(bank.renewal_of(&name)["digest"], offer["digest"]);
            bank.renews(&name);
            bank.restart("KILL");
        }
        assert_eq!(bank.in_force(), [next(&name)]);
        bank.is_paid(30);
    }
}

#[test]
fn a_crash_while_a_rule_is_ended_leaves_it_as_it_was_or_ends_it() {
    for is_written in [false, true] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let name = bank.accepts_checked(&[]);
        bank.is_paid(20);
        let record = format!("\"record\":\"ended\",\"topic\":\"main\",\"rule\":\"{name}\"");
        bank.is_killed_during(&format!("{name}/end"), is_written.then_some(&record));
        let is_there = bank.in_force() == [name.as_str()];
        assert!(!(is_there && is_written));
        if is_there {
            assert_eq!(bank.used(&name), 1);
            assert_eq!(bank.ends("ann", &name).0, 200);
            bank.restart("KILL");
        }
        assert_eq!(bank.rules().len(), 0);
        assert_eq!(bank.offers("ann"), [json!(null); 0]);
        bank.asks(21);
        assert_eq!(bank.server.calls("pay"), 1);
    }
}
