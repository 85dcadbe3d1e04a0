//! Rules that their authors add while the gateway runs: of a call that waits, and from a file.

use participant::{CallError, LikeTerms};
use platform::unix_ms;
use serde_json::{Value, json};

use super::bank::{Bank, UNANSWERED, UP_TO_100, is_paid, result_of, whole_seconds};
use crate::audit_log::AuditLog;
use crate::first_use::blocks_of;
use crate::participants::join;
use crate::python_client::Agent;
use crate::support::{Client, fixture};
use crate::ws::token;

const WHEN: &str = "\"/amount\" = { integer = [1, 100] }";

impl Bank {
    /// Asks for the rule that approves the like of a proposal, and returns status and answer.
    fn drafts(&self, who: &str, proposal: &Value, asked: &Value) -> (u16, Value) {
        let path = format!("proposals/{}/like", proposal["id"].as_str().unwrap());
        self.asks_api(who, &path, asked)
    }

    /// Adds a rule by the API, and returns status and answer.
    pub(super) fn adds(&self, who: &str, rule: &str, tool: Option<&str>) -> (u16, Value) {
        let body = json!({ "rule": rule, "tool": tool });
        self.asks_api(who, "topics/main/rules", &body)
    }

    /// Puts the like of the pending proposal in force as boss, by the command line.
    #[track_caller]
    fn likes(&self, more: &[&str]) -> String {
        let proposal = self.pending();
        let id = proposal["id"].as_str().unwrap();
        let words = [&["rules", "like", id, "--yes"], more].concat();
        self.portmoot(&words, 0);
        format!("like-{}.1", &id[..8])
    }
}

