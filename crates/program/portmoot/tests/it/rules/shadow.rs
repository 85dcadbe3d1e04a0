//! Rules in shadow through the running binary: they decide nothing, and everything says what they would
//! have decided.

use serde_json::{Value, json};

use super::bank::{Bank, UP_TO_100, is_paid, result_of};
use super::direct::{ABOVE_100, pays_directly};
use crate::audit_log::AuditLog;
use crate::first_use::blocks_of;
use crate::support::until;
use crate::ws::token;

const PROPOSAL: &str = "mcp/proposal:tools/call:pay";
const CALL: &str = "mcp/request:tools/call:bank_pay";
const WOULD_APPROVE: &str = "rule r1.1 of ann would have approved it";
/// A rule of boss's that rejects calls of 13.
const OF_13: &str = "[[rule]]\nid = \"r2\"\nauthor = \"boss\"\ndecision = \"reject\"\n\
    kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n\
    [rule.when]\n\"/amount\" = { equals = 13 }\n";

/// These rules in shadow.
fn asleep(rules: &str) -> String {
    rules.replace("\nkind = ", "\nshadow = true\nkind = ")
}

impl Bank {
    /// Waits until what a rule would have decided is this, in words.
    #[track_caller]
    fn would(&self, rule: &str, words: &str) {
        until(words, || {
            let shown = self.rule(rule);
            let said = shown["shadow"]["words"].as_str().unwrap_or_default();
            (said == words).then_some(())
        });
    }

    /// A call of scout's that waits, and that boss approves.
    #[track_caller]
    fn is_approved_by_hand(&self, amount: u64) {
        let call = self.propose(amount);
        self.approve(&self.pending());
        is_paid(&result_of(&call), amount);
    }

    /// Waits until the entry of boss's latest decision with this verdict ends so.
    #[track_caller]
    fn says(&self, verdict: &str, end: &str) {
        let log = AuditLog(&self.home);
        until(&format!("boss {verdict} {end}"), || {
            let all = log.entries(&["--participant", "boss", "--verdict", verdict]);
            let mut last = all.iter().rev();
            let last = last.find(|one| one["kind"] == PROPOSAL)?;
            let why = last["why"].as_str().unwrap_or_default();
            let is_meant = if end.is_empty() {
                why.is_empty()
            } else {
                why.ends_with(end)
            };
            is_meant.then_some(())
        });
    }
}

#[test]
fn a_rule_in_shadow_decides_nothing_and_everything_says_what_it_would_have() {
    let mut bank = Bank::with(|bank| asleep(&bank.approving("r1", "uses = 9", UP_TO_100)));
    let shown = bank.rule("r1.1");
    assert_eq!(shown["state"], "in shadow", "{shown}");
    let sentence = shown["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("in shadow, where it decides nothing: scout may"),
        "{sentence}"
    );
    let call = bank.propose(50);
    let proposal = bank.pending();
    let id = proposal["id"].as_str().unwrap().to_owned();
    bank.would(
        "r1.1",
        "would have answered 1 of 1 proposal, 0 of them otherwise than people",
    );
    let expected =
        json!([{ "rule": "r1.1", "author": "ann", "decision": "approve", "words": WOULD_APPROVE }]);
    assert_eq!(bank.proposal_of(50)["would"], expected);
    let card = bank.portmoot(&["proposals", "show", &id], 0);
    assert!(
        card.contains(&format!("in shadow: {WOULD_APPROVE}")),
        "{card}"
    );
    let explained = bank.explain(&proposal);
    assert!(
        explained.contains("r1.1 is in shadow, and would decide it: approve"),
        "{explained}"
    );
    let reasons = bank.api("GET", &format!("proposals/{id}/rules"), "");
    let reason = &reasons["rules"][0];
    let said = [
        &reason["decides"],
        &reason["shadow"],
        &reason["would_decide"],
    ];
    assert_eq!(
        said,
        [&json!(false), &json!(true), &json!(true)],
        "{reason}"
    );
    // Its proposer, who may not see the rule, is not shown what it would have decided.
    let client = crate::http::Connection::open(bank.gateway.address()).exchange(
        "GET",
        &format!("/api/v1/proposals/{id}"),
        &[("authorization", &format!("Bearer {}", token("scout")))],
        "",
    );
    assert_eq!(client.json()["would"], json!([]));
    bank.approve(&proposal);
    is_paid(&result_of(&call), 50);
    bank.says("approved", &format!("; {WOULD_APPROVE}"));
    bank.asks(60);
    bank.says("rejected", WOULD_APPROVE);
    bank.asks(500);
    bank.says("rejected", "");
    let words = "would have answered 2 of 3 proposals, 1 of them otherwise than people";
    bank.would("r1.1", words);
    let listed = bank.portmoot(&["rules", "ls"], 0);
    assert!(
        listed.contains("r1.1  in shadow, 2 used, 7 left, ends "),
        "{listed}"
    );
    assert!(listed.contains(&format!("\n  {words}\n")), "{listed}");
    let before = bank.rule("r1.1");
    assert_eq!(before["shadow"]["approved"], 1, "{before}");
    assert_eq!(before["shadow"]["rejected"], 1, "{before}");
    for signal in ["TERM", "KILL"] {
        bank.restart(signal);
        assert_eq!(bank.rule("r1.1")["shadow"], before["shadow"], "{signal}");
    }
    let shown = bank.portmoot(&["proposals", "show", &id], 0);
    assert!(
        shown.contains(&format!("in shadow: {WOULD_APPROVE}")),
        "{shown}"
    );
}

