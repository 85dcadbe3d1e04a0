//! Callers' requests: admission, delivery, one end.

use model::{LinkId, ListKind, RateLimit, RefusalCode};
use topic::{Cause, Event, ListItem, ListScope, PublicTarget, ServerLists, Verdict, Withholding};

use crate::{
    numbers::{Effect, Effects},
    shown::{delivered, refused, shown},
    stage::{ANN, BARE, BOB, CID, ONE, Stage, caps, configured, id, items, op, tools},
};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    stage
}

#[test]
fn a_request_settles_once() {
    let mut stage = stage();
    assert_eq!(
        shown(&stage.call(ANN, 1, "one_a")),
        ["deliver 1 to one as a"]
    );
    assert!(stage.topic.is_open(op(1)) && stage.topic.is_busy(ANN));
    assert!(
        shown(&stage.call(ANN, 1, "one_b")).is_empty(),
        "an id that is open is ignored"
    );
    assert!(
        shown(&stage.answer(BARE, 1, 5)).is_empty(),
        "another server's answer"
    );
    assert!(
        shown(&stage.answer(ANN, 1, 5)).is_empty(),
        "the caller's own answer"
    );
    assert_eq!(shown(&stage.answer(ONE, 1, 5)), ["settle 1 with 5"]);
    assert!(
        shown(&stage.answer(ONE, 1, 6)).is_empty(),
        "a second answer"
    );
    assert!(shown(&stage.fail(ONE, 1)).is_empty());
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.is_busy(ANN)),
        (0, false)
    );
}

#[test]
fn a_withheld_entry_is_refused_to_all_who_could_call_it_and_others_learn_nothing() {
    let withheld = |withheld: &[(&str, Withholding)]| {
        let item = |(own, withheld): &(&str, Withholding)| ListItem {
            withheld: *withheld,
            ..ListItem::from(*own)
        };
        ServerLists {
            tools: withheld.iter().map(item).collect(),
            ..ServerLists::default()
        }
    };
    let mut stage = Stage::new();
    let all = [
        ("a", Withholding::Listed),
        ("b", Withholding::None),
        ("c", Withholding::Unlisted),
    ];
    stage.lists("one", ListScope::Shared, withheld(&all));
    stage.lists(
        "bare",
        ListScope::Shared,
        withheld(&[("x", Withholding::Unlisted)]),
    );
    assert_eq!(refused(&stage.call(ANN, 1, "one_a")), Cause::ToolChanged);
    assert_eq!(
        shown(&stage.call(ANN, 2, "one_b")),
        ["deliver 2 to one as b"]
    );
    assert_eq!(
        refused(&stage.call(ANN, 3, "one_c")),
        Cause::Unknown,
        "it is not listed"
    );
    assert_eq!(
        refused(&stage.call(ANN, 4, "x")),
        Cause::ToolChanged,
        "nor asked for without a list"
    );
    let sees = stage.sees(ANN, ListKind::Tools);
    assert!(
        sees.contains(&"one_a".to_owned())
            && !sees.iter().any(|name| name == "one_c" || name == "x"),
        "{sees:?}"
    );
    stage.join(BOB, "bob", &[], |join| join.capabilities = caps(&["chat"]));
    assert_eq!(refused(&stage.call(BOB, 5, "one_a")), Cause::NotAdmitted);
    // A list of one caller's own session counts for that caller alone.
    stage.lists(
        "one",
        ListScope::Link(ANN),
        withheld(&[("b", Withholding::Listed)]),
    );
    assert_eq!(refused(&stage.call(ANN, 6, "one_b")), Cause::ToolChanged);
    stage.lists(
        "one",
        ListScope::Shared,
        withheld(&[("a", Withholding::None)]),
    );
    stage.join(CID, "cid", &[], |join| join.capabilities = caps(&["mcp/*"]));
    assert_eq!(
        shown(&stage.call(CID, 7, "one_a")),
        ["deliver 7 to one as a"]
    );
}

