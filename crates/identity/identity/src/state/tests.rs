//! Tests of the state of access: records of each kind, limits, and what a compaction writes.

use proptest::prelude::*;

use super::*;
use crate::record::GrantChange;

const LINES: &str = r#"{"record":"token_issued","name":"scout","sha256":"cc","capabilities":["chat"],"topics":["main"],"created_ms":3,"expires_ms":4}
{"record":"token_issued","name":"ci","sha256":"dd","created_ms":5}
{"record":"token_revoked","name":"ci","at_ms":6}
{"record":"grant_changed","participant":"scout","topic":"main","added":["chat"],"removed":["mcp/*"],"by":"ana","reason":"so","at_ms":18,"expires_ms":19,"configured":true}
{"record":"grant_changed","participant":"scout","by":"ana","at_ms":20}
{"record":"grants_cleared","participant":"scout","topic":"main","at_ms":21}
{"record":"grants_cleared","participant":"scout","at_ms":22}
{"record":"token_issued","name":"temp","sha256":"d1","created_ms":5,"expires_ms":6,"expired":true}
{"record":"token_revoked","name":"temp","at_ms":7}
{"record":"expired","at_ms":22}
{"record":"login_key","key":"cc","created_ms":31}
{"record":"family_begun","id":"f1","participant":"ann","client":"c1","client_name":"editor","client_uri":"https://app.example/client.json","resource":"https://gw.example/mcp","scopes":["mcp:read"],"sha256":"h1","began_ms":32,"renewed_ms":32,"expires_ms":40,"ends_ms":50}
{"record":"family_renewed","id":"f1","sha256":"h2","at_ms":33,"expires_ms":41}
{"record":"family_ended","id":"f1","at_ms":34}
{"record":"consent_given","participant":"ann","client":"c1","client_name":"editor","redirect_uri":"http://127.0.0.1/cb","resource":"https://gw.example/mcp","scopes":["mcp:read"],"remembered":true,"at_ms":35}
{"record":"consent_withdrawn","participant":"ann","client":"c1","at_ms":36}
"#;

