//! Output of every command: `tests/snapshots` has one file for each run, plain and at a terminal
//! with colours.
//!
//! `UPDATE=1 cargo nextest run -p portmoot snapshots` writes the files again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::home::{Home, Ran};
use crate::pty::run_with_stdout_at_terminal;
use crate::support::{Gateway, until};

const CONFIG: &str = "[servers.demo]\ntype = \"demo\"\n\
    [servers.ask]\ncommand = \"sh\"\nargs = [\"-c\", \"printf 'the first \\\\033[31mline\\\\n' >&2; exec python3 asker.py\"]\n\
    [servers.absent]\ncommand = \"no-such-program-anywhere\"\n\
    [participants.ci]\ncapabilities = [\"mcp/request:tools/call:demo_*\"]\n\
    [participants.agent]\ncapabilities = [\"mcp/request:*/list\", \"mcp/proposal:*\", \"mcp/response:*\", \"chat\"]\n";

/// Commands whose output another test has, or that print what a library generates.
const ELSEWHERE: [&str; 6] = [
    "stdio",
    "start",
    "stop",
    "completions",
    "man",
    "config schema",
];

/// How a command is shown.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// Plain, and at a terminal.
    Both,
    /// Plain alone: it changes something, or needs input.
    Plain,
    /// Plain, with every number replaced.
    Uncounted,
}

struct Stage {
    home: Home,
    gateway: Gateway,
    covered: BTreeSet<String>,
    stale: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

impl Stage {
    fn new() -> Stage {
        let home = Home::new();
        home.write("asker.py", include_str!("asker.py"));
        let gateway = Gateway::start(&home, CONFIG);
        ["demo", "ask"].iter().for_each(|name| gateway.ready(name));
        gateway.receive("down server=\"absent\"");
        Stage {
            home,
            gateway,
            covered: BTreeSet::new(),
            stale: Vec::new(),
        }
    }

    /// Runs a command and compares its output with the file of this name.
    fn show(&mut self, name: &str, args: &[&str], shown: Shown) -> Ran {
        let words = args.iter().take_while(|word| !word.starts_with('-'));
        self.covered.extend((1..=2).map(|count| {
            words
                .clone()
                .take(count)
                .copied()
                .collect::<Vec<_>>()
                .join(" ")
        }));
        let ran = steady(|| self.home.run(args));
        let mut text = format!("$ portmoot {}\n[exit {}]\n", args.join(" "), ran.code);
        let mut part = |title: &str, shown: &str| {
            if !shown.is_empty() {
                let _ = write!(text, "--- {title}\n{}\n", shown.trim_end_matches('\n'));
            }
        };
        part("stdout", &ran.stdout);
        part("stderr", &ran.stderr);
        if shown == Shown::Both {
            let home = Home::beside(&self.home).env("TERM", "xterm");
            part(
                "at a terminal",
                &steady(|| run_with_stdout_at_terminal(&home, args, &[])).stderr,
            );
        }
        let text = self.normal(&text, shown == Shown::Uncounted);
        let path = folder().join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if written != text {
            self.stale.push(format!(
                "{name}.txt has\n{written}\nbut the command prints\n{text}"
            ));
        }
        ran
    }

    /// The text without what differs from run to run; widths stay.
    fn normal(&self, text: &str, uncounted: bool) -> String {
        let home = self.home.path().display().to_string();
        let port = self.gateway.address().rsplit_once(':').unwrap().1;
        let text = text
            .replace(self.gateway.address(), "127.0.0.1:7070")
            .replace(&format!("localhost:{port}"), "localhost:7070")
            .replace(&home, "HOME");
        let text = text
            .replace(env!("CARGO_BIN_EXE_portmoot"), "portmoot")
            .replace('\u{1b}', "\\e");
        let text = nameless(&tireless(&weightless(&ageless(&text))));
        let (mut out, mut word) = (String::new(), String::new());
        for c in text.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() || "_:.-".contains(c) {
                word.push(c);
                continue;
            }
            // A process id stands in brackets or after its name.
            let is_pid = c == ']' && out.ends_with('[')
                || out.ends_with("pid: ")
                || out.ends_with("pid\": ")
                || out.ends_with("process id ")
                || out.ends_with("process ")
                || out.ends_with("kill ");
            out += &plain(&word, is_pid || uncounted);
            word.clear();
            out.push(c);
        }
        out.pop();
        out
    }
}

/// Runs a command that shows a server that cannot start between two attempts to start it.
fn steady(run: impl Fn() -> Ran) -> Ran {
    until("no server is starting", || {
        Some(run()).filter(|ran| !format!("{}{}", ran.stdout, ran.stderr).contains("starting"))
    })
}

