//! Changes of policy, tried on what participants did: capabilities, grants, rules, pins.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::bank::{Bank, UP_TO_100, is_paid, result_of};
use crate::first_use::blocks_of;
use crate::support::until;

/// The calls of the bank's tool, by its public name and by its own.
const PUBLIC: &str = "mcp/request:tools/call:bank_pay";
const OWN: &str = "mcp/request:tools/call:pay";
/// A configuration that keeps arguments in the audit log.
const FULL: &str = "[audit]\npayloads = \"full\"\n";

impl Bank {
    /// What a change would have decided otherwise of a participant's acts, as the program prints it.
    #[track_caller]
    fn prints(&self, who: &str, change: &[&str], code: i32) -> String {
        let words = ["participants", "can", who];
        let rest = ["--config", "portmoot.toml", "--data-dir", "data"];
        let ran = self.home.run(&[&words[..], change, &rest].concat());
        let ran = ran.expect(code);
        if code == 0 { ran.stdout } else { ran.stderr }
    }

    /// The same as JSON.
    #[track_caller]
    fn finds(&self, who: &str, change: &[&str]) -> Value {
        let words = [change, &["--since", "1h", "--json"]].concat();
        serde_json::from_str(&self.prints(who, &words, 0)).unwrap()
    }

    /// The same, once the log has what is looked for.
    #[track_caller]
    fn comes_to_find(&self, who: &str, change: &[&str], is_it: impl Fn(&Value) -> bool) -> Value {
        until("the log has all", || {
            Some(self.finds(who, change)).filter(|found| is_it(found))
        })
    }

    /// The whole configuration with one line of it in another form.
    fn changed(&self, before: &str, after: &str) -> String {
        assert!(self.config.contains(before), "{}", self.config);
        self.config.replace(before, after)
    }
}

