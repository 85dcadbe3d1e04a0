//! Capabilities in shadow through the running binary.

use serde_json::{Value, json};

use super::bank::Bank;
use super::direct::{ABOVE_100, pays_directly};
use crate::audit_log::AuditLog;
use crate::first_use::blocks_of;
use crate::support::{Client, until};
use crate::ws::token;

const PAYER: &str = "capabilities = [\"mcp/proposal:*\", \"mcp/request:*\"]";
const CALL: &str = "mcp/request:tools/call:bank_pay";
const PROPOSAL: &str = "mcp/proposal:tools/call:pay";
const REFUSED: &str = "would have been refused";
const HELD: &str = "would have become a proposal";
const ALLOWED: &str = "would have been allowed";

impl Bank {
    /// Gives a participant capabilities in shadow.
    #[track_caller]
    fn shadows(&mut self, who: &str, set: &str) {
        let table = format!("[participants.{who}]\n");
        let more = format!("{table}shadow_capabilities = {set}\n");
        self.change(&table, &more);
        until("it has a set in shadow", || {
            self.in_shadow(who).is_object().then_some(())
        });
    }

    /// What the set in shadow of a participant would have decided.
    fn in_shadow(&self, who: &str) -> Value {
        let can = self.api("GET", &format!("participants/{who}/can"), "");
        can["topics"][0]["shadow"].clone()
    }

    /// Waits for the counts of a participant: acts, refused, held, allowed.
    #[track_caller]
    fn counts(&self, who: &str, counts: [u64; 4]) {
        until(&format!("{who} {counts:?}"), || {
            let would = self.in_shadow(who);
            let now =
                ["acts", "refused", "held", "allowed"].map(|key| would[key].as_u64().unwrap());
            (now == counts).then_some(())
        });
    }
}

#[test]
fn capabilities_in_shadow_record_what_they_would_decide_otherwise() {
    let mut bank = Bank::new();
    bank.shadows("payer", "[\"mcp/proposal:*\"]");
    bank.shadows("scout", "[\"mcp/request:*\"]");
    bank.shadows("teller", "[\"mcp/proposal:tools/call:*\"]");
    bank.shadows("boss", "[\"chat\"]");
    let log = AuditLog(&bank.home);
    // It runs all the same.
    pays_directly(&bank, 10);
    log.comes_to(1, "payer", CALL, "shadow", HELD);
    bank.counts("payer", [1, 0, 1, 0]);
    // A call that waits all the same, and the decision about it.
    bank.asks(11);
    log.comes_to(1, "scout", CALL, "shadow", ALLOWED);
    log.comes_to(1, "boss", PROPOSAL, "shadow", REFUSED);
    bank.counts("scout", [1, 0, 0, 1]);
    bank.counts("boss", [1, 1, 0, 0]);
    // An envelope that is admitted.
    let _scout = bank.proposes("scout", "p1", &["bank"], "pay");
    bank.waits("bank", "pay");
    log.comes_to(1, "scout", PROPOSAL, "shadow", REFUSED);
    bank.counts("scout", [2, 1, 0, 1]);
    // A call that is refused all the same.
    let client = Client::of(&bank.gateway, &token("teller"));
    let refused = client.ask(
        "tools/call",
        json!({ "name": "bank_pay", "arguments": { "amount": 12 } }),
    );
    assert!(refused.get("error").is_some(), "{refused}");
    log.comes_to(1, "teller", CALL, "shadow", HELD);
    bank.counts("teller", [1, 0, 1, 0]);
    assert_eq!(bank.server.calls("pay"), 1);
    log.is_whole();
    // What is granted to a participant is in the set too, and then nothing differs.
    bank.portmoot(
        &[
            "participants",
            "grant",
            "payer",
            "mcp/request:tools/call:bank_pay",
        ],
        0,
    );
    pays_directly(&bank, 13);
    bank.counts("payer", [2, 0, 1, 0]);
    // Another set begins anew.
    bank.change(
        "shadow_capabilities = [\"mcp/proposal:*\"]",
        "shadow_capabilities = [\"chat\"]",
    );
    bank.counts("payer", [0, 0, 0, 0]);
}

#[test]
fn without_capabilities_in_shadow_nothing_is_recorded_of_them() {
    let mut bank = Bank::new();
    bank.shadows("dave", "[\"chat\"]");
    pays_directly(&bank, 10);
    bank.asks(11);
    assert_eq!(bank.in_shadow("payer"), Value::Null);
    let log = AuditLog(&bank.home);
    log.has("payer", CALL, "admitted", "");
    assert!(log.entries(&["--verdict", "shadow"]).is_empty());
}

#[test]
fn what_a_rule_holds_would_be_held_under_capabilities_in_shadow_too() {
    let mut bank = Bank::with(|_| ABOVE_100.to_owned());
    bank.shadows("payer", "[\"mcp/request:tools/call:bank_pay\"]");
    bank.asks_for("payer", "bank_pay", 101);
    bank.counts("payer", [1, 0, 0, 0]);
    bank.change("bank_pay\"]", "bank_get\"]");
    bank.counts("payer", [0, 0, 0, 0]);
    bank.asks_for("payer", "bank_pay", 102);
    bank.counts("payer", [1, 1, 0, 0]);
}

#[test]
fn the_page_shows_capabilities_in_shadow_as_the_program_prints_them() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let [set] = blocks_of(&page, "toml,people").try_into().unwrap();
    let blocks = blocks_of(&page, "console");
    let shown = blocks
        .iter()
        .find(|block| block.contains("participants can"));
    let (command, shown) = shown.unwrap().split_once('\n').unwrap();
    assert_eq!(command, "$ portmoot participants can payer");
    assert!(set.contains(PAYER), "{set}");
    let set = set
        .split("shadow_capabilities = ")
        .nth(1)
        .unwrap()
        .trim_end();
    let mut bank = Bank::new();
    bank.shadows("payer", set);
    for amount in [10, 11] {
        pays_directly(&bank, amount);
    }
    bank.counts("payer", [2, 0, 2, 0]);
    let (url, boss) = (bank.gateway.url(), token("boss"));
    let words = [
        "participants",
        "can",
        "payer",
        "--url",
        &url,
        "--token",
        &boss,
    ];
    let ran = bank.home.run(&words).expect(0);
    let printed = format!("{}{}", ran.stderr, ran.stdout);
    for line in shown.lines() {
        assert!(printed.lines().any(|one| one == line), "{line}: {printed}");
    }
}
