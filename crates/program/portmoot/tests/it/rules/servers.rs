//! Two servers that have the same tool: a rule is about the one that it names.

use std::sync::Arc;

use super::bank::{Bank, UP_TO_100, paying, result_of};
use crate::peer::Peer;

/// The bank beside a mint that lists the same tool.
fn two() -> (Bank, Peer) {
    let mint = paying(Arc::default());
    let bank = Bank::beside(&mint.child("mint", "mint"));
    bank.gateway.ready("mint");
    (bank, mint)
}

#[test]
fn a_rule_about_one_server_leaves_the_same_tool_of_another_alone() {
    let (bank, mint) = two();
    let of_mint = bank.digests_of("mint_pay");
    let [of_bank, of_mint_lines] =
        [&bank.digests, &of_mint].map(|digests| digests.split_once('\n').unwrap());
    assert_eq!(of_bank.0, of_mint_lines.0, "one definition");
    assert_ne!(of_bank.1, of_mint_lines.1, "two servers");
    let of_the_bank = bank.approving("r1", "uses = 9", UP_TO_100);
    bank.put(&of_the_bank);
    bank.is_paid_by("scout", "bank_pay", 1);
    bank.asks_for("scout", "mint_pay", 2);
    assert_eq!(mint.calls("pay"), 0);
    let rule = bank.rule("r1.1");
    assert_eq!(
        (&rule["state"], &rule["used"]),
        (&"in force".into(), &1.into())
    );
    // With the digests of the bank a rule approves nothing at the mint.
    let at_the_mint = |lines: &str| {
        let rule = bank.approving("r2", lines, UP_TO_100);
        rule.replace("to = \"bank\"", "to = \"mint\"")
    };
    bank.put(&(of_the_bank.clone() + &at_the_mint("uses = 9")));
    bank.asks_for("scout", "mint_pay", 3);
    let wrong = bank.comes_to("r2.1", "suspended");
    assert_eq!(
        wrong["why"], "the server's configuration changed",
        "{wrong}"
    );
    let right = at_the_mint("version = 2\nuses = 9").replace(&bank.digests, &of_mint);
    bank.put(&(of_the_bank + &right));
    bank.is_paid_by("scout", "mint_pay", 4);
    bank.is_paid_by("scout", "bank_pay", 5);
    assert_eq!((bank.server.calls("pay"), mint.calls("pay")), (2, 1));
    assert_eq!(
        (&bank.rule("r1.1")["used"], &bank.rule("r2.2")["used"]),
        (&2.into(), &1.into())
    );
}

#[test]
fn a_rule_that_names_no_server_rejects_at_each() {
    let (bank, mint) = two();
    let rejecting = "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                     kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n";
    bank.put(rejecting);
    for tool in ["bank_pay", "mint_pay"] {
        let refused = result_of(&bank.begins("scout", tool, 1));
        assert_eq!(refused["isError"], true, "{tool}: {refused}");
    }
    let of_the_bank = rejecting.replace("kind =", "version = 2\nto = \"bank\"\nkind =");
    bank.put(&of_the_bank);
    let refused = result_of(&bank.begins("scout", "bank_pay", 2));
    assert_eq!(refused["isError"], true, "{refused}");
    bank.asks_for("scout", "mint_pay", 3);
    assert_eq!(bank.server.calls("pay") + mint.calls("pay"), 0);
}
