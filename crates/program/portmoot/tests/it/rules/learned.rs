//! Rules that are learned from what people approve: offered, accepted, in force, and ended.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bank::{Bank, FAILING, UP_TO_100, result_of};
use super::past::{PastPayment, approvals};
use crate::http::Connection;
use crate::support::until;
use crate::tmux::Pane;
use crate::ws::token;

/// The time after which a decision about what was shown is a deliberate one.
const LOOKED_AT: Duration = Duration::from_millis(1_600);

impl Bank {
    /// A participant asks the API.
    pub(super) fn gets(&self, who: &str, path: &str) -> Value {
        let bearer = format!("Bearer {}", token(who));
        let mut connection = Connection::open(self.gateway.address());
        let path = format!("/api/v1/{path}");
        let headers = [("authorization", bearer.as_str())];
        connection.exchange("GET", &path, &headers, "").json()
    }

    pub(super) fn offers(&self, who: &str) -> Vec<Value> {
        let answer = self.gets(who, "topics/main/rules/offers");
        let offers = answer["offers"].as_array();
        offers.unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// The reasons for which tools have no offer.
    pub(super) fn withheld(&self, who: &str) -> String {
        self.gets(who, "topics/main/rules/offers")["withheld"].to_string()
    }

    #[track_caller]
    pub(super) fn only_offer(&self, who: &str) -> Value {
        let offers = self.offers(who);
        let [offer] = <[Value; 1]>::try_from(offers).unwrap_or_else(|all| panic!("{all:?}"));
        offer
    }

    /// A participant does something with an offer.
    pub(super) fn does(&self, who: &str, verb: &str, digest: &str) -> (u16, Value) {
        let path = format!("topics/main/rules/offers/{digest}/{verb}");
        self.asks_api(who, &path, &json!({}))
    }

    /// Ann accepts the only rule that she is offered, which has no spot check. Returns its name.
    #[track_caller]
    fn accepts(&mut self) -> String {
        self.accepts_checked(&[])
    }

    /// Ann accepts the only rule that she is offered, of which these draws are spot checks. Returns its
    /// name.
    #[track_caller]
    pub(super) fn accepts_checked(&mut self, checked: &[u32]) -> String {
        let offer = self.only_offer("ann");
        self.draws(offer["rule"].as_str().unwrap(), checked);
        let (status, rule) = self.does("ann", "accept", offer["digest"].as_str().unwrap());
        assert_eq!(status, 200, "{rule}");
        assert_eq!(rule["rule"], offer["rule"], "{rule}");
        rule["rule"].as_str().unwrap().to_owned()
    }

    /// Ann ends a rule, and what she is answered.
    pub(super) fn ends(&self, who: &str, rule: &str) -> (u16, Value) {
        self.asks_api(who, &format!("topics/main/rules/{rule}/end"), &json!({}))
    }

    /// Scout proposes a payment, ann looks at it for a while, and approves it.
    pub(super) fn is_approved_deliberately(&self, amount: u64) {
        self.is_approved_after(amount, |id| format!("proposals/{id}"));
    }

    /// Scout proposes a payment, ann asks the API for this path, and approves it a while later.
    pub(super) fn is_approved_after(&self, amount: u64, path: impl FnOnce(&str) -> String) {
        let (call, proposal) = self.is_proposed(amount);
        let id = proposal["id"].as_str().unwrap();
        let shown = self.gets("ann", &path(id)).to_string();
        let since = Instant::now();
        assert!(
            shown.contains(&format!("{{\"amount\":{amount}}}")),
            "{shown}"
        );
        until("it was shown long enough", || {
            (since.elapsed() > LOOKED_AT).then_some(())
        });
        let body = json!({ "digest": proposal["digest"] });
        let (status, decided) = self.asks_api("ann", &format!("proposals/{id}/approve"), &body);
        assert_eq!(status, 200, "{decided}");
        call.rest();
    }

    pub(super) fn portmoot_as(&self, who: &str, words: &[&str], code: i32) -> String {
        let (url, token) = (self.gateway.url(), token(who));
        let words = [words, &["--url", &url, "--token", &token]].concat();
        self.home.run(&words).expect(code).stdout
    }
}

#[test]
fn what_was_looked_at_and_approved_becomes_a_rule_that_its_author_accepts() {
    let mut bank = Bank::new();
    // Nothing is learned of what is approved at once.
    for _ in 0..3 {
        bank.is_decided("ann", 7, "approve", &json!({}));
    }
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    for _ in 0..2 {
        bank.is_approved_deliberately(5);
    }
    // A list that its client does not show to a person is no showing.
    bank.is_approved_after(5, |_| "proposals".to_owned());
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    bank.is_approved_after(5, |_| "proposals?shown=true".to_owned());
    let offer = bank.only_offer("ann");
    let sentence = offer["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("scout may call pay of bank when amount is 5, as written"),
        "{offer}"
    );
    assert_eq!(offer["approvals"].as_array().unwrap().len(), 3, "{offer}");
    assert_eq!(offer["uses"], 3, "{offer}");
    // Nothing is in force that was not accepted, and none but its author may accept it.
    assert_eq!(bank.rules().len(), 0);
    bank.restart("KILL");
    assert_eq!(bank.rules().len(), 0);
    assert_eq!(bank.only_offer("ann"), offer);
    let digest = offer["digest"].as_str().unwrap();
    for who in ["boss", "scout", "payer"] {
        assert_eq!(bank.offers(who), [json!(null); 0], "{who}");
        let (status, refused) = bank.does(who, "accept", digest);
        assert_eq!((status, &refused["code"]), (404, &json!("unknown_target")));
    }
    // While ann is paused she accepts nothing.
    bank.brakes("ann", "pause");
    let (status, refused) = bank.does("ann", "accept", digest);
    assert_eq!(status, 403, "{refused}");
    assert!(refused.to_string().contains("decides nothing"), "{refused}");
    bank.brakes("ann", "resume");
    bank.draws(offer["rule"].as_str().unwrap(), &[]);
    let paid = bank.server.calls("pay");
    let waits = bank.propose(5);
    assert_eq!(bank.pending()["params"]["arguments"]["amount"], 5);
    assert_eq!(bank.server.calls("pay"), paid);
    let words = ["rules", "accept", &digest[..12]];
    let shown = bank.portmoot_as("ann", &words, 0);
    assert!(shown.contains("learned, accepted by ann"), "{shown}");
    // It decides what waits, and what comes.
    super::bank::is_paid(&result_of(&waits), 5);
    bank.is_paid(5);
    let name = offer["rule"].as_str().unwrap();
    let rule = bank.rule(name);
    assert_eq!(
        [&rule["used"], &rule["left"]],
        [&json!(2), &json!(1)],
        "{rule}"
    );
    // Nothing but its next version is offered.
    assert_eq!(bank.renewal_of(name)["uses"], 5);
    let (status, _) = bank.does("ann", "accept", digest);
    assert_eq!(status, 404, "once");
    for signal in ["KILL", "TERM"] {
        bank.restart(signal);
        let again = bank.rule(name);
        assert_eq!(again, rule, "after {signal}");
    }
    bank.is_paid(5);
    bank.asks_and_keeps_spent(name);
}

impl Bank {
    /// A spent rule asks a person again, and its next call suspends it.
    fn asks_and_keeps_spent(&self, name: &str) {
        let decided = self.proposal_of(5);
        assert_eq!(decided["state"], "completed", "{decided}");
        let call = self.propose(5);
        let proposal = self.pending();
        let explained = self.explain(&proposal);
        assert!(explained.contains(name), "{explained}");
        assert!(explained.contains("its budget is used up"), "{explained}");
        self.reject(&proposal);
        call.rest();
        // The rejection is graver than the budget.
        let rule = self.comes_to(name, "suspended");
        let why = rule["why"].as_str().unwrap();
        assert!(why.ends_with("which was rejected"), "{rule}");
    }
}

#[test]
fn a_rule_is_offered_with_what_it_rests_on_and_covers_no_rejection() {
    let mut bank = Bank::new();
    let mut past = approvals();
    let rejected = PastPayment {
        verdict: "rejected",
        by: "boss",
        weight: "hasty",
        ..PastPayment::of(400)
    };
    past.push(rejected);
    bank.has_decided(&past);
    let offer = bank.only_offer("ann");
    let sentence = offer["sentence"].as_str().unwrap();
    let conditions = "scout may call pay of bank when amount is a whole number from 5 to 100";
    assert!(sentence.starts_with(conditions), "{offer}");
    assert_eq!(offer["uses"], 8, "a third of its approvals: {offer}");
    assert_eq!(offer["differing"], json!(["amount"]), "{offer}");
    assert_eq!(
        offer["rows"][0]["values"],
        json!(["5"]),
        "extremes first: {offer}"
    );
    let why = "amount is 400, and not: is a whole number from 5 to 100";
    let nearest = offer["nearest"].as_array().unwrap();
    assert!(
        nearest.iter().any(|one| one["excluded_by"][0] == why),
        "{offer}"
    );
    let replay = &offer["replay"];
    assert_eq!(
        [&replay["approved_by_you"], &replay["rejected"]],
        [&json!(24), &json!(0)],
        "{offer}"
    );
    let bound = offer["approved_share_permille"].as_u64().unwrap();
    assert!((500..900).contains(&bound), "{offer}");
    assert_eq!(replay["rule"], offer["rule"], "{offer}");
    let shown = bank.portmoot_as("ann", &["rules", "offers"], 0);
    let digest = &offer["digest"].as_str().unwrap()[..12];
    let head = format!("{digest}  rests on 24 approvals of yours\n  {sentence}\n");
    assert!(shown.starts_with(&head), "{shown}");
    assert!(shown.contains(why), "{shown}");
    let by_command = bank.portmoot_as("ann", &["rules", "offers", "--json"], 0);
    let by_command: Value = serde_json::from_str(&by_command).unwrap();
    assert_eq!(by_command["offers"][0], offer);
    // What lies between the approved amounts runs, and what lies outside waits.
    let name = bank.accepts();
    bank.is_paid(33);
    bank.asks(101);
    // Not covered by the rule.
    assert_eq!(bank.rule(&name)["state"], "in force");
    assert_eq!(bank.rule(&name)["used"], 1);
}

/// In the chat's inbox: all that `portmoot rules offers` shows of it is read before a key accepts it.
#[test]
fn a_rule_is_accepted_and_another_refused_in_the_chat() {
    for (key, question, done) in [
        (
            "a",
            "y puts the rule in force",
            "the suggested rule is in force",
        ),
        (
            "r",
            "y refuses the rule for good",
            "the suggested rule is refused",
        ),
    ] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let offer = bank.only_offer("ann");
        let (url, ann) = (bank.gateway.url(), token("ann"));
        let chat = ["chat", "--url", &url, "--token", &ann];
        let pane = Pane::start(&bank.home, (100, 20), &chat);
        pane.wait_for("You are ann");
        pane.press(&["F2"]);
        pane.wait_for("s suggested");
        pane.press(&["s"]);
        pane.wait_for("suggested rule 1 of 1");
        pane.wait_for(&offer["digest"].as_str().unwrap()[..12]);
        pane.press(&["a"]);
        pane.wait_for("rows of the rule were not shown yet");
        pane.press(&["Space", "Space", "Space", "Space", key]);
        pane.wait_for(question);
        pane.press(&["y"]);
        pane.wait_for(done);
        pane.wait_for("no rule is offered to you");
        assert!(bank.offers("ann").is_empty());
        let rules = bank.portmoot_as("ann", &["rules", "ls"], 0);
        let name = offer["rule"].as_str().unwrap();
        assert_eq!(rules.contains(name), key == "a", "{rules}");
    }
}

