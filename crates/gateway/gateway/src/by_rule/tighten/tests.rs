//! Requests in a room without servers, before rules that ask or reject.

use model::RefusalCode;
use rules::{CallRule, parse_rules};
use serde_json::{Value, json};
use wire::mcpx::Envelope;

use crate::envelopes::tests::Stage;

/// Rule of boss's about calls of `pay` at `worker` above 100.
const ASKING: &str = "[[rule]]\nid = \"r1\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
    kind = \"mcp/request:tools/call:pay\"\nto = \"worker\"\nproposers = [\"*\"]\n\
    [rule.when]\n\"/amount\" = { integer = [101, 1000] }\n";
const PAY: &str = "mcp/request:tools/call:pay";

fn stage() -> Stage {
    Stage::new(&["mcp/request:*", "mcp/proposal:*"])
}

fn rules(text: &str) -> Vec<CallRule> {
    parse_rules(text).unwrap()
}

/// Puts rules in force, of which no use could be recorded.
fn put(stage: &Stage, text: &str) {
    stage.dispatch.put_rules_in_force(&rules(text));
}

/// The refusal of a request of ann's.
fn refusal(stage: &Stage, kind: &str, to: &[&str], params: &Value) -> Option<RefusalCode> {
    let payload = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (id, _) = stage.dispatch.stamp();
    let envelope = json!({
        "protocol": "mcpx/v0.1", "id": id, "from": "ann", "to": to, "kind": kind, "payload": payload,
    });
    let envelope = Envelope::read(envelope.to_string().into()).unwrap();
    let spoken = stage.dispatch.speak(stage.ann.opener(), envelope);
    spoken.err().map(|refusal| refusal.code)
}

fn pay(amount: u64) -> Value {
    json!({ "name": "pay", "arguments": { "amount": amount } })
}

#[track_caller]
fn is_asked(stage: &Stage, kind: &str, to: &[&str], params: &Value) {
    let expected = Some(RefusalCode::CapabilityViolation);
    assert_eq!(refusal(stage, kind, to, params), expected, "{kind} {to:?}");
}

#[tokio::test]
async fn a_request_to_a_participant_is_judged_by_what_it_says() {
    let stage = stage();
    put(&stage, ASKING);
    for (to, amount) in [(&["worker"][..], 100), (&["other"], 101), (&[], 100)] {
        assert_eq!(refusal(&stage, PAY, to, &pay(amount)), None, "{to:?}");
    }
    is_asked(&stage, PAY, &["worker"], &pay(101));
    is_asked(&stage, PAY, &["other", "worker"], &pay(101));
    // Any participant may answer it, this one too.
    is_asked(&stage, PAY, &[], &pay(101));
    // A kind that does not name the tool.
    let short = "mcp/request:tools/call";
    is_asked(&stage, short, &["worker"], &pay(101));
    assert_eq!(refusal(&stage, short, &["worker"], &pay(1)), None);
    // A payload that the kind does not agree with: another tool, and none that can be read.
    let get = json!({ "name": "get", "arguments": { "amount": 1 } });
    is_asked(&stage, PAY, &["worker"], &get);
    is_asked(&stage, short, &["worker"], &json!([]));
    is_asked(&stage, short, &[], &json!([]));
    let other = "mcp/request:tools/call:get";
    assert_eq!(refusal(&stage, other, &["worker"], &get), None);
    // The gateway itself is asked about nothing.
    assert_eq!(refusal(&stage, PAY, &["portmoot"], &pay(101)), None);
}

#[tokio::test]
async fn while_rules_are_paused_those_of_before_and_those_that_come_ask() {
    let stage = stage();
    let coming = ASKING.replace(":pay", ":get");
    let get = json!({ "name": "get", "arguments": { "amount": 101 } });
    let get_kind = "mcp/request:tools/call:get";
    stage.dispatch.pause_rules(&rules(&coming));
    is_asked(&stage, get_kind, &["worker"], &get);
    assert_eq!(refusal(&stage, PAY, &["worker"], &pay(101)), None);
    put(&stage, ASKING);
    stage.dispatch.pause_rules(&rules(&coming));
    is_asked(&stage, get_kind, &["worker"], &get);
    is_asked(&stage, PAY, &["worker"], &pay(101));
    put(&stage, &coming);
    is_asked(&stage, get_kind, &["worker"], &get);
    assert_eq!(refusal(&stage, PAY, &["worker"], &pay(101)), None);
}

#[tokio::test]
async fn without_a_rule_that_rejects_or_asks_no_call_is_looked_at() {
    let stage = stage();
    let desk = &stage.dispatch.rules;
    let looks = || (desk.tightens(), desk.looks_at_direct());
    assert_eq!(looks(), (false, false));
    put(&stage, ASKING);
    assert_eq!(looks(), (true, true));
    stage.dispatch.pause_rules(&[]);
    assert_eq!(
        looks(),
        (true, true),
        "until the rules after them are in force"
    );
    put(&stage, "");
    assert_eq!(looks(), (false, false));
    stage.dispatch.pause_rules(&rules(ASKING));
    assert_eq!(looks(), (true, true));
}
