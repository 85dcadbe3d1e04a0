//! Curation on the command line.

use super::*;

#[test]
fn tools_are_disabled_enabled_and_renamed_on_the_command_line() {
    let home = Home::new();
    let listed = ListedServer::new(
        &home,
        "s",
        &[("a", "first"), ("b", "second"), ("put_x", "third")],
    );
    let gateway = Gateway::start(&home, &listed.table());
    gateway.ready("s");
    let client = Client::plain(&gateway);
    let comes_to = |names: &[&str]| {
        until("the gateway takes it over", || {
            (client.names("tools") == names).then_some(())
        })
    };
    let run = |words: &[&str], code| {
        let words = [&["tools"], words, &["--config", "portmoot.toml"]].concat();
        home.run(&words).expect(code)
    };
    let shown = run(&["disable", "s", "b", "put_*", "--dry-run"], 0).stdout;
    assert!(shown.contains(r#"+ hide = ["b", "put_*"]"#), "{shown}");
    run(&["disable", "s", "b", "put_*"], 0);
    comes_to(&["s_a"]);
    run(&["rename", "s", "a", "first"], 0);
    comes_to(&["s_first"]);
    run(&["enable", "s", "b"], 0);
    comes_to(&["s_first", "s_b"]);
    assert_eq!(
        client.call("s_first", json!({}))["content"][0]["text"],
        "a of the server"
    );
    let refused = run(&["enable", "s", "put_x"], 1).stderr;
    assert!(
        refused.contains("`put_*` in `hide` of `s` hides `put_x`, and may hide others too"),
        "{refused}"
    );
    assert!(
        refused.contains("[tool_hidden]") && refused.contains("portmoot tools enable s 'put_*'"),
        "{refused}"
    );
    let refused = home
        .run(&[
            "tools",
            "rename",
            "s",
            "b",
            "no name",
            "--config",
            "portmoot.toml",
        ])
        .stderr;
    assert!(
        refused.contains("cannot be the name of a tool"),
        "{refused}"
    );
    assert!(
        run(&["disable", "x", "b"], 5)
            .stderr
            .contains("[unknown_server]")
    );
    run(&["rename", "s", "a", "a"], 0);
    run(&["enable", "s", "put_*"], 0);
    comes_to(&["s_a", "s_b", "s_put_x"]);
    assert_eq!(
        std::fs::read_to_string(home.path().join("portmoot.toml")).unwrap(),
        listed.table()
    );
}
