//! Built-in tool `search_tools`, and topics whose lists of tools show only what finds the others.

use serde_json::{Value, json};

use crate::builtin_proposals::{data, no};
use crate::home::Home;
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::ws::{people, token};

const BOTH: &str = "builtin = [\"proxy\", \"search_tools\"]\n";

fn people_and_server() -> (Home, String) {
    let (home, config) = people(&[
        ("boss", &["mcp/*"]),
        ("clerk", &["mcp/request:tools/call:up_add"]),
        ("scout", &["mcp/proposal:tools/call:up_echo"]),
        ("guest", &["chat"]),
    ]);
    (home, config + &fixture("up", &["--era", "legacy"]))
}

fn stage(topic: &str) -> (Home, Gateway) {
    let (home, config) = people_and_server();
    let gateway = Gateway::start(&home, &format!("{config}[topics.main]\n{topic}"));
    gateway.ready("up");
    (home, gateway)
}

fn client(gateway: &Gateway, who: &str) -> Client {
    Client::of(gateway, &token(who))
}

/// The names that a search finds, best first.
#[track_caller]
fn found(client: &Client, query: &str) -> Vec<String> {
    let data = data(client, "search_tools", json!({ "query": query }));
    let tools = data["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn searching_and_calling_takes_two_turns() {
    let (_home, gateway) = stage(BOTH);
    let boss = client(&gateway, "boss");
    let listed = boss.ask("tools/list", json!({}));
    let of_list = |name: &str| {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap()
            .clone()
    };
    let answer = data(
        &boss,
        "search_tools",
        json!({ "query": "how do I add two numbers?", "limit": 2 }),
    );
    assert_eq!(answer["tools"].as_array().unwrap().len(), 2, "{answer}");
    let best = &answer["tools"][0];
    for key in ["name", "description", "inputSchema"] {
        assert_eq!(best[key], of_list("up_add")[key], "{key}");
    }
    let sum = boss.call(best["name"].as_str().unwrap(), json!({ "a": 2, "b": 3 }));
    assert_eq!(sum["structuredContent"], json!({ "sum": 5 }));
    let params = json!({ "name": "search_tools", "arguments": { "query": "add numbers" } });
    let of_modern = modern(&gateway, Some(&token("boss")), "tools/call", params).json();
    assert_eq!(
        of_modern["result"]["structuredContent"]["tools"][0]["name"], "up_add",
        "{of_modern}"
    );
}

#[test]
fn plain_words_find_what_a_caller_may_use_and_nothing_else() {
    let (home, gateway) = stage(BOTH);
    let boss = client(&gateway, "boss");
    for (query, expected) in [
        ("cancellable progress", "up_slow"),
        ("ask the user something", "up_test_elicitation"),
        ("images and pictures", "up_test_image_content"),
        ("echo a text", "up_echo"),
        ("headers and environment", "up_record"),
        ("filename", "up_confirm_delete"),
    ] {
        let found = found(&boss, query);
        assert!(
            found.iter().any(|name| name == expected),
            "{query}: {found:?}"
        );
    }
    assert!(
        found(&boss, "proxy search tools")
            .iter()
            .all(|name| name.starts_with("up_"))
    );
    assert!(found(&boss, "xyzzy").is_empty());
    assert_eq!(
        found(&client(&gateway, "clerk"), "echo a text, add a number"),
        ["up_add"]
    );
    // What may only be proposed can be used as well.
    assert_eq!(
        found(&client(&gateway, "scout"), "echo a text, add a number"),
        ["up_echo"]
    );
    let refused = |name: &str| {
        let params = json!({ "name": name, "arguments": { "query": "echo" } });
        client(&gateway, "guest").ask("tools/call", params)["error"]
            .to_string()
            .replace(name, "NAME")
    };
    assert_eq!(refused("search_tools"), refused("absent"));
    drop(home);
}

#[test]
fn a_search_has_limits_and_says_what_is_wrong() {
    let (_home, gateway) = stage(BOTH);
    let boss = client(&gateway, "boss");
    let count = |limit: Value| {
        let found = data(
            &boss,
            "search_tools",
            json!({ "query": "test tool", "limit": limit }),
        );
        found["tools"].as_array().unwrap().len()
    };
    assert_eq!((count(json!(1)), count(json!(50))), (1, count(json!(51))));
    assert_eq!(found(&boss, "test tool").len(), 5);
    for (arguments, words) in [
        (json!({}), "missing field `query`"),
        (json!({ "query": " ?! " }), "no word"),
        (json!({ "query": "a", "more": 1 }), "unknown field `more`"),
        (json!({ "query": 1 }), "cannot be read"),
    ] {
        let why = no(&boss, "search_tools", arguments);
        assert!(
            why.starts_with("malformed: ") && why.contains(words),
            "{why}"
        );
    }
}

#[test]
fn arguments_on_the_command_line_have_the_types_of_the_schema() {
    let home = Home::new();
    let config = fixture("up", &["--era", "legacy"]);
    let gateway = Gateway::start(&home, &format!("{config}[topics.main]\n{BOTH}"));
    gateway.ready("up");
    let call = [
        "tools",
        "call",
        "search_tools",
        "query=test tool",
        "limit=1",
        "--json",
    ];
    let found: Value = serde_json::from_str(&home.run(&call).expect(0).stdout).unwrap();
    assert_eq!(
        found["structuredContent"]["tools"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "{found}"
    );
    let shown = home
        .run(&["tools", "show", "search_tools"])
        .expect(0)
        .stdout;
    assert!(shown.contains("Finds tools that you may use"), "{shown}");
}

#[test]
fn a_search_follows_the_lists() {
    let (_home, gateway) = stage(BOTH);
    let boss = client(&gateway, "boss");
    assert!(!found(&boss, "sometimes").contains(&"up_sometimes".to_owned()));
    boss.call("up_toggle_tool", json!({}));
    until("the new tool is found", || {
        found(&boss, "sometimes")
            .contains(&"up_sometimes".to_owned())
            .then_some(())
    });
    boss.call("up_toggle_tool", json!({}));
    until("it is gone", || {
        (!found(&boss, "sometimes").contains(&"up_sometimes".to_owned())).then_some(())
    });
}

#[test]
fn a_short_list_shows_only_what_finds_the_others() {
    let (_home, gateway) = stage(&format!("tools_list = \"search\"\n{BOTH}"));
    let boss = client(&gateway, "boss");
    assert_eq!(boss.names("tools"), ["proxy", "search_tools"]);
    let listed = modern(&gateway, Some(&token("boss")), "tools/list", json!({})).json();
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        2,
        "{listed}"
    );
    assert!(!boss.names("prompts").is_empty() && !boss.names("resources").is_empty());
    // What is not shown is found and called as ever.
    assert_eq!(found(&boss, "add two numbers")[0], "up_add");
    assert_eq!(
        boss.call("up_add", json!({ "a": 1, "b": 1 }))["structuredContent"],
        json!({ "sum": 2 })
    );
    let list = boss.call(
        "proxy",
        json!({ "action": "list", "type": "tool", "filter_server": "up" }),
    );
    assert!(
        list["content"][0]["annotations"]["totalCount"].as_u64() > Some(10),
        "{list}"
    );
    let clerk = client(&gateway, "clerk");
    assert_eq!(clerk.names("tools"), ["proxy", "search_tools"]);
    let refused = clerk.ask(
        "tools/call",
        json!({ "name": "up_echo", "arguments": { "text": "x" } }),
    );
    assert_eq!(
        refused["error"]["data"]["code"], "unknown_target",
        "{refused}"
    );
    assert!(client(&gateway, "guest").names("tools").is_empty());
}

#[test]
fn a_reload_shortens_the_list_and_announces_it() {
    let (home, config) = people_and_server();
    let with = |shown: &str| format!("{config}[topics.main]\ntools_list = {shown:?}\n{BOTH}");
    let gateway = Gateway::start(&home, &with("full"));
    gateway.ready("up");
    let boss = client(&gateway, "boss");
    let changes = boss.listen();
    let full = boss.names("tools");
    assert!(full.len() > 10);
    for (shown, expected) in [("search", 2), ("full", full.len())] {
        home.write("portmoot.toml", &with(shown));
        gateway.signal("HUP");
        changes.next_of("notifications/tools/list_changed");
        until(shown, || {
            (boss.names("tools").len() == expected).then_some(())
        });
    }
    home.write(
        "portmoot.toml",
        &format!("{config}[topics.main]\ntools_list = \"search\"\n"),
    );
    let ran = home.run(&["config", "check", "--config", "portmoot.toml"]);
    assert!(
        ran.stderr.contains("no tool would be listed"),
        "{}",
        ran.stderr
    );
}