#[test]
fn a_proposal_that_waits_is_counted_once_over_restarts() {
    let mut bank = Bank::with(|bank| asleep(&bank.approving("r1", "uses = 9", UP_TO_100)));
    let call = bank.propose(50);
    let proposal = bank.pending();
    bank.would(
        "r1.1",
        "would have answered 1 of 1 proposal, 0 of them otherwise than people",
    );
    bank.restart("KILL");
    drop(call);
    bank.would(
        "r1.1",
        "would have answered 1 of 1 proposal, 0 of them otherwise than people",
    );
    bank.reject(&proposal);
    bank.would(
        "r1.1",
        "would have answered 1 of 1 proposal, 1 of them otherwise than people",
    );
    assert_eq!(bank.rule("r1.1")["used"], 1);
}

#[test]
fn a_rule_in_shadow_spends_its_budget_and_its_next_version_decides_with_its_own() {
    let bank = Bank::with(|bank| asleep(&bank.approving("r1", "uses = 1", UP_TO_100)));
    bank.is_approved_by_hand(10);
    assert_eq!(bank.rule("r1.1")["state"], "spent");
    bank.is_approved_by_hand(11);
    bank.comes_to("r1.1", "suspended");
    bank.would(
        "r1.1",
        "would have answered 1 of 1 proposal, 0 of them otherwise than people",
    );
    // Out of its shadow it is another text, which needs another version.
    bank.home
        .write("rules.toml", &bank.approving("r1", "uses = 1", UP_TO_100));
    bank.gateway.signal("HUP");
    bank.comes_to("r1.1", "refused");
    bank.put(&bank.approving("r1", "version = 2\nuses = 1", UP_TO_100));
    bank.is_paid(12);
    bank.asks(13);
}

#[test]
fn beside_a_rule_in_force_it_counts_what_that_one_decides() {
    let bank = Bank::with(|bank| {
        let rule = |id| bank.approving(id, "uses = 9", UP_TO_100);
        // Of two that end at one time the one goes first whose id does.
        rule("r2") + &asleep(&rule("r1")) + &asleep(&rule("r3"))
    });
    bank.is_paid(10);
    bank.would(
        "r1.1",
        "would have answered 1 of 1 proposal, 0 of them otherwise than people, 1 that rules decided",
    );
    bank.would(
        "r3.1",
        "would have answered 0 of 1 proposal, 0 of them otherwise than people",
    );
    assert_eq!(bank.rule("r2.1")["used"], 1);
    let why = "by rule r2.1 of ann, proposed by scout; rule r1.1 of ann would have approved it";
    AuditLog(&bank.home).has("rules", PROPOSAL, "approved", why);
}

