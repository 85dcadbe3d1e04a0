//! Names, URIs, templates, views and quarantined entries.

use std::{collections::BTreeMap, sync::Arc};

use model::{ListKind, NameFilter, NamePattern};
use topic::{
    Cause, Event, Limits, ListScope, PublicTarget, Quarantine, ServerLists, UpstreamNames,
};

use crate::{
    shown::{delivered, notified, refused},
    stage::{ANN, BOB, OWN, Stage, caps, configured, id, items, op, tools},
};

#[test]
fn public_names_lead_to_own_names() {
    let mut stage = Stage::new();
    let long = "x".repeat(100);
    stage.lists("one", ListScope::Shared, tools(&["create", &long]));
    stage.lists("bare", ListScope::Shared, tools(&["create"]));
    let names = stage.sees(ANN, ListKind::Tools);
    assert_eq!(names[0], "one_create");
    assert_eq!(names[1].len(), 64);
    assert_eq!(names[2], "create");
    assert_eq!(
        delivered(&stage.call(ANN, 1, "one_create")),
        ("one".into(), Some("create".into()))
    );
    assert_eq!(
        delivered(&stage.call(ANN, 2, &names[1])),
        ("one".into(), Some(long))
    );
    assert_eq!(
        delivered(&stage.call(ANN, 3, "create")),
        ("bare".into(), None)
    );
    assert_eq!(
        delivered(&stage.call(ANN, 4, "hidden")),
        ("bare".into(), None),
        "hidden tools stay callable"
    );
    assert_eq!(
        refused(&stage.call(ANN, 5, "one_hidden")),
        Cause::Unknown,
        "never parsed apart"
    );
}

#[test]
fn a_prefix_is_not_doubled() {
    // Of two names that are the same in public, the one that has the prefix itself is offered, in
    // any order.
    for names in [["one_create", "create"], ["create", "one_create"]] {
        let mut stage = Stage::new();
        stage.lists(
            "one",
            ListScope::Shared,
            tools(&[names[0], names[1], "one_one_x", "one-y", "one_"]),
        );
        assert_eq!(
            stage.sees(ANN, ListKind::Tools),
            ["one_create", "one_one_x", "one_one-y", "one_"]
        );
        assert_eq!(
            delivered(&stage.call(ANN, 1, "one_create")),
            ("one".into(), None)
        );
        assert_eq!(
            refused(&stage.call(ANN, 2, "one_one_create")),
            Cause::Unknown
        );
        let hidden: Vec<_> = stage
            .topic
            .quarantined(&id("one"))
            .iter()
            .map(|one| (one.own.to_string(), one.why))
            .collect();
        assert_eq!(hidden, [("create".to_owned(), Quarantine::Twice)]);
    }
    // Without the other, it has the name.
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["create"]));
    assert_eq!(
        delivered(&stage.call(ANN, 1, "one_create")),
        ("one".into(), Some("create".into()))
    );
    // Names that are shortened are compared before they are shortened.
    let long = "x".repeat(80);
    let mut stage = Stage::new();
    stage.lists(
        "one",
        ListScope::Shared,
        tools(&[&long, &format!("one_{long}")]),
    );
    let seen = stage.sees(ANN, ListKind::Tools);
    assert_eq!(seen.len(), 1);
    assert_eq!(
        delivered(&stage.call(ANN, 1, &seen[0])),
        ("one".into(), Some(format!("one_{long}")))
    );
}

#[test]
fn no_server_takes_anothers_names() {
    let mut stage = Stage::new();
    stage.server(OWN, "portmoot");
    stage.lists(
        "bare",
        ListScope::Shared,
        tools(&["one_create", "other", "own", "own", ""]),
    );
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["other", "own"]);
    stage.lists("portmoot", ListScope::Shared, tools(&["other"]));
    assert_eq!(delivered(&stage.call(ANN, 1, "other")).0, "portmoot");
    let why: Vec<_> = stage
        .topic
        .quarantined(&id("bare"))
        .iter()
        .map(|one| one.why)
        .collect();
    let expected = [
        Quarantine::Shadows,
        Quarantine::Shadows,
        Quarantine::Twice,
        Quarantine::Empty,
    ];
    assert_eq!(why, expected);
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["other", "own"]);
}

