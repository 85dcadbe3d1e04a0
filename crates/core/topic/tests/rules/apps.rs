//! Apps: the tools that their pages call by their servers' own names, and the URIs of their pages.
//! Skills by their directories.

use std::sync::Arc;

use model::{LinkId, ListKind};
use topic::{
    APPS_PER_LINK_MAX, Cause, ListItem, ListScope, PublicTarget, ServerLists, UpstreamNames,
};

use crate::{
    shown::{delivered, refused},
    stage::{ANN, BOB, Stage, caps, id, items, tools},
};

const PAGE: &str = "ui://board/main.html";

/// Tools of an app whose page is in no list.
fn app(names: &[&str]) -> ServerLists {
    let mut manifest = tools(names);
    for tool in &mut manifest.tools {
        tool.app = Some(PAGE.into());
    }
    manifest
}

/// Two servers with apps of the same page and the same tools, without a server whose names have no
/// prefix.
fn stage() -> Stage {
    let mut stage = Stage::configured(|config| {
        config
            .upstreams
            .retain(|names| !names.prefix.is_empty() || names.builtin)
    });
    stage.lists("one", ListScope::Shared, app(&["save", "open", "only_one"]));
    stage.lists("two", ListScope::Shared, app(&["save", "open", "only_two"]));
    stage
}

/// The server that a request for a URI goes to, and the URI there if it is spelled otherwise.
type Went = (String, Option<String>);

fn went(server: &str, own: Option<&str>) -> Went {
    (server.to_owned(), own.map(str::to_owned))
}

fn read(stage: &mut Stage, link: LinkId, operation: u128, uri: &str) -> Went {
    delivered(&stage.request(
        link,
        operation,
        "resources/read",
        Some(PublicTarget::Uri(uri)),
    ))
}

fn named(stage: &Stage, link: LinkId, name: &str) -> Option<String> {
    stage
        .topic
        .named_by_app(link, None, name)
        .map(|public| public.to_string())
}

#[test]
fn an_app_calls_the_tools_of_the_server_whose_page_was_read_last() {
    let mut stage = stage();
    assert_eq!(
        named(&stage, ANN, "save"),
        None,
        "two servers have it, and none was read"
    );
    assert_eq!(
        named(&stage, ANN, "only_two").as_deref(),
        Some("two_only_two"),
        "one server has it"
    );
    assert_eq!(read(&mut stage, ANN, 1, PAGE), went("one", None));
    assert_eq!(named(&stage, ANN, "save").as_deref(), Some("one_save"));
    assert_eq!(
        read(&mut stage, ANN, 2, "ui://portmoot/two/board/main.html"),
        went("two", Some(PAGE))
    );
    assert_eq!(named(&stage, ANN, "save").as_deref(), Some("two_save"));
    assert_eq!(
        named(&stage, ANN, "only_one").as_deref(),
        Some("one_only_one"),
        "the last one that has it"
    );
    // Another page of the first server.
    read(&mut stage, ANN, 3, "ui://portmoot/one/other.html");
    assert_eq!(named(&stage, ANN, "save").as_deref(), Some("one_save"));
    // What one caller reads says nothing about another's apps.
    stage.caller(BOB, "bob", &["mcp/*"]);
    assert_eq!(named(&stage, BOB, "save"), None);
}

#[test]
fn a_public_name_is_what_it_says() {
    let mut stage = stage();
    read(&mut stage, ANN, 1, PAGE);
    stage.lists(
        "two",
        ListScope::Shared,
        app(&["one_save", "withdraw_proposal", "save"]),
    );
    assert_eq!(
        named(&stage, ANN, "one_save"),
        None,
        "it is the first server's tool"
    );
    assert_eq!(
        named(&stage, ANN, "withdraw_proposal"),
        None,
        "it is the gateway's, listed or not"
    );
    assert_eq!(named(&stage, ANN, "two_one_save"), None);
    assert_eq!(named(&stage, ANN, "nothing"), None);
}

