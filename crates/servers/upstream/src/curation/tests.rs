//! Curation as data: lists and arguments before and after, and the property that nothing hidden
//! passes.

use model::NamePattern;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn patterns(texts: &[&str]) -> Vec<NamePattern> {
    texts
        .iter()
        .map(|text| NamePattern::parse(text).unwrap())
        .collect()
}

fn list(tools: &[Value]) -> List {
    let item = |tool: &Value| Item::read(ListKind::Tools, tool.to_string().into()).unwrap();
    List {
        items: tools.iter().map(item).collect(),
        ..List::default()
    }
}

fn named(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn with_tools<const N: usize>(tools: [(&str, CuratedTool); N]) -> Curation {
    let tools = tools
        .into_iter()
        .map(|(own, tool)| (Arc::from(own), tool))
        .collect();
    Curation {
        tools,
        ..Curation::default()
    }
}

fn preset(presets: &[(&str, &str)], hidden: &[&str]) -> CuratedTool {
    CuratedTool {
        preset: presets
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        hidden_arguments: hidden.iter().map(|name| (*name).to_owned()).collect(),
        ..CuratedTool::default()
    }
}

fn renamed(name: &str) -> CuratedTool {
    CuratedTool {
        name: Some(name.into()),
        ..CuratedTool::default()
    }
}

fn keys(list: &List) -> Vec<&str> {
    list.items.iter().map(|item| item.key.as_str()).collect()
}

#[test]
fn without_a_configuration_a_list_stays_as_it_is() {
    let tools = list(&[named("a"), named("b")]);
    let curated = Curation::default().curate("s", tools.clone());
    assert_eq!(
        curated,
        Curated {
            tools,
            ..Curated::default()
        }
    );
}

#[test]
fn tools_are_chosen_and_hidden_by_their_own_names() {
    let filter = NameFilter {
        only: Some(patterns(&["get_*", "put_*"])),
        hide: patterns(&["*_secret", "x*"]),
    };
    let curation = Curation {
        filter,
        ..Curation::default()
    };
    let tools = ["get_a", "put_a", "get_secret", "other"].map(named);
    let curated = curation.curate("s", list(&tools));
    assert_eq!(keys(&curated.tools), ["get_a", "put_a"]);
    assert_eq!(curated.hidden, ["get_secret", "other"]);
    assert_eq!(
        curated.notes,
        ["no tool of the server matches `x*` in `tools` or `hide`"]
    );
}

#[test]
fn texts_replace_those_of_the_server_and_all_other_bytes_stay() {
    let raw = r#"{"name" : "a", "x":1.0e0, "title":"old", "annotations":{"readOnlyHint":true,"y":2}, "inputSchema":{} }"#;
    let tools = List {
        items: vec![Item::read(ListKind::Tools, raw.into()).unwrap()],
        ..List::default()
    };
    let tool = CuratedTool {
        title: Some("new \"title\"".to_owned()),
        description: Some("What it does.".to_owned()),
        annotations: vec![
            ("readOnlyHint".to_owned(), "false".to_owned()),
            ("z".to_owned(), "[1]".to_owned()),
        ],
        ..CuratedTool::default()
    };
    let curated = with_tools([("a", tool)]).curate("s", tools);
    let shown = std::str::from_utf8(&curated.tools.items[0].raw).unwrap();
    assert_eq!(
        shown,
        r#"{"name" : "a", "x":1.0e0, "title":"new \"title\"", "annotations":{"readOnlyHint":false,"y":2,"z":[1]}, "inputSchema":{},"description":"What it does." }"#
    );
    assert_eq!(curated.altered["a"].original.raw, raw);
    assert!(!curated.altered["a"].is_cut);
}

#[test]
fn arguments_are_cut_wherever_a_schema_names_them() {
    let tool = preset(&[("owner", r#""acme""#)], &["force"]);
    let cut = |schema: Value| {
        let tools = list(&[json!({ "name": "a", "inputSchema": schema })]);
        let curated = with_tools([("a", tool.clone())]).curate("s", tools);
        assert!(curated.altered["a"].is_cut);
        serde_json::from_slice::<Value>(&curated.tools.items[0].get("inputSchema").unwrap())
            .unwrap()
    };
    let text = json!({ "type": "string" });
    for (schema, expected) in [
        (
            json!({ "properties": { "owner": text, "repo": text, "Force": {} }, "required": ["owner", "repo"] }),
            json!({ "properties": { "repo": text }, "required": ["repo"] }),
        ),
        (
            json!({ "properties": { "owner": {} }, "required": ["owner"] }),
            json!({ "properties": {}, "required": [] }),
        ),
        (
            json!({ "anyOf": [{ "required": ["owner"] }, { "required": ["force"], "properties": { "force": {} } }] }),
            json!({ "anyOf": [{ "required": [] }, { "required": ["force"], "properties": {} }] }),
        ),
        (
            json!({ "dependentRequired": { "owner": ["a"], "b": ["owner", "c"] }, "not": { "required": ["owner"] } }),
            json!({ "dependentRequired": { "b": ["c"] }, "not": { "required": ["owner"] } }),
        ),
        (
            json!({ "if": { "properties": { "owner": {} } } }),
            json!({ "if": { "properties": {} } }),
        ),
        (
            json!({ "properties": [], "required": "owner" }),
            json!({ "properties": [], "required": "owner" }),
        ),
        (json!({ "type": "object" }), json!({ "type": "object" })),
    ] {
        assert_eq!(cut(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn arguments_are_cut_in_branches_as_deep_as_the_limit() {
    let tool = preset(&[("owner", "1")], &[]);
    for (levels, is_cut) in [
        (definition::BRANCHES_DEPTH_MAX, true),
        (definition::BRANCHES_DEPTH_MAX + 1, false),
    ] {
        let leaf = json!({ "properties": { "owner": {} } });
        let schema = (0..levels).fold(leaf, |inner, _| json!({ "allOf": [inner] }));
        let tools = list(&[json!({ "name": "a", "inputSchema": schema })]);
        let curated = with_tools([("a", tool.clone())]).curate("s", tools);
        let shown = String::from_utf8(curated.tools.items[0].raw.to_vec()).unwrap();
        assert_eq!(!shown.contains("owner"), is_cut, "{levels}");
    }
}

#[test]
fn a_name_that_is_given_to_a_tool_is_no_other_tools() {
    let curation = with_tools([
        ("a", renamed("b")),
        ("x", renamed("y")),
        ("y", renamed("x")),
        ("gone", renamed("c")),
    ]);
    let tools = ["a", "b", "c", "x", "y"].map(named);
    let curated = curation.curate("s", list(&tools));
    assert_eq!(keys(&curated.tools), ["a", "c", "x", "y"]);
    assert_eq!(
        ["a", "c", "x", "y"].map(|own| curation.name(own)),
        ["b", "c", "y", "x"]
    );
    assert_eq!(curated.hidden, ["b"]);
    let expected = [
        "[servers.s.tool.gone]: the server has no tool `gone`",
        "`b` is not offered: [servers.s.tool.a] has its name",
    ];
    assert_eq!(curated.notes, expected);
}

#[test]
fn lines_without_effect_are_noted() {
    let schema = json!({ "properties": { "owner": {}, "force": {} }, "required": ["force"] });
    let tools = list(&[json!({ "name": "a", "inputSchema": schema }), named("b")]);
    let mut curation = with_tools([
        ("a", preset(&[("ownr", "1")], &["force"])),
        ("b", preset(&[("any", "1")], &[])),
        ("h", renamed("i")),
    ]);
    curation.filter.hide = patterns(&["h"]);
    assert_eq!(
        curation.curate("s", tools).notes,
        [
            "no tool of the server matches `h` in `tools` or `hide`",
            "[servers.s.tool.a]: the tool has no argument `ownr`",
            "[servers.s.tool.a]: the tool requires the argument `force`, which no call can have: write a preset",
            "[servers.s.tool.h]: the server has no tool `h`",
        ]
    );
    assert!(
        curation.curate("s", List::default()).notes.is_empty(),
        "it may list them later"
    );
}

#[test]
fn a_definition_that_cannot_be_changed_is_left_out() {
    let raw = r#"{"name":"a","inputSchema":{"properties":{"owner":{},"own\u0065r":{}}}}"#;
    let tools = List {
        items: vec![Item::read(ListKind::Tools, raw.into()).unwrap()],
        ..List::default()
    };
    let curated = with_tools([("a", preset(&[("owner", "1")], &[]))]).curate("s", tools);
    assert!(curated.tools.items.is_empty());
    assert!(
        curated.unusable[0]
            .reason
            .contains("cannot be changed as configured"),
        "{curated:?}"
    );
}

fn completed(arguments: Option<&str>, by: Author) -> Result<Option<String>, String> {
    let curation = with_tools([("a", preset(&[("owner", r#"{"id":1}"#)], &["dry_run"]))]);
    let whole = curation.complete("a", arguments.map(str::as_bytes), by);
    whole
        .map(|whole| whole.map(|whole| String::from_utf8(whole).unwrap()))
        .map_err(|refusal| refusal.message.into_owned())
}

#[test]
fn presets_are_added_once() {
    for (arguments, expected) in [
        (None, r#"{"owner":{"id":1}}"#),
        (Some("null"), r#"{"owner":{"id":1}}"#),
        (Some("{}"), r#"{"owner":{"id":1}}"#),
        (
            Some(r#" { "n" : 1.0e0 } "#),
            r#" { "n" : 1.0e0,"owner":{"id":1} } "#,
        ),
        (
            Some(r#"{"Ownership":2}"#),
            r#"{"Ownership":2,"owner":{"id":1}}"#,
        ),
    ] {
        for by in [Author::Caller, Author::Reviewer] {
            assert_eq!(
                completed(arguments, by).unwrap().as_deref(),
                Some(expected),
                "{arguments:?}"
            );
        }
    }
    let curation = with_tools([("a", renamed("b"))]);
    assert_eq!(
        curation.complete("a", Some(b"[not read"), Author::Caller),
        Ok(None)
    );
    assert_eq!(curation.complete("other", None, Author::Caller), Ok(None));
}

#[test]
fn what_is_hidden_is_refused_however_it_is_spelled() {
    let sets_or_hides = "the configuration of the gateway sets or hides it";
    for arguments in [
        r#"{"owner":{"id":1}}"#,
        r#"{"own\u0065r":null}"#,
        r#"{"Owner":0}"#,
        r#"{"dry_run":true}"#,
        r#"{"dryRun":true}"#,
        r#"{"x":1,"DRY-RUN":true}"#,
        r#"{"dr\u0079\u005frun":true}"#,
        "{\"dry_\u{17f}run\":1,\"dryrun\":1}",
    ] {
        let refused = completed(Some(arguments), Author::Caller).unwrap_err();
        assert!(refused.contains(sets_or_hides), "{arguments}: {refused}");
    }
    for arguments in [
        "[]",
        "1",
        "{",
        r#"{"a":1,"a":2}"#,
        r#"{"owner":1,"owner":2}"#,
        r#"{"\ud83d":1}"#,
    ] {
        let refused = completed(Some(arguments), Author::Caller).unwrap_err();
        assert!(
            refused.contains("must be a JSON object"),
            "{arguments}: {refused}"
        );
    }
}

#[test]
fn a_reviewer_may_leave_a_preset_and_not_change_it() {
    let by = |arguments| completed(Some(arguments), Author::Reviewer);
    assert_eq!(by(r#"{"n":1,"owner":{ "i\u0064" : 1 }}"#), Ok(None));
    assert!(
        by(r#"{"owner":{"id":2}}"#)
            .unwrap_err()
            .contains("cannot be changed")
    );
    assert!(
        by(r#"{"Owner":{"id":1}}"#)
            .unwrap_err()
            .contains("takes no argument")
    );
    assert!(
        by(r#"{"owner":{"id":1},"dry_run":true}"#)
            .unwrap_err()
            .contains("takes no argument `dry_run`")
    );
}

/// Names of arguments that come near to the hidden ones, written with escapes or without.
fn name() -> impl Strategy<Value = (String, String)> {
    let near = prop_oneof![
        Just("owner".to_owned()),
        Just("dry_run".to_owned()),
        "[oO][wW]_?[nN][eE]-?[rR]",
        "[dD][rR][yY][_-]{0,2}[rR][uU][nN]",
        "[a-z_]{1,6}",
    ];
    (near, any::<u8>()).prop_map(|(name, mask)| {
        let written = name
            .chars()
            .enumerate()
            .map(|(at, c)| match (mask >> (at % 8)) & 1 {
                1 => format!("\\u{:04x}", u32::from(c)),
                _ => c.to_string(),
            });
        let written = written.collect::<String>();
        (name, written)
    })
}

proptest! {
    #[test]
    fn no_call_has_an_argument_that_is_hidden(
        names in prop::collection::vec((name(), 0..3u8), 0..6),
        reviewed in any::<bool>(),
    ) {
        let value = |at: u8| ["null", "\"acme\"", "{\"id\":1}"][usize::from(at)];
        let members: Vec<_> = names.iter().map(|((_, written), at)| format!("\"{written}\": {}", value(*at))).collect();
        let arguments = format!("{{{}}}", members.join(" ,"));
        let by = if reviewed { Author::Reviewer } else { Author::Caller };
        let curation = with_tools([("a", preset(&[("owner", "\"acme\"")], &["dry_run"]))]);
        if let Ok(whole) = curation.complete("a", Some(arguments.as_bytes()), by) {
            let sent = whole.unwrap_or_else(|| arguments.clone().into_bytes());
            let sent: Value = serde_json::from_slice(&sent).unwrap();
            prop_assert_eq!(&sent["owner"], "acme");
            let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
            for name in sent.as_object().unwrap().keys() {
                prop_assert!(name == "owner" || !["owner", "dryrun"].contains(&&*plain(name)), "{}", name);
            }
            // What else a caller passes arrives.
            for ((name, _), _) in names.iter().filter(|((name, _), _)| name != "owner") {
                prop_assert!(sent.get(name).is_some());
            }
        }
    }
}
