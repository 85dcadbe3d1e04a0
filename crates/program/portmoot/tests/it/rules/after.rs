//! Rules that ask for an earlier call: a bank pays what its clerk has registered before.

use serde_json::json;

use super::bank::{Bank, FAILING, REFUSED, UP_TO_100, is_paid, paying, result_of};
use crate::http::Events;
use crate::peer::Peer;
use crate::support::{Client, until};
use crate::ws::{Socket, token};

/// A bank beside a clerk, which registers amounts by its tool `pay`.
pub(super) struct Office {
    clerk: Peer,
    pub(super) bank: Bank,
}

/// Only after the clerk has registered the same amount within an hour.
pub(super) const REGISTERED: &str = "after = [{ kind = \"mcp/request:tools/call:pay\", to = \"clerk\", \
    within = \"1h\", same = { \"/amount\" = \"/amount\" } }]";

impl Office {
    pub(super) fn new(rules: impl FnOnce(&Bank) -> String) -> Office {
        let clerk = paying(std::sync::Arc::default());
        let bank = Bank::beside(&clerk.child("clerk", "clerk"));
        bank.gateway.ready("clerk");
        let rules = rules(&bank);
        bank.put(&rules);
        Office { clerk, bank }
    }

    /// One where payer's calls are asked about that were not registered.
    fn asking() -> Office {
        Office::new(|_| {
            format!(
                "[[rule]]\nid = \"r1\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
                 kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"*\"]\n\
                 {REGISTERED}\n"
            )
        })
    }

    pub(super) fn registers(&self, who: &str, amount: u64) -> Events {
        self.bank.begins(who, "clerk_pay", amount)
    }
}

#[test]
fn a_rule_approves_what_was_registered_before_by_the_same_proposer() {
    let mut office =
        Office::new(|bank| bank.approving("r1", &format!("uses = 9\n{REGISTERED}"), UP_TO_100));
    office.bank.asks(5);
    // Scout may only propose this too. As it is edited, another amount is registered.
    let call = office.registers("scout", 4);
    let proposal = office.bank.pending();
    let id = proposal["id"].as_str().unwrap();
    let edited = json!({ "digest": proposal["digest"], "arguments": { "amount": 5 } });
    let path = format!("proposals/{id}/approve");
    office.bank.api("POST", &path, &edited.to_string());
    is_paid(&result_of(&call), 5);
    office.bank.asks(4);
    office.bank.is_paid(5);
    for signal in ["TERM", "KILL"] {
        office.bank.restart(signal);
        office.bank.gateway.ready("clerk");
        office.bank.is_paid(5);
        office.bank.asks(4);
    }
    // One registers nothing for another.
    is_paid(&result_of(&office.registers("payer", 6)), 6);
    office.bank.asks(6);
    let explained = {
        let _call = office.bank.propose(6);
        let proposal = office.bank.pending();
        let explained = office.bank.explain(&proposal);
        office.bank.reject(&proposal);
        explained
    };
    let check = "pay of clerk with the same amount was answered to the proposer within an hour";
    assert!(explained.contains(check), "{explained}");
}

#[test]
fn a_direct_call_that_was_not_registered_before_waits() {
    let office = Office::asking();
    let bank = &office.bank;
    bank.asks_for("payer", "bank_pay", 7);
    is_paid(&result_of(&office.registers("payer", 7)), 7);
    bank.is_paid_by("payer", "bank_pay", 7);
    bank.asks_for("payer", "bank_pay", 8);
}

#[test]
fn a_call_that_was_answered_with_an_error_registers_nothing() {
    let office = Office::asking();
    for amount in [FAILING, REFUSED] {
        office.registers("payer", amount).rest();
        office.bank.asks_for("payer", "bank_pay", amount);
    }
    assert_eq!(office.clerk.calls("pay"), 2);
}

#[test]
fn requests_in_the_room_register_too() {
    let office = Office::asking();
    let (mut payer, _) =
        Socket::welcomed(&office.bank.gateway, "payer", "?mode=directed&echo=false");
    let params = json!({ "name": "pay", "arguments": { "amount": 9 } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let kind = "mcp/request:tools/call:pay";
    payer.send(kind, "m1", &["bank"], json!({}), &request);
    payer.receive_until(|one| one["kind"] == "system/error");
    for (id, to) in [("m2", "clerk"), ("m3", "bank")] {
        payer.send(kind, id, &[to], json!({}), &request);
        let paid = payer.receive_until(|one| one["correlation_id"] == id);
        is_paid(&paid["payload"]["result"], 9);
    }
    assert_eq!(office.bank.server.calls("pay"), 1);
}

#[test]
fn the_next_call_of_a_client_that_has_the_answer_knows_it() {
    let office = Office::asking();
    let payer = Client::of(&office.bank.gateway, &token("payer"));
    for amount in 10..40 {
        let call = json!({ "amount": amount });
        is_paid(&payer.call("clerk_pay", call.clone()), amount);
        is_paid(&payer.call("bank_pay", call), amount);
    }
    until("all is paid", || {
        (office.bank.server.calls("pay") == 30).then_some(())
    });
}
