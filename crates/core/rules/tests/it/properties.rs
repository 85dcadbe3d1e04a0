//! Properties: an approving rule matches an equal set of members alone, and what a set prints reads
//! as the set.

use proptest::prelude::*;
use rules::{
    Arguments, CallStage, Conditions, Fit, Pointer, RuleDecision, RuleSet, Spent, parse_rules,
};

use crate::support::{OwnedCall, approving};

fn pointers(arguments: &Arguments) -> Vec<Pointer> {
    arguments
        .leaves()
        .map(|(pointer, _)| pointer.clone())
        .collect()
}

/// Objects with few names, so that equal sets of members occur.
fn object() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("2".to_owned()),
        Just("1.0".to_owned()),
        Just("1e0".to_owned()),
        Just("\"1\"".to_owned()),
        Just("null".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("\"a\"".to_owned()),
        Just("\"A\"".to_owned()),
    ];
    let name = prop_oneof![
        Just("a"),
        Just("b"),
        Just("A"),
        Just("\\u0061"),
        Just("a\u{200b}")
    ];
    let member = (name, leaf).prop_map(|(name, leaf)| format!("\"{name}\":{leaf}"));
    prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #[test]
    fn a_match_implies_an_equal_set_of_members(arguments in object()) {
        let set = approving("\"/a\" = { one_of = [1, 2] }\n\"/b\" = { equals = \"a\" }");
        let spent = Spent::default();
        let call = OwnedCall::new(&arguments);
        let matches = call.with(|call| set.decide(call, &spent, CallStage::Proposed).is_some());
        if matches {
            let read = Arguments::read(arguments.as_bytes()).unwrap();
            let named: Vec<Pointer> = set.rules()[0].when.present().cloned().collect();
            prop_assert_eq!(pointers(&read), named);
        }
    }

    #[test]
    fn any_arguments_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let call = OwnedCall::new(&String::from_utf8_lossy(&bytes));
        let set = approving("\"/a\" = { equals = 1 }");
        let spent = Spent::default();
        let decided = call.with(|call| set.decide(call, &spent, CallStage::Proposed).is_some());
        prop_assert_eq!(decided, Arguments::read(call.arguments.as_bytes()).is_ok_and(|read| read.text() == "{\"a\":1}"));
    }

    #[test]
    fn exact_conditions_hold_for_their_arguments_alone(one in object(), other in object()) {
        let (Ok(one), Ok(other)) = (Arguments::read(one.as_bytes()), Arguments::read(other.as_bytes())) else {
            return Ok(());
        };
        let when = Conditions::exactly(&one).unwrap();
        prop_assert_eq!(when.fit_closed(&other) == Fit::Held, one == other);
    }

    #[test]
    fn a_rejecting_rule_takes_whatever_an_approving_one_takes(arguments in object()) {
        let when = "\"/a\" = { one_of = [1, 2] }";
        let approving = approving(when);
        let text = format!(
            "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
             kind = \"mcp/request:tools/call:create_issue\"\nproposers = [\"*\"]\n[rule.when]\n{when}\n"
        );
        let rejecting = RuleSet::parse(&text).unwrap();
        let spent = Spent::default();
        let call = OwnedCall::new(&arguments);
        let decision = |set: &RuleSet| call.with(|call| {
            set.decide(call, &spent, CallStage::Proposed).map(|answer| answer.decision())
        });
        if decision(&approving).is_some() || Arguments::read(arguments.as_bytes()).is_err() {
            prop_assert_eq!(decision(&rejecting), Some(RuleDecision::Reject));
        }
    }

    #[test]
    fn files_of_rules_never_panic(text in "(\\[\\[rule\\]\\]|id|when|[a-z=\"{}\\[\\]\n ]){0,40}") {
        let _ = parse_rules(&text);
    }
}
