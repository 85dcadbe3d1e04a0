//! The page `docs/first-hour.md`: its commands are run in order, and print what the page shows.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::home::{Home, Ran};
use crate::support::{Gateway, until};

/// Most commands to each of the two goals.
const COMMANDS_MAX: usize = 5;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/first-hour.md"))
        .unwrap()
}

/// The commands of a section with the output below them.
fn steps(title: &str) -> Vec<(String, String)> {
    let page = page();
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with(title))
        .unwrap();
    let blocks = section
        .split("```console\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let commands = blocks.flat_map(|block| block.split("$ ").skip(1));
    let split = |text: &str| {
        let (command, output) = text.split_once('\n').unwrap();
        (command.to_owned(), output.to_owned())
    };
    commands.map(split).collect()
}

/// The commands in the first column of a table of times, by its heading.
fn measured(heading: &str) -> Vec<String> {
    let page =
        fs::read_to_string(harness::repository().join("docs/conformance/guides.md")).unwrap();
    let (_, table) = page.split_once(&format!("| {heading} |")).unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|row| row.starts_with("| "));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect()
}

/// The commands of a section without their comments.
fn plain(steps: &[(String, String)]) -> Vec<String> {
    steps
        .iter()
        .map(|(command, _)| command.split("   # ").next().unwrap().trim().to_owned())
        .collect()
}

