//! Changed lists: the callers that are notified, on links or on listen requests.

use model::{LinkId, ListKind, ListenFilter};
use topic::{
    Cause, Configure, Event, Interest, ListScope, Seating, ServerLists, SharedLists, UpstreamNames,
};

use crate::{
    shown::{delivered, notified, refused, shown},
    stage::{ANN, BOB, CID, OWN, Stage, configured, id, items, tools},
};

const LISTEN: &str = "subscriptions/listen";

/// Ann takes no notifications outside of her requests.
fn quiet() -> Stage {
    let mut stage = Stage::new();
    stage.leave(ANN);
    stage.join(ANN, "ann", &["mcp/*"], |join| join.joining.notified = false);
    stage.server(OWN, "portmoot");
    stage
}

fn listen(stage: &mut Stage, link: LinkId, operation: u128, lists: &[ListKind]) {
    let filter = ListenFilter {
        lists: lists.to_vec(),
        ..ListenFilter::default()
    };
    stage.request_with(link, operation, LISTEN, None, |request| {
        request.interest = Interest::Listen(Box::new(filter))
    });
}

#[test]
fn a_change_that_a_server_names_reaches_callers_that_see_the_list() {
    let mut stage = Stage::new();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_b"]);
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    let server = &id("one");
    let again = |changed| Event::Listed {
        server,
        scope: ListScope::Shared,
        manifest: tools(&["a"]),
        changed,
    };
    let lists = [ListKind::Tools, ListKind::Prompts];
    assert!(shown(&stage.step(again(&[]))).is_empty());
    assert_eq!(
        shown(&stage.step(again(&lists))),
        ["Tools changed for link 1"]
    );
}

#[test]
fn only_callers_that_could_see_a_change_are_notified() {
    let mut stage = Stage::new();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_a"]);
    stage.caller(CID, "cid", &["chat"]);
    let lists = |stage: &mut Stage, names: &[&str]| {
        shown(&stage.lists("one", ListScope::Shared, tools(names)))
    };
    assert_eq!(
        lists(&mut stage, &["a"]),
        ["Tools changed for link 1,link 2"]
    );
    assert_eq!(lists(&mut stage, &["a", "b"]), ["Tools changed for link 1"]);
    assert!(lists(&mut stage, &["a", "b"]).is_empty());
    let mut described = tools(&["a", "b"]);
    described.tools[0].digest = 7;
    let effects = stage.lists("one", ListScope::Shared, described);
    assert_eq!(shown(&effects), ["Tools changed for link 1,link 2"]);
    assert_eq!(
        notified(&stage.regrant("cid", &["mcp/*"]), ListKind::Tools),
        ["link 3"]
    );
}

#[test]
fn templates_notify_as_resources() {
    let mut stage = Stage::new();
    let templates = items(&["demo://{x}"]);
    let manifest = ServerLists {
        templates: templates.clone(),
        ..ServerLists::default()
    };
    assert_eq!(
        shown(&stage.lists("bare", ListScope::Shared, manifest)),
        ["Resources changed for link 1"]
    );
    // A link for which both lists change is notified once.
    let manifest = ServerLists {
        resources: items(&["demo://a"]),
        ..ServerLists::default()
    };
    assert_eq!(
        shown(&stage.lists("bare", ListScope::Shared, manifest)),
        ["Resources changed for link 1"]
    );
}

#[test]
fn a_caller_is_notified_on_its_link_or_on_its_listen_requests() {
    let mut stage = quiet();
    let both = || ServerLists {
        prompts: items(&["p"]),
        ..tools(&["a"])
    };
    assert!(shown(&stage.lists("one", ListScope::Shared, both())).is_empty());
    listen(&mut stage, ANN, 1, &[ListKind::Tools]);
    listen(&mut stage, ANN, 2, &[ListKind::Tools, ListKind::Prompts]);
    stage.caller(BOB, "bob", &["mcp/*"]);
    listen(&mut stage, BOB, 3, &[ListKind::Prompts]);
    let expected = [
        "Tools changed for call 1,call 2,link 2",
        "Prompts changed for call 2,link 2,call 3",
    ];
    assert_eq!(
        shown(&stage.lists("two", ListScope::Shared, both())),
        expected
    );
    stage.cancel(ANN, 1);
    stage.answer(OWN, 2, 5);
    assert_eq!(
        shown(&stage.lists("two", ListScope::Shared, tools(&[]))),
        [
            "Tools changed for link 2",
            "Prompts changed for link 2,call 3"
        ]
    );
}

