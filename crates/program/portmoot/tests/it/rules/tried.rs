//! Rules tried on the past, beside what was decided and what they really decide.

use serde_json::{Value, json};

use super::bank::{Bank, REFUSED, UNANSWERED, UP_TO_100};
use crate::http::{Connection, Events};
use crate::ws::token;

/// The amount that a proposal asks for.
fn amount_of(proposal: &Value) -> u64 {
    proposal["params"]["arguments"]["amount"].as_u64().unwrap()
}

impl Bank {
    /// A request of a participant to the API; its answer, with the status.
    pub(super) fn asks_api(&self, who: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {}", token(who));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let mut connection = Connection::open(self.gateway.address());
        let path = format!("/api/v1/{path}");
        let reply = connection.exchange("POST", &path, &headers, &body.to_string());
        (reply.status, reply.json())
    }

    /// A participant has rules tried by the API.
    fn tries(&self, who: &str, rules: &str) -> Value {
        let body = json!({ "rules": rules });
        let (status, tried) = self.asks_api(who, "topics/main/rules/replay", &body);
        assert_eq!(status, 200, "{tried}");
        tried
    }

    /// Boss has rules tried by the command line.
    fn replays(&self, rules: &str, more: &[&str]) -> String {
        self.home.write("tried.toml", rules);
        let file = self.home.path().join("tried.toml");
        let words = ["rules", "replay", file.to_str().unwrap()];
        self.portmoot(&[&words, more].concat(), 0)
    }

    /// Scout proposes a payment, which waits for people.
    pub(super) fn is_proposed(&self, amount: u64) -> (Events, Value) {
        let call = self.propose(amount);
        let proposal = self.pending();
        assert_eq!(amount_of(&proposal), amount);
        (call, proposal)
    }

    /// A participant decides about a payment that scout proposes.
    pub(super) fn is_decided(&self, who: &str, amount: u64, verb: &str, more: &Value) {
        let (call, proposal) = self.is_proposed(amount);
        let path = format!("proposals/{}/{verb}", proposal["id"].as_str().unwrap());
        let mut body = more.clone();
        if verb == "approve" {
            body["digest"] = proposal["digest"].clone();
        }
        let (status, decided) = self.asks_api(who, &path, &body);
        assert_eq!(status, 200, "{decided}");
        call.rest();
    }

    /// The payment that scout proposes expires.
    fn expires(&mut self, amount: u64) {
        let before = self.config.clone();
        let (topic, short) = ("[topics.main]\n", "[topics.main]\nproposal_ttl = \"1s\"\n");
        self.config = before.replacen(topic, short, 1);
        self.restart("TERM");
        self.propose(amount).rest();
        assert_eq!(self.proposal_of(amount)["state"], "expired");
        self.config = before;
        self.restart("TERM");
    }
}

#[test]
fn rules_are_tried_on_what_was_decided() {
    let mut bank = Bank::new();
    bank.is_decided("boss", 1, "approve", &json!({}));
    bank.is_decided("ann", 2, "approve", &json!({}));
    // What was approved counts, and not what was proposed.
    let edited = json!({ "arguments": { "amount": 99 } });
    bank.is_decided("boss", 300, "approve", &edited);
    bank.is_decided("boss", 4, "reject", &json!({}));
    bank.is_decided("scout", 5, "withdraw", &json!({}));
    let rules = bank.approving("r1", "uses = 9", UP_TO_100);
    let shown = bank.replays(&rules, &[]);
    let (of_rule, in_all) = shown.split_once("\nin all  ").unwrap();
    let rejected = bank.proposal_of(4);
    assert_eq!(
        of_rule,
        format!(
            "r1.1  would have approved 2 proposals that you approved by hand, 1 that others approved, \
             1 that was rejected, 1 that was withdrawn\n  decided otherwise: {}",
            rejected["id"].as_str().unwrap()
        )
    );
    // One showed the digests.
    assert_eq!(
        in_all,
        "would have answered 5 of 6 proposals, would have contradicted 1, \
         would have decided 1 that were left undecided\n"
    );
    let by_api = bank.tries("boss", &rules);
    let by_command: Value = serde_json::from_str(&bank.replays(&rules, &["--json"])).unwrap();
    assert_eq!(by_command, by_api);
    let rule = &by_api["rules"][0];
    assert_eq!(rule["contradicted"], json!([rejected["id"]]));
    assert_eq!(rule["decided"].as_array().unwrap().len(), 5);
    assert_eq!(by_api["proposals"], 6);
    // Ann has approved one of them.
    let of_ann = bank.tries("ann", &rules);
    let of_ann = &of_ann["rules"][0];
    assert_eq!(
        [&of_ann["approved_by_you"], &of_ann["approved_by_others"]],
        [&json!(1), &json!(2)],
        "{of_ann}"
    );
    bank.expires(6);
    bank.put(&bank.approving("r7", "uses = 1", UP_TO_100));
    bank.is_paid(7);
    let rule = &bank.tries("boss", &rules)["rules"][0];
    assert_eq!(
        [&rule["expired"], &rule["approved_by_rules"]],
        [&json!(1), &json!(1)],
        "{rule}"
    );
    let since = bank.replays(&rules, &["--since", "2099-01-01"]);
    assert!(
        since.contains("would have answered 0 of 0 proposals"),
        "{since}"
    );
    // Nothing was decided or spent by all this.
    assert_eq!(bank.rules().len(), 1);
    assert_eq!(bank.rule("r7.1")["used"], 1);
}