#[test]
fn tools_of_the_gateway_are_listed_to_callers_that_could_use_them() {
    let mut stage = Stage::new();
    stage.server(OWN, "portmoot");
    stage.lists(
        "bare",
        ListScope::Shared,
        tools(&["say", "approve_proposal"]),
    );
    stage.promoting(BOB, "bob", &["mcp/proposal:tools/call:x"]);
    // The gateway has no lists yet, so the names are the server's.
    assert_eq!(delivered(&stage.call(ANN, 1, "approve_proposal")).0, "bare");
    stage.lists(
        "portmoot",
        ListScope::Shared,
        tools(&["list_proposals", "approve_proposal", "other"]),
    );
    assert_eq!(
        stage.sees(ANN, ListKind::Tools),
        ["list_proposals", "approve_proposal", "other", "say"]
    );
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["list_proposals"]);
    assert_eq!(
        delivered(&stage.call(ANN, 2, "approve_proposal")).0,
        "portmoot"
    );
    assert_eq!(
        delivered(&stage.call(BOB, 3, "list_proposals")).0,
        "portmoot"
    );
    // The call is neither held nor delivered to the server.
    assert_eq!(
        refused(&stage.call(BOB, 4, "approve_proposal")),
        Cause::NotAdmitted
    );
    let effects = stage.regrant("bob", &["mcp/request:tools/call:y"]);
    assert_eq!(notified(&effects, ListKind::Tools), ["link 2"]);
    assert_eq!(
        stage.sees(BOB, ListKind::Tools),
        ["list_proposals", "approve_proposal"]
    );
    assert!(stage.topic.admits(
        BOB,
        None,
        "tools/call",
        Some(PublicTarget::Tool("approve_proposal"))
    ));
}

#[test]
fn a_manifest_has_limits() {
    let limits = Limits {
        items_per_list_max: 2,
        templates_max: 1,
        name_bytes_max: 3,
        uri_bytes_max: 5,
        ..Limits::default()
    };
    let mut stage = Stage::with(limits);
    let manifest = ServerLists {
        tools: items(&["abc", "abcd", "c"]),
        prompts: items(&["a", "b"]),
        resources: items(&["a://b", "a://bc", "c"]),
        templates: items(&["{a}", "{b}"]),
        skills: items(&["a://b", "a://c", "a://d"]),
    };
    stage.lists("bare", ListScope::Shared, manifest);
    let why: Vec<_> = stage
        .topic
        .quarantined(&id("bare"))
        .iter()
        .map(|one| (one.list, one.why))
        .collect();
    assert_eq!(
        why,
        [
            (ListKind::Tools, Quarantine::TooLong),
            (ListKind::Tools, Quarantine::TooMany),
            (ListKind::Resources, Quarantine::TooLong),
            (ListKind::Resources, Quarantine::TooMany),
            (ListKind::Templates, Quarantine::TooMany),
            (ListKind::Skills, Quarantine::TooMany),
        ]
    );
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["abc"]);
    assert_eq!(stage.sees(ANN, ListKind::Prompts), ["a", "b"]);
}

#[test]
fn the_earlier_configured_keeps_its_uri() {
    let mut stage = Stage::new();
    let both = || ServerLists {
        resources: items(&["demo://a"]),
        templates: items(&["demo://{x}"]),
        ..ServerLists::default()
    };
    stage.lists("two", ListScope::Shared, both());
    assert_eq!(stage.sees(ANN, ListKind::Resources), ["demo://a"]);
    let effects = stage.lists("one", ListScope::Shared, both());
    assert_eq!(notified(&effects, ListKind::Resources), ["link 1"]);
    assert_eq!(
        stage.sees(ANN, ListKind::Resources),
        ["demo://a", "portmoot:two/demo://a"]
    );
    assert_eq!(
        stage.sees(ANN, ListKind::Templates),
        ["demo://{x}", "portmoot:two/demo://{x}"]
    );
    let mut read = |operation, uri| {
        delivered(&stage.request(
            ANN,
            operation,
            "resources/read",
            Some(PublicTarget::Uri(uri)),
        ))
    };
    assert_eq!(read(1, "demo://a"), ("one".into(), None));
    assert_eq!(
        read(2, "portmoot:two/demo://a"),
        ("two".into(), Some("demo://a".into()))
    );
    assert_eq!(read(3, "demo://b"), ("one".into(), None));
    assert_eq!(
        read(4, "portmoot:two/demo://b"),
        ("two".into(), Some("demo://b".into()))
    );
    assert_eq!(read(5, "other://b"), ("bare".into(), None));
    let spelled = |upstream: &str, own| stage.topic.respelled_uri(ANN, &id(upstream), own);
    assert_eq!(spelled("one", "demo://b"), None);
    assert_eq!(
        spelled("two", "demo://b"),
        Some("portmoot:two/demo://b".into())
    );
    assert_eq!(spelled("bare", "other://b"), None);
    assert_eq!(
        spelled("one", "portmoot:two/x"),
        Some("portmoot:one/portmoot:two/x".into())
    );
}

