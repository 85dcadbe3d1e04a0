//! Effects of changes, and refused changes.

use store::Fold;

use super::*;
use crate::record::AccessRecord;

fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

fn set(texts: &[&str]) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(texts.iter().copied()).unwrap())
}

fn texts(held: &Capabilities) -> Vec<&str> {
    held.iter().map(Capability::as_str).collect()
}

fn request(
    add: &[&str],
    remove: &[&str],
    topic: Option<&str>,
    expires_ms: Option<u64>,
) -> GrantRequest {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    GrantRequest {
        participant: id("agent-a"),
        topic: topic.map(|topic| TopicName::new(topic).unwrap()),
        add: owned(add),
        remove: owned(remove),
        expires_ms,
        reason: None,
    }
}

/// Makes changes one after the other, as the operator. Returns the capabilities in `main`, in
/// another topic, and outside of topics.
fn after(changes: &[GrantRequest], now_ms: u64) -> [Vec<String>; 3] {
    let mut state = AccessState::default();
    let configured = set(&["mcp/proposal:*", "chat"]);
    let main = TopicName::new("main").unwrap();
    let side = TopicName::new("side").unwrap();
    for (at, change) in (1..).zip(changes) {
        let grants = Grants::read(&state, &IdentityConfig::default());
        let before = grants.over(&id("agent-a"), &configured, change.topic.as_ref(), at);
        let records = grants
            .change(change, &before, (&id("admin"), &Capabilities::full()), at)
            .unwrap();
        records
            .into_iter()
            .for_each(|change| state.apply(&AccessRecord::GrantChanged(change)));
    }
    let grants = Grants::read(&state, &IdentityConfig::default());
    [Some(&main), Some(&side), None].map(|topic| {
        let held = grants.over(&id("agent-a"), &configured, topic, now_ms);
        held.iter()
            .map(|capability| capability.as_str().to_owned())
            .collect()
    })
}