#[test]
fn decisions_outlive_a_crash_once_they_are_acknowledged() {
    let mut bank = Bank::new();
    let rules = bank.approving("r1", "uses = 9", UP_TO_100);
    for (amount, verb) in [(1, "approve"), (2, "reject")] {
        bank.is_decided("boss", amount, verb, &json!({}));
        bank.restart("KILL");
    }
    let rule = &bank.tries("boss", &rules)["rules"][0];
    assert_eq!(
        [&rule["approved_by_you"], &rule["rejected"]],
        [&json!(1), &json!(1)],
        "{rule}"
    );
}

#[test]
fn rules_are_tried_for_none_who_may_not_see_the_proposals() {
    let bank = Bank::new();
    bank.is_decided("boss", 1, "approve", &json!({}));
    let rules = bank.approving("r1", "uses = 9", UP_TO_100);
    assert_eq!(bank.tries("ann", &rules)["proposals"], 2);
    // Scout sees its own, and dave none.
    assert_eq!(bank.tries("scout", &rules)["proposals"], 2);
    let of_dave = bank.tries("dave", &rules);
    assert_eq!(
        [&of_dave["proposals"], &of_dave["rules"][0]["decided"]],
        [&json!(0), &json!([])],
        "{of_dave}"
    );
    let body = json!({ "rules": rules });
    let (status, refused) = bank.asks_api("ann", "topics/none/rules/replay", &body);
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")));
    let (status, _) = bank.asks_api("stranger", "topics/main/rules/replay", &body);
    assert_eq!(status, 401);
}

#[test]
fn faults_of_rules_to_try_are_shown_at_their_place() {
    let bank = Bank::new();
    let rules = bank.approving("r1", "uses = 9", UP_TO_100);
    let misspelled = rules.replace("proposers", "proposer");
    let line = 1 + misspelled
        .lines()
        .position(|line| line.starts_with("proposer "))
        .unwrap();
    let file = bank.home.write("tried.toml", &misspelled);
    let words = ["rules", "replay", file.to_str().unwrap()];
    let url = bank.gateway.url();
    let boss = token("boss");
    let words = [&words[..], &["--url", &url, "--token", &boss]].concat();
    let refused = bank.home.run(&words).expect(2).stderr;
    assert!(refused.contains("the rules are not valid"), "{refused}");
    assert!(
        refused.contains(&format!("tried.toml:{line}:1")),
        "{refused}"
    );
    let path = "topics/main/rules/replay";
    let (status, refused) = bank.asks_api("boss", path, &json!({ "rules": misspelled }));
    let message = refused["message"].as_str().unwrap();
    assert_eq!((status, &refused["code"]), (400, &json!("malformed")));
    assert!(
        message.starts_with(&format!("rules.toml:{line}: rule r1: ")),
        "{refused}"
    );
    // As in a file that a topic names.
    let counting = rules
        .replace("\"approve\"", "\"reject\"")
        .replace("uses = 9", "rate = \"1/h\"");
    let (status, refused) = bank.asks_api("boss", path, &json!({ "rules": counting }));
    assert_eq!(status, 400, "{refused}");
    let (status, refused) = bank.asks_api("boss", path, &json!({ "rules": rules, "since": "1d" }));
    assert_eq!(status, 400, "{refused}");
}

/// The next number of a seed, below a bound.
fn next(seed: &mut u64, below: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

#[test]
fn a_rule_decides_what_its_trial_said_when_the_same_calls_come_again() {
    let sum = "uses = 9\nsum = [{ of = \"/amount\", max = 150, within = \"1d\" }]";
    let guards = ["uses = 2", "uses = 9\nrate = \"3/h\"", sum];
    for (first_seed, guard) in (1..).zip(guards) {
        let mut seed = first_seed;
        let bank = Bank::new();
        let mut amounts = Vec::new();
        for number in 0..10 {
            // Each amount is asked for once in a round.
            let mut amount = 10 * next(&mut seed, 14) + number;
            if [REFUSED, UNANSWERED].contains(&amount) {
                amount += 100;
            }
            let is_rejected = next(&mut seed, 4) == 0;
            let verb = if is_rejected { "reject" } else { "approve" };
            bank.is_decided("boss", amount, verb, &json!({}));
            amounts.push(amount);
        }
        let rule = bank.approving("r1", guard, UP_TO_100);
        let tried = bank.tries("boss", &rule);
        let all = bank.proposals();
        let amount = |id: &Value| amount_of(all.iter().find(|one| one["id"] == *id).unwrap());
        let decided = tried["rules"][0]["decided"].as_array().unwrap();
        let said: Vec<u64> = decided.iter().map(amount).collect();
        bank.put(&rule);
        for amount in amounts {
            if said.contains(&amount) {
                bank.is_paid(amount);
            } else {
                bank.asks(amount);
            }
        }
        let used = &bank.rule("r1.1")["used"];
        assert_eq!(used, said.len(), "{first_seed}, {guard}");
    }
}