#[test]
fn a_template_is_seen_by_a_caller_that_may_read_something_of_it() {
    let mut stage = Stage::new();
    let templates = items(&["file:///public/{name}", "file:///{+path}", "demo://{x}"]);
    stage.lists(
        "bare",
        ListScope::Shared,
        ServerLists {
            templates,
            ..ServerLists::default()
        },
    );
    stage.caller(BOB, "bob", &["mcp/request:resources/read:file:///public/a"]);
    assert_eq!(
        stage.sees(BOB, ListKind::Templates),
        ["file:///public/{name}", "file:///{+path}"]
    );
}

#[test]
fn a_view_of_one_link_wins_for_that_link() {
    let mut stage = Stage::new();
    stage.caller(BOB, "bob", &["mcp/*"]);
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    let effects = stage.lists("one", ListScope::Link(ANN), tools(&["b", "c"]));
    assert_eq!(notified(&effects, ListKind::Tools), ["link 1"]);
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["one_b", "one_c"]);
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a", "one_b"]);
    assert_eq!(refused(&stage.call(ANN, 1, "one_a")), Cause::Unknown);
    assert_eq!(delivered(&stage.call(ANN, 2, "one_c")).0, "one");
    assert_eq!(
        notified(
            &stage.lists("one", ListScope::Shared, tools(&["d"])),
            ListKind::Tools
        ),
        ["link 2"]
    );
    let effects = stage.step(Event::Detach {
        link: ANN,
        server: &id("one"),
        keeps_lists: false,
    });
    assert_eq!(notified(&effects, ListKind::Tools), ["link 1"]);
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["one_d"]);
}

#[test]
fn names_of_lists_that_are_not_known_lead_to_their_server() {
    let mut stage = Stage::new();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_c"]);
    let mut next = configured();
    next[0] = UpstreamNames {
        own_lists: true,
        ..UpstreamNames::new(id("one"), "one")
    };
    next.push(UpstreamNames::new(id("three"), "one_more"));
    stage.configure(&next);
    stage.lists("one", ListScope::Shared, tools(&[topic::AUTHORIZE]));
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["one_authorize"]);
    assert_eq!(
        delivered(&stage.call(ANN, 1, "one_c")),
        ("one".into(), Some("c".into()))
    );
    assert_eq!(refused(&stage.call(ANN, 2, "one_")), Cause::Unknown);
    assert_eq!(
        refused(&stage.call(ANN, 3, "one_more_x")),
        Cause::Unknown,
        "another server's prefix is longer"
    );
    assert_eq!(
        refused(&stage.call(ANN, 4, "two_x")),
        Cause::Unknown,
        "its lists are for all"
    );
    assert_eq!(refused(&stage.call(BOB, 5, "one_d")), Cause::NotAdmitted);
    assert_eq!(delivered(&stage.call(BOB, 6, "one_c")).0, "one");
    // Once a link has lists of its own, they count.
    stage.lists("one", ListScope::Link(ANN), tools(&["c"]));
    assert_eq!(refused(&stage.call(ANN, 7, "one_d")), Cause::Unknown);
    assert_eq!(
        delivered(&stage.call(ANN, 8, "one_authorize")),
        ("one".into(), Some("authorize".into()))
    );
    // Also after its session has ended.
    let effects = stage.step(Event::Detach {
        link: ANN,
        server: &id("one"),
        keeps_lists: true,
    });
    assert_eq!(notified(&effects, ListKind::Tools), Vec::<String>::new());
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["one_c"]);
}

