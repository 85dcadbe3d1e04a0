//! First use as the README describes it: no configuration, an empty home directory.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::support::{Client, Gateway, fixture, until};

const ON_ITS_OWN: &str = "no gateway is running: the servers are started for this command only\n";

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../README.md"))
        .unwrap()
}

#[test]
fn the_start_banner_names_the_next_step() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.receive("next");
    let url = gateway.url();
    // Without --url, commands find the running gateway by its data directory.
    assert_eq!(
        home.run(&["tools", "call", "demo_echo", "text=hello"])
            .expect(0)
            .stdout,
        "hello\n"
    );
    let json = home.run(&["servers", "ls", "--json"]).expect(0).stdout;
    let servers: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (
            &servers["servers"][0]["name"],
            &servers["servers"][0]["state"]
        ),
        (&"demo".into(), &"ready".into())
    );
    home.run(&["servers", "show", "nope"]).expect(5);
    let ran = gateway.stop().expect(0);
    assert_eq!(ran.stdout, "");
    let screen = ran.stderr.replace(&url, "http://127.0.0.1:7070");
    let screen = screen.replace(env!("CARGO_BIN_EXE_portmoot"), "target/release/portmoot");
    let (_, shown) = screen.split_once("portmoot 0.").unwrap();
    let shown = shown.split("\n\n").next().unwrap();
    // The README has this banner, line for line.
    assert!(
        readme().contains(shown.trim_end()),
        "the banner in the README differs from this:\n{shown}"
    );
    assert!(
        screen.contains("server=\"demo\"") && screen.contains("ready"),
        "{screen}"
    );
}

#[test]
fn the_readme_lists_the_demo_tools() {
    let home = Home::new();
    let listed = home.run(&["tools", "ls"]).expect(0);
    assert!(readme().contains(&listed.stdout), "{}", listed.stdout);
    assert_eq!(listed.stderr, ON_ITS_OWN);
    assert_eq!(home.run(&["tools", "ls", "--quiet"]).expect(0).stderr, "");
}

#[test]
fn the_commands_and_links_of_the_readme_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    // `cargo run` in the workspace runs this program.
    assert!(manifest.contains("default-members = [\"crates/program/portmoot\"]"));
    let readme = readme();
    let first = readme.find("cargo run --release -- serve").unwrap();
    assert!(first < readme.find("cargo nextest run --workspace").unwrap());
    for link in readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
    {
        assert!(
            link.starts_with("https://") || root.join(link).exists(),
            "{link} is broken"
        );
    }
}

#[test]
fn a_command_needs_no_gateway() {
    let home = Home::new();
    assert_eq!(
        home.run(&["tools", "call", "demo_add", "a:=40", "b:=2"])
            .expect(0)
            .stdout,
        "42\n"
    );
    // States of servers are those of a running gateway.
    for of_a_gateway in [&["servers", "ls"][..], &["servers", "show", "demo"]] {
        let none = home.run(of_a_gateway).expect(1).stderr;
        assert!(
            none.contains("[gateway_unreachable]") && none.contains("portmoot serve"),
            "{none}"
        );
    }
    assert!(
        home.run(&["tools", "show", "demo_echo"])
            .expect(0)
            .stdout
            .contains("Returns the text.")
    );
    assert!(
        !home.path().join(".local").exists(),
        "nothing is stored on disk"
    );
}

#[test]
fn failures_have_exit_codes() {
    let home = Home::new();
    let unknown = home.run(&["tools", "call", "nope"]).expect(5).stderr;
    assert_eq!(
        unknown.strip_prefix(ON_ITS_OWN).unwrap(),
        "error: there is no tool `nope` [unknown_target]\nhint: list the tools with: portmoot tools ls\n"
    );
    home.run(&["tools", "show", "nope"]).expect(5);
    home.run(&["tools", "call", "demo_add", "a=x", "b=y"])
        .expect(1);
    home.run(&["tools", "call", "demo_echo", "text"]).expect(2);
    home.run(&["tools", "ls", "--topic", "nope"]).expect(3);
}

