//! Texts of a first day: tables that fit, questions that stay, commands that say what to type.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::home::Home;
use crate::pty::{run_as_session_leader, run_at_terminal_of, run_with_stdout_at_terminal};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};

const FILE: &str = ".config/portmoot/portmoot.toml";

#[test]
fn tables_and_lines_fit_the_terminal() {
    let home = Home::new();
    let config = "[servers.absent]\ncommand = \"no-such-program-with-quite-a-long-name\"\n[servers.demo]\ntype = \"demo\"\n";
    let gateway = Gateway::start(&home, config);
    gateway.wait_for("absent", "down");
    let home = Home::beside(&home)
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    for args in [
        &["servers", "ls"][..],
        &["status"],
        &["doctor", "--config", "portmoot.toml"],
        &["connect"],
    ] {
        let shown = run_at_terminal_of(80, &home, args, &[]).stderr;
        let table = args[0] != "connect" || shown.contains("CLIENT");
        assert!(table, "{shown}");
        let results = shown.lines().filter(|line| !line.starts_with("next: "));
        let long: Vec<&str> = results.filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{args:?}: {long:?}\n{shown}");
    }
    let wide = run_at_terminal_of(300, &home, &["servers", "ls"], &[]).stderr;
    assert!(
        wide.lines()
            .any(|line| line.contains("no-such-program-with-quite-a-long-name")),
        "{wide}"
    );
}

#[test]
fn a_question_does_not_scroll_away() {
    let (home, config) = people(&[
        ("boss", &["mcp/*", "portmoot/*", "chat"]),
        ("agent", &["mcp/request:*/list", "mcp/proposal:*"]),
    ]);
    let gateway = Gateway::start(&home, &(config + &fixture("a", &["--era", "legacy"])));
    gateway.ready("a");
    let (url, boss, agent) = (gateway.url(), token("boss"), token("agent"));
    let call = [
        "tools",
        "call",
        "a_echo",
        "text=hello",
        "--url",
        &url,
        "--token",
        &agent,
        "--wait",
        "100ms",
    ];
    home.run(&call).expect(6);
    let id = gateway.pending(&home, &boss)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let approve = ["proposals", "approve", &id, "--url", &url, "--token", &boss];
    let shown =
        run_with_stdout_at_terminal(&home, &approve, &[("Approve this proposal?", "n")]).stderr;
    assert!(
        shown.contains("hello") && !shown.contains("inputSchema"),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("its definition: portmoot proposals show {id}")),
        "{shown}"
    );
    let full = [&approve[..], &["--full"]].concat();
    let shown =
        run_with_stdout_at_terminal(&home, &full, &[("Approve this proposal?", "n")]).stderr;
    let at = |text: &str| {
        shown
            .rfind(text)
            .unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    let places = ["inputSchema", "hello", "tools/call echo", "Approve"].map(at);
    assert!(places.is_sorted(), "{places:?} {shown}");
    let whole = home
        .run(&["proposals", "show", &id, "--url", &url, "--token", &boss])
        .expect(0)
        .stdout;
    assert!(whole.contains("inputSchema"), "{whole}");
}

#[test]
fn a_participant_is_allowed_tools_by_their_names() {
    let (home, config) = people(&[
        ("boss", &["mcp/*", "portmoot/*", "chat"]),
        ("ann", &["mcp/request:*/list"]),
    ]);
    let config = config + &fixture("a", &["--era", "legacy"]) + "[servers.demo]\ntype = \"demo\"\n";
    let gateway = Gateway::start(&home, &config);
    ["a", "demo"].iter().for_each(|name| gateway.ready(name));
    let cli = |who: &str, args: &[&str]| {
        home.run(&[args, &["--url", &gateway.url(), "--token", &token(who)]].concat())
    };
    assert_ne!(cli("ann", &["tools", "call", "demo_now"]).code, 0);
    let allowed = cli(
        "boss",
        &["participants", "allow", "ann", "demo_now", "--for", "1h"],
    )
    .expect(0);
    assert!(
        allowed.stdout.contains("tools/call:demo_now") && allowed.stdout.contains("tools/call:now"),
        "{}",
        allowed.stdout
    );
    assert!(allowed.stderr.contains("until "), "{}", allowed.stderr);
    cli("ann", &["tools", "call", "demo_now"]).expect(0);
    // `echo` is a tool of two servers: in rooms its name alone would mean both.
    let allowed = cli("boss", &["participants", "allow", "ann", "demo_echo"]).expect(0);
    assert!(
        allowed.stderr.contains("over MCP only"),
        "{}",
        allowed.stderr
    );
    assert!(
        !allowed
            .stdout
            .lines()
            .any(|line| line.ends_with("tools/call:echo")),
        "{}",
        allowed.stdout
    );
    let unknown = cli("boss", &["participants", "allow", "ann", "nope"])
        .expect(5)
        .stderr;
    assert!(unknown.contains("has no tool `nope`"), "{unknown}");
}