#[test]
fn a_participant_has_what_its_links_are_listed_where_lists_are_its_own() {
    let mut stage = Stage::new();
    stage.caller(BOB, "bob", &["mcp/*"]);
    let mut next = configured();
    next[1] = UpstreamNames {
        own_lists: true,
        ..UpstreamNames::new(id("one"), "one")
    };
    stage.configure(&next);
    for (name, shared, own) in [("one", topic::AUTHORIZE, "mine"), ("two", "a", "hidden")] {
        stage.lists(name, ListScope::Shared, tools(&[shared]));
        stage.lists(name, ListScope::Link(ANN), tools(&[own]));
    }
    let sees = |who: &str| -> Vec<String> {
        let snapshot = stage.topic.list_snapshot_of(&id(who), &caps(&["mcp/*"]));
        snapshot
            .list(ListKind::Tools)
            .iter()
            .map(|one| one.public.to_string())
            .collect()
    };
    // A session of a client's own, for its questions, says nothing about other clients.
    assert_eq!(sees("ann"), ["one_mine", "two_a"]);
    assert_eq!(sees("bob"), ["one_authorize", "two_a"]);
    assert_eq!(sees("absent"), ["one_authorize", "two_a"]);
}

#[test]
fn a_new_configuration_keeps_the_servers_that_stay() {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.lists("two", ListScope::Shared, tools(&["a"]));
    stage.lists("two", ListScope::Link(ANN), tools(&["mine"]));
    let mut next = configured();
    next.retain(|upstream| upstream.id != id("one"));
    next.rotate_right(1);
    next[2] = UpstreamNames::new(id("two"), "second");
    let effects = stage.configure(&next);
    assert_eq!(notified(&effects, ListKind::Tools), ["link 1"]);
    assert!(!stage.topic.has_participant(&id("one")));
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["second_mine"]);
    assert_eq!(
        delivered(&stage.call(ANN, 1, "second_mine")),
        ("two".into(), Some("mine".into()))
    );
}

#[test]
fn a_name_that_is_given_to_a_tool_stands_for_its_own_one() {
    let mut stage = Stage::new();
    let mut next = configured();
    let given = |names: &[(&str, &str)]| {
        let names = names
            .iter()
            .map(|(own, name)| (Arc::from(*own), Arc::from(*name)));
        Arc::new(names.collect::<BTreeMap<_, _>>())
    };
    next[1].renamed = given(&[
        ("search", "find"),
        ("create", "one_make"),
        ("x", "y"),
        ("y", "x"),
    ]);
    next[3].renamed = given(&[("search", "find"), ("unlisted", "given")]);
    stage.configure(&next);
    stage.lists(
        "one",
        ListScope::Shared,
        tools(&["search", "create", "make", "x", "y"]),
    );
    stage.lists("bare", ListScope::Shared, tools(&["search", "one_b"]));
    // `make` would have the public name of `create`, whose name has the prefix itself.
    assert_eq!(
        stage.sees(ANN, ListKind::Tools),
        ["one_find", "one_make", "one_y", "one_x", "find"]
    );
    for (call, (name, server, own)) in [
        ("one_find", "one", "search"),
        ("one_make", "one", "create"),
        ("one_x", "one", "y"),
        ("one_y", "one", "x"),
        ("find", "bare", "search"),
    ]
    .into_iter()
    .enumerate()
    {
        let call = u128::try_from(call).unwrap() + 1;
        assert_eq!(
            delivered(&stage.call(ANN, call, name)),
            (server.into(), Some(own.into())),
            "{name}"
        );
    }
    // Its own name leads nowhere, also to a server that is asked for what it does not list.
    for (call, name) in [(10, "one_search"), (11, "search"), (12, "unlisted")] {
        assert_eq!(
            refused(&stage.call(ANN, call, name)),
            Cause::Unknown,
            "{name}"
        );
    }
    assert_eq!(
        delivered(&stage.call(ANN, 13, "other")),
        ("bare".into(), None)
    );
}

/// The configured servers, of which `one` has a tool with another name.
fn with_a_given_name() -> Vec<UpstreamNames> {
    let mut next = configured();
    next[1].renamed = Arc::new(BTreeMap::from([(Arc::from("delete"), Arc::from("read_x"))]));
    next
}