#[test]
fn the_doctor_passes_in_an_empty_home() {
    let home = Home::new();
    let ran = home.run(&["doctor", "--listen", "127.0.0.1:0"]).expect(0);
    assert!(
        ran.stdout.lines().all(|line| line.starts_with("ok ")),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.stderr, "all checks passed\n");
    home.run(&["config", "check"]).expect(0);
    let shown = home.run(&["config", "show"]).expect(0).stdout;
    home.write("again.toml", &shown);
    let again = home
        .run(&["config", "check", "--config", "again.toml"])
        .expect(0);
    assert_eq!(
        again.stderr, "",
        "what `config show` prints has no settings without effect"
    );
}

/// The blocks of a page in this language.
pub(crate) fn blocks_of(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    page.split(&opening)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Those of the README.
fn blocks(language: &str) -> Vec<String> {
    blocks_of(&readme(), language)
}

/// The command lines of a page below `docs`.
pub(crate) fn lines_of(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(harness::repository().join("docs").join(page)).unwrap();
    blocks_of(&text, "sh")
        .concat()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A home whose PATH has this program and a server in the place of `npx`.
pub(crate) fn equipped() -> Home {
    let home = Home::new();
    let program = |name: &str, script: String| {
        let path = home.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(
        "npx",
        format!("exec {:?} --stdio\n", harness::fixture_binary()),
    );
    program(
        "portmoot",
        format!("exec {:?} \"$@\"\n", env!("CARGO_BIN_EXE_portmoot")),
    );
    let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", home.path().display());
    home.env("PATH", &path)
}

/// A line of a shell, with a word on its stdin after a moment.
pub(crate) fn shell(home: &Home, line: &str) -> Command {
    let of_home = home.command(&[]);
    let variables = of_home
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("(sleep 0.3; echo hello) | (\n{line}\n)")])
        .env_clear()
        .envs(variables);
    shell
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    shell
}

/// Runs a line as the README has it.
#[track_caller]
pub(crate) fn run_line(home: &Home, line: &str) {
    let line = &line.replace("   # asks", " --yes # asks");
    let done = Ran::from(shell(home, line).output().unwrap());
    assert!(
        !line.contains(" chat ") || !done.stdout.contains("refused"),
        "{line}: {}",
        done.stdout
    );
    assert_eq!(done.code, 0, "{line}\n{}{}", done.stdout, done.stderr);
}

/// Lines that build, install, or need the program of another vendor.
const NOT_RUN: [&str; 4] = [
    "cargo run --release",
    "cargo install",
    "cargo nextest run --workspace",
    "claude mcp add",
];

#[test]
fn every_line_of_the_readme_works() {
    let [team] = blocks("toml").try_into().unwrap();
    let lines = blocks("sh").concat();
    let mut lines = lines
        .lines()
        .filter(|line| !NOT_RUN.iter().any(|other| line.starts_with(other)));
    // With servers of one's own, and a client.
    let home = equipped();
    home.write(CLIENT_FILE, CLIENT);
    for command in [
        "portmoot add files -- npx",
        "portmoot import claude-desktop",
        "portmoot connect claude-code",
    ] {
        let line = lines.next().unwrap();
        assert!(line.starts_with(command), "{line}");
        run_line(&home, line);
    }
    assert_eq!(
        lines.next().unwrap().split_once(" #").unwrap().0.trim_end(),
        "portmoot serve"
    );
    let gateway = Gateway::start_with(&home, &[]);
    ["files", "a"].iter().for_each(|name| gateway.ready(name));
    gateway.stop().expect(0);
    // With participants, on a machine with nothing set up.
    let home = equipped();
    home.write("team.toml", &team);
    assert_eq!(lines.next().unwrap(), "portmoot serve --config team.toml");
    let gateway = Gateway::start_with(&home, &["--config", "team.toml"]);
    gateway.ready("demo");
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(lines.len() >= 6, "{lines:?}");
    assert_eq!(run_with_proposals(&home, &lines), ["42\n"]);
    gateway.stop().expect(0);
    // The examples with their output.
    let console = blocks("console").concat();
    for example in console.split("$ ").filter(|example| !example.is_empty()) {
        let (command, expect) = example.split_once('\n').unwrap();
        let args: Vec<&str> = command
            .strip_prefix("target/release/portmoot ")
            .unwrap()
            .split(' ')
            .collect();
        assert_eq!(home.run(&args).expect(0).stdout, expect, "{command}");
    }
}

/// A file of Claude Desktop, and where it is.
const CLIENT_FILE: &str = ".config/Claude/claude_desktop_config.json";
const CLIENT: &str = r#"{ "mcpServers": { "a": { "command": "npx" } } }"#;

/// The call of an agent that waits, as the pages have it.
const WAITS: &str =
    "PORTMOOT_TOKEN=$(portmoot token new agent) portmoot tools call demo_add a=40 b=2";

/// Runs lines one after the other. Calls of agents go on meanwhile; a line with `ID` is about one
/// of them. Returns what the agents printed.
fn run_with_proposals(home: &Home, lines: &[String]) -> Vec<String> {
    let (mut agents, mut printed) = (Vec::new(), Vec::new());
    let pending = || {
        let all = home.run(&["proposals", "ls", "--json"]).expect(0).stdout;
        let all: Value = serde_json::from_str(&all).unwrap();
        let mut all = all["proposals"].as_array().unwrap().iter();
        all.find(|one| one["state"] == "pending")
            .map(|one| one["id"].as_str().unwrap().to_owned())
    };
    for line in lines {
        if line == WAITS {
            agents.push(shell(home, line).spawn().unwrap());
            continue;
        }
        if line.contains(" ID") && agents.is_empty() {
            let again = WAITS.replace("token new agent", "token rotate agent");
            agents.push(shell(home, &again).spawn().unwrap());
        }
        let line = match line.contains(" ID") {
            true => line.replace(" ID", &format!(" {}", until("a proposal", pending))),
            false => line.clone(),
        };
        run_line(home, &line);
        if line.contains("proposals approve") || line.contains("proposals reject") {
            let agent = Ran::from(agents.pop().unwrap().wait_with_output().unwrap());
            assert!(
                agent
                    .stderr
                    .contains("this call needs approval: it is proposed as"),
                "{}",
                agent.stderr
            );
            printed.push(agent.stdout);
        }
    }
    printed
}

#[test]
fn every_line_of_the_page_on_servers_works() {
    let page = std::fs::read_to_string(harness::repository().join("docs/servers.md")).unwrap();
    let [servers, api, curated, sets, large] = blocks_of(&page, "toml").try_into().unwrap();
    let lines = lines_of("servers.md");
    let mut lines = lines.iter();
    let home = equipped()
        .env("GITHUB_TOKEN", "x")
        .env("SEARCH_TOKEN", "x")
        .env("SHOP_KEY", "x");
    let home = home.env("BOT", "a-token-of-the-bot-0123456789");
    home.write(CLIENT_FILE, CLIENT);
    for command in [
        "portmoot add files -- npx",
        "portmoot import claude-desktop",
    ] {
        let line = lines.next().unwrap();
        assert!(line.starts_with(command), "{line}");
        run_line(&home, line);
    }
    let (_, file) = lines
        .next()
        .unwrap()
        .split_once("portmoot serve --mcp-config ")
        .unwrap();
    let file = file.replace('~', &home.path().display().to_string());
    Gateway::start_with(&home, &["--mcp-config", &file]).ready("a");
    let described = "openapi: 3.1.0\ninfo: { title: Shop, version: '1' }\npaths: {}\n";
    home.write("shop.yaml", described);
    for others in [api, curated.clone(), sets + "token_env = \"BOT\"\n", large] {
        home.write("other.toml", &others);
        home.run(&["config", "check", "--config", "other.toml"])
            .expect(0);
    }
    home.write("portmoot.toml", &servers);
    let check = lines.next().unwrap();
    assert!(
        check.starts_with("portmoot config check --config portmoot.toml"),
        "{check}"
    );
    run_line(&home, check);
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("portmoot serve --config portmoot.toml")
    );
    let gateway = Gateway::start_with(&home, &["--config", "portmoot.toml"]);
    gateway.ready("github");
    for command in ["portmoot servers ls", "portmoot logs github"] {
        let line = lines.next().unwrap();
        assert!(line.starts_with(command), "{line}");
        run_line(&home, line);
    }
    let log = gateway.stop().stderr;
    assert!(
        log.contains("environment: GITHUB_PERSONAL_ACCESS_TOKEN"),
        "{log}"
    );
    home.write("portmoot.toml", &curated);
    let edits: Vec<&str> = lines
        .map(|line| line.split(" #").next().unwrap().trim_end())
        .collect();
    let [edits @ .., unused] = edits.as_slice() else {
        panic!("no line")
    };
    assert_eq!(edits.len(), 3, "{edits:?}");
    for edit in edits {
        assert!(edit.starts_with("portmoot tools "), "{edit}");
        run_line(&home, &format!("{edit} --config portmoot.toml"));
    }
    let _gateway = Gateway::start_with(&home, &["--config", "portmoot.toml"]);
    run_line(&home, &format!("{unused} --config portmoot.toml"));
}

