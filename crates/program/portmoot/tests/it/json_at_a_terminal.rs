//! JSON at a terminal: of every command with `--json`, hidden characters are escapes that mean the
//! same, so that none acts on the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::pty::run_with_stdout_at_terminal;
use crate::socket::stdio_server;
use crate::support::{Client, Gateway, until};
use crate::ws::{people, token};

/// The introducer of a control sequence in 8 bits, a line feed of C1, a direction mark, two
/// characters without width, a tag.
const HIDDEN: &str = "\u{9b}31m\u{85}\u{202e}\u{200b}\u{feff}\u{e0041}";

/// A server that says all of it wherever a text may be. After a change its tool has another
/// description.
fn server(has_changed: Arc<AtomicBool>) -> Peer {
    Peer::stdio(move |message| {
        let description = if has_changed.load(Ordering::SeqCst) {
            "changed"
        } else {
            "first"
        };
        let text = json!([{ "type": "text", "text": HIDDEN }]);
        let said = json!({ "role": "user", "content": text[0] });
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "e", "version": format!("1{HIDDEN}") },
                "capabilities": { "tools": { "listChanged": true }, "resources": {}, "prompts": {} },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "act", "description": format!("{description} {HIDDEN}"),
                "inputSchema": { "type": "object" } }] })
            }
            "resources/list" => json!({ "resources": [{ "uri": "test://one", "name": HIDDEN }] }),
            "resources/templates/list" => json!({ "resourceTemplates": [] }),
            "resources/read" => json!({ "contents": [{ "uri": "test://one", "text": HIDDEN }] }),
            "prompts/list" => json!({ "prompts": [{ "name": "ask", "description": HIDDEN }] }),
            "prompts/get" => json!({ "description": HIDDEN, "messages": [said] }),
            "tools/call" => json!({ "content": text }),
            _ => json!({}),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        if message["id"].is_null() {
            vec![]
        } else {
            vec![answer.to_string().into_bytes()]
        }
    })
}

#[test]
fn json_at_a_terminal_has_its_hidden_characters_as_escapes() {
    let all = ["mcp/*", "portmoot/*", "chat"];
    let (home, people) = people(&[("boss", &all), ("scout", &["mcp/proposal:*"])]);
    let has_changed = Arc::<AtomicBool>::default();
    let peer = server(Arc::clone(&has_changed));
    // What it writes beside the protocol is in its log.
    let noisy = format!(
        "printf '%s\\n' 'noise {HIDDEN}' >&2\nexec 3<>/dev/tcp/127.0.0.1/$1\ncat <&3 & exec cat >&3\n"
    );
    let noisy = home.write("noisy", &noisy);
    let child = stdio_server(
        "e",
        "e",
        "bash",
        &[noisy.to_str().unwrap(), &peer.port().to_string()],
    );
    let config = people
        + "[audit]\npayloads = \"full\"\n[topics.main]\n"
        + &child
        + "era = \"legacy\"\npins = \"block\"\n";
    let gateway = Gateway::start(&home, &config);
    gateway.ready("e");
    let scout = Client::of(&gateway, &token("scout"));
    let _held = scout.begin_call("e_act", json!({ "text": HIDDEN }));
    let id = gateway.pending(&home, &token("boss"))["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let argument = format!("text={HIDDEN}");
    let (url, boss) = (gateway.url(), token("boss"));
    let check = |args: &[&str], carries: bool| {
        let with = ["--json", "--quiet", "--url", &url, "--token", &boss];
        // The audit log is read from its files.
        let with = if args[0] == "audit" {
            &["--json", "--config", "portmoot.toml"][..]
        } else {
            &with[..]
        };
        let shown = run_with_stdout_at_terminal(&home, &[args, with].concat(), &[]).stderr;
        let raw: Vec<char> = shown
            .chars()
            .filter(|one| ::json::visible::is_hidden(*one) && !"\n\r\t".contains(*one))
            .collect();
        assert!(raw.is_empty(), "{args:?}: {raw:?} in {shown}");
        // One value, or one a line.
        let read = serde_json::Deserializer::from_str(&shown).into_iter::<Value>();
        let read: Value = read
            .map(|one| one.unwrap_or_else(|why| panic!("{args:?}: {why}: {shown}")))
            .collect();
        assert_eq!(
            read.to_string().contains(HIDDEN),
            carries,
            "{args:?}: {read}"
        );
    };
    check(&["tools", "ls"], true);
    check(&["tools", "show", "e_act"], true);
    check(&["tools", "call", "e_act", &argument], true);
    // Their findings quote it with hidden characters visible.
    check(&["servers", "ls"], false);
    check(&["servers", "show", "e"], false);
    check(&["logs", "e"], true);
    check(&["resources", "ls"], true);
    check(&["resources", "read", "test://one"], true);
    check(&["prompts", "ls"], true);
    check(&["prompts", "get", "e_ask"], true);
    check(&["participants", "ls"], false);
    check(&["status"], false);
    check(&["tokens"], false);
    check(&["proposals", "ls"], true);
    check(&["proposals", "show", &id], true);
    until("the call is in the audit log", || {
        let query = ["audit", "query", "--json", "--config", "portmoot.toml"];
        home.run(&query)
            .expect(0)
            .stdout
            .contains("\\u009b31m")
            .then_some(())
    });
    check(&["audit", "query"], true);
    check(&["proposals", "reject", &id, "--reason", HIDDEN], true);
    // A failure is JSON too.
    check(&["tools", "show", &format!("none{HIDDEN}")], true);
    has_changed.store(true, Ordering::SeqCst);
    peer.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    until("the change is noticed", || {
        gateway
            .get("/api/v1/pins/e", Some(&boss))
            .body
            .contains("changed")
            .then_some(())
    });
    check(&["pins", "ls"], false);
    check(&["pins", "show", "e"], false);
}