#[test]
fn capabilities_judge_a_tool_by_its_servers_own_name() {
    let mut stage = Stage::new();
    stage.configure(&with_a_given_name());
    stage.lists("one", ListScope::Shared, tools(&["delete", "read_y"]));
    stage.regrant("ann", &["mcp/request:tools/call:one_read_*"]);
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_delete"]);
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["one_read_y"]);
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_read_x"]);
    assert_eq!(
        refused(&stage.call(ANN, 1, "one_read_x")),
        Cause::NotAdmitted
    );
    assert_eq!(
        delivered(&stage.call(BOB, 2, "one_read_x")),
        ("one".into(), Some("delete".into()))
    );
    // An open call lives as long as its capability, by the same name.
    stage.regrant("bob", &["mcp/request:tools/call:one_read_x"]);
    assert_eq!(
        refused(&stage.call(BOB, 3, "one_read_x")),
        Cause::NotAdmitted
    );
    assert!(!stage.topic.is_open(op(2)));
    assert_eq!(
        stage
            .topic
            .ruled_of_public(&id("one"), "one_read_x")
            .as_deref(),
        Some("one_delete")
    );
    assert_eq!(stage.topic.ruled_of_public(&id("one"), "one_read_y"), None);
}

#[test]
fn a_change_is_announced_by_the_name_by_which_capabilities_judge() {
    let mut stage = Stage::new();
    stage.configure(&with_a_given_name());
    stage.regrant("ann", &["mcp/request:tools/call:one_read_*"]);
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_delete"]);
    let listed = stage.lists("one", ListScope::Shared, tools(&["delete"]));
    assert_eq!(notified(&listed, ListKind::Tools), ["link 2"]);
    assert!(stage.sees(ANN, ListKind::Tools).is_empty());
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_read_x"]);
}

#[test]
fn a_given_name_of_lists_that_are_not_known_is_judged_by_its_own_name() {
    let mut stage = Stage::new();
    let mut next = with_a_given_name();
    next[1].own_lists = true;
    next[1].offered = Some(filter(None, &["one_secret"]));
    stage.configure(&next);
    stage.lists("one", ListScope::Shared, tools(&[topic::AUTHORIZE]));
    stage.regrant(
        "ann",
        &[
            "mcp/request:tools/call:one_delete",
            "mcp/request:tools/call:one_secret",
        ],
    );
    assert_eq!(
        delivered(&stage.call(ANN, 1, "one_read_x")),
        ("one".into(), Some("delete".into()))
    );
    for (call, name) in [(2, "one_delete"), (3, "one_secret")] {
        assert_eq!(
            refused(&stage.call(ANN, call, name)),
            Cause::Unknown,
            "{name}"
        );
    }
    stage.regrant("ann", &["mcp/request:tools/call:one_read_x"]);
    assert_eq!(
        refused(&stage.call(ANN, 4, "one_read_x")),
        Cause::NotAdmitted
    );
}

/// The filter of a topic.
fn filter(only: Option<&[&str]>, hide: &[&str]) -> Arc<NameFilter> {
    let parse = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| NamePattern::parse(text).unwrap())
            .collect()
    };
    Arc::new(NameFilter {
        only: only.map(parse),
        hide: parse(hide),
    })
}

#[test]
fn a_topic_offers_the_tools_that_it_names() {
    let mut stage = Stage::new();
    let mut next = with_a_given_name();
    let offered = filter(
        Some(&["one_delete", "one_get_*", "search"]),
        &["one_get_secret"],
    );
    next.iter_mut()
        .for_each(|names| names.offered = Some(Arc::clone(&offered)));
    stage.configure(&next);
    let listed = ServerLists {
        prompts: items(&["plan"]),
        ..tools(&["delete", "get_x", "get_secret", "put"])
    };
    stage.lists("one", ListScope::Shared, listed);
    stage.lists("two", ListScope::Shared, tools(&["a"]));
    stage.lists("bare", ListScope::Shared, tools(&["search", "other"]));
    assert_eq!(
        stage.sees(ANN, ListKind::Tools),
        ["one_read_x", "one_get_x", "search"]
    );
    assert_eq!(
        stage.sees(ANN, ListKind::Prompts),
        ["one_plan"],
        "it is about tools alone"
    );
    assert_eq!(delivered(&stage.call(ANN, 1, "one_get_x")).0, "one");
    for (call, name) in [
        (2, "one_get_secret"),
        (3, "one_put"),
        (4, "two_a"),
        (5, "other"),
        (6, "unlisted"),
    ] {
        assert_eq!(
            refused(&stage.call(ANN, call, name)),
            Cause::Unknown,
            "{name}"
        );
    }
    let offers = |own: &str| stage.topic.offers(&id("one"), "tools/call", own);
    assert_eq!(
        ["delete", "get_x", "get_secret", "put"].map(offers),
        [true, true, false, false]
    );
}
