//! Decisions by rules as everything shows them, and rules as the commands explain them.

use std::sync::Arc;

use platform::unix_ms;
use serde_json::json;

use super::bank::{
    Bank, DAY_MS, UP_TO_100, is_announced_by_rule, is_by_rule, paying, whole_seconds,
};
use super::direct::pays_directly;
use crate::audit_log::AuditLog;
use crate::builtin_proposals::data;
use crate::first_use::blocks_of;
use crate::support::{Client, until};
use crate::ws::{Socket, token};

#[test]
fn a_rule_decides_and_everything_says_so() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    let mut boss = Socket::enter(&bank.gateway, "boss", "?mode=all&echo=false");
    bank.is_paid(50);
    // The room is shown the request in the name of rules.
    let request = boss.receive_until(|one| one["kind"] == "mcp/request:tools/call:pay");
    assert_eq!(request["from"], "rules", "{request}");
    let running = boss.receive_until(|one| {
        one["kind"] == "portmoot/proposal" && one["payload"]["state"] == "completed"
    });
    is_announced_by_rule(&running);
    let decided = bank.proposal_of(50);
    is_by_rule(&decided);
    let id = decided["id"].as_str().unwrap();
    let shown = bank.portmoot(&["proposals", "show", id], 0);
    assert!(shown.contains("by rules (rule r1.1 of ann)"), "{shown}");
    let kind = "mcp/proposal:tools/call:pay";
    let why = "by rule r1.1 of ann, proposed by scout";
    AuditLog(&bank.home).has("rules", kind, "approved", why);
    let rule = bank.rule("r1.1");
    assert_eq!(
        (&rule["used"], &rule["left"]),
        (&json!(1), &json!(8)),
        "{rule}"
    );
    // Beyond the rule people decide.
    let calls = bank.server.calls("pay");
    let call = bank.propose(500);
    let id = bank.pending()["id"].as_str().unwrap().to_owned();
    let shown = bank.portmoot(&["rules", "explain", &id], 0);
    assert!(shown.contains("r1.1 does not decide it"), "{shown}");
    assert!(shown.contains("failed   amount is"), "{shown}");
    bank.reject(&bank.pending());
    call.rest();
    assert_eq!(bank.server.calls("pay"), calls);
}

#[test]
fn built_in_tools_show_decisions_by_rules() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(50);
    let boss = Client::of(&bank.gateway, &token("boss"));
    let shown = until("it is completed", || {
        let page = data(&boss, "list_proposals", json!({ "all": true }));
        let mut all = page["proposals"].as_array().unwrap().iter();
        let decided = all.find(|one| one["params"]["arguments"]["amount"] == 50);
        decided.filter(|one| one["state"] == "completed").cloned()
    });
    let id = &shown["id"];
    for shown in [&shown, &data(&boss, "show_proposal", json!({ "id": id }))] {
        is_by_rule(shown);
    }
}

#[test]
fn a_proposal_for_several_servers_or_for_none_is_for_people() {
    let mint = paying(Arc::default());
    let bank = Bank::beside(&mint.child("mint", "mint"));
    bank.gateway.ready("mint");
    let reject = "[[rule]]\nid = \"r1\"\nauthor = \"boss\"\ndecision = \"reject\"\n\
                  kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n";
    bank.put(reject);
    for (id, to) in [("p1", &["bank", "mint"][..]), ("p2", &[])] {
        let _scout = bank.proposes("scout", id, to, "pay");
        let proposal = bank.pending();
        assert_eq!(proposal["to"], json!(to), "{proposal}");
        assert_eq!(
            bank.explain(&proposal),
            "it is for several servers, or for none in particular: people decide it\n"
        );
        let path = format!("proposals/{}/rules", proposal["id"].as_str().unwrap());
        let explained = bank.api("GET", &path, "");
        assert_eq!(
            (&explained["judged"], &explained["rules"]),
            (&json!(false), &json!([])),
            "{explained}"
        );
        bank.reject(&proposal);
    }
    assert_eq!(bank.server.calls("pay") + mint.calls("pay"), 0);
}

/// Stands in the page in place of digests, of an end, and of the present time.
const DEFINITION: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const SERVER: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const END: &str = "2026-12-20T09:00:00Z";

#[test]
fn the_page_on_rules_shows_what_the_program_prints() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let [topic] = blocks_of(&page, "toml").try_into().unwrap();
    let [rule, _, _] = blocks_of(&page, "toml,rule").try_into().unwrap();
    assert!(topic.contains("rules = \"rules.toml\""), "{topic}");
    let bank = Bank::new();
    let (definition, server) = bank.digests.split_once('\n').unwrap();
    let digest = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    let (definition, server) = (digest(definition), digest(server));
    let end = whole_seconds(unix_ms() + DAY_MS);
    let rule = rule
        .replace(DEFINITION, &definition)
        .replace(SERVER, &server)
        .replace(END, &end);
    for amount in [20, 35, 90] {
        bank.is_decided("boss", amount, "approve", &json!({}));
    }
    bank.is_decided("boss", 400, "reject", &json!({}));
    bank.put(&rule);
    let file = bank.home.path().join("rules.toml");
    let words = ["rules", "replay", file.to_str().unwrap(), "--since", "30d"];
    let tried = bank.portmoot(&words, 0);
    let call = bank.propose(500);
    let proposal = bank.pending();
    let id = proposal["id"].as_str().unwrap();
    let explained = bank.portmoot(&["rules", "explain", id], 0);
    let listed = bank.portmoot(&["rules", "ls"], 0);
    bank.reject(&proposal);
    call.rest();
    let [explain, ls, replay, _, _, _, _, _, _, _, _] =
        blocks_of(&page, "console").try_into().unwrap();
    // Days and hours differ.
    let plain = |text: &str| -> Vec<String> {
        let text = text
            .replace(&definition, DEFINITION)
            .replace(&server, SERVER)
            .replace(&end[..19], &END[..19]);
        let is_of_time = |line: &&str| !line.contains("until ") && !line.contains("it is before");
        let lines = text.lines().filter(is_of_time);
        lines.map(str::to_owned).collect()
    };
    for (shown, printed) in [(&explain, &explained), (&ls, &listed), (&replay, &tried)] {
        let (_, shown) = shown.split_once('\n').unwrap();
        assert_eq!(plain(shown), plain(printed), "{printed}");
    }
    let sentence = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.contains("until "))
            .unwrap()
            .to_owned();
        line.split_once("until ").unwrap().0.to_owned()
    };
    assert_eq!(sentence(&ls), sentence(&listed), "{listed}");
}

#[test]
fn the_rule_of_the_page_that_asks_has_more_than_100_wait() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let [_, rule, _] = blocks_of(&page, "toml,rule").try_into().unwrap();
    let [_, _, _, _, _, _, _, _, _, ls, _] = blocks_of(&page, "console").try_into().unwrap();
    let bank = Bank::with(|_| rule);
    let (_, shown) = ls.split_once('\n').unwrap();
    let listed = bank.portmoot(&["rules", "ls"], 0);
    assert_eq!(shown.trim_end(), listed.trim_end());
    pays_directly(&bank, 100);
    bank.asks_for("payer", "bank_pay", 101);
}