#[test]
fn every_record_has_its_golden_line() {
    for line in LINES.lines() {
        let record: AccessRecord = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

fn folded(records: &[AccessRecord]) -> AccessState {
    let mut state = AccessState::default();
    records.iter().for_each(|record| state.apply(record));
    state
}

fn token(name: &str) -> AccessRecord {
    AccessRecord::TokenIssued(IssuedToken {
        name: name.into(),
        sha256: "00".repeat(32),
        capabilities: None,
        topics: None,
        created_ms: 1,
        expires_ms: None,
        expired: false,
        incarnation: None,
    })
}

#[test]
fn a_revocation_removes_every_token_of_the_participant() {
    let mut state = AccessState::default();
    for record in [
        token("a"),
        token("b"),
        token("a"),
        AccessRecord::TokenRevoked {
            name: "a".into(),
            at_ms: 3,
        },
    ] {
        state.apply(&record);
    }
    let names: Vec<_> = state
        .tokens()
        .iter()
        .map(|token| token.name.as_str())
        .collect();
    assert_eq!(names, ["b"]);
}

fn granted(
    topic: Option<&str>,
    capability: &str,
    given: bool,
    at_ms: u64,
    expires_ms: Option<u64>,
) -> AccessRecord {
    let list = vec![capability.to_owned()];
    let (added, removed) = if given {
        (list, vec![])
    } else {
        (vec![], list)
    };
    AccessRecord::GrantChanged(GrantChange {
        participant: "scout".into(),
        topic: topic.map(str::to_owned),
        added,
        removed,
        by: "ana".into(),
        reason: None,
        at_ms,
        expires_ms,
        configured: None,
    })
}

#[test]
fn the_earlier_change_applies_again_after_a_temporary_grant_expires() {
    let check = |records: &[AccessRecord], now_ms: u64, expected: &[(&str, bool)]| {
        let state = folded(records);
        let applying = state.grants().filter(|grant| grant.applies(now_ms));
        let here =
            applying.filter(|grant| grant.topic.as_deref().is_none_or(|topic| topic == "main"));
        let found: Vec<_> = here
            .map(|grant| (grant.capability.as_str(), grant.granted))
            .collect();
        assert_eq!(found, expected, "{records:?} at {now_ms}");
    };
    let taken = granted(None, "chat", false, 1, None);
    let for_an_hour = granted(None, "chat", true, 2, Some(100));
    check(std::slice::from_ref(&taken), 5, &[("chat", false)]);
    check(
        &[taken.clone(), for_an_hour.clone()],
        99,
        &[("chat", false), ("chat", true)],
    );
    check(
        &[taken.clone(), for_an_hour.clone()],
        100,
        &[("chat", false)],
    );
    check(&[for_an_hour.clone(), taken.clone()], 5, &[("chat", false)]);
    check(
        &[for_an_hour.clone(), granted(None, "x", true, 200, None)],
        0,
        &[("x", true)],
    );
    check(&[granted(Some("other"), "chat", true, 1, None)], 5, &[]);
    let both = [
        granted(Some("main"), "chat", false, 1, None),
        granted(None, "chat", true, 2, None),
    ];
    check(&both, 5, &[("chat", true), ("chat", false)]);
    let cleared = |topic: Option<&str>| AccessRecord::GrantsCleared {
        participant: "scout".into(),
        topic: topic.map(str::to_owned),
        at_ms: 9,
    };
    check(
        &[&both[..], &[cleared(Some("main"))]].concat(),
        10,
        &[("chat", true)],
    );
    check(&[&both[..], &[cleared(None)]].concat(), 10, &[]);
}

#[test]
fn what_has_expired_on_record_stays_expired_whatever_the_clock_says_later() {
    let temporary = |end| granted(None, "chat", true, 2, Some(end));
    let issued = |name: &str, end| match token(name) {
        AccessRecord::TokenIssued(issued) => AccessRecord::TokenIssued(IssuedToken {
            expires_ms: end,
            ..issued
        }),
        other => other,
    };
    let lasting = granted(None, "x", true, 1, None);
    let tokens = [
        issued("a", Some(100)),
        issued("b", Some(101)),
        issued("c", None),
    ];
    let mut known = folded(&[&tokens[..], &[lasting, temporary(100)]].concat());
    assert_eq!(
        (known.has_expired(99), known.has_expired(100)),
        (false, true)
    );
    known.apply(&AccessRecord::Expired { at_ms: 100 });
    assert_eq!(
        (known.has_expired(100), known.has_expired(101)),
        (false, true)
    );
    for _ in 0..2 {
        let expired: Vec<bool> = known.tokens().iter().map(|token| token.expired).collect();
        assert_eq!(expired, [true, false, false]);
        assert_eq!(
            known
                .grants()
                .map(|grant| grant.capability.as_str())
                .collect::<Vec<_>>(),
            ["x"]
        );
        known = folded(&known.records(0));
    }
    // What is granted after the clock was set back begins anew.
    known.apply(&temporary(50));
    assert_eq!(known.grants().count(), 2);
}

fn any_record() -> impl Strategy<Value = AccessRecord> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let topic = prop::sample::select(vec![None, Some("main"), Some("other")]);
    prop_oneof![
        (
            topic.clone(),
            id.clone(),
            any::<bool>(),
            prop::option::of(1..40_u64)
        )
            .prop_map(|(topic, capability, given, end)| granted(topic, capability, given, 0, end)),
        topic.prop_map(|topic| AccessRecord::GrantsCleared {
            participant: "scout".into(),
            topic: topic.map(str::to_owned),
            at_ms: 0,
        }),
        id.clone().prop_map(token),
        (0..60_u64).prop_map(|at_ms| AccessRecord::Expired { at_ms }),
        id.clone()
            .prop_map(|key| AccessRecord::LoginKey(SealingKey {
                key: key.into(),
                created_ms: 0
            })),
        id.prop_map(|name| AccessRecord::TokenRevoked {
            name: name.into(),
            at_ms: 0
        }),
    ]
}

proptest! {
    #[test]
    fn compacted_records_rebuild_the_same_state(records in prop::collection::vec(any_record(), 0..60)) {
        let mut before = AccessState::default();
        for (at, record) in records.into_iter().enumerate() {
            let at_ms = at as u64;
            before.apply(&match record {
                AccessRecord::GrantChanged(change) => {
                    AccessRecord::GrantChanged(GrantChange { at_ms, ..change })
                }
                other => other,
            });
        }
        let written = before.records(0);
        prop_assert_eq!(written.len(), before.live());
        prop_assert_eq!(folded(&written), before);
    }
}