/// A home whose PATH has this program, and a server in the place of `uvx`.
fn equipped() -> Home {
    let home = Home::new();
    let program = |name: &str, script: String| {
        let path = home.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(
        "uvx",
        format!("exec {:?} --stdio\n", harness::fixture_binary()),
    );
    program(
        "portmoot",
        format!("exec {:?} \"$@\"\n", env!("CARGO_BIN_EXE_portmoot")),
    );
    let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", home.path().display());
    home.env("PATH", &path)
}

fn shell(home: &Home, line: &str) -> Command {
    let of_home = home.command(&[]);
    let variables = of_home
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .env_clear()
        .envs(variables)
        .current_dir(home.path());
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    shell
}

/// What a command printed, as the page shows it.
fn shown(ran: &Ran, home: &Home) -> String {
    let text = format!("{}{}", ran.stderr, ran.stdout);
    let text = text.replace(
        env!("CARGO_BIN_EXE_portmoot"),
        "/home/me/.cargo/bin/portmoot",
    );
    text.replace(&home.path().display().to_string(), "/home/me")
}

/// Whether the lines of the page are lines of the output, in order; `...` stands for others.
#[track_caller]
fn compare(command: &str, expect: &str, printed: &str) {
    let mut lines = printed.lines();
    for line in expect
        .lines()
        .filter(|line| !line.trim().is_empty() && *line != "...")
    {
        // Ids and digests differ from run to run.
        let fits = |printed: &str| match line.split_once('…') {
            Some((start, end)) => printed.starts_with(start) && printed.ends_with(end),
            None => printed.trim_end() == line.trim_end(),
        };
        assert!(
            lines.any(fits),
            "{command} does not print\n{line}\nin its place, but\n{printed}"
        );
    }
}

#[test]
fn an_own_server_reaches_two_clients_in_five_commands() {
    let home = equipped();
    let steps = steps("Your own server");
    assert!(steps.len() <= COMMANDS_MAX, "{steps:?}");
    assert_eq!(measured("to your own server's tool"), plain(&steps));
    let mut gateway = None;
    for (command, expect) in &steps {
        if command.starts_with("cargo install") {
            continue;
        }
        if command == "portmoot serve" {
            let started = Gateway::start_with(&home, &[]);
            started.ready("time");
            gateway = Some(started);
            continue;
        }
        let ran = Ran::from(
            shell(&home, &command.replace("   # asks", " --yes # asks"))
                .output()
                .unwrap(),
        )
        .expect(0);
        compare(command, expect, &shown(&ran, &home));
    }
    let gateway = gateway.expect("the page starts the gateway");
    for file in [".claude.json", ".cursor/mcp.json"] {
        let file: Value =
            serde_json::from_str(&fs::read_to_string(home.path().join(file)).unwrap()).unwrap();
        assert_eq!(file["mcpServers"]["portmoot"]["args"][0], "stdio", "{file}");
    }
    assert!(
        home.run(&["tools", "ls"])
            .expect(0)
            .stdout
            .contains("time_")
    );
    gateway.stop().expect(0);
}

#[test]
fn a_proposal_is_approved_in_five_commands() {
    let home = equipped();
    let steps = steps("Your first approved proposal");
    assert!(steps.len() <= COMMANDS_MAX, "{steps:?}");
    assert_eq!(measured("to the first approved proposal"), plain(&steps));
    let (mut gateway, mut agent, mut id) = (None, None, String::new());
    for (command, expect) in &steps {
        if command.starts_with("cargo install") {
            continue;
        }
        if command == "portmoot serve" {
            gateway = Some(Gateway::start_with(&home, &[]));
            continue;
        }
        if command.contains("tools call") {
            agent = Some((shell(&home, command).spawn().unwrap(), expect));
            id = until("a proposal", || {
                let all = home.run(&["proposals", "ls", "--json"]).stdout;
                let all: Value = serde_json::from_str(&all).ok()?;
                Some(
                    all["proposals"].as_array()?.first()?["id"]
                        .as_str()?
                        .to_owned(),
                )
            });
            continue;
        }
        let line = command
            .replace(" ID", &format!(" {id}"))
            .replace("   # asks", " --yes # asks");
        let ran = Ran::from(shell(&home, &line).output().unwrap()).expect(0);
        compare(command, expect, &shown(&ran, &home));
    }
    let (agent, expect) = agent.expect("the page has an agent");
    let agent = Ran::from(agent.wait_with_output().unwrap()).expect(0);
    compare("the agent's call", expect, &shown(&agent, &home));
    assert_eq!(agent.stdout, "42\n");
    drop(gateway);
}

#[test]
fn the_second_part_works_after_the_first_one() {
    let home = equipped();
    home.run(&["add", "time", "--", "uvx", "mcp-server-time"])
        .expect(0);
    home.run(&["connect", "cursor", "--yes"]).expect(0);
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("time");
    let new = [
        "token",
        "new",
        "agent",
        "--capability",
        "mcp/request:*/list",
        "--capability",
        "mcp/proposal:*",
    ];
    // The first token closes the gateway, which goes on running.
    let issued = home.run(&new).expect(0);
    assert!(
        issued.stderr.contains("from now on callers need a token"),
        "{}",
        issued.stderr
    );
    let token = issued.stdout.trim().to_owned();
    // Cursor's entry from before has no token, and says so; the one of the page has one.
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cursor","version":"1"}}}"#;
    let as_cursor = || {
        let file = fs::read_to_string(home.path().join(".cursor/mcp.json")).unwrap();
        let entry = serde_json::from_str::<Value>(&file).unwrap()["mcpServers"]["portmoot"].clone();
        let home = match entry["env"]["PORTMOOT_TOKEN"].as_str() {
            Some(token) => Home::beside(&home).env("PORTMOOT_TOKEN", token),
            None => Home::beside(&home),
        };
        let args: Vec<&str> = entry["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap())
            .collect();
        let mut command = home.command(&args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(
            &mut child.stdin.take().unwrap(),
            format!("{initialize}\n").as_bytes(),
        )
        .unwrap();
        Ran::from(child.wait_with_output().unwrap()).stdout
    };
    assert!(as_cursor().contains("unauthenticated"));
    let all = steps("Both, one after the other");
    let [(command, expect)] = all.as_slice() else {
        panic!("{all:?}")
    };
    let line = command.replace("     # asks", " --yes # asks");
    let ran = Ran::from(shell(&home, &line).output().unwrap()).expect(0);
    compare(command, expect, &shown(&ran, &home));
    assert!(as_cursor().contains("serverInfo"));
    // The agent's call, of the own server's tool.
    let agent = Home::beside(&home).env("PORTMOOT_TOKEN", &token);
    let mut call = agent.command(&["tools", "call", "time_echo", "text=hello"]);
    let call = call
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = until("a proposal", || {
        let all: Value =
            serde_json::from_str(&home.run(&["proposals", "ls", "--json"]).stdout).ok()?;
        Some(
            all["proposals"].as_array()?.first()?["id"]
                .as_str()?
                .to_owned(),
        )
    });
    home.run(&["proposals", "approve", &id, "--yes"]).expect(0);
    assert_eq!(
        Ran::from(call.wait_with_output().unwrap()).expect(0).stdout,
        "hello\n"
    );
    gateway.stop().expect(0);
}