#[test]
fn an_app_reaches_nothing_that_its_caller_could_not_call() {
    let mut stage = stage();
    let granted = [
        "mcp/request:resources/read:*",
        "mcp/request:tools/call:one_*",
        "mcp/proposal:tools/call:two_open",
    ];
    stage.promoting(BOB, "bob", &granted);
    read(&mut stage, BOB, 1, PAGE);
    read(&mut stage, BOB, 2, "ui://portmoot/two/board/main.html");
    assert_eq!(
        named(&stage, BOB, "open").as_deref(),
        Some("two_open"),
        "he may propose it"
    );
    // He may not use the tool of the app that he reads, and another server's is not meant.
    assert_eq!(named(&stage, BOB, "save"), None);
    assert_eq!(named(&stage, BOB, "only_two"), None);
    assert_eq!(
        named(&stage, BOB, "only_one").as_deref(),
        Some("one_only_one")
    );
    // A page that he may not read was not shown to him.
    stage.join(LinkId(9), "eve", &[], |join| {
        join.capabilities = caps(&["mcp/request:tools/call:*"])
    });
    assert_eq!(
        refused(&stage.request(
            LinkId(9),
            3,
            "resources/read",
            Some(PublicTarget::Uri(PAGE))
        )),
        Cause::NotAdmitted
    );
    assert_eq!(named(&stage, LinkId(9), "save"), None);
    assert_eq!(
        named(&stage, LinkId(9), "only_two").as_deref(),
        Some("two_only_two")
    );
}

#[test]
fn a_server_without_a_prefix_keeps_the_names_that_it_does_not_list() {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, app(&["save"]));
    assert_eq!(
        named(&stage, ANN, "save"),
        None,
        "the server without a prefix may have it"
    );
    read(&mut stage, ANN, 1, PAGE);
    assert_eq!(
        named(&stage, ANN, "save").as_deref(),
        Some("one_save"),
        "its page was read"
    );
    stage.lists("bare", ListScope::Shared, tools(&["save"]));
    assert_eq!(named(&stage, ANN, "save"), None, "now it is a public name");
}

#[test]
fn the_servers_whose_apps_are_read_are_remembered_up_to_a_limit() {
    let count = APPS_PER_LINK_MAX + 1;
    let name = |at: usize| format!("s{at:02}");
    let mut stage = Stage::configured(|config| {
        config.upstreams = vec![UpstreamNames::gateway()];
        config
            .upstreams
            .extend((0..count).map(|at| UpstreamNames::new(id(&name(at)), name(at))));
    });
    for at in 0..count {
        stage.server(LinkId(1000 + at as u64), &name(at));
        stage.lists(
            &name(at),
            ListScope::Shared,
            app(&["save", &format!("t{at}"), &format!("u{}", at / 2)]),
        );
    }
    for at in 0..count {
        read(
            &mut stage,
            ANN,
            10 + at as u128,
            &format!("ui://portmoot/{}/x.html", name(at)),
        );
    }
    // The first of two servers was forgotten, the second is known.
    assert_eq!(named(&stage, ANN, "u0").as_deref(), Some("s01_u0"));
    assert_eq!(
        named(&stage, ANN, "save"),
        Some(format!("{}_save", name(count - 1)))
    );
    // A server that is taken away is forgotten, too, and the places of the others move.
    let left: Vec<_> = std::iter::once(UpstreamNames::gateway())
        .chain((1..count - 1).map(|at| UpstreamNames::new(id(&name(at)), name(at))))
        .collect();
    stage.configure(&left);
    assert_eq!(
        named(&stage, ANN, "save"),
        Some(format!("{}_save", name(count - 2)))
    );
}