#[test]
fn what_does_not_teach_makes_no_offer() {
    let mut bank = Bank::new();
    let more = |change: &dyn Fn(&mut PastPayment)| {
        let mut past = approvals();
        past.iter_mut().for_each(change);
        past
    };
    // Approvals of other participants, in a hurry, by a program, of own proposals, by rules, and of a
    // past that is over.
    let past = [
        more(&|one| one.by = "boss"),
        more(&|one| one.weight = "hasty"),
        more(&|one| one.weight = "none"),
        more(&|one| one.proposer = "ann"),
        more(&|one| {
            one.rule = Some("r1.1");
            one.weight = "none";
        }),
        more(&|one| one.days_ago += 90),
    ];
    bank.has_decided(&past.concat());
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    // Those of boss are boss's.
    let offer = bank.only_offer("boss");
    assert_eq!(offer["approvals"].as_array().unwrap().len(), 24, "{offer}");
    assert!(
        offer["sentence"]
            .as_str()
            .unwrap()
            .contains("on boss's authority"),
        "{offer}"
    );
}

#[test]
fn a_call_that_was_decided_both_ways_ends_learning() {
    let mut bank = Bank::new();
    let mut past = approvals();
    past.push(PastPayment {
        verdict: "rejected",
        by: "boss",
        weight: "hasty",
        ..PastPayment::of(50)
    });
    bank.has_decided(&past);
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    let why = bank.withheld("ann");
    assert!(why.contains("the reason is not in the arguments"), "{why}");
    assert!(
        bank.portmoot_as("ann", &["rules", "offers"], 0)
            .contains("none for pay of bank")
    );
}