#[test]
fn a_server_that_gives_no_answer_refuses() {
    let mut stage = stage();
    stage.call(ANN, 1, "one_a");
    let effects = stage.fail(ONE, 1);
    assert_eq!(shown(&effects), ["refuse 1: failed"]);
    assert!(
        matches!(&effects.all[0], Effect::Refuse { refusal, .. } if refusal.message == "the server is lost")
    );
    stage.call(ANN, 2, "one_a");
    assert_eq!(
        shown(&stage.error(ONE, 2, 6)),
        ["settle 2 with 6"],
        "an error is an answer"
    );
}

#[test]
fn the_verdict_names_server_and_rule() {
    let mut stage = stage();
    let granted = caps(&["chat", "mcp/request:tools/call:one_a"]);
    stage.join(BOB, "bob", &[], |join| join.capabilities = granted.clone());
    match stage.call(BOB, 1, "one_a").verdict {
        Some(Verdict::Admitted {
            to: Some(to),
            own: Some(own),
            by,
        }) => {
            assert_eq!((to, &*own), (id("one"), "a"));
            assert_eq!(
                (by.as_str(), by.at),
                (Some("mcp/request:tools/call:one_a"), Some(1))
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        stage.call(BOB, 2, "one_b").verdict,
        Some(Verdict::Refused(Cause::NotAdmitted))
    );
    assert_eq!(stage.answer(ONE, 1, 5).verdict, None);
}

#[test]
fn a_refused_name_reads_like_an_absent_one() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_a"]);
    let hidden = stage.call(BOB, 1, "one_b");
    let absent = stage.call(BOB, 2, "one_none");
    let refusal = |effects: &Effects| match &effects.all[0] {
        Effect::Refuse { refusal, .. } => refusal.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(&hidden), refusal(&absent));
    assert_eq!(refusal(&hidden).code, RefusalCode::UnknownTarget);
    assert_eq!(
        (refused(&hidden), refused(&absent)),
        (Cause::NotAdmitted, Cause::Unknown)
    );
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a"]);
    let admits = |name| {
        stage
            .topic
            .admits(BOB, None, "tools/call", Some(PublicTarget::Tool(name)))
    };
    assert!(admits("one_a") && !admits("one_b") && !admits("one_none"));
    assert_eq!(
        refused(&stage.request(BOB, 3, "tools/call:one_a", None)),
        Cause::Malformed
    );
    assert_eq!(refused(&stage.call(BOB, 4, "")), Cause::Malformed);
}

#[test]
fn a_capability_can_be_narrowed_to_a_server() {
    let mut stage = stage();
    let narrowed = model::Capability::parse("mcp/request:tools/call")
        .unwrap()
        .to(["one"])
        .unwrap();
    let capabilities = std::sync::Arc::new([narrowed].into_iter().collect());
    stage.step(Event::Regrant {
        participant: &id("ann"),
        capabilities,
    });
    assert_eq!(delivered(&stage.call(ANN, 1, "one_a")).0, "one");
    assert_eq!(refused(&stage.call(ANN, 2, "hidden")), Cause::NotAdmitted);
    assert!(stage.topic.may_call(&id("ann"), &id("one"), "one_b", false));
    assert!(
        !stage
            .topic
            .may_call(&id("ann"), &id("bare"), "hidden", false)
    );
}

#[test]
fn methods_without_a_name() {
    let mut stage = stage();
    stage.server(LinkId(100), "portmoot");
    stage.caller(BOB, "bob", &[]);
    assert_eq!(
        delivered(&stage.request(BOB, 1, "tools/list", None)).0,
        "portmoot"
    );
    let tasks = Some(PublicTarget::Upstream("one"));
    assert_eq!(
        delivered(&stage.request(BOB, 2, "tasks/get", tasks)).0,
        "one"
    );
    assert_eq!(
        refused(&stage.request(BOB, 3, "logging/setLevel", tasks)),
        Cause::NotAdmitted
    );
    assert_eq!(
        delivered(&stage.request(ANN, 4, "logging/setLevel", tasks)).0,
        "one"
    );
}

#[test]
fn what_is_kept_for_a_caller_needs_no_capability() {
    let mut stage = stage();
    stage.server(LinkId(100), "portmoot");
    stage.caller(BOB, "bob", &[]);
    assert_eq!(
        delivered(&stage.request(BOB, 1, "resources/read", Some(PublicTarget::Kept))).0,
        "portmoot"
    );
    let other = Some(PublicTarget::Uri("portmoot://results/1"));
    assert_eq!(
        refused(&stage.request(BOB, 2, "resources/read", other)),
        Cause::Unknown
    );
    assert_eq!(
        refused(&stage.request(ONE, 3, "resources/read", Some(PublicTarget::Kept))),
        Cause::NotAdmitted
    );
}

#[test]
fn only_callers_request() {
    let mut stage = stage();
    assert_eq!(refused(&stage.call(ONE, 1, "one_a")), Cause::NotAdmitted);
    assert_eq!(
        refused(&stage.call(LinkId(99), 1, "one_a")),
        Cause::Moot,
        "the link is not here"
    );
}

#[test]
fn a_lost_server_or_capability_ends_open_requests() {
    let mut stage = stage();
    let prompts = ServerLists {
        prompts: items(&["p"]),
        ..tools(&["a", "b"])
    };
    stage.lists("one", ListScope::Shared, prompts);
    stage.call(ANN, 1, "one_a");
    stage.call(ANN, 2, "one_b");
    stage.call(ANN, 3, "hidden");
    let effects = stage.regrant(
        "ann",
        &[
            "mcp/request:tools/call:one_a",
            "mcp/request:tools/call:hidden",
        ],
    );
    let expected = [
        "cancel 2",
        "refuse 2: withdrawn",
        "Tools changed for link 1",
        "Prompts changed for link 1",
    ];
    assert_eq!(shown(&effects)[1..], expected);
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    let effects = stage.configure(&without);
    let expected = [
        "left one",
        "cancel 1",
        "refuse 1: upstream_down",
        "Tools changed for link 1",
    ];
    assert_eq!(shown(&effects), expected);
    assert_eq!(stage.topic.operations_len(), 1);
    assert_eq!(
        delivered(&stage.call(ANN, 4, "one_a")).0,
        "bare",
        "the name is no other server's any more"
    );
    stage.configure(&configured());
    assert_eq!(refused(&stage.call(ANN, 5, "one_a")), Cause::Unknown);
}

#[test]
fn a_configured_server_that_is_not_here_is_down() {
    let mut stage = stage();
    stage.call(ANN, 1, "one_a");
    stage.server(LinkId(100), "portmoot");
    let mut other = configured();
    other.retain(|server| server.id != id("two"));
    stage.configure(&other);
    stage.configure(&configured());
    let two = Some(PublicTarget::Upstream("two"));
    assert_eq!(
        refused(&stage.request(ANN, 2, "tasks/get", two)),
        Cause::UpstreamDown
    );
    stage.server(LinkId(102), "two");
    assert_eq!(delivered(&stage.request(ANN, 2, "tasks/get", two)).0, "two");
    assert!(stage.topic.is_open(op(1)), "other servers' calls go on");
}

#[test]
fn the_rate_is_the_participants() {
    let mut stage = stage();
    let rate = Some(RateLimit {
        burst: 2,
        per_minute: 60,
    });
    stage.limited(BOB, "bob", &["mcp/*"], rate);
    stage.limited(CID, "bob", &["mcp/*"], rate);
    delivered(&stage.call(BOB, 1, "one_a"));
    delivered(&stage.call(CID, 2, "one_a"));
    match stage.call(BOB, 3, "one_a").all.as_slice() {
        [
            Effect::Refuse {
                refusal,
                cause: Cause::RateLimited,
                ..
            },
        ] => {
            assert_eq!(refusal.retry_after_ms, Some(1_000));
        }
        other => panic!("{other:?}"),
    }
}