/// The same with each person's own name of the machine, which is random, as one of zeros.
fn nameless(text: &str) -> String {
    let mut parts = text.split("pm-");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(32).unwrap_or(("", part));
        out += "pm-";
        out += match rest.starts_with(".localhost") {
            true => "00000000000000000000000000000000",
            false => digits,
        };
        out += rest;
    }
    out
}

/// The same without the attempts to start a server and the time until the next one: they are named
/// from a number on.
fn tireless(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split(" tries");
    let mut before = parts.next().unwrap_or_default();
    for after in parts {
        let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        out += before[..before.len() - digits].trim_end_matches("; ");
        before = match after
            .strip_prefix(", the next in ")
            .and_then(|rest| rest.split_once(" s"))
        {
            Some((seconds, rest)) if seconds.chars().all(|c| c.is_ascii_digit()) => rest,
            _ => after,
        };
    }
    out + before
}

/// The memory of processes, which differs from run to run, as tens.
fn weightless(text: &str) -> String {
    let weighed = |line: &str| match line.trim_start().starts_with("\"memory_bytes\": ") {
        true if !line.contains(": 0,") => "      \"memory_bytes\": 10000000,".to_owned(),
        _ => {
            let mut words: Vec<&str> = line.split(' ').collect();
            for at in 1..words.len() {
                if words[at].trim_end_matches(',') == "MiB" {
                    words[at - 1] = "10";
                }
            }
            words.join(" ")
        }
    };
    text.split('\n').map(weighed).collect::<Vec<_>>().join("\n")
}

/// The ages in lists of proposals and on their cards, which differ from run to run, as nines.
fn ageless(text: &str) -> String {
    let aged = |line: &str| {
        let is_card = line.trim_start().starts_with("made ") && line.contains("expires ");
        let is_row = line.contains("tools/call:") && line.contains("pending");
        if !is_card && !is_row {
            return line.to_owned();
        }
        let is_age = |word: &str| {
            let digits = word.trim_end_matches(['s', 'm']);
            digits.len() + 1 == word.len() && digits.chars().all(|c| c.is_ascii_digit())
        };
        let words = line.replace("made now", "made 9s ago");
        let words = words
            .split(' ')
            .map(|word| if is_age(word) { "9s" } else { word });
        words.collect::<Vec<_>>().join(" ").replace("   9s", "  9s")
    };
    text.split('\n').map(aged).collect::<Vec<_>>().join("\n")
}

/// A word without what differs from run to run.
fn plain(word: &str, is_number: bool) -> String {
    let is = |pattern: &str| {
        let fits = |(c, p): (char, char)| if p == '0' { c.is_ascii_digit() } else { c == p };
        word.len() >= pattern.len() && word.chars().zip(pattern.chars()).all(fits)
    };
    // An id, or the beginning of one.
    let hex = (word.len() >= 32 || word.len() == 8 && word.contains(|c: char| c.is_ascii_digit()))
        && word.chars().all(|c| c.is_ascii_hexdigit());
    if hex || (is_number && !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())) {
        return if is_number && !hex {
            "0".to_owned()
        } else {
            "0".repeat(word.len())
        };
    }
    if word.starts_with("pm_") && word.len() > 40 {
        return format!("pm_{}", "x".repeat(word.len() - 3));
    }
    let is_time = ["00:00", "00:00:00"].map(|time| is(time) && word.len() == time.len());
    if is("0000-00-00") || is("0000-0000") || is_time.contains(&true) {
        return word
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
    }
    match word.split_once(':') {
        Some((number, rest)) if is_number && rest.len() >= 32 => {
            format!("{}:{}", plain(number, true), "0".repeat(rest.len()))
        }
        _ => word.to_owned(),
    }
}

