//! Changes of curation while the gateway runs.

use super::*;

#[test]
fn lines_that_change_nothing_are_noted_and_a_reload_takes_changes_over() {
    let home = Home::new();
    let listed = ListedServer::new(
        &home,
        "s",
        &[("a", "first"), ("b", "second"), ("c", "third")],
    );
    let more = "hide = [\"x*\"]\n[servers.s.tool.a]\nname = \"b\"\n[servers.s.tool.gone]\ntitle = \"Gone\"\n";
    let gateway = Gateway::start(&home, &(listed.table() + more));
    gateway.ready("s");
    let client = Client::plain(&gateway);
    assert_eq!(client.names("tools"), ["s_b", "s_c"]);
    assert_eq!(
        client.call("s_b", json!({}))["content"][0]["text"],
        "a of the server"
    );
    let notes = gateway.server("s")["notes"].clone();
    assert_eq!(
        notes,
        json!([
            "no tool of the server matches `x*` in `tools` or `hide`",
            "[servers.s.tool.gone]: the server has no tool `gone`",
            "`b` is not offered: [servers.s.tool.a] has its name",
        ])
    );
    home.write(
        "portmoot.toml",
        &(listed.table() + "tools = [\"c\"]\nprefix = \"\"\n"),
    );
    gateway.signal("HUP");
    until("the reload counts", || {
        (client.names("tools") == ["c"]).then_some(())
    });
    // Without a prefix the server is asked for what it does not list, and not for what is hidden.
    for name in ["a", "b", "unlisted"] {
        let refused = client.ask("tools/call", json!({ "name": name, "arguments": {} }));
        assert_eq!(
            refused["error"]["data"]["code"], "unknown_target",
            "{name}: {refused}"
        );
    }
    until("the server answers", || {
        let answer = client.ask("tools/call", json!({ "name": "c", "arguments": {} }));
        (answer["result"]["content"][0]["text"] == "c of the server").then_some(())
    });
    assert!(!listed.calls().contains("unlisted"), "{}", listed.calls());
}