#[test]
fn only_what_its_author_may_decide_now_is_offered() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let digest = bank.only_offer("ann")["digest"].clone();
    let may = super::bank::AUTHOR;
    bank.change(may, "capabilities = [\"mcp/proposal:*\"]");
    bank.ann_may(false);
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    let (status, _) = bank.does("ann", "accept", digest.as_str().unwrap());
    assert_eq!(status, 404);
    assert_eq!(bank.rules().len(), 0);
}

#[test]
fn a_rejection_suspends_before_the_next_use() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts();
    bank.is_paid(20);
    // A call of another proposer, about which people decide.
    bank.asks_for("dave", "bank_pay", 30);
    let rule = bank.rule(&name);
    assert_eq!(rule["state"], "suspended", "{rule}");
    bank.asks(20);
    bank.restart("KILL");
    assert_eq!(bank.rule(&name)["state"], "suspended");
    bank.asks(21);
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
}

#[test]
fn an_ended_rule_is_gone_for_ever_and_its_approvals_with_it() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts();
    bank.is_paid(20);
    let (status, refused) = bank.ends("scout", &name);
    assert_eq!((status, &refused["code"]), (404, &json!("unknown_target")));
    let id = name.strip_suffix(".1").unwrap();
    let shown = bank.portmoot_as("ann", &["rules", "end", id], 0);
    assert!(shown.contains("ended: ann ended it"), "{shown}");
    assert_eq!(bank.rules().len(), 0);
    bank.asks(20);
    bank.restart("KILL");
    assert_eq!(bank.rules().len(), 0);
    bank.asks(20);
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    let (status, _) = bank.ends("ann", &name);
    assert_eq!(status, 404);
}