#[test]
fn every_line_of_the_page_on_clients_works() {
    let home = equipped();
    for line in lines_of("clients.md")
        .iter()
        .filter(|line| !NOT_RUN.iter().any(|other| line.starts_with(other)))
    {
        run_line(&home, line);
    }
    let page = std::fs::read_to_string(harness::repository().join("docs/clients.md")).unwrap();
    let entries = blocks_of(&page, "json");
    assert_eq!(entries.len(), 2);
    for client in entries {
        home.write("client.json", &client);
        let checked = home
            .run(&["config", "check", "--mcp-config", "client.json"])
            .expect(0);
        assert!(
            checked.stderr.contains("`portmoot`: this gateway itself"),
            "{}",
            checked.stderr
        );
    }
}

#[test]
fn every_line_of_the_pages_on_identities_and_approvals_works() {
    let read = |page: &str| {
        std::fs::read_to_string(harness::repository().join("docs").join(page)).unwrap()
    };
    let home = equipped();
    let [people] = blocks_of(&read("identities.md"), "toml")
        .try_into()
        .unwrap();
    home.write("team.toml", &(people + "[servers.demo]\ntype = \"demo\"\n"));
    home.run(&["token", "new", "agent", "--config", "team.toml"])
        .expect(0);
    let gateway = Gateway::start_with(&home, &["--config", "team.toml"]);
    gateway.ready("demo");
    lines_of("identities.md")
        .iter()
        .for_each(|line| run_line(&home, line));
    let printed = run_with_proposals(&home, &lines_of("approvals.md"));
    assert!(
        printed[..2] == ["42\n"; 2] && printed[2].contains("not on production"),
        "{printed:?}"
    );
    gateway.stop().expect(0);
    // The agent of the page reads by itself, and proposes the rest.
    let blocks = blocks_of(&read("approvals.md"), "toml");
    let [agent, reviewer, several, outside] = blocks.try_into().unwrap();
    let several = format!("[servers.files]\ncommand = \"npx\"\n{several}");
    for config in [agent, reviewer, several, outside] {
        home.write("page.toml", &config);
        let mut check = home.command(&["config", "check", "--config", "page.toml"]);
        let checked = check.env("PDP_TOKEN", "of-the-page").output().unwrap();
        Ran::from(checked).expect(0);
    }
}