#[test]
fn every_command_prints_its_snapshot() {
    use Shown::{Both, Plain, Uncounted};
    let mut stage = Stage::new();
    stage.show("version", &["version"], Both);
    stage.show("no-command", &["tools"], Plain);
    stage.show("status", &["status"], Both);
    stage.show("status-json", &["status", "--json"], Plain);
    stage.show("cluster-status-none", &["cluster", "status"], Both);
    stage.show("cluster-accept-none", &["cluster", "accept"], Plain);
    stage.show("cluster-remove-none", &["cluster", "remove", "b"], Plain);
    stage.show("servers-ls", &["servers", "ls"], Both);
    stage.show("servers-show", &["servers", "show", "absent"], Both);
    stage.show(
        "servers-show-unknown",
        &["servers", "show", "nothing"],
        Both,
    );
    stage.show("logs", &["logs", "ask"], Both);
    stage.show("logs-without-a-process", &["logs", "demo"], Both);
    stage.show("tools-ls", &["tools", "ls"], Both);
    stage.show("tools-ls-pattern", &["tools", "ls", "demo_*"], Both);
    stage.show("tools-show", &["tools", "show", "demo_add"], Both);
    stage.show(
        "tools-call",
        &["tools", "call", "demo_echo", "text=hello"],
        Both,
    );
    stage.show("tools-call-unknown", &["tools", "call", "demo_ecko"], Both);
    stage.show(
        "tools-call-bad-argument",
        &["tools", "call", "demo_echo", "text"],
        Both,
    );
    stage.show("proto-convert", &["proto", "convert", "demo"], Both);
    stage.show("tokens", &["tokens"], Plain);
    stage.show("resources-ls", &["resources", "ls"], Both);
    stage.show(
        "resources-read-unknown",
        &["resources", "read", "nowhere:it"],
        Both,
    );
    stage.show("prompts-ls", &["prompts", "ls"], Both);
    stage.show("prompts-get-unknown", &["prompts", "get", "nothing"], Both);
    stage.show("participants-ls", &["participants", "ls"], Both);
    stage.show("participants-can", &["participants", "can", "ci"], Both);
    stage.show(
        "participants-can-act",
        &["participants", "can", "ci", "ask_env"],
        Both,
    );
    stage.show(
        "participants-grant",
        &["participants", "grant", "ci", "chat", "--for", "1h"],
        Plain,
    );
    stage.show(
        "participants-allow",
        &["participants", "allow", "ci", "demo_add"],
        Plain,
    );
    stage.show(
        "participants-revoke",
        &["participants", "revoke", "ci", "chat"],
        Plain,
    );
    stage.show(
        "token-new",
        &["token", "new", "ci", "--expires", "90d"],
        Plain,
    );
    stage.show("token-new-again", &["token", "new", "ci"], Both);
    stage.show(
        "token-rotate",
        &["token", "rotate", "ci", "--overlap", "1h"],
        Plain,
    );
    stage.show("token-ls", &["token", "ls"], Both);
    stage.show("token-revoke", &["token", "revoke", "ci"], Plain);
    stage.show(
        "token-unknown",
        &["servers", "ls", "--token", "a-token-that-does-not-exist"],
        Both,
    );
    stage.show("console", &["console", "--no-browser"], Both);
    stage.show("proposals-ls-none", &["proposals", "ls"], Both);
    stage.show("rules-ls-none", &["rules", "ls"], Both);
    stage.show("rules-offers-none", &["rules", "offers"], Both);
    for (name, verb) in [("rules-accept", "accept"), ("rules-dismiss", "dismiss")] {
        stage.show(name, &["rules", verb, "3f9ac01b22d4"], Both);
    }
    stage.show("rules-end-unknown", &["rules", "end", "learned-1.1"], Both);
    stage.home.write("rules.toml", "");
    stage.show(
        "rules-replay",
        &["rules", "replay", "rules.toml", "--since", "30d"],
        Both,
    );
    stage.show("rules-add-none", &["rules", "add", "rules.toml"], Both);
    // A call of the agent that waits for a decision, two times.
    let token = stage.home.run(&["token", "new", "agent"]).expect(0).stdout;
    stage.show(
        "participants-pause",
        &["participants", "pause", "agent", "--reason", "it deletes"],
        Plain,
    );
    stage.show(
        "participants-resume",
        &["participants", "resume", "agent"],
        Plain,
    );
    let mut agents = Vec::new();
    for (name, verb, more) in [
        ("approve", "approve", "--yes"),
        ("reject", "reject", "--reason=not now"),
    ] {
        let call = [
            "tools",
            "call",
            "demo_add",
            "a=40",
            "b=2",
            "--token",
            token.trim(),
        ];
        let agent = stage
            .home
            .command(&call)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        agents.push(agent.unwrap());
        let id = until("a proposal", || {
            let all = stage
                .home
                .run(&["proposals", "ls", "--json"])
                .expect(0)
                .stdout;
            let all: Value = serde_json::from_str(&all).unwrap();
            all["proposals"]
                .as_array()
                .unwrap()
                .first()
                .map(|one| one["id"].as_str().unwrap().to_owned())
        });
        if name == "approve" {
            stage.show("proposals-ls", &["proposals", "ls"], Both);
            stage.show("proposals-show", &["proposals", "show", &id], Both);
            stage.show("rules-explain", &["rules", "explain", &id], Both);
            stage.show("proposals-claim", &["proposals", "claim", &id], Both);
            stage.show("proposals-extend", &["proposals", "extend", &id], Both);
            let amends = ["proposals", "amend", &id, "{\"a\":1}"];
            stage.show("proposals-amend", &amends, Both);
            stage.show(
                "rules-like-too-many",
                &["rules", "like", &id, "--uses", "21"],
                Both,
            );
            stage.show("proposals-withdraw", &["proposals", "withdraw", &id], Both);
        }
        if name == "approve" {
            let other = "00".repeat(32);
            stage.show(
                "proposals-approve",
                &["proposals", "approve", &id, "--digest", &other],
                Both,
            );
            stage.home.run(&["proposals", verb, &id, more]).expect(0);
        } else {
            stage.show("proposals-reject", &["proposals", verb, &id, more], Plain);
        }
        let agent = Ran::from(agents.pop().unwrap().wait_with_output().unwrap());
        assert_eq!(
            agent.code,
            i32::from(name == "reject"),
            "{}{}",
            agent.stdout,
            agent.stderr
        );
    }
    // The gateway writes while others read: the last commands have their entries by then.
    until("the audit log is at rest", || {
        stage
            .home
            .run(&["audit", "verify"])
            .stderr
            .is_empty()
            .then_some(())
    });
    stage.show(
        "audit-query",
        &["audit", "query", "portmoot/tokens"],
        Uncounted,
    );
    stage.show("audit-verify", &["audit", "verify"], Uncounted);
    stage.show(
        "doctor",
        &[
            "doctor",
            "--config",
            "portmoot.toml",
            "--listen",
            "127.0.0.1:0",
        ],
        Plain,
    );
    stage.show(
        "config-check",
        &["config", "check", "--config", "portmoot.toml"],
        Both,
    );
    stage.show(
        "config-show",
        &["config", "show", "--config", "portmoot.toml"],
        Both,
    );
    stage.home.write(
        "wrong.toml",
        "[servers.a]\ncomand = \"x\"\n[topics.main]\nhistory = \"two\"\n",
    );
    stage.show(
        "config-check-wrong",
        &["config", "check", "--config", "wrong.toml"],
        Both,
    );
    stage.show("serve-wrong", &["serve", "--config", "wrong.toml"], Both);
    stage.show(
        "serve-twice",
        &[
            "serve",
            "--config",
            "portmoot.toml",
            "--listen",
            "127.0.0.1:0",
        ],
        Plain,
    );
    sign_in(&mut stage);
    set_up(&mut stage);
    stage.show(
        "chat-without-a-gateway",
        &["chat", "--url", "http://127.0.0.1:1"],
        Both,
    );
    stage.show(
        "no-gateway",
        &["servers", "ls", "--data-dir", "elsewhere"],
        Both,
    );
    assert!(
        stage.stale.is_empty(),
        "UPDATE=1 cargo nextest run -p portmoot snapshots\n{}",
        stage.stale.join("\n")
    );
    every_command_is_there(&stage.covered);
}