#[test]
fn a_listener_that_may_not_see_a_change_gets_none() {
    let mut stage = quiet();
    stage.regrant("ann", &["mcp/request:tools/call:one_*"]);
    listen(&mut stage, ANN, 1, &[ListKind::Tools, ListKind::Resources]);
    assert!(shown(&stage.lists("two", ListScope::Shared, tools(&["a"]))).is_empty());
    assert_eq!(
        shown(&stage.lists("one", ListScope::Shared, tools(&["a"]))),
        ["Tools changed for call 1"]
    );
    // Changed capabilities change a caller's lists.
    assert_eq!(
        shown(&stage.regrant("ann", &["mcp/*"])),
        ["changed ann", "Tools changed for call 1"]
    );
}

#[test]
fn a_new_configuration_notifies_once() {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.lists("two", ListScope::Shared, tools(&["a"]));
    let mut next = configured();
    next.retain(|server| server.id != id("one") && server.id != id("two"));
    let effects = stage.configure(&next);
    assert_eq!(
        shown(&effects),
        ["left one", "left two", "Tools changed for link 1"]
    );
    assert!(shown(&stage.configure(&next)).is_empty());
}

#[test]
fn the_views_of_many_links_end_with_their_server() {
    let mut stage = Stage::new();
    stage.caller(BOB, "bob", &["mcp/*"]);
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.lists("one", ListScope::Link(ANN), tools(&["b"]));
    stage.lists("one", ListScope::Link(BOB), tools(&["c"]));
    let mut next = configured();
    next.retain(|server| server.id != id("one"));
    let effects = stage.configure(&next);
    assert_eq!(
        shown(&effects),
        ["left one", "Tools changed for link 1,link 2"]
    );
    assert!(
        stage.sees(ANN, ListKind::Tools).is_empty() && stage.sees(BOB, ListKind::Tools).is_empty()
    );
}

#[test]
fn another_configuration_is_one_step_and_announced_once() {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.lists("two", ListScope::Shared, tools(&["b"]));
    // `one` and `bare` go, `two` lists something else, `new` comes with its lists.
    let names = [
        UpstreamNames::gateway(),
        UpstreamNames::new(id("new"), "new"),
        UpstreamNames::new(id("two"), "two"),
    ];
    let servers = [id("two"), id("new")];
    let listed = ["c", "n"];
    let mut configure = || {
        let lists = servers
            .iter()
            .zip(listed)
            .map(|(server, tool)| SharedLists {
                server,
                manifest: tools(&[tool]),
            });
        let seat = Seating {
            link: LinkId(9),
            server: &servers[1],
            handle: "new".to_owned(),
            capabilities: std::sync::Arc::new(model::Capabilities::upstream()),
        };
        stage.step(Event::Configure(Configure {
            seats: vec![seat],
            lists: lists.collect(),
            ..Configure::servers(&names)
        }))
    };
    let expected = [
        "left one",
        "left bare",
        "joined new",
        "Tools changed for link 1",
    ];
    assert_eq!(shown(&configure()), expected);
    assert!(shown(&configure()).is_empty(), "the same again");
    assert_eq!(stage.sees(ANN, ListKind::Tools), ["new_n", "two_c"]);
    assert_eq!(delivered(&stage.call(ANN, 1, "new_n")).0, "new");
    assert_eq!(refused(&stage.call(ANN, 2, "one_a")), Cause::Unknown);
}