#[test]
fn every_line_of_the_pages_for_operators_works() {
    let home = equipped();
    home.write("portmoot.toml", "[servers.NAME]\ncommand = \"npx\"\n");
    let is_own =
        |line: &&String| line.starts_with("portmoot ") && !line.starts_with("portmoot serve");
    // The port is the running gateway's once it runs.
    lines_of("production.md")
        .iter()
        .filter(is_own)
        .for_each(|line| run_line(&home, line));
    let gateway = Gateway::start_with(&home, &["--config", "portmoot.toml"]);
    gateway.ready("NAME");
    for page in ["upgrade.md", "troubleshooting.md"] {
        lines_of(page)
            .iter()
            .filter(is_own)
            .for_each(|line| run_line(&home, line));
    }
    gateway.stop().expect(0);
}

#[test]
fn a_backup_is_made_while_the_gateway_runs_and_restored() {
    let home = equipped();
    home.run(&["token", "new", "before"]).expect(0);
    let gateway = Gateway::start_with(&home, &[]);
    let lines = lines_of("backup.md");
    let (make, restore) = lines.split_at(
        lines
            .iter()
            .position(|line| line.starts_with("cp backup/"))
            .unwrap(),
    );
    let make: Vec<&str> = make.iter().map(String::as_str).collect();
    run_line(&home, &make.join("\n"));
    home.run(&["token", "new", "after", "--capability", "chat"])
        .expect(0);
    gateway.stop().expect(0);
    run_line(&home, &restore[0]);
    assert_eq!(restore[1], "portmoot serve");
    // What came after the backup is missing; the rest is there.
    let gateway = Gateway::start_with(&home, &[]);
    let listed = home.run(&["token", "ls"]).expect(0).stdout;
    assert!(
        listed.contains("before") && !listed.contains("after"),
        "{listed}"
    );
    run_line(&home, &restore[2]);
    gateway.stop().expect(0);
}

