//! A gateway that is killed at each step of a rule's life, or whose disk fails there: no use counts twice
//! or not at all, no rule is in force that was not accepted, and none is lost whose acceptance was
//! answered.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::bank::{Bank, UNANSWERED, UP_TO_100};
use super::past::approvals;
use super::renewed::next;
use crate::path_cases;
use crate::support::until;
use crate::ws::token;

impl Bank {
    /// A participant sends a request of the API, whose answer is never read.
    fn sends(&self, who: &str, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.gateway.address()).unwrap();
        let body = body.to_string();
        let request = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nhost: {}\r\n\
             authorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.gateway.address(),
            token(who),
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn journal(&self) -> String {
        let path = self.home.path().join("data/journal.jsonl");
        std::fs::read_to_string(path).unwrap()
    }

    /// Waits until the journal has a record.
    pub(super) fn has_written(&self, record: &str) {
        until("it is written", || {
            self.journal().contains(record).then_some(())
        });
    }

    /// Kills the gateway while it has a request of ann's about rules, or once the journal has this
    /// record of it.
    fn is_killed_during(&mut self, path: &str, record: Option<&str>) {
        let sent = self.sends("ann", &format!("topics/main/rules{path}"), &json!({}));
        self.is_killed_once(record);
        drop(sent);
    }

    /// Kills the gateway, at once or when the journal has this record.
    fn is_killed_once(&mut self, record: Option<&str>) {
        if let Some(record) = record {
            self.has_written(record);
        }
        self.restart("KILL");
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

/// The record of a change of a rule's life.
fn record(change: &str, name: &str) -> String {
    format!("\"record\":\"{change}\",\"topic\":\"main\",\"rule\":\"{name}\"")
}

fn accepted(name: &str) -> String {
    record("accepted", name)
}

fn accept(offer: &Value) -> String {
    format!("/offers/{}/accept", offer["digest"].as_str().unwrap())
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
        let record = record("ended", &name);
        bank.is_killed_during(&format!("/{name}/end"), is_written.then_some(&record));
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

#[test]
fn a_crash_while_a_rejection_suspends_a_rule_leaves_both_or_neither() {
    for is_written in [false, true] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let name = bank.accepts_checked(&[]);
        bank.is_paid(20);
        // Of another proposer, about which people decide.
        let call = bank.begins("dave", "bank_pay", 30);
        let proposal = bank.pending();
        let path = format!("proposals/{}/reject", proposal["id"].as_str().unwrap());
        let sent = bank.sends("boss", &path, &json!({}));
        let record = record("suspended", &name);
        bank.is_killed_once(is_written.then_some(&record));
        drop((sent, call));
        let is_rejected = bank.proposal_of(30)["state"] == "rejected";
        assert!(is_rejected || !is_written);
        let rule = bank.rule(&name);
        assert_eq!(rule["state"] == "suspended", is_rejected, "{rule}");
        if !is_rejected {
            bank.is_paid(21);
            bank.reject(&proposal);
        }
        for _ in 0..2 {
            assert_eq!(bank.rule(&name)["state"], "suspended");
            bank.asks(22);
            bank.restart("KILL");
        }
        assert_eq!(bank.used(&name), 1 + u64::from(!is_rejected));
    }
}

#[test]
fn a_crash_while_an_offer_is_dismissed_leaves_it_or_takes_it_away() {
    for is_written in [false, true] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let offer = bank.only_offer("ann");
        let path = format!("/offers/{}/dismiss", offer["digest"].as_str().unwrap());
        let record = "\"record\":\"dismissed\",\"topic\":\"main\"";
        bank.is_killed_during(&path, is_written.then_some(record));
        let left = bank.offers("ann");
        assert!(
            left.is_empty() || !is_written && left == [offer],
            "{left:?}"
        );
        assert_eq!(bank.in_force(), [""; 0]);
        let call = bank.propose(20);
        assert_eq!(bank.pending()["params"]["arguments"]["amount"], 20);
        drop(call);
    }
}

#[test]
fn a_crash_while_a_rule_is_added_by_hand_leaves_it_in_force_or_not_there() {
    for is_written in [false, true] {
        let mut bank = Bank::new();
        let rule = json!({ "rule": bank.approving("r1", "uses = 2", UP_TO_100) });
        let sent = bank.sends("ann", "topics/main/rules", &rule);
        let record = accepted("r1.1");
        bank.is_killed_once(is_written.then_some(&record));
        drop(sent);
        let is_there = bank.in_force() == ["r1.1"];
        assert!(is_there || !is_written);
        if is_there {
            bank.is_paid(20);
            bank.is_paid(21);
        }
        bank.asks(22);
    }
}

/// Each record of a use, with an amount at which there is one: a call that is never answered, and one
/// that is over.
const OF_USES: [(&str, u64); 2] = [("charged", UNANSWERED), ("use_ended", 20)];

#[test]
fn a_gateway_killed_at_each_record_of_a_use_counts_it_once_and_runs_it_once() {
    for (written, amount) in OF_USES {
        let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 2", UP_TO_100));
        let call = bank.propose(amount);
        let record = format!("\"record\":\"{written}\",\"topic\":\"main\"");
        bank.is_killed_once(Some(&record));
        drop(call);
        let ran = bank.server.calls("pay");
        assert!(ran <= 1, "{written}");
        assert_eq!(bank.used("r1.1"), 1, "{written}");
        let state = &bank.proposal_of(amount)["state"];
        // With its end the answer is on disk.
        let ended = if written == "use_ended" {
            "completed"
        } else {
            "failed"
        };
        assert_eq!(state, ended, "{written}");
        bank.restart("TERM");
        assert_eq!(
            bank.server.calls("pay"),
            ran,
            "{written}: it is not run again"
        );
        bank.is_paid(30);
        bank.asks(31);
    }
}

#[test]
fn a_rejection_that_the_disk_does_not_take_leaves_the_rule_as_it_was_once_the_disk_does() {
    let mut bank = Bank::beside("[audit]\nenabled = false\n");
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[]);
    bank.is_paid(20);
    bank.gateway.signal("TERM");
    bank.gateway.wait();
    bank.gateway = path_cases::start(&bank.home);
    bank.gateway.ready("bank");
    let call = bank.begins("dave", "bank_pay", 30);
    let proposal = bank.pending();
    path_cases::fill_disk(&bank.gateway);
    let path = format!("proposals/{}/reject", proposal["id"].as_str().unwrap());
    let (status, refused) = bank.asks_api("boss", &path, &json!({}));
    assert_eq!((status, &refused["code"]), (503, &json!("log_unavailable")));
    // Suspended for as long as it may have been rejected, and nothing is used.
    assert_eq!(bank.rule(&name)["state"], "suspended");
    let failed = bank.propose(21);
    failed.rest();
    assert_eq!(bank.server.calls("pay"), 1);
    bank.restart("KILL");
    drop(call);
    assert_eq!(bank.proposal_of(30)["state"], "pending");
    assert_eq!(bank.in_force(), [name.as_str()]);
    bank.is_paid(22);
    assert_eq!(bank.used(&name), 2);
    bank.reject(&proposal);
    assert_eq!(bank.rule(&name)["state"], "suspended");
    bank.asks(23);
}