#[test]
fn set_up_says_what_to_type() {
    let home = Home::new();
    let path = home.write(
        FILE,
        "[servers.a]\ncommand = \"x\"\n[servers.b]\ncommand = \"y\"\n[servers.c]\ncommand = \"z\"\n",
    );
    let add = |args: &[&str]| home.run(&[&["add"], args].concat()).expect(2).stderr;
    let dashes = add(&["x", "npx", "foo"]);
    assert!(
        dashes.contains("a command needs `--` before it") && dashes.contains("add x -- npx foo"),
        "{dashes}"
    );
    assert!(add(&["x", "npx"]).contains("add x -- npx"));
    assert!(add(&["my server", "--", "x"]).contains("use letters, digits, `-`, `_` and `.`"));
    let unknown = home.run(&["rm", "a", "nope"]).expect(5).stderr;
    assert!(unknown.contains("it has: a, b, c"), "{unknown}");
    home.run(&["rm", "a", "c"]).expect(0);
    assert_eq!(
        fs::read_to_string(&path).unwrap().trim(),
        "[servers.b]\ncommand = \"y\""
    );
    let import = home
        .run(&["import", "claude-desktop", "--yes"])
        .expect(0)
        .stderr;
    assert!(
        import.contains("nothing to import: there is no file ~/"),
        "{import}"
    );
}

#[test]
fn a_replaced_server_stays_in_its_place() {
    let home = Home::new();
    let path = home.write(
        FILE,
        "[servers.a]\ncommand = \"x\"\n\n[servers.b]\ncommand = \"y\"\n",
    );
    home.run(&["add", "a", "--replace", "--", "z"]).expect(0);
    let after = fs::read_to_string(&path).unwrap();
    assert!(
        after.find("[servers.a]") < after.find("[servers.b]") && after.contains("command = \"z\""),
        "{after}"
    );
}

#[test]
fn a_reload_of_servers_names_no_settings() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[servers.demo]\ntype = \"demo\"\n");
    gateway.ready("demo");
    home.write(
        "portmoot.toml",
        &("[servers.demo]\ntype = \"demo\"\n".to_owned() + &fixture("b", &[])),
    );
    gateway.signal("HUP");
    let line = gateway.receive("reloaded");
    assert!(
        line.contains("added=\"server b\"") && line.contains("changed=\"\""),
        "{line}"
    );
}

#[test]
fn empty_lists_say_what_is_next() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[servers.missing]\ncommand = \"no-such-program\"\n");
    gateway.wait_for("missing", "down");
    for (args, expect) in [
        (&["tools", "ls"][..], "portmoot servers ls"),
        (&["token", "ls"], "portmoot token new NAME"),
        (&["pins", "ls"], "pins = "),
    ] {
        let said = home.run(args).expect(0).stderr;
        assert!(said.contains(expect), "{args:?}: {said}");
    }
}

#[test]
fn a_tool_is_shown_as_it_is_called() {
    let home = Home::new();
    let shown = home.run(&["tools", "show", "demo_add"]).expect(0).stdout;
    assert!(
        shown.starts_with("demo_add(a: number, b: number)\nof server demo\n"),
        "{shown}"
    );
    assert!(shown.contains("tools call demo_add a=1 b=1"), "{shown}");
    let json: Value = serde_json::from_str(
        &home
            .run(&["tools", "show", "demo_add", "--json"])
            .expect(0)
            .stdout,
    )
    .unwrap();
    assert!(json["inputSchema"].is_object());
    let wrong = home
        .run(&["tools", "call", "demo_echo", "txt=hello"])
        .expect(2)
        .stderr;
    assert!(
        wrong.contains("no argument `txt`") && wrong.contains("did you mean `text`?"),
        "{wrong}"
    );
}

