//! Commands `init`, `add`, `rm` and `config schema`.

use std::fs;

use serde_json::Value;

use crate::home::Home;
use crate::pty::run_at_terminal;
use crate::support::{Gateway, until};

const FILE: &str = ".config/portmoot/portmoot.toml";
const DESKTOP: &str = ".config/Claude/claude_desktop_config.json";

#[test]
fn a_server_is_added_and_removed_and_all_else_stays() {
    let home = Home::new();
    let text = "# mine\r\n[server] # keep\r\nlisten = \"127.0.0.1:7070\"\r\n\r\n[servers.a]\r\ncommand = 'x' # odd   spacing\r\n\r\n[topics.main]\r\n# nothing\r\nhistory = 3\r\n";
    let path = home.write(FILE, text);
    let added = home.run(&[
        "add",
        "b",
        "--env",
        "KEY=hush-hush",
        "--cwd",
        "/srv",
        "--prefix",
        "p",
        "--",
        "npx",
        "-y",
        "it",
    ]);
    let added = added.expect(0);
    assert!(
        added.stderr.contains("KEY = \"(hidden)\"") && !added.stderr.contains("hush"),
        "{}",
        added.stderr
    );
    home.run(&[
        "add",
        "c",
        "https://c.example/sse",
        "--sse",
        "-H",
        "X-A: ${B}",
    ])
    .expect(0);
    let after = fs::read_to_string(&path).unwrap();
    let expect = text.replace(
        "\r\n[topics.main]",
        "\r\n[servers.b]\r\ncommand = \"npx\"\r\nargs = [\"-y\", \"it\"]\r\ncwd = \"/srv\"\r\nenv = { KEY = \"hush-hush\" }\r\nprefix = \"p\"\r\n\
         \r\n[servers.c]\r\ntype = \"sse\"\r\nurl = \"https://c.example/sse\"\r\nheaders = { X-A = \"${B}\" }\r\n\r\n[topics.main]",
    );
    assert_eq!(after, expect);
    home.run(&["config", "check"]).expect(0);
    // The same once more is no change; another server of the name needs a word.
    assert!(
        home.run(&[
            "add",
            "c",
            "https://c.example/sse",
            "--sse",
            "-H",
            "X-A: ${B}"
        ])
        .expect(0)
        .stderr
        .is_empty()
    );
    assert!(
        home.run(&["add", "b", "--", "y"])
            .expect(1)
            .stderr
            .contains("[server_exists]")
    );
    let dry = home.run(&["rm", "b", "--dry-run"]).expect(0);
    assert!(dry.stdout.contains("- [servers.b]"), "{}", dry.stdout);
    assert_eq!(fs::read_to_string(&path).unwrap(), expect);
    home.run(&["rm", "b"]).expect(0);
    home.run(&["rm", "c"]).expect(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let unknown = home.run(&["rm", "c"]).expect(5).stderr;
    assert!(
        unknown.contains("[unknown_server]") && unknown.contains("it has: a"),
        "{unknown}"
    );
    // The file of this directory, where one is, as for `serve`.
    home.write("portmoot.toml", "");
    home.run(&["add", "d", "--", "x"]).expect(0);
    assert_eq!(
        fs::read_to_string(home.path().join("portmoot.toml")).unwrap(),
        "[servers.d]\ncommand = \"x\"\n"
    );
}

#[test]
fn what_cannot_be_a_server_changes_nothing() {
    let home = Home::new();
    let path = home.write(FILE, "[servers.a]\ncommand = \"x\"\n");
    let before = fs::read(&path).unwrap();
    let check = |args: &[&str], exit, expect: &str| {
        let ran = home.run(args).expect(exit);
        assert!(ran.stderr.contains(expect), "{args:?}: {}", ran.stderr);
        assert_eq!(fs::read(&path).unwrap(), before, "{args:?}");
    };
    check(&["add", "b"], 2, "a server needs a URL or a command");
    check(
        &["add", "portmoot", "--", "x"],
        2,
        "the gateway uses it itself",
    );
    check(
        &["add", "a b", "--", "x"],
        2,
        "a character that is not allowed",
    );
    check(
        &["add", "b", "ftp://x"],
        2,
        "is not an absolute http or https URL",
    );
    check(
        &["add", "b", "https://x", "--env", "A=b"],
        2,
        "is for a server with a command",
    );
    check(
        &["add", "b", "-H", "a: b", "--", "x"],
        2,
        "is for a server with a URL",
    );
    check(
        &["add", "b", "--env", "secret-value", "--", "x"],
        2,
        "a value of --env is not KEY=VALUE",
    );
    check(
        &["add", "b", "--prefix", "a b", "--", "x"],
        2,
        "cannot be part of a tool name",
    );
    assert!(
        !home
            .run(&["add", "b", "--env", "secret-value", "--", "x"])
            .stderr
            .contains("secret-value")
    );
    // A broken file: its place, and nothing is written.
    let broken = "[servers.a]\ncommand = \"x\n";
    let path = home.write("broken.toml", broken);
    for args in [
        &["add", "b", "--config", "broken.toml", "--", "x"][..],
        &["rm", "a", "--config", "broken.toml"],
    ] {
        let ran = home.run(args).expect(2);
        assert!(
            ran.stderr.contains("broken.toml: line 2, column 13")
                && ran.stderr.contains("[file_broken]"),
            "{}",
            ran.stderr
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    }
    // A problem that was there before is no reason to refuse.
    home.write("old.toml", "[servers.a]\ncomand = \"x\"\n");
    home.run(&["add", "b", "--config", "old.toml", "--", "x"])
        .expect(0);
}

#[test]
fn a_running_gateway_takes_an_added_server_over() {
    let home = Home::new();
    home.run(&["init", "--yes"]).expect(0);
    let gateway = Gateway::start_with(&home, &[]);
    home.run(&[
        "add",
        "own",
        "--",
        &harness::fixture_binary().display().to_string(),
        "--stdio",
    ])
    .expect(0);
    gateway.ready("own");
    assert!(home.run(&["tools", "ls"]).expect(0).stdout.contains("own_"));
    home.run(&["rm", "own"]).expect(0);
    until("the server is gone", || {
        (!home.run(&["tools", "ls"]).expect(0).stdout.contains("own_")).then_some(())
    });
}

#[test]
fn a_first_file_is_asked_for_and_valid_in_all_its_comments() {
    let home = Home::new();
    let secret = r#"{ "mcpServers": { "My Search": { "command": "uvx", "args": ["s"], "env": { "API_KEY": "hush" } } } }"#;
    home.write(DESKTOP, secret);
    home.write(
        ".cursor/mcp.json",
        r#"{ "mcpServers": { "b": { "url": "http://127.0.0.1:1/mcp" } } "#,
    );
    assert!(
        home.run(&["init"])
            .expect(3)
            .stderr
            .contains("[consent_needed]")
    );
    let path = home.path().join(FILE);
    let no = [
        ("Import My-Search of Claude Desktop", "n"),
        ("Write ~/.config/portmoot/portmoot.toml?", "n"),
    ];
    let ran = run_at_terminal(&home, &["init"], &no).expect(3);
    assert!(
        ran.stderr.contains("nothing was changed") && !path.exists(),
        "{}",
        ran.stderr
    );
    // A broken file of a client is named, and hinders nothing.
    assert!(ran.stderr.contains("mcp.json: line 1"), "{}", ran.stderr);
    let yes = [
        ("Import My-Search of Claude Desktop", "y"),
        ("Write ~/.config/portmoot/portmoot.toml?", "y"),
    ];
    let ran = run_at_terminal(&home, &["init"], &yes).expect(0);
    assert!(!ran.stderr.contains("hush"), "{}", ran.stderr);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("#:schema ./portmoot.schema.json\n"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "[servers.My-Search]\ncommand = \"uvx\"\nargs = [\"s\"]\nenv = { API_KEY = \"hush\" }\n"
        ),
        "{text}"
    );
    assert_eq!(
        fs::read_to_string(home.path().join(DESKTOP)).unwrap(),
        secret
    );
    home.run(&["config", "check"]).expect(0);
    // Every example in the comments is valid.
    let examples: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .filter(|line| line.starts_with('[') || line.split(' ').nth(1) == Some("="))
        .collect();
    home.write(
        "examples.toml",
        &(examples.join("\n") + "\n[topics.main]\n"),
    );
    assert!(examples.len() > 10, "{examples:?}");
    home.run(&["config", "check", "--config", "examples.toml"])
        .expect(0);
    let again = home.run(&["init", "--yes"]).expect(1).stderr;
    assert!(
        again.contains("is there already") && again.contains("[file_exists]"),
        "{again}"
    );
    // The schema beside it is the one that the program prints.
    let schema = home.run(&["config", "schema"]).expect(0).stdout;
    assert_eq!(
        fs::read_to_string(path.with_file_name("portmoot.schema.json")).unwrap(),
        schema
    );
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let whole: Value =
        serde_json::from_str(&home.run(&["config", "show", "--json"]).expect(0).stdout).unwrap();
    assert!(jsonschema::is_valid(&schema, &whole), "{whole}");
}