/// The commands about sign-ins and pins, at a gateway without an issuer, a login or pins: what they
/// say then.
fn sign_in(stage: &mut Stage) {
    use Shown::{Both, Plain};
    stage.show("servers-auth", &["servers", "auth"], Both);
    stage.show(
        "servers-login",
        &["servers", "login", "demo", "--paste"],
        Both,
    );
    stage.show("servers-logout", &["servers", "logout", "demo"], Both);
    stage.show("servers-connect-code", &["servers", "connect-code"], Both);
    stage.show("servers-restart", &["servers", "restart", "demo"], Both);
    stage.show("servers-disable", &["servers", "disable", "demo"], Plain);
    stage.show("servers-enable", &["servers", "enable", "demo"], Plain);
    stage.show("pins-ls", &["pins", "ls"], Both);
    stage.show("pins-show", &["pins", "show", "demo"], Both);
    stage.show("pins-approve", &["pins", "approve", "demo"], Both);
    stage.show("pins-reset", &["pins", "reset", "demo"], Plain);
    stage.show(
        "auth-check",
        &["auth", "check", "--config", "portmoot.toml"],
        Both,
    );
    stage.show(
        "auth-probe",
        &["auth", "probe", "http://127.0.0.1:1/mcp"],
        Both,
    );
    stage.show("login-code", &["login", "code", "ci"], Both);
    stage.show("clients-ls", &["clients", "ls"], Both);
    stage.show("clients-revoke", &["clients", "revoke", "nothing"], Both);
    stage.show("consents-ls", &["consents", "ls"], Both);
    stage.show("consents-revoke", &["consents", "revoke", "nothing"], Both);
}