/// The words about a part of a policy.
fn words(found: &Value, part: &str) -> String {
    let changes = found["changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["part"] == part);
    let words = change.unwrap_or_else(|| panic!("{part}: {found}"));
    words["words"].as_str().unwrap().to_owned()
}

/// An act that would be decided otherwise.
fn act(kind: &str, was: &str, would_be: &str, by: &str, times: usize) -> Value {
    json!({ "kind": kind, "to": "bank", "was": was, "would_be": would_be, "by": by, "times": times })
}

#[test]
fn other_capabilities_are_tried_on_what_a_participant_did() {
    let bank = Bank::new();
    for amount in [1, 2] {
        bank.is_paid_by("payer", "bank_pay", amount);
    }
    let call = bank.propose(50);
    bank.approve(&bank.pending());
    is_paid(&result_of(&call), 50);
    let refused = bank.begins("teller", "bank_pay", 3).rest();
    assert!(refused.last().unwrap()["error"].is_object(), "{refused:?}");
    let all = "capabilities = [\"mcp/proposal:*\", \"mcp/request:*\"]";
    let held = "capabilities = [\"mcp/proposal:tools/call:*\"]";
    bank.home.write("whole.toml", &bank.changed(all, held));
    // A piece is enough: what it leaves out stays as it is. A profile changes capabilities too.
    bank.home
        .write("piece.toml", &format!("[participants.payer]\n{held}\n"));
    let profile = "[profiles.paying]\ncapabilities = [\"mcp/request:tools/call:bank_*\"]\n";
    let wider = format!("{profile}[participants.scout]\nprofile = \"paying\"\n");
    bank.home.write("wider.toml", &wider);
    let narrower = "[participants.boss]\ncapabilities = [\"chat\"]\n";
    bank.home.write("narrower.toml", narrower);
    let is_whole = |found: &Value| found["requests"] == 2;
    for file in ["whole.toml", "piece.toml"] {
        let of_payer = bank.comes_to_find("payer", &["--with", file], is_whole);
        let held = act(PUBLIC, "made", "held", "capabilities", 2);
        assert_eq!(of_payer["otherwise"], json!([held]), "{file}");
    }
    let page = std::fs::read_to_string(harness::repository().join("docs/identities.md")).unwrap();
    let blocks = blocks_of(&page, "text");
    let shown = blocks
        .iter()
        .find(|block| block.contains("--with"))
        .unwrap();
    let (command, shown) = shown.split_once('\n').unwrap();
    let asked = "$ portmoot participants can payer --with changed.toml --since 30d";
    assert_eq!(command, asked);
    let printed = bank.prints("payer", &["--with", "piece.toml"], 0);
    assert_eq!(printed.trim_end(), shown.trim_end());
    // Two of its calls were held: that to show digests, which was rejected, and this one.
    let of_scout = bank.finds("scout", &["--with", "wider.toml"]);
    let made = act(PUBLIC, "held", "made", "capabilities", 2);
    assert_eq!(of_scout["otherwise"], json!([made]), "{of_scout}");
    let of_boss = bank.finds("boss", &["--with", "narrower.toml"]);
    let proposal = "mcp/proposal:tools/call:pay";
    let decided = act(proposal, "decided", "refused", "capabilities", 2);
    assert_eq!(
        (&of_boss["decisions"], &of_boss["otherwise"]),
        (&json!(2), &json!([decided])),
        "{of_boss}"
    );
    for (who, file) in [("scout", "narrower.toml"), ("boss", "portmoot.toml")] {
        let found = bank.finds(who, &["--with", file]);
        assert_eq!(
            (&found["changes"], &found["otherwise"]),
            (&json!([]), &json!([]))
        );
    }
    let unchanged = bank.prints("boss", &["--with", "portmoot.toml"], 0);
    assert!(
        unchanged.starts_with("nothing changes for `boss`"),
        "{unchanged}"
    );
    let none = bank.prints("eve", &["--with", "wider.toml"], 5);
    assert!(
        none.contains("no participant `eve` is configured"),
        "{none}"
    );
}

#[test]
fn grants_are_tried_on_what_a_participant_did() {
    let bank = Bank::new();
    let refused = bank.begins("teller", "bank_pay", 3).rest();
    assert!(refused.last().unwrap()["error"].is_object(), "{refused:?}");
    let proposes = "mcp/proposal:tools/call:bank_*";
    bank.portmoot(&["participants", "grant", "teller", proposes], 0);
    let call = bank.begins("teller", "bank_pay", 4);
    bank.approve(&bank.pending());
    is_paid(&result_of(&call), 4);
    let may_call = "mcp/request:tools/call:bank_*";
    let is_whole = |found: &Value| found["requests"] == 1;
    let granted = bank.comes_to_find("teller", &["--grant", may_call], is_whole);
    let made = act(PUBLIC, "held", "made", "capabilities", 1);
    assert_eq!(granted["otherwise"], json!([made]), "{granted}");
    // The log does not say at which server a refused call of MCP would have been.
    let gap = &granted["not_tried"][0];
    assert_eq!(
        (&gap["by"], &gap["times"]),
        (&json!("capabilities"), &json!(1))
    );
    // What was granted before is in force, and may be taken.
    let revoked = bank.finds("teller", &["--revoke", proposes]);
    let refused = act(PUBLIC, "held", "refused", "capabilities", 1);
    assert_eq!(revoked["otherwise"], json!([refused]), "{revoked}");
    let both = ["--revoke", proposes, "--grant", may_call];
    let printed = bank.prints("teller", &both, 0);
    let words = "capabilities: of 1 request and 0 decisions of `teller`, would have made 1 request that was held\n\
                 not tried: 1 act (capabilities): the audit log names no server of a refused request\n";
    assert!(printed.starts_with(words), "{printed}");
    let wrong = bank.prints("teller", &["--grant", "system/error"], 2);
    assert!(wrong.contains("`system/error`"), "{wrong}");
}

/// A rule for direct calls of payer.
fn tightening(id: &str, decision: &str, when: &str) -> String {
    format!(
        "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"{decision}\"\nkind = \"{OWN}\"\n\
         proposers = [\"payer\"]\n{when}\n"
    )
}

#[test]
fn rules_are_tried_on_proposals_and_direct_calls_of_a_participant() {
    let bank = Bank::beside(FULL);
    for (amount, verb) in [
        (1, "approve"),
        (2, "approve"),
        (4, "reject"),
        (300, "approve"),
    ] {
        bank.is_decided("boss", amount, verb, &json!({}));
    }
    for amount in [10, 20, 500] {
        bank.is_paid_by("payer", "bank_pay", amount);
    }
    let between =
        |from: u64, to: u64| format!("[rule.when]\n\"/amount\" = {{ integer = [{from}, {to}] }}");
    let tried = bank.approving("r1", "uses = 9", UP_TO_100)
        + &tightening("r2", "reject", &between(400, 900))
        + &tightening("r3", "ask", &between(11, 30));
    bank.home.write("tried.toml", &tried);
    bank.home
        .write("piece.toml", "[topics.main]\nrules = \"tried.toml\"\n");
    for file in ["tried.toml", "piece.toml"] {
        let with = ["--with", file];
        let of_payer = bank.comes_to_find("payer", &with, |found| found["direct"] == 3);
        assert_eq!(
            words(&of_payer, "rules"),
            "would have answered 0 of 0 proposals, would have contradicted 0, \
             would have refused 1 call that was made, would have held 1 call that was made"
        );
        let acts = [("held", 1), ("refused", 1)];
        let acts = acts.map(|(would_be, times)| act(OWN, "made", would_be, "rules", times));
        assert_eq!(of_payer["otherwise"], json!(acts), "{of_payer}");
        // One showed the digests.
        let of_scout = bank.finds("scout", &with);
        assert_eq!(
            words(&of_scout, "rules"),
            "would have answered 3 of 5 proposals, would have contradicted 1"
        );
        assert_eq!(of_scout["not_tried"], json!([]), "{of_scout}");
    }
    // The rules then do so.
    bank.put(&tried);
    let refused = bank.begins("payer", "bank_pay", 500).rest();
    assert!(refused.last().unwrap()["error"].is_object(), "{refused:?}");
    bank.asks_for("payer", "bank_pay", 20);
    bank.is_paid_by("payer", "bank_pay", 10);
    bank.is_paid(3);
    // What is in force by now is no change, and what is taken away is one.
    let of_scout = bank.finds("scout", &["--with", "tried.toml"]);
    assert_eq!(of_scout["changes"], json!([]), "{of_scout}");
    bank.home
        .write("none.toml", "[topics.main]\nrules = \"empty.toml\"\n");
    bank.home.write("empty.toml", "");
    let of_scout = bank.comes_to_find("scout", &["--with", "none.toml"], |found| {
        found["proposals"] == 6
    });
    assert_eq!(
        words(&of_scout, "rules"),
        "would have answered 0 of 6 proposals, would have contradicted 0, \
         would have left 4 proposals to people"
    );
}

#[test]
fn a_call_without_recorded_arguments_is_tried_on_rules_that_need_none() {
    let bank = Bank::new();
    for amount in [10, 500] {
        bank.is_paid_by("payer", "bank_pay", amount);
    }
    let when = "[rule.when]\n\"/amount\" = { integer = [400, 900] }";
    bank.home
        .write("named.toml", &tightening("r1", "reject", when));
    bank.home.write("all.toml", &tightening("r1", "ask", ""));
    let all = ["--with", "all.toml"];
    let found = bank.comes_to_find("payer", &all, |found| found["direct"] == 2);
    let held = act(OWN, "made", "held", "rules", 2);
    assert_eq!(found["otherwise"], json!([held]), "{found}");
    // With arguments nothing is guessed.
    let found = bank.finds("payer", &["--with", "named.toml"]);
    let gap = &found["not_tried"][0];
    assert_eq!(
        (&found["direct"], &found["otherwise"], &gap["times"]),
        (&json!(0), &json!([]), &json!(2)),
        "{found}"
    );
    let why = gap["why"].as_str().unwrap();
    assert!(why.contains("payloads = \"full\""), "{why}");
}

#[test]
fn pins_are_tried_on_calls_of_what_a_server_had_changed() {
    let mut bank = Bank::new();
    bank.config = bank.changed("era = \"legacy\"\n", "era = \"legacy\"\npins = \"warn\"\n");
    bank.restart("TERM");
    bank.is_paid_by("payer", "bank_pay", 1);
    bank.is_changed.store(true, Ordering::Relaxed);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    bank.server.say(&changed);
    bank.gateway.receive("changed: tool pay");
    bank.is_paid_by("payer", "bank_pay", 2);
    bank.portmoot(&["pins", "approve", "bank"], 0);
    bank.is_paid_by("payer", "bank_pay", 3);
    bank.home
        .write("blocking.toml", "[servers.bank]\npins = \"block\"\n");
    let found = bank.comes_to_find("payer", &["--with", "blocking.toml"], |found| {
        found["otherwise"] != json!([])
    });
    assert_eq!(
        words(&found, "pins"),
        "would have refused 1 call that was made"
    );
    let refused = act(PUBLIC, "made", "refused", "pins", 1);
    assert_eq!(found["otherwise"], json!([refused]), "{found}");
}
