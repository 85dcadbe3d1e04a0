//! Rules that ask or reject beyond a count: "up to 500 a day directly, above as a proposal".

use serde_json::{Value, json};

use super::bank::{Bank, is_paid, result_of};
use super::direct::pays_directly;
use crate::audit_log::AuditLog;
use crate::first_use::blocks_of;
use crate::support::{Client, until};
use crate::ws::{Socket, token};

const KIND: &str = "mcp/request:tools/call:pay";

/// A rule of boss's about calls of everyone's, which acts unless these guards hold.
fn beyond(decision: &str, guards: &str) -> String {
    format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"boss\"\ndecision = \"{decision}\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"*\"]\n{guards}\n"
    )
}

/// A bank where up to 500 a day are paid directly.
fn bank() -> Bank {
    Bank::with(|_| {
        beyond(
            "ask",
            "sum = [{ of = \"/amount\", max = 500, within = \"1d\" }]",
        )
    })
}

#[test]
fn up_to_500_a_day_are_paid_directly_also_after_a_restart() {
    let mut bank = bank();
    pays_directly(&bank, 300);
    // What waits or is rejected is not paid, and not counted.
    bank.asks_for("payer", "bank_pay", 201);
    pays_directly(&bank, 190);
    for signal in ["TERM", "KILL"] {
        bank.restart(signal);
        bank.asks_for("payer", "bank_pay", 11);
    }
    pays_directly(&bank, 10);
    bank.asks_for("payer", "bank_pay", 1);
    let why = "by rule r1.1 of boss";
    AuditLog(&bank.home).has("payer", "mcp/request:tools/call:bank_pay", "held", why);
}

#[test]
fn calls_at_once_do_not_exceed_the_sum_together() {
    let bank = bank();
    let calls: Vec<_> = (0..8)
        .map(|_| bank.begins("payer", "bank_pay", 100))
        .collect();
    for _ in 0..3 {
        bank.reject(&bank.pending());
    }
    let results: Vec<_> = calls.iter().map(result_of).collect();
    let paid = results.iter().filter(|result| result["isError"] != true);
    assert_eq!(
        (paid.count(), bank.server.calls("pay")),
        (5, 5),
        "{results:?}"
    );
}

#[test]
fn what_people_approve_is_counted_with_what_runs_directly() {
    let bank = bank();
    // Of scout, which may only propose, as boss edits it.
    let call = bank.propose(900);
    let proposal = bank.pending();
    let id = proposal["id"].as_str().unwrap();
    let edited = json!({ "digest": proposal["digest"], "arguments": { "amount": 450 } });
    bank.api(
        "POST",
        &format!("proposals/{id}/approve"),
        &edited.to_string(),
    );
    is_paid(&result_of(&call), 450);
    bank.asks_for("payer", "bank_pay", 51);
    pays_directly(&bank, 50);
    bank.asks_for("payer", "bank_pay", 1);
}

#[test]
fn requests_in_the_room_are_counted_and_those_that_fulfil_once() {
    let bank = bank();
    let (mut ann, _) = Socket::welcomed(&bank.gateway, "ann", "?mode=directed&echo=false");
    let mut send = |id: &str, more: Value, amount: u64| {
        let params = json!({ "name": "pay", "arguments": { "amount": amount } });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        ann.send(KIND, id, &["bank"], more.clone(), &request);
        if id == "m1" {
            // Once more, as after a connection that broke: the gateway does not act on it.
            ann.send(KIND, id, &["bank"], more, &request);
        }
        ann.receive_until(|one| one["correlation_id"] == id || one["kind"] == "system/error")
    };
    let paid = send("m1", json!({}), 100);
    is_paid(&paid["payload"]["result"], 100);
    let mut scout = bank.proposes("scout", "p1", &["bank"], "pay");
    until("it waits", || Some(bank.pending()));
    // Of scout's proposal of 9, which is counted once.
    let paid = send("f1", json!({ "correlation_id": "p1" }), 9);
    is_paid(&paid["payload"]["result"], 9);
    scout.receive_until(|one| one.to_string().contains("paid 9"));
    bank.asks_for("payer", "bank_pay", 392);
    let refused = send("m2", json!({}), 392);
    assert_eq!(
        refused["payload"]["error"], "capability_violation",
        "{refused}"
    );
    let paid = send("m3", json!({}), 391);
    is_paid(&paid["payload"]["result"], 391);
}

#[test]
fn an_envelope_for_two_that_one_rule_would_count_twice_is_refused() {
    let mint = super::bank::paying(std::sync::Arc::default());
    let bank = Bank::beside(&mint.child("mint", "mint"));
    bank.gateway.ready("mint");
    bank.put(&beyond("ask", "rate = \"9/h\"").replace("to = \"bank\"\n", ""));
    let (mut ann, _) = Socket::welcomed(&bank.gateway, "ann", "?mode=directed&echo=false");
    let params = json!({ "name": "pay", "arguments": { "amount": 1 } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    ann.send(KIND, "m1", &["bank", "mint"], json!({}), &request);
    let refused = ann.receive_until(|one| one["kind"] == "system/error");
    assert_eq!(
        refused["payload"]["error"], "capability_violation",
        "{refused}"
    );
    ann.send(KIND, "m2", &["mint"], json!({}), &request);
    let paid = ann.receive_until(|one| one["correlation_id"] == "m2");
    is_paid(&paid["payload"]["result"], 1);
    assert_eq!((bank.server.calls("pay"), mint.calls("pay")), (0, 1));
}

#[test]
fn a_rule_rejects_beyond_its_rate_and_counts_no_call_that_is_refused() {
    let bank = Bank::with(|_| beyond("reject", "rate = \"2/h\""));
    let client = |who: &str| Client::of(&bank.gateway, &token(who));
    let call = |amount: u64| json!({ "name": "bank_pay", "arguments": { "amount": amount } });
    pays_directly(&bank, 1);
    pays_directly(&bank, 2);
    let refused = client("payer").ask("tools/call", call(3));
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(
        words.starts_with("rejected by rule r1.1 of boss: "),
        "{refused}"
    );
    assert!(
        words.contains("unless at most 2 calls an hour"),
        "{refused}"
    );
    assert_eq!(bank.server.calls("pay"), 2);
}

#[test]
fn the_rule_of_the_page_that_counts_is_in_force_as_the_page_shows_it() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let block = |language: &str, part: &str| {
        let mut blocks = blocks_of(&page, language).into_iter();
        blocks.find(|block| block.contains(part)).unwrap()
    };
    let bank = Bank::with(|_| block("toml,rule", "id = \"r3\""));
    let shown = block("console", "r3.1  in force");
    let (_, shown) = shown.split_once('\n').unwrap();
    let listed = bank.portmoot(&["rules", "ls"], 0);
    assert_eq!(shown.trim_end(), listed.trim_end());
    pays_directly(&bank, 300);
    pays_directly(&bank, 200);
    bank.asks_for("payer", "bank_pay", 1);
}