/// The commands that set up, with files that no gateway reads.
fn set_up(stage: &mut Stage) {
    use Shown::{Both, Plain};
    let client = "{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"env\": { \"API_KEY\": \"hush\" } }\n  }\n}\n";
    stage.home.write(".cursor/mcp.json", client);
    stage.show("init", &["init", "--config", "new.toml", "--dry-run"], Both);
    let api = r#"{ "openapi": "3.1.0", "info": { "title": "Shop" }, "servers": [{ "url": "https://shop.example/v1" }],
        "components": { "securitySchemes": { "key": { "type": "apiKey", "in": "query", "name": "api_key" } } },
        "paths": { "/items": { "get": { "operationId": "items" } } } }"#;
    stage.home.write("shop.json", api);
    let described = [
        "add",
        "shop",
        "--openapi",
        "shop.json",
        "--config",
        "api.toml",
        "--key",
        "${SHOP_KEY}",
    ];
    stage.show(
        "add-openapi",
        &[&described[..], &["--dry-run"]].concat(),
        Both,
    );
    stage.show(
        "add",
        &[
            "add",
            "notes",
            "--config",
            "new.toml",
            "--dry-run",
            "--",
            "npx",
            "-y",
            "notes",
        ],
        Both,
    );
    stage.show(
        "import",
        &["import", "cursor", "--config", "new.toml", "--dry-run"],
        Both,
    );
    stage.show("import-list", &["import"], Both);
    stage
        .home
        .write("new.toml", "[servers.notes]\ncommand = \"npx\"\n");
    stage.show(
        "rm",
        &["rm", "notes", "--config", "new.toml", "--dry-run"],
        Both,
    );
    let edit = |args: [&'static str; 3]| {
        [
            &["tools"],
            &args[..],
            &["--config", "new.toml", "--dry-run"],
        ]
        .concat()
    };
    stage.show(
        "tools-disable",
        &edit(["disable", "notes", "delete_*"]),
        Both,
    );
    stage.show("tools-enable", &edit(["enable", "notes", "delete_*"]), Both);
    stage.show(
        "tools-rename",
        &[&edit(["rename", "notes", "read"])[..], &["read_note"]].concat(),
        Both,
    );
    stage.home.write("value", "hush\n");
    let kept = |args: &[&'static str]| [&["secret"], args, &["--config", "new.toml"]].concat();
    stage.show(
        "secret-set-without-key",
        &kept(&["set", "crm", "--from-file", "value"]),
        Plain,
    );
    stage.show("secret-list", &kept(&["list"]), Both);
    stage.show("secret-remove-unknown", &kept(&["remove", "crm"]), Both);
    stage.show(
        "notifications-test-unknown",
        &["notifications", "test", "desk", "--config", "new.toml"],
        Both,
    );
    stage.show(
        "rm-unknown",
        &["rm", "nothing", "--config", "new.toml"],
        Both,
    );
    stage.show("connect", &["connect", "cursor", "--dry-run"], Both);
    stage.show("connect-list", &["connect"], Both);
    stage.show("connect-without-consent", &["connect", "cursor"], Plain);
    stage.home.run(&["connect", "cursor", "--yes"]).expect(0);
    stage.show("disconnect", &["disconnect", "cursor", "--yes"], Plain);
    stage.show(
        "search-offline",
        &["search", "files", "--registry", "http://127.0.0.1:1"],
        Both,
    );
}

/// Every command of docs/cli.md has a snapshot.
fn every_command_is_there(covered: &BTreeSet<String>) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let all: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## portmoot "))
        .collect();
    let has_more = |command: &str| {
        all.iter()
            .any(|other| other.starts_with(&format!("{command} ")))
    };
    let ends = all
        .iter()
        .filter(|command| !has_more(command) && !ELSEWHERE.contains(command));
    let missing: Vec<_> = ends
        .filter(|command| !covered.contains(**command))
        .collect();
    assert!(missing.is_empty(), "without a snapshot: {missing:?}");
}

#[test]
fn snapshots_hold_no_control_characters_and_colours_only_at_a_terminal() {
    let mut coloured = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{path:?}"
        );
        let (plain, terminal) = text
            .split_once("--- at a terminal\n")
            .unwrap_or((&text, ""));
        assert!(!plain.contains("\\e["), "{path:?}");
        coloured += usize::from(terminal.contains("\\e["));
    }
    assert!(coloured > 3, "{coloured}");
}
