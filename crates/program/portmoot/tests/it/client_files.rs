//! Files of MCP clients as they are: an entry that the gateway cannot use stops no other server.

use serde_json::json;

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, until};

/// An entry that works.
fn good() -> String {
    let program = harness::fixture_binary().display().to_string();
    json!({ "command": program, "args": ["--stdio"] }).to_string()
}

fn start(home: &Home, file: &str) -> Gateway {
    home.write("mcp.json", file);
    Gateway::start_with(home, &["--mcp-config", "mcp.json"])
}

#[test]
fn an_entry_that_the_gateway_cannot_use_is_down_and_says_why() {
    for (entry, why) in [
        (
            r#"{"command":"true","env":{"KEY":"${input:api-key}"}}"#,
            "${input:api-key}",
        ),
        (r#"{"command":"true","args":["^a${1,2}"]}"#, "${1,2}"),
        (r#"{"command":"true","args":["${open"]}"#, "never closed"),
        (
            r#"{"type":"carrier-pigeon","command":"true"}"#,
            "`servers.x.type`",
        ),
        (
            r#"{"command":"no-such-program-x --flag"}"#,
            "no-such-program-x",
        ),
        (r#"{"command":["true"]}"#, "`servers.x.command`"),
        (r#"{"url":"ftp://a.example/mcp"}"#, "http or https"),
        (r#"{"command":"true","disabled":"perhaps"}"#, "`disabled`"),
        (r#"{"command":"true","url":"https://a.example"}"#, "both"),
        ("{}", "neither"),
    ] {
        let home = Home::new();
        let gateway = start(
            &home,
            &format!(r#"{{"mcpServers":{{"x":{entry},"good":{}}}}}"#, good()),
        );
        gateway.ready("good");
        let down = gateway.wait_for("x", "down");
        assert!(
            down["cause"].as_str().unwrap().contains(why),
            "{entry} {down}"
        );
        assert!(
            gateway.log().contains("so the server `x` cannot start"),
            "{entry} {}",
            gateway.log()
        );
        // Callers do not see it.
        let client = Client::plain(&gateway);
        assert_eq!(
            client.call("good_echo", json!({ "text": "x" }))["content"][0]["text"],
            "x"
        );
    }
}

#[test]
fn an_entry_without_a_usable_name_or_keys_is_left_out() {
    let home = Home::new();
    let file = format!(
        r#"{{"mcpServers":{{"a\u202eb":{{"command":"true"}},"note":"mine","good":{}}}}}"#,
        good()
    );
    let gateway = start(&home, &file);
    gateway.ready("good");
    assert!(
        gateway
            .log()
            .contains("server `note`: not a table of keys, ignored"),
        "{}",
        gateway.log()
    );
    let all = gateway.get("/api/v1/servers", None).json();
    assert_eq!(all["servers"].as_array().unwrap().len(), 1, "{all}");
}

#[test]
fn types_and_flags_of_other_clients_are_understood() {
    let entries = [
        ("local", r#""type":"local""#),
        ("upper", r#""type":"STDIO""#),
        ("text", r#""disabled":"false""#),
        ("on", r#""enabled":"true""#),
        ("both", r#""type":"stdio","transport":"stdio""#),
    ];
    let home = Home::new();
    let program = harness::fixture_binary().display().to_string();
    let entry = |(name, more): &(&str, &str)| {
        format!(r#""a-{name}":{{"command":{program:?},"args":["--stdio"],{more}}}"#)
    };
    let all: Vec<String> = entries.iter().map(entry).collect();
    let off = format!(r#""off":{{"command":{program:?},"args":["--stdio"],"disabled":"true"}}"#);
    let gateway = start(
        &home,
        &format!(r#"{{"mcpServers":{{{},{off}}}}}"#, all.join(",")),
    );
    for (name, _) in &entries {
        gateway.ready(&format!("a-{name}"));
    }
    assert_eq!(
        gateway.get("/api/v1/servers/off", None).status,
        404,
        "it is disabled"
    );
}

#[test]
fn comments_and_trailing_commas_are_read() {
    let home = Home::new();
    let file = format!(
        "{{ // mine\n  \"mcpServers\": {{ /* , */\n    \"good\": {},\n  }},\n}}\n",
        good()
    );
    let gateway = start(&home, &file);
    gateway.ready("good");
    home.write(
        "bad.json",
        "{ // mine\n \"mcpServers\": {\n \"a\": {\"command\": nothing} } }",
    );
    let checked = home.run(&["config", "check", "--mcp-config", "bad.json"]);
    assert!(checked.stderr.contains("bad.json:3"), "{}", checked.stderr);
}

#[test]
fn servers_with_names_of_callers_leave_callers_in() {
    let names = ["local", "Local", "anonymous-1", "system"];
    let home = Home::new();
    let table =
        |name: &&str| fixture("x", &[]).replace("[servers.x]", &format!("[servers.\"{name}\"]"));
    let gateway = Gateway::start(&home, &names.iter().map(table).collect::<String>());
    let client = Client::plain(&gateway);
    until("all are listed", || {
        let listed = client.names("tools");
        let has = |name: &&str| {
            listed
                .iter()
                .any(|tool| tool.starts_with(&format!("server-{name}_")))
        };
        names.iter().all(has).then_some(())
    });
    let said = client.call("server-local_echo", json!({ "text": "x" }));
    assert_eq!(said["content"][0]["text"], "x", "{said}");
    assert!(
        gateway
            .log()
            .contains("the server `local` is called `server-local`"),
        "{}",
        gateway.log()
    );
}

#[test]
fn names_of_east_asian_letters_have_prefixes_that_differ() {
    let names = ["地图mcp", "地址mcp", "メモ", "검색"];
    let home = Home::new();
    let table =
        |name: &&str| fixture("x", &[]).replace("[servers.x]", &format!("[servers.\"{name}\"]"));
    let gateway = Gateway::start(&home, &names.iter().map(table).collect::<String>());
    let client = Client::plain(&gateway);
    let mut prefixes: Vec<String> = Vec::new();
    for name in names {
        let all = gateway.get("/api/v1/servers", None).json();
        let found = all["servers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|server| server["name"] == name);
        prefixes.push(found.unwrap()["prefix"].as_str().unwrap().to_owned());
    }
    assert!(
        prefixes[0].starts_with("mcp_") && prefixes[2].starts_with("s_"),
        "{prefixes:?}"
    );
    for prefix in &prefixes {
        assert!(
            prefix.is_ascii() && prefixes.iter().filter(|other| *other == prefix).count() == 1,
            "{prefixes:?}"
        );
        until("it is called", || {
            let call = json!({ "name": format!("{prefix}_echo"), "arguments": { "text": "x" } });
            let said = client.ask("tools/call", call);
            (said["result"]["content"][0]["text"] == "x").then_some(())
        });
    }
}