#[test]
fn an_image_of_a_result_is_written_to_a_file() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    gateway.ready("a");
    let tools = home.run(&["tools", "ls"]).expect(0).stdout;
    let Some(image) = tools
        .split_whitespace()
        .find(|word| word.starts_with("a_") && word.contains("image"))
    else {
        panic!("the fixture has a tool that returns an image:\n{tools}")
    };
    let said = home.run(&["tools", "call", image]).expect(0);
    assert!(said.stderr.contains("-o FILE"), "{}", said.stderr);
    home.run(&["tools", "call", image, "-o", "out.bin"])
        .expect(0);
    assert!(!fs::read(home.path().join("out.bin")).unwrap().is_empty());
}

#[test]
fn the_log_at_a_terminal_is_for_people() {
    let home = Home::new().env("TERM", "xterm");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let shown = run_as_session_leader(&home, &serve, &[("ready ", "\u{3}")]).stderr;
    let line = shown.lines().find(|line| line.contains("ready ")).unwrap();
    assert!(
        line.contains("\u{1b}[") && !line.contains("portmoot::servers"),
        "{line}"
    );
    let time: String = line.chars().skip_while(|c| !c.is_ascii_digit()).collect();
    assert!(
        !time.contains("T") || !time[..20.min(time.len())].contains('Z'),
        "{line}"
    );
}

#[test]
fn what_keeps_a_server_down_is_a_warning() {
    let home = Home::new();
    home.write(
        "x.toml",
        "[servers.unset]\ncommand = \"x\"\nenv = { A = \"${NO_SUCH}\" }\n",
    );
    let gateway = Gateway::start_with(&home, &["--config", "x.toml"]);
    let line = gateway.receive("NO_SUCH");
    assert!(line.contains("WARN"), "{line}");
    gateway.wait_for("unset", "down");
}

#[test]
fn names_are_completed() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_portmoot"), bin.join("portmoot")).unwrap();
    let script = home.run(&["completions", "bash"]).expect(0).stdout;
    home.write("complete.sh", &script);
    let completed = |words: &[&str]| {
        let words = words
            .iter()
            .map(|word| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(" ");
        let line = format!(
            "source complete.sh; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _portmoot_names portmoot \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &line])
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path());
        bash.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let ran = bash.output().unwrap();
        assert!(
            ran.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(
        completed(&["portmoot", "tools", "call", "demo_a"]),
        "demo_add\n"
    );
    assert_eq!(completed(&["portmoot", "servers", "restart", ""]), "demo\n");
    assert_eq!(completed(&["portmoot", "logs", "d"]), "demo\n");
    assert!(completed(&["portmoot", "tools", "ca"]).contains("call"));
    assert!(completed(&["portmoot", "tools", "call", "--no"]).contains("--no-input"));
    gateway.stop().expect(0);
    // Without a gateway there are no names, and none is started for them.
    assert_eq!(completed(&["portmoot", "tools", "call", "demo_a"]), "\n");
}

#[test]
fn those_who_are_connected_are_named() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let client = Client::plain(&gateway);
    let client_name = until("its session", || {
        let all = home.run(&["participants", "ls", "--json"]).expect(0).stdout;
        let all: Value = serde_json::from_str(&all).unwrap();
        let all = all["participants"].as_array().unwrap().clone();
        all.iter()
            .find_map(|one| Some(one["clients"].as_array()?.first()?.as_str()?.to_owned()))
    });
    let shown = home.run(&["participants", "ls"]).expect(0).stdout;
    assert!(shown.contains(&format!("({client_name}")), "{shown}");
    client.delete();
}

#[test]
fn audit_entries_are_lines_of_json() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    for text in ["a", "b"] {
        home.run(&["tools", "call", "demo_echo", &format!("text={text}")])
            .expect(0);
    }
    let calls = ["audit", "query", "mcp/request:tools/call:*", "--jsonl"];
    let lines = until("both are recorded", || {
        let lines = home.run(&calls).expect(0).stdout;
        (lines.lines().count() == 2).then_some(lines)
    });
    for line in lines.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["verdict"], "admitted", "{entry}");
    }
    let last = home
        .run(&[&calls[..], &["--last", "1"]].concat())
        .expect(0)
        .stdout;
    assert_eq!(
        last.lines().collect::<Vec<_>>(),
        [lines.lines().last().unwrap()]
    );
}