#[test]
fn direct_calls_run_and_those_are_counted_that_it_would_have_held_or_refused() {
    let mut bank = Bank::with(|_| asleep(&(ABOVE_100.to_owned() + OF_13)));
    pays_directly(&bank, 100);
    pays_directly(&bank, 101);
    pays_directly(&bank, 13);
    let log = AuditLog(&bank.home);
    let held = "mcp/request:*; rule r1.1 of boss would have made it a proposal";
    log.comes_to(1, "payer", CALL, "admitted", held);
    let refused = "mcp/request:*; rule r2.1 of boss would have refused it";
    log.comes_to(1, "payer", CALL, "admitted", refused);
    // The call of one that may only propose waits anyway, and is no direct one.
    bank.asks(13);
    bank.says("rejected", "rule r2.1 of boss would have rejected it");
    let of_r1 = "would have left 0 of 0 proposals to people, would have held 1 call that ran";
    let of_r2 = "would have answered 1 of 1 proposal, 0 of them otherwise than people, would have refused 1 call that ran";
    bank.would("r1.1", of_r1);
    bank.would("r2.1", of_r2);
    bank.restart("TERM");
    bank.would("r1.1", of_r1);
    bank.would("r2.1", of_r2);
}

#[test]
fn a_rule_in_shadow_that_asks_beyond_a_sum_counts_what_runs() {
    let sum = "sum = [{ of = \"/amount\", max = 500, within = \"1d\" }]\n";
    let rule = ABOVE_100.split("[rule.when]").next().unwrap().to_owned() + sum;
    let bank = Bank::with(|_| asleep(&rule));
    for (amount, words) in [
        (300, "would have left 0 of 0 proposals to people"),
        (200, "would have left 0 of 0 proposals to people"),
        (
            1,
            "would have left 0 of 0 proposals to people, would have held 1 call that ran",
        ),
        (
            2,
            "would have left 0 of 0 proposals to people, would have held 2 calls that ran",
        ),
    ] {
        pays_directly(&bank, amount);
        bank.would("r1.1", words);
    }
}

#[test]
fn a_rejection_ends_no_rule_in_shadow_that_was_added_by_hand() {
    let bank = Bank::new();
    let rule = asleep(&bank.approving("r1", "uses = 9", UP_TO_100)).replace("\"ann\"", "\"boss\"");
    bank.home.write("added.toml", &rule);
    let file = bank.home.path().join("added.toml");
    bank.portmoot(&["rules", "add", file.to_str().unwrap()], 0);
    bank.asks(10);
    bank.asks(11);
    bank.would(
        "r1.1",
        "would have answered 2 of 2 proposals, 2 of them otherwise than people",
    );
    let shown: Value = bank.rule("r1.1");
    assert_eq!(
        [&shown["state"], &shown["origin"]],
        ["in shadow", "added"],
        "{shown}"
    );
}

#[test]
fn a_file_with_rules_in_shadow_is_tried_on_the_past_as_if_they_were_in_force() {
    let bank = Bank::new();
    bank.is_approved_by_hand(10);
    bank.home.write(
        "try.toml",
        &asleep(&bank.approving("r1", "uses = 9", UP_TO_100)),
    );
    let file = bank.home.path().join("try.toml");
    let tried = bank.portmoot(&["rules", "replay", file.to_str().unwrap()], 0);
    assert!(
        tried.contains("r1.1  would have approved 1 proposal that you approved by hand"),
        "{tried}"
    );
}

/// A text without its times: of `ends` and `until`.
fn timeless(text: &str) -> Vec<String> {
    let cut = |line: &str| {
        let marks = ["until ", "ends "];
        let ends = marks.iter().filter_map(|mark| line.find(mark));
        line[..ends.min().unwrap_or(line.len())].to_owned()
    };
    text.lines().map(cut).collect()
}

#[test]
fn the_page_shows_a_rule_in_shadow_as_the_program_prints_it() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let [rule, _, _] = blocks_of(&page, "toml,rule").try_into().unwrap();
    let blocks = blocks_of(&page, "console");
    let shown = blocks.iter().find(|block| block.contains("in shadow"));
    let (command, shown) = shown.unwrap().split_once('\n').unwrap();
    assert_eq!(command, "$ portmoot rules ls");
    let when = rule.split("[rule.when]\n").nth(1).unwrap();
    let lines = "uses = 33\nrate = \"12/h\"";
    assert!(rule.contains(lines), "{rule}");
    let bank = Bank::with(|bank| asleep(&bank.approving("r1", lines, when)));
    bank.is_approved_by_hand(20);
    bank.asks(90);
    bank.asks(500);
    let printed = bank.portmoot(&["rules", "ls"], 0);
    assert_eq!(timeless(shown), timeless(&printed), "{printed}");
}