#[test]
fn every_line_of_the_page_on_the_api_works() {
    let home = equipped();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let lines = lines_of("api.md")
        .join("\n")
        .replace("http://127.0.0.1:7070", &gateway.url());
    let answers = Ran::from(shell(&home, &lines).output().unwrap())
        .expect(0)
        .stdout;
    for expected in [
        "\"servers\"",
        "demo_echo",
        "hello",
        "\"server\":\"memory\"",
        "unknown_target",
    ] {
        assert!(answers.contains(expected), "no {expected}: {answers}");
    }
    gateway.stop().expect(0);
}

#[test]
fn every_command_of_the_banner_works() {
    let program = env!("CARGO_BIN_EXE_portmoot");
    let mut ran = Vec::new();
    for args in [
        &[][..],
        &["--config", "people.toml"],
        &["--config", "none.toml"],
    ] {
        let home = Home::new();
        home.write("FILE.json", r#"{ "mcpServers": {} }"#);
        let people =
            "[participants.NAME]\ncapabilities = [\"chat\"]\n[servers.demo]\ntype = \"demo\"\n";
        home.write("people.toml", people);
        home.write("none.toml", "");
        let gateway = Gateway::start_with(&home, args);
        // A blank line ends it.
        let banner = until("the banner", || {
            let log = gateway.log();
            log.split_once("  next ")
                .is_some_and(|(_, rest)| rest.contains("\n\n"))
                .then_some(log)
        });
        for command in banner
            .lines()
            .filter_map(|line| Some(line.split_once(program)?.1.trim_start()))
        {
            let command = command
                .split("     ")
                .next()
                .unwrap()
                .split(", ")
                .next()
                .unwrap()
                .trim();
            // As a shell reads it.
            let command = &command.replace('"', "");
            ran.push(command.split(' ').take(2).collect::<Vec<_>>().join(" "));
            if command.starts_with("serve ") {
                let other = ["--listen", "127.0.0.1:0", "--data-dir", "other"];
                let args: Vec<&str> = command.split(' ').skip(1).chain(other).collect();
                Gateway::serve(home.command(&[&["serve"], &args[..]].concat()))
                    .stop()
                    .expect(0);
            } else if command.starts_with("stdio") {
                let args: Vec<&str> = command.split(' ').skip(1).collect();
                let token = ["--token", "unknown-token-of-this-test"];
                // With participants, a client that starts it passes a token of its own.
                let (answers, _) = piped(&home, &[&args[..], &token].concat(), "demo_now");
                assert!(!answers.is_empty());
            } else {
                home.run(&command.split(' ').collect::<Vec<_>>()).expect(0);
            }
        }
        gateway.stop().expect(0);
    }
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(
        ran,
        [
            "console",
            "serve --mcp-config",
            "servers ls",
            "stdio",
            "token new",
            "tools call"
        ]
    );
}

#[test]
fn the_banner_has_an_address_for_clients() {
    let home = Home::new().env("ME", "a-token-that-is-long-enough");
    home.write("own.toml", "[participants.me]\ntoken_env = \"ME\"\n");
    for (listen, shown) in [
        ("0.0.0.0:0", "http://127.0.0.1:"),
        ("[::]:0", "http://[::1]:"),
    ] {
        let gateway =
            Gateway::serve(home.command(&["serve", "--listen", listen, "--config", "own.toml"]));
        // Without servers, the next step is to have some.
        gateway.receive("serve --mcp-config");
        assert!(
            gateway.log().contains(&format!("MCP      {shown}")),
            "{}",
            gateway.log()
        );
        // A second gateway says where the first one is.
        let second = home
            .run(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"])
            .expect(1)
            .stderr;
        assert!(
            second.contains("[data_dir_locked]") && second.contains(&format!("--url {shown}")),
            "{second}"
        );
    }
}

/// The answers of `stdio` to `initialize` and one call, and its output on stderr.
fn piped(home: &Home, args: &[&str], tool: &str) -> (Vec<Value>, String) {
    let info = json!({ "name": "test", "version": "1" });
    let initialize =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": {} } }),
    ];
    let mut command = home.command(&[&["stdio"], args].concat());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let read = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
    writeln!(input, "{}", lines[0]).unwrap();
    let mut answers: Vec<Value> = output.next().into_iter().map(read).collect();
    lines[1..]
        .iter()
        .for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    answers.extend(output.map(read));
    (
        answers,
        Ran::from(child.wait_with_output().unwrap())
            .expect(0)
            .stderr,
    )
}

#[test]
fn a_bare_stdio_joins_the_running_gateway() {
    let home = Home::new();
    home.write("own.toml", &fixture("a", &["--era", "legacy"]));
    let pid = |args: &[&str]| {
        let (answers, stderr) = piped(&home, args, "a_record");
        let called = answers
            .iter()
            .find(|answer| answer["id"] == 2)
            .unwrap_or_else(|| panic!("{answers:?}"));
        assert!(!stderr.contains("WARN"), "{stderr}");
        (
            called["result"]["structuredContent"]["pid"]
                .as_u64()
                .unwrap(),
            stderr,
        )
    };
    let of_its_own = "serving this client with a gateway of its own\n";
    for dir in [&[][..], &["--data-dir", "elsewhere"]] {
        let gateway = Gateway::start_with(&home, &[&["--config", "own.toml"], dir].concat());
        gateway.ready("a");
        let shared = Client::plain(&gateway).record("a")["pid"].as_u64().unwrap();
        let joined = format!(
            "serving this client with the running gateway at {}\n",
            gateway.url()
        );
        for args in [
            dir.to_vec(),
            vec!["--url"],
            [&["--config", "own.toml"], dir].concat(),
        ] {
            let url = gateway.url();
            let args = if args == ["--url"] {
                vec!["--url", &url]
            } else {
                args
            };
            let joins = args != ["--config", "own.toml"];
            let (pid, stderr) = pid(&args);
            assert_eq!(pid == shared, joins, "{args:?}");
            assert!(
                stderr.contains(if joins { &joined } else { of_its_own }),
                "{args:?}: {stderr}"
            );
        }
        // The banner shows the command that joins this gateway.
        let stdio = if dir.is_empty() {
            "stdio\n".to_owned()
        } else {
            format!("stdio --url {}\n", gateway.url())
        };
        assert!(gateway.log().contains(&stdio), "{}", gateway.log());
        gateway.stop().expect(0);
    }
    assert!(pid(&["--config", "own.toml"]).1.contains(of_its_own));
    let (answers, stderr) = piped(&home, &[], "demo_now");
    assert!(
        answers
            .iter()
            .any(|answer| answer["id"] == 2 && answer["result"].is_object()),
        "{answers:?}"
    );
    assert_eq!(stderr, of_its_own);
}

#[test]
fn a_bare_stdio_without_its_token_says_so() {
    let home = Home::new().env("ME", "a-token-that-is-long-enough");
    let config = "[servers.demo]\ntype = \"demo\"\n[participants.me]\ntoken_env = \"ME\"\ncapabilities = [\"mcp/*\"]\n";
    let gateway = Gateway::start(&home, config);
    gateway.ready("demo");
    for token in [&[][..], &["--token", "another-token-of-another"]] {
        let (answers, stderr) = piped(&home, token, "demo_now");
        let error = &answers[0]["error"];
        assert_eq!(error["data"]["code"], "unauthenticated", "{answers:?}");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("PORTMOOT_TOKEN"),
            "{error}"
        );
        assert!(stderr.contains("PORTMOOT_TOKEN"), "{stderr}");
    }
    let (answers, stderr) = piped(
        &home,
        &["--token", "a-token-that-is-long-enough"],
        "demo_now",
    );
    assert!(
        answers.iter().all(|answer| answer["result"].is_object()),
        "{answers:?}{stderr}"
    );
}
