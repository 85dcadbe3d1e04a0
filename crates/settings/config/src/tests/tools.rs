//! Tools of servers, and sets of tools.

use rules::ToolRules;

use super::*;

#[test]
fn a_server_has_what_is_said_about_its_tools() {
    let config = good(
        r#"
[servers.a]
command = "x"
tools = ["get_*", "put"]
hide = ["get_secret"]
[servers.a.tool.get_issue]
name = "issue"
title = "Issue"
description = "One issue."
annotations = { readOnlyHint = true }
preset = { owner = "acme", deep = { list = [1, 2.5, false] } }
hide_arguments = ["token"]
rules = "never"
"#,
    );
    let curation = config.servers[0].curation.as_ref().unwrap();
    let shown = ["get_issue", "put", "get_secret", "other"].map(|own| curation.shows(own));
    assert_eq!(
        (shown, curation.name("get_issue")),
        ([true, true, false, false], "issue")
    );
    let tool = &curation.tools["get_issue"];
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(tool.annotations, [pair("readOnlyHint", "true")]);
    assert_eq!(
        tool.preset,
        [
            pair("owner", "\"acme\""),
            pair("deep", r#"{"list":[1,2.5,false]}"#)
        ]
    );
    assert_eq!(
        (tool.title.as_deref(), tool.hidden_arguments.as_slice()),
        (Some("Issue"), &["token".to_owned()][..])
    );
    let rules = ["get_issue", "put"].map(|own| curation.rules_of(own));
    assert_eq!(rules, [ToolRules::Never, ToolRules::Ask]);
}

#[test]
fn a_set_stands_for_its_patterns() {
    let config = good(
        r#"
[sets.read]
tools = ["gh_get_*", "fs_read"]
[sets.none]
tools = []
[topics.main]
tools = ["@read", "gh_list"]
hide = ["@none", "gh_get_secret"]
[topics.other]
[participants.ann]
token_env = "TOKEN"
capabilities = ["chat", { kind = "mcp/request:tools/call:@read", to = ["gh", "fs"] }, "mcp/proposal:tools/call:@none"]
"#,
    );
    let tools = config.identity.topics[0].tools.as_ref().unwrap();
    let shown = ["gh_get_x", "fs_read", "gh_list", "gh_get_secret", "gh_put"]
        .map(|name| tools.admits(name));
    assert_eq!(
        (shown, &config.identity.topics[1].tools),
        ([true, true, true, false, false], &None)
    );
    let held: Vec<String> = config.identity.participants[0]
        .participant
        .capabilities
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        held,
        [
            "chat",
            "mcp/request:tools/call:gh_get_*",
            "mcp/request:tools/call:fs_read"
        ]
    );
    let to = config.identity.participants[0]
        .participant
        .capabilities
        .iter()
        .nth(2)
        .and_then(|one| Some(one.addressees()?.count()));
    assert_eq!((to, config.sets.len()), (Some(2), 2));
}

#[test]
fn only_calls_of_tools_name_sets() {
    let config = good(
        "[profiles.a]\ncapabilities = [\"mcp/request:prompts/get:@x\", \"mcp/request:tools/call:a:@x\"]\n",
    );
    assert!(config.sets.is_empty(), "another context is what it says");
}