#[test]
fn a_participant_that_could_decide_all_of_it_ends_a_rule() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts();
    let (status, ended) = bank.ends("boss", &name);
    assert_eq!((status, &ended["state"]), (200, &json!("ended")), "{ended}");
    bank.asks(20);
}

#[test]
fn a_dismissed_offer_does_not_come_back_with_the_same_approvals() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let digest = bank.only_offer("ann")["digest"].clone();
    let words = ["rules", "dismiss", &digest.as_str().unwrap()[..12]];
    bank.portmoot_as("ann", &words, 0);
    for _ in 0..2 {
        assert_eq!(bank.offers("ann"), [json!(null); 0]);
        let (status, _) = bank.does("ann", "accept", digest.as_str().unwrap());
        assert_eq!(status, 404);
        bank.restart("KILL");
    }
    assert_eq!(bank.rules().len(), 0);
}

#[test]
fn learned_rules_stand_beside_those_of_the_file_and_need_none() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts();
    let file = bank
        .approving("r1", "uses = 9", UP_TO_100)
        .replace("scout", "dave");
    bank.home.write("rules.toml", &file);
    bank.gateway.signal("HUP");
    until("both are there", || (bank.rules().len() == 2).then_some(()));
    bank.is_paid(20);
    bank.is_paid_by("dave", "bank_pay", 21);
    let rules = bank.rules();
    assert_eq!(rules[1]["rule"], name, "{rules:?}");
    assert!(
        rules[0]["accepted"].is_null() && rules[1]["accepted"].is_string(),
        "{rules:?}"
    );
    let (status, refused) = bank.ends("ann", "r1");
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("conflict")),
        "{refused}"
    );
    // No file has a rule of such a name.
    let taken = file.replace("\"r1\"", "\"learned-00000000\"");
    let written = bank.home.write("taken.toml", &taken);
    let words = ["rules", "replay", written.to_str().unwrap()];
    let refused = bank.home.run(&words).expect(2).stderr;
    assert!(
        refused.contains("ids that begin so are those of learned rules"),
        "{refused}"
    );
    bank.change("rules = \"rules.toml\"\n", "");
    until("the file is gone", || {
        (bank.rules().len() == 1).then_some(())
    });
    bank.is_paid(22);
    bank.asks_for("dave", "bank_pay", 400);
    assert_eq!(bank.rule(&name)["state"], "in force");
}

#[test]
fn the_wire_gives_models_no_way_to_accept() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let digest = bank.only_offer("ann")["digest"].clone();
    let digest = digest.as_str().unwrap();
    for wrong in ["0".repeat(64), digest[..63].to_owned(), "x".repeat(64)] {
        let (status, refused) = bank.does("ann", "accept", &wrong);
        assert!([400, 404].contains(&status), "{wrong}: {refused}");
    }
    let (status, _) = bank.does("stranger", "accept", digest);
    assert_eq!(status, 401);
    assert_eq!(bank.rules().len(), 0);
    // Another amount is another offer.
    bank.is_decided("boss", FAILING, "reject", &json!({}));
    let (status, refused) = bank.does("ann", "accept", digest);
    assert_eq!(status, 404, "{refused}");
    assert_eq!(bank.rules().len(), 0);
}