#[test]
fn changes_apply_in_order_and_until_they_expire() {
    const P: &str = "mcp/proposal:*";
    const T: &str = "mcp/request:tools/*";
    for (changes, main, side) in [
        (vec![], vec![P, "chat"], vec![P, "chat"]),
        (
            vec![request(&[T], &[], None, None)],
            vec![P, T, "chat"],
            vec![P, T, "chat"],
        ),
        (
            vec![request(&[T], &[], Some("main"), None)],
            vec![P, T, "chat"],
            vec![P, "chat"],
        ),
        (vec![request(&[], &["chat"], None, None)], vec![P], vec![P]),
        (
            vec![request(&[T], &[P], None, None)],
            vec!["chat", T],
            vec!["chat", T],
        ),
        // A change for all topics replaces an earlier one for a single topic.
        (
            vec![
                request(&[T], &[], Some("main"), None),
                request(&[], &[T], None, None),
            ],
            vec![P, "chat"],
            vec![P, "chat"],
        ),
        (
            vec![
                request(&[], &["chat"], Some("main"), None),
                request(&["chat"], &[], None, None),
            ],
            vec![P, "chat"],
            vec![P, "chat"],
        ),
        // A later change for a single topic applies over one for all topics.
        (
            vec![
                request(&[T], &[], None, None),
                request(&[], &[T], Some("main"), None),
            ],
            vec![P, "chat"],
            vec![P, T, "chat"],
        ),
        (
            vec![request(&[T], &[], None, Some(99))],
            vec![P, "chat"],
            vec![P, "chat"],
        ),
        (
            vec![request(&[T], &[], None, Some(101))],
            vec![P, T, "chat"],
            vec![P, T, "chat"],
        ),
        (
            vec![request(&[], &["chat"], None, Some(99))],
            vec![P, "chat"],
            vec![P, "chat"],
        ),
        (
            vec![request(&["chat"], &[], None, None)],
            vec![P, "chat"],
            vec![P, "chat"],
        ),
    ] {
        let [in_main, in_side, _] = after(&changes, 100);
        assert_eq!(
            (in_main, in_side),
            (owned(&main), owned(&side)),
            "{changes:?}"
        );
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn invalid_and_unauthorized_changes_are_refused() {
    let before = set(&["mcp/proposal:*", "chat", "portmoot/audit"]);
    let grants = Grants::default();
    let many: Vec<String> = (0..=PARTICIPANT_GRANTS_MAX)
        .map(|at| format!("name/{at}"))
        .collect();
    for (authority, request, code, words) in [
        (
            "mcp/*",
            request(&[], &[], None, None),
            RefusalCode::Malformed,
            "nothing is added",
        ),
        (
            "mcp/*",
            request(&["mcp/*", "*"], &[], None, None),
            RefusalCode::Malformed,
            "`*` is not a capability",
        ),
        (
            "mcp/*",
            request(&["system/x"], &[], None, None),
            RefusalCode::Malformed,
            "belong to the gateway",
        ),
        (
            "mcp/*",
            request(&["chat"], &["chat"], None, None),
            RefusalCode::Malformed,
            "both added and removed",
        ),
        (
            "mcp/*",
            request(&["mcp/*"], &[], None, Some(10)),
            RefusalCode::Malformed,
            "end before it begins",
        ),
        (
            "mcp/*",
            request(&[], &["mcp/*"], None, None),
            RefusalCode::Malformed,
            "does not hold the capability",
        ),
        (
            "chat",
            request(&["mcp/*"], &[], None, None),
            RefusalCode::CapabilityViolation,
            "you do not hold",
        ),
        (
            "mcp/*",
            request(&[], &["chat"], None, None),
            RefusalCode::CapabilityViolation,
            "`chat`",
        ),
        (
            "mcp/request:*",
            request(&[], &["mcp/proposal:*"], None, None),
            RefusalCode::CapabilityViolation,
            "you do not hold",
        ),
        (
            "mcp/*",
            request(&["portmoot/grants"], &[], None, None),
            RefusalCode::CapabilityViolation,
            "`portmoot/grants`",
        ),
        (
            "mcp/*",
            request(&[], &["portmoot/audit"], None, None),
            RefusalCode::CapabilityViolation,
            "`portmoot/audit`",
        ),
        (
            "mcp/*",
            GrantRequest {
                add: many,
                ..request(&[], &[], None, None)
            },
            RefusalCode::TooLarge,
            "at most",
        ),
    ] {
        let authority = set(&[authority]);
        let refusal = grants
            .change(&request, &before, (&id("admin"), &authority), 10)
            .unwrap_err();
        assert_eq!(refusal.code, code, "{refusal}");
        assert!(refusal.message.contains(words), "{refusal}");
    }
    // A participant takes away only what it holds itself, also as a part of a wider capability.
    for (authority, taken) in [
        ("mcp/*", "chat"),
        ("chat", "mcp/proposal:*"),
        ("mcp/*", "mcp/proposal:*"),
        ("chat", "chat"),
    ] {
        let request = request(&[], &[taken], None, None);
        let changed = grants.change(&request, &before, (&id("admin"), &set(&[authority])), 10);
        let holds = authority == taken || (authority == "mcp/*" && taken != "chat");
        assert_eq!(changed.is_ok(), holds, "{authority} {taken}");
    }
}

#[test]
fn the_next_expiry_is_known() {
    let mut state = AccessState::default();
    for expires_ms in [50, 20] {
        let change = GrantChange {
            participant: "agent-a".into(),
            topic: None,
            added: vec![format!("name/{expires_ms}")],
            removed: Vec::new(),
            by: "admin".into(),
            reason: None,
            at_ms: 1,
            expires_ms: Some(expires_ms),
            configured: None,
        };
        state.apply(&AccessRecord::GrantChanged(change));
    }
    let grants = Grants::read(&state, &IdentityConfig::default());
    assert_eq!(
        [0, 20, 50].map(|since| grants.next_expiry(since)),
        [Some(20), Some(50), None]
    );
    assert_eq!(
        texts(&grants.over(&id("agent-a"), &set(&[]), None, 20)),
        ["name/50"]
    );
}