#[test]
fn the_like_of_a_call_is_approved_for_an_hour() {
    let mut bank = Bank::new();
    let call = bank.propose(40);
    let rule = bank.likes(&["--uses", "3", "--when", WHEN]);
    // It decides the call that it was made of first.
    is_paid(&result_of(&call), 40);
    let shown = bank.rule(&rule);
    assert_eq!(
        [&shown["origin"], &shown["author"], &shown["left"]],
        [&json!("added"), &json!("boss"), &json!(2)],
        "{shown}"
    );
    let listed = bank.portmoot(&["rules", "ls"], 0);
    assert!(listed.contains(", added by boss "), "{listed}");
    let why = format!("rule {rule} of boss");
    // A kill loses the entries of the last moment.
    AuditLog(&bank.home).has("boss", "portmoot/rule-add", "admitted", &why);
    bank.restart("KILL");
    bank.is_paid(99);
    bank.asks(101);
    bank.is_paid(41);
    assert_eq!(bank.rule(&rule)["state"], "spent");
    bank.asks(42);
    // It was written by hand: nothing of it is offered again, and nothing of it is a spot check.
    let offers = bank.portmoot(&["rules", "offers"], 0);
    assert!(offers.starts_with("no rule is offered"), "{offers}");
    let ended = bank.portmoot(&["rules", "end", &rule], 0);
    assert!(ended.contains("ended"), "{ended}");
    bank.gateway.signal("TERM");
    AuditLog(&bank.home).has("boss", "portmoot/rule-end", "admitted", &why);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_approves_the_like_of_a_call() {
    let bank = Bank::new();
    let call = bank.propose(40);
    let (boss, _) = join(&bank.gateway, "boss").await;
    // It waits once its call has arrived.
    let proposal = loop {
        if let Some(waiting) = boss.waiting(false).await.unwrap().pop() {
            break waiting;
        }
    };
    let terms = LikeTerms {
        uses: 3,
        when: WHEN.to_owned(),
        ..LikeTerms::default()
    };
    let rule = boss.like(&proposal, &terms).await.unwrap();
    let says = "scout may call pay of bank when amount is a whole number from 1 to 100";
    assert!(rule.sentence.starts_with(says), "{}", rule.sentence);
    // Nothing is in force by it.
    assert_eq!(bank.rules().len(), 0);
    assert_eq!(boss.add_rule(&rule).await.as_ref(), Ok(&rule.rule));
    is_paid(&result_of(&call), 40);
    bank.is_paid(41);
    let shown = bank.rule(&rule.rule);
    assert_eq!(
        [&shown["left"], &shown["author"]],
        [&json!(1), &json!("boss")]
    );
    // What the call does not meet is no like of it, and none is made by whom it does not wait for.
    let call = bank.propose(400);
    let proposal = bank.pending()["id"].as_str().unwrap().to_owned();
    let proposal = boss.show(&proposal).await.unwrap();
    let refused = boss.like(&proposal, &terms).await.unwrap_err();
    assert!(matches!(refused, CallError::Refused(_)), "{refused:?}");
    let (dave, _) = join(&bank.gateway, "dave").await;
    let refused = dave.like(&proposal, &LikeTerms::default()).await;
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
    bank.reject(&bank.pending());
    drop(call);
}

#[test]
fn the_client_for_python_approves_the_like_of_a_call() {
    let bank = Bank::new();
    let call = bank.propose(40);
    bank.pending();
    for backend in ["asyncio", "trio"] {
        let mut boss = Agent::enter(&bank.gateway, "boss", backend, "all");
        if backend == "trio" {
            let call = bank.propose(400);
            bank.pending();
            let (error, why) = boss.run("like", json!({ "when": WHEN })).unwrap_err();
            assert_eq!(error, "Refused", "{why}");
            bank.reject(&bank.pending());
            drop(call);
        } else {
            let liked = boss.run("like", json!({ "when": WHEN })).unwrap();
            let says = "scout may call pay of bank when amount is a whole number from 1 to 100";
            assert!(liked[0].as_str().unwrap().starts_with(says), "{liked}");
            is_paid(&result_of(&call), 40);
            assert_eq!(bank.rule(liked[1].as_str().unwrap())["left"], 2, "{liked}");
        }
    }
    bank.is_paid(41);
}

/// A line up to its first time.
fn timeless(line: &str) -> &str {
    let marks = ["until ", "ends "];
    let ends = marks.iter().filter_map(|mark| line.find(mark));
    &line[..ends.min().unwrap_or(line.len())]
}

#[test]
fn the_page_shows_the_like_of_a_call_as_the_program_prints_it() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let blocks = blocks_of(&page, "console");
    let mut blocks = blocks.iter();
    let shown = blocks.find(|block| block.contains("rules like")).unwrap();
    let (command, shown) = shown.split_once('\n').unwrap();
    let bank = Bank::new();
    let call = bank.propose(UNANSWERED);
    let proposal = bank.pending();
    let id = &proposal["id"].as_str().unwrap()[..8];
    let when = command.split('\'').nth(1).unwrap();
    assert_eq!(when, WHEN);
    let asked = "$ portmoot rules like 5e1f0c32 --for 2h --uses 5 --when ";
    assert!(
        command.starts_with(asked) && command.ends_with(" --yes"),
        "{command}"
    );
    let words = [
        "rules", "like", id, "--for", "2h", "--uses", "5", "--when", when, "--yes",
    ];
    let (url, ann) = (bank.gateway.url(), token("ann"));
    let words = [&words[..], &["--url", &url, "--token", &ann]].concat();
    let printed = bank.home.run(&words).expect(0).stdout;
    let printed = printed.replace(id, "5e1f0c32");
    let printed: Vec<&str> = printed.lines().map(timeless).collect();
    let shown: Vec<&str> = shown.lines().map(timeless).collect();
    assert_eq!(shown, printed);
    drop(call);
}

#[test]
fn without_a_condition_only_the_same_call_is_like_it() {
    let bank = Bank::new();
    let call = bank.propose(7);
    let rule = bank.likes(&[]);
    is_paid(&result_of(&call), 7);
    bank.is_paid(7);
    bank.asks(8);
    // It is about the proposer of that call alone. A rejection of the like of it suspends it all the
    // same, whichever participant proposed that.
    bank.asks_for("dave", "bank_pay", 7);
    assert_eq!(bank.comes_to(&rule, "suspended")["used"], 2);
    bank.asks(7);
}

