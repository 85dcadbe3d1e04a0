//! Any bytes as the arguments of a call before approving rules.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{Digest, KindRef, OperationId, ParticipantId};
use rules::{Arguments, CallStage, Conditions, Fit, Pointer, RuleSet, RuledCall, Spent};

const DIGEST: Digest = Digest([0xAB; 32]);
/// The 27th of November 2026, 12:00 UTC.
const NOON_MS: u64 = 1_795_780_800_000;
const TESTS: [&str; 4] = [
    "\"/a\" = { one_of = [1, 2] }\n\"/b\" = { equals = \"a\" }",
    "\"/path\" = { under = \"/srv/docs\" }",
    "\"/url\" = { url = { origin = \"https://example.com\", under = \"/a\" } }",
    "\"/n\" = { integer = [0, 100] }",
];

fn approving(when: &str) -> RuleSet {
    let text = format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\nexpires = \"2026-12-06T09:00:00Z\"\nuses = 33\n\
         [rule.when]\n{when}\n"
    );
    RuleSet::parse(&text).expect("a rule that can be read")
}

fn pointers(arguments: &Arguments) -> Vec<Pointer> {
    arguments
        .leaves()
        .map(|(pointer, _)| pointer.clone())
        .collect()
}

fn is_approved(rules: &RuleSet, bytes: &[u8]) -> bool {
    let arguments = Arguments::read(bytes);
    let proposer = ParticipantId::new("scout").expect("a name");
    let to = ParticipantId::new("bank").expect("a name");
    let call = RuledCall {
        operation: OperationId(1),
        proposer: &proposer,
        to: &to,
        kind: KindRef::parse("mcp/request:tools/call:pay").expect("a kind"),
        arguments: arguments.as_ref(),
        beside: &[],
        definition: Some(DIGEST),
        server: Some(DIGEST),
        at_ms: NOON_MS,
    };
    let decided = rules.decide(&call, &Spent::default(), CallStage::Proposed);
    decided.is_some()
}

fuzz_target!(|bytes: &[u8]| {
    let read = Arguments::read(bytes);
    for when in TESTS {
        let set = approving(when);
        if !is_approved(&set, bytes) {
            continue;
        }
        let read = read.as_ref().expect("what is approved can be read");
        let named: Vec<Pointer> = set.rules()[0].when.present().cloned().collect();
        assert_eq!(pointers(read), named, "an equal set of members");
        assert!(
            is_approved(&set, read.text().as_bytes()),
            "the canonical text"
        );
    }
    let Ok(read) = read else { return };
    let again = Arguments::read(read.text().as_bytes()).expect("the canonical text can be read");
    assert_eq!(again.text(), read.text());
    if let Some(exactly) = Conditions::exactly(&read) {
        assert_eq!(exactly.fit_closed(&again), Fit::Held);
    }
});