#[test]
fn colliding_pages_and_skills_keep_their_schemes() {
    let mut stage = stage();
    let skill = "skill://refunds/SKILL.md";
    for server in ["one", "two"] {
        let manifest = ServerLists {
            skills: items(&[skill]),
            ..app(&["save"])
        };
        stage.lists(server, ListScope::Shared, manifest);
    }
    assert_eq!(
        stage.sees(ANN, ListKind::Skills),
        [skill, "skill://portmoot/two/refunds/SKILL.md"]
    );
    let snapshot = stage.topic.list_snapshot(ANN, None).unwrap();
    let page = snapshot.respelled_uri(&id("two"), PAGE);
    assert_eq!(page.as_deref(), Some("ui://portmoot/two/board/main.html"));
    assert_eq!(snapshot.respelled_uri(&id("one"), PAGE), None);
    // A URI that looks like a rewritten one leads nowhere else.
    let forged = "ui://portmoot/one/board/main.html";
    let spelled = snapshot.respelled_uri(&id("two"), forged).unwrap();
    assert_eq!(spelled, "ui://portmoot/two/portmoot/one/board/main.html");
    assert_eq!(
        read(&mut stage, ANN, 1, &spelled),
        went("two", Some(forged))
    );
}

#[test]
fn files_of_a_skill_are_read_at_its_server() {
    let mut stage = stage();
    let listed = |skills: &[&str]| ServerLists {
        skills: items(skills),
        ..ServerLists::default()
    };
    stage.lists("one", ListScope::Shared, listed(&["skill://a/SKILL.md"]));
    stage.lists(
        "two",
        ListScope::Shared,
        listed(&["skill://a/b/SKILL.md", "skill://c/SKILL.md"]),
    );
    for (at, (uri, server)) in [
        ("skill://a/x.md", "one"),
        ("skill://a", "one"),
        // The first server's directory; the second's skill in it is its own, and its files have
        // another spelling.
        ("skill://a/b/x.md", "one"),
        ("skill://c/deep/er/x.md", "two"),
        ("skill://c", "two"),
    ]
    .into_iter()
    .enumerate()
    {
        let method = if uri.ends_with(".md") {
            "resources/read"
        } else {
            "resources/directory/read"
        };
        let effects = stage.request(ANN, 10 + at as u128, method, Some(PublicTarget::Uri(uri)));
        assert_eq!(delivered(&effects), went(server, None), "{uri}");
    }
    let effects = stage.request(
        ANN,
        30,
        "skills/get",
        Some(PublicTarget::Uri("skill://a/b/SKILL.md")),
    );
    assert_eq!(delivered(&effects), went("two", None));
    let effects = stage.request(
        ANN,
        31,
        "resources/read",
        Some(PublicTarget::Uri("skill://d/x.md")),
    );
    assert_eq!(refused(&effects), Cause::Unknown);
    let own: Arc<str> = "skill://a/b/x.md".into();
    let spelled = stage
        .topic
        .list_snapshot(ANN, None)
        .unwrap()
        .respelled_uri(&id("two"), &own)
        .unwrap();
    assert_eq!(read(&mut stage, ANN, 32, &spelled), went("two", Some(&own)));
}

#[test]
fn the_files_of_a_withheld_skill_are_refused() {
    let mut stage = stage();
    let withheld = ListItem {
        withheld: topic::Withholding::Listed,
        ..ListItem::from("skill://a/SKILL.md")
    };
    let manifest = ServerLists {
        skills: vec![withheld, "skill://b/SKILL.md".into()],
        ..ServerLists::default()
    };
    stage.lists("one", ListScope::Shared, manifest);
    for (at, uri) in ["skill://a/SKILL.md", "skill://a/x/y.md", "skill://a"]
        .into_iter()
        .enumerate()
    {
        for (of, method) in ["skills/get", "resources/read", "resources/directory/read"]
            .into_iter()
            .enumerate()
        {
            let effects = stage.request(
                ANN,
                (10 + at * 3 + of) as u128,
                method,
                Some(PublicTarget::Uri(uri)),
            );
            assert_eq!(refused(&effects), Cause::ToolChanged, "{method} {uri}");
        }
    }
    assert_eq!(
        read(&mut stage, ANN, 30, "skill://b/x.md"),
        went("one", None)
    );
    let effects = stage.request(
        ANN,
        31,
        "skills/get",
        Some(PublicTarget::Uri("skill://b/SKILL.md")),
    );
    assert_eq!(delivered(&effects), went("one", None));
}