#[test]
fn a_rule_of_a_file_is_added_by_its_author_and_replaced_by_its_next_version() {
    let bank = Bank::new();
    let text = |lines: &str| {
        let rule = bank.approving("r1", lines, UP_TO_100);
        rule.replace("author = \"ann\"", "author = \"boss\"")
    };
    bank.home.write("mine.toml", &text("uses = 1"));
    bank.portmoot(&["rules", "add", "mine.toml"], 0);
    bank.is_paid(1);
    bank.asks(2);
    bank.home.write("mine.toml", &text("version = 2\nuses = 1"));
    bank.portmoot(&["rules", "add", "mine.toml"], 0);
    bank.is_paid(3);
    assert_eq!(bank.rules().len(), 1);
    let ask = "[[rule]]\nid = \"r2\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
               kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n";
    let two = text("uses = 1") + &text("uses = 1").replace("\"r1\"", "\"r3\"");
    let year = text("uses = 1").replace(
        &format!("expires = \"{}", &whole_seconds(unix_ms())[..4]),
        "expires = \"2999",
    );
    for (who, rule, status, why) in [
        (
            "ann",
            text("version = 3\nuses = 1"),
            403,
            "is added by its author",
        ),
        (
            "boss",
            text("version = 2\nuses = 9"),
            409,
            "is not the present version",
        ),
        ("boss", ask.to_owned(), 400, "rejects or asks"),
        ("boss", two, 400, "2 rules, and not of one"),
        ("boss", year, 400, "longer than 30 days"),
        ("boss", "[[rule]]".to_owned(), 400, "`id` is missing"),
    ] {
        let (found, answer) = bank.adds(who, &rule, None);
        assert_eq!(found, status, "{answer}");
        assert!(answer.to_string().contains(why), "{why}: {answer}");
    }
    // Nor does one come into force whose author may not decide what it would.
    let of_dave = bank.approving("r4", "uses = 1", UP_TO_100);
    let of_dave = of_dave.replace("author = \"ann\"", "author = \"dave\"");
    let (status, answer) = bank.adds("dave", &of_dave, None);
    assert_eq!(status, 403, "{answer}");
    assert_eq!(bank.rules().len(), 1);
}

#[test]
fn the_like_of_what_no_rule_may_approve_is_refused() {
    let bank = Bank::beside(&fixture("tools", &[]));
    bank.gateway.ready("tools");
    let call = bank.propose(40);
    let proposal = bank.pending();
    let asked = |seconds: u64, uses: u32, when: &str| json!({ "for_seconds": seconds, "uses": uses, "when": when });
    for (asked, why) in [
        (asked(599, 1, ""), "10 minutes at least"),
        (asked(8 * 3_600 + 1, 1, ""), "8 hours at most"),
        (asked(3_600, 0, ""), "1 call at least"),
        (asked(3_600, 21, ""), "20 at most"),
        (
            asked(3_600, 1, "\"/amount\" = { integer = [1, 39] }"),
            "does not fit",
        ),
        (
            asked(3_600, 1, "\"/more\" = { equals = 1 }"),
            "has no /more",
        ),
        (
            asked(3_600, 1, "\"/amount\" = { type = \"number\" }"),
            "`when`: ",
        ),
    ] {
        let (status, answer) = bank.drafts("boss", &proposal, &asked);
        assert_eq!(status, 400, "{answer}");
        assert!(answer.to_string().contains(why), "{why}: {answer}");
    }
    assert_eq!(bank.drafts("dave", &proposal, &asked(3_600, 1, "")).0, 404);
    assert_eq!(bank.drafts("scout", &proposal, &asked(3_600, 1, "")).0, 400);
    // A draft is only a text.
    let (status, draft) = bank.drafts("boss", &proposal, &asked(600, 20, ""));
    assert_eq!(status, 200, "{draft}");
    assert!(bank.rules().is_empty());
    bank.reject(&proposal);
    call.rest();
    // A tool that does not say that it destroys nothing needs its name.
    let client = Client::of(&bank.gateway, &token("scout"));
    let call = client.begin_call("tools_echo", json!({ "text": "x" }));
    let proposal = bank.pending();
    let (status, answer) = bank.drafts("boss", &proposal, &asked(3_600, 1, ""));
    assert_eq!(status, 403, "{answer}");
    let named = json!({ "for_seconds": 3_600, "uses": 1, "tool": "echo" });
    let (status, draft) = bank.drafts("boss", &proposal, &named);
    assert_eq!(status, 200, "{draft}");
    let text = draft["text"].as_str().unwrap();
    assert!(text.contains("destructive = true"), "{text}");
    assert_eq!(bank.adds("boss", text, None).0, 403);
    let longer = text.replace("uses = 1", "uses = 21");
    assert_eq!(bank.adds("boss", &longer, Some("echo")).0, 400);
    assert_eq!(bank.adds("boss", text, Some("echo")).0, 200);
    assert_eq!(result_of(&call)["content"][0]["text"], "x");
}
