//! Servers whose lists are not what they declare.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::support::{Client, Gateway, until};

fn with_capabilities(
    message: &serde_json::Value,
    capabilities: &str,
    tools: &str,
) -> Option<String> {
    if message["method"] == "initialize" {
        let result = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"p","version":"1"}}}}"#
        );
        return Some(answer(message, &result));
    }
    small(message, tools)
}

const BOSS: &str = "token-of-the-one-who-decides";
const SCOUT: &str = "token-of-the-one-who-proposes";

/// The table of a peer on a pipe that runs all the time.
fn running(peer: &Peer, prefix: &str) -> String {
    format!("{}start = \"always\"\n", peer.child("s", prefix))
}

/// How often a server was asked.
#[derive(Default)]
struct Asked {
    lists: AtomicUsize,
    calls: AtomicUsize,
}

/// A server that announces a change of its tools whenever it is asked for them. Which ones it has
/// may depend on what it was asked.
fn restless(tools: impl Fn(&Asked) -> Vec<String> + Send + Sync + 'static) -> (Peer, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let counted = Arc::clone(&asked);
    let peer = Peer::stdio(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let tools = format!("[{}]", tools(&counted).join(","));
        if message["method"] == "tools/call" {
            counted.calls.fetch_add(1, Ordering::SeqCst);
            return vec![answer(message, r#"{"content":[]}"#).into_bytes()];
        }
        let said = small(message, &tools).unwrap_or_else(|| answer(message, "{}"));
        let mut lines = vec![said.into_bytes()];
        if message["method"] == "tools/list" {
            counted.lists.fetch_add(1, Ordering::SeqCst);
            // Before the answer, so that there is never a list without a later announcement.
            let changed = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            lines.insert(0, changed.to_vec());
        }
        lines
    });
    (peer, asked)
}

/// A legacy session of a client with this name.
fn session_of(gateway: &Gateway, token: Option<&str>, name: &str) -> Client {
    let info = json!({ "name": name, "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    let mut client = Client::resume(gateway, token, "/mcp", "");
    let reply = client.post(&client.request("initialize", params));
    client.session = reply.header("mcp-session-id").unwrap().to_owned();
    client.notify("notifications/initialized", json!({}));
    client
}

#[test]
fn a_server_that_announces_a_change_whenever_it_is_asked_is_asked_less_and_less() {
    // A second tool from the first call on: a real change arrives in the midst of all.
    let (peer, asked) = restless(|asked| match asked.calls.load(Ordering::SeqCst) {
        0 => vec![tool("echo")],
        _ => vec![tool("echo"), tool("late")],
    });
    let home = Home::new();
    let gateway = Gateway::start(&home, &running(&peer, "s"));
    gateway.ready("s");
    let client = Client::plain(&gateway);
    let stream = client.listen();
    let since = Instant::now();
    until("three seconds are over", || {
        (since.elapsed() > Duration::from_secs(3)).then_some(())
    });
    // Without a pause these are some sixty.
    let before = asked.lists.load(Ordering::SeqCst);
    assert!((2..=9).contains(&before), "{before} lists");
    let notified = |stream: &crate::http::Events| {
        let all = stream.so_far();
        all.iter()
            .filter(|one| one["method"] == "notifications/tools/list_changed")
            .count()
    };
    let passed_on = notified(&stream);
    assert!(passed_on <= 3, "nothing has changed: {passed_on}");
    client.call("s_echo", json!({}));
    until("the change is listed", || {
        client
            .names("tools")
            .contains(&"s_late".to_owned())
            .then_some(())
    });
    until("the change is notified", || {
        (notified(&stream) > 0).then_some(())
    });
}

#[test]
fn an_approved_call_runs_at_a_server_that_announces_a_change_whenever_it_is_asked() {
    let (peer, asked) = restless(|_| vec![tool("echo")]);
    let home = Home::new()
        .env("BOSS_TOKEN", BOSS)
        .env("SCOUT_TOKEN", SCOUT);
    let participants = "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/request:*\", \"mcp/response:*\"]\n\
        [participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    // A call that waits until nothing is announced any more waits for this.
    let server = running(&peer, "s") + "request_timeout = \"1h\"\n";
    let gateway = Gateway::start(&home, &(server + participants));
    gateway.ready("s");
    let scout = Client::of(&gateway, SCOUT);
    let call = scout.begin_call("s_echo", json!({}));
    let proposal = gateway.pending(&home, BOSS);
    let url = gateway.url();
    let id = proposal["id"].as_str().unwrap();
    let words = ["proposals", "approve", id, "--yes", "--url", &url];
    home.run(&[&words[..], &["--token", BOSS]].concat())
        .expect(0);
    drop(call);
    assert_eq!(asked.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_server_whose_list_changes_whenever_it_is_asked_is_asked_in_steps() {
    let (peer, asked) =
        restless(|asked| vec![tool(&format!("t{}", asked.lists.load(Ordering::SeqCst)))]);
    let home = Home::new();
    let gateway = Gateway::start(&home, &running(&peer, "s"));
    gateway.ready("s");
    let since = Instant::now();
    until("the steps are reached", || {
        (asked.lists.load(Ordering::SeqCst) > 22).then_some(())
    });
    until("four seconds are over", || {
        (since.elapsed() > Duration::from_secs(4)).then_some(())
    });
    // Without steps these are some eighty.
    let lists = asked.lists.load(Ordering::SeqCst);
    assert!(lists <= 30, "{lists} lists");
}

#[test]
fn declared_lists_without_their_methods_are_empty() {
    let peer = Peer::stdio(|message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let method = message["method"].as_str().unwrap_or_default();
        let said = match method {
            "ping" | "prompts/list" | "resources/list" | "resources/templates/list" => json!({
                "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "Method not found" }
            })
            .to_string(),
            _ => with_capabilities(message, r#"{"tools":{},"resources":{},"prompts":{}}"#, &format!("[{}]", tool("echo")))
                .unwrap_or_else(|| answer(message, r#"{"content":[]}"#)),
        };
        vec![said.into_bytes()]
    });
    let home = Home::new();
    let gateway = Gateway::start(&home, &running(&peer, "s"));
    let ready = gateway.wait_for("s", "ready");
    assert_eq!(
        (&ready["tools"], &ready["prompts"]),
        (&json!(1), &json!(0)),
        "{ready}"
    );
}

#[test]
fn tools_that_are_not_listed_are_named_with_the_reason() {
    for (capabilities, reason) in [
        (r#"{"tools":{}}"#, "inputSchema"),
        ("{}", "does not declare `tools`"),
    ] {
        let peer = Peer::stdio(move |message| {
            if message.get("id").is_none() {
                return Vec::new();
            }
            let tools = match capabilities {
                "{}" => format!("[{}]", tool("bare")),
                _ => format!("[{},{{\"name\":\"bare\"}}]", tool("echo")),
            };
            let said = with_capabilities(message, capabilities, &tools);
            vec![said.unwrap_or_else(|| answer(message, "{}")).into_bytes()]
        });
        let home = Home::new();
        let gateway = Gateway::start(&home, &running(&peer, "s"));
        gateway.wait_for("s", "ready");
        let server = gateway.server("s");
        let unlisted = &server["unlisted_tools"][0];
        assert_eq!(unlisted["name"], "bare", "{server}");
        assert!(
            unlisted["reason"].as_str().unwrap().contains(reason),
            "{server}"
        );
    }
}

#[test]
fn params_that_are_null_are_none() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[servers.d]\ntype = \"demo\"\n");
    let client = Client::plain(&gateway);
    for method in ["ping", "tools/list", "prompts/list"] {
        let reply = client.post_text(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":null}}"#
        ));
        assert!(reply.json()["result"].is_object(), "{method} {reply:?}");
    }
    let reply = client.post_text(
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":null}"#,
    );
    assert_eq!(reply.status, 202, "{reply:?}");
    let reply = client.post_text(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":null}"#);
    assert_eq!(reply.json()["error"]["code"], -32602, "{reply:?}");
}

#[test]
fn a_client_that_refuses_characters_gets_names_without_them() {
    let tools = [tool("immich.search"), tool("ns:sub"), tool("plain")];
    let peer = Peer::stdio(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let said = small(message, &format!("[{}]", tools.join(",")));
        let named = message["params"]["name"].as_str().unwrap_or_default();
        let said = said.unwrap_or_else(|| {
            answer(
                message,
                &json!({ "content": [{ "type": "text", "text": named }] }).to_string(),
            )
        });
        vec![said.into_bytes()]
    });
    for prefix in ["s", ""] {
        let home = Home::new();
        let gateway = Gateway::start(&home, &running(&peer, prefix));
        gateway.ready("s");
        let (desktop, other) = ["claude-ai", "other"]
            .map(|name| session_of(&gateway, None, name))
            .into();
        let under = |own: &str| {
            if prefix.is_empty() {
                own.to_owned()
            } else {
                format!("{prefix}_{own}")
            }
        };
        let of_server = |client: &Client| -> Vec<String> {
            client
                .names("tools")
                .into_iter()
                .filter(|name| {
                    ["immich", "sub", "plain"]
                        .iter()
                        .any(|part| name.contains(part))
                })
                .collect()
        };
        let plain = of_server(&other);
        assert_eq!(plain, ["immich.search", "ns:sub", "plain"].map(under));
        let narrow = of_server(&desktop);
        for (name, own) in narrow.iter().zip(["immich.search", "ns:sub", "plain"]) {
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
                "{narrow:?}"
            );
            let said = desktop.call(name, json!({}));
            assert_eq!(said["content"][0]["text"], own, "{name} {said}");
        }
        assert!(narrow.contains(&under("plain")), "{narrow:?}");
        // The public name goes on to be one, for every client; the narrow one is for those that
        // need it.
        assert_eq!(
            desktop.call(&plain[0], json!({}))["content"][0]["text"],
            "immich.search"
        );
        assert!(
            other.ask("tools/call", json!({ "name": narrow[0], "arguments": {} }))["error"]
                .is_object()
                || prefix.is_empty()
        );
        let listed = home
            .run(&["tools", "ls", "--url", &gateway.url()])
            .expect(0)
            .stdout;
        assert!(
            listed.contains(&format!("{} ({})", plain[0], narrow[0])),
            "{listed}"
        );
    }
}

#[test]
fn a_narrow_name_opens_no_tool_that_the_caller_may_not_call() {
    let peer = Peer::stdio(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let said = small(message, &format!("[{},{}]", tool("a.open"), tool("a.shut")));
        vec![
            said.unwrap_or_else(|| answer(message, r#"{"content":[]}"#))
                .into_bytes(),
        ]
    });
    let home = Home::new().env("ANN", "a-token-of-ann-0123456789");
    let ann = "[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/request:tools/call:s_a.open\"]\n";
    let gateway = Gateway::start(&home, &format!("{}{ann}", running(&peer, "s")));
    gateway.ready("s");
    let client = session_of(&gateway, Some("a-token-of-ann-0123456789"), "claude-ai");
    let narrow = |own: &str| topic_narrow(&format!("s_{own}"));
    client.call(&narrow("a.open"), json!({}));
    let ask = |name: &str| client.ask("tools/call", json!({ "name": name, "arguments": {} }));
    let (refused, unknown) = (ask(&narrow("a.shut")), ask("s_no_such"));
    assert_eq!(
        refused["error"]["code"], unknown["error"]["code"],
        "{refused} {unknown}"
    );
    assert_eq!(peer.calls("a.shut"), 0);
}

/// The narrow name, as a client computes none: FNV-1a of the public name behind it.
fn topic_narrow(public: &str) -> String {
    let hash = public
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!(
        "{}_{:08x}",
        public.replace('.', "_"),
        (hash ^ (hash >> 32)) & 0xffff_ffff
    )
}
