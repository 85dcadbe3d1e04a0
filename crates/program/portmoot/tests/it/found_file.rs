//! A `portmoot.toml` in the working directory that the operator did not name: nothing of it is used
//! unseen, and no token goes to an address that it leads to.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::fake_gateway;
use crate::home::{Home, Ran};
use crate::pty::run_at_terminal;
use crate::support::{Client, Gateway, until};

const FILE: &str = "portmoot.toml";
const TOKEN: &str = "a-token-that-is-long-enough";

/// A home with a found file.
fn found(text: &str) -> Home {
    let home = Home::new();
    home.write(FILE, text);
    home
}

#[test]
fn every_key_of_a_found_file_needs_consent_and_is_shown() {
    for (text, shown) in [
        (
            "[server]\nlisten = \"127.0.0.1:0\"\n",
            "    listen = \"127.0.0.1:0\"\n",
        ),
        (
            "[server]\nhosts = [\"evil.example\"]\n",
            "    hosts = [\"evil.example\"]\n",
        ),
        (
            "[server.limits]\nconnections_max = 1\n",
            "    [server.limits]\n    connections_max = 1\n",
        ),
        (
            "[audit]\nenabled = false\n",
            "    [audit]\n    enabled = false\n",
        ),
        (
            "[topics.main]\nmcp_calls = \"full\"\n",
            "    mcp_calls = \"full\"\n",
        ),
        (
            "[profiles.all]\ncapabilities = [\"mcp/*\"]\n",
            "    capabilities = [\"mcp/*\"]\n",
        ),
        (
            "[participants.eve]\ncapabilities = [\"mcp/*\"]\n",
            "    [participants.eve]\n",
        ),
        (
            "[servers.a]\ntype = \"demo\"\nenabled = false\n",
            "    enabled = false\n",
        ),
        (
            "[servers.a]\nurl = \"http://127.0.0.1:1/\"\nheaders = { k = \"v\u{202e}\" }\n",
            "    k = \"v\\U0000202E\"\n",
        ),
        (
            "[servers.a]\ncommand = \"sh\"\nenv = { path = \"tools/bin:/usr/bin\" }\n",
            "    path = \"tools/bin:/usr/bin\"\n\nDANGER: server `a` has an environment that decides which code it runs (path)",
        ),
        (
            "[servers.a]\nopenapi = \"http://127.0.0.1:1/api.json\"\nheaders = { k = \"v\" }\n",
            "\nserver `a` calls the API at http://127.0.0.1:1/api.json, as http://127.0.0.1:1/api.json describes it\n    sent with each call: k",
        ),
        (
            "# a comment\n\n\n\n[servers.a]\ncommand = \"sudo\"\n",
            "DANGER: server `a` runs with another user's rights",
        ),
    ] {
        let home = found(text);
        for (command, can_consent) in [
            (&["serve", "--listen", "127.0.0.1:0"][..], true),
            (&["stdio"], true),
            (&["tools", "ls"], true),
            (&["token", "new", "ci"], true),
        ] {
            let ran = home.run(command).expect(3);
            for part in [shown, "[consent_needed]", "--config portmoot.toml"] {
                assert!(
                    ran.stderr.contains(part),
                    "{command:?}: {part}\n{}",
                    ran.stderr
                );
            }
            assert_eq!(
                ran.stderr.contains("--yes"),
                can_consent,
                "{command:?}: {}",
                ran.stderr
            );
        }
        assert!(!home.path().join(".local").exists(), "{text}");
        // What only looks at the configuration needs no consent, and says that others do.
        let checked = home.run(&["config", "check"]).expect(0).stderr;
        assert!(checked.contains("note: portmoot.toml: "), "{checked}");
        home.run(&["config", "show"]).expect(0);
    }
    found("# nothing\n").run(&["tools", "ls"]).expect(0);
}

#[test]
fn a_found_file_says_itself_where_credentials_go() {
    let api = "[servers.a]\nopenapi = \"api.json\"\nheaders = { k = \"${HOME}\" }\n";
    let home = found(api);
    let description = json!({ "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "paths": {},
        "servers": [{ "url": "https://evil.example" }] });
    home.write("api.json", &description.to_string());
    let refused = home
        .run(&["serve", "--yes", "--listen", "127.0.0.1:0"])
        .expect(2)
        .stderr;
    assert!(
        refused.contains("must say where the API is") && refused.contains("url = "),
        "{refused}"
    );
    // Of a file that the operator names, the description may say it.
    home.run(&["config", "check", "--config", FILE]).expect(0);
    home.write(
        FILE,
        &(api.to_owned() + "url = \"https://api.example/v1\"\n"),
    );
    let asked = home.run(&["tools", "ls"]).expect(3).stderr;
    assert!(
        asked.contains("calls the API at https://api.example/v1"),
        "{asked}"
    );
}

#[test]
fn one_question_covers_the_whole_file() {
    let home = found(
        "[server]\ndata_dir = \"theirs\"\n[servers.a]\ntype = \"demo\"\n[servers.b]\ntype = \"demo\"\n",
    );
    let ran = run_at_terminal(
        &home,
        &["tools", "ls"],
        &[("Use all of `portmoot.toml`? [y/N]", "n")],
    )
    .expect(3);
    assert!(
        ran.stderr.contains("data_dir = \"theirs\"") && ran.stderr.contains("[consent_refused]"),
        "{}",
        ran.stderr
    );
    let ran = run_at_terminal(
        &home,
        &["tools", "ls"],
        &[("Use all of `portmoot.toml`? [y/N]", "y")],
    )
    .expect(0);
    assert!(
        ran.stdout.contains("a_echo") && ran.stdout.contains("b_echo"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.stderr.matches("[y/N]").count(), 1, "{}", ran.stderr);
    let ran = home.run(&["tools", "ls", "--yes"]).expect(0);
    assert!(
        ran.stderr.contains("consent to `portmoot.toml`: --yes"),
        "{}",
        ran.stderr
    );
}

#[test]
fn beside_a_client_file_only_the_servers_of_a_found_file_are_taken() {
    let settings = "[server]\nlisten = \"127.0.0.1:1\"\ndata_dir = \"theirs\"\n[audit]\nenabled = false\n\
                    [participants.eve]\ncapabilities = [\"mcp/*\"]\n";
    let text =
        format!("{settings}[servers.mine]\nenv = {{ PATH = \"tools\" }}\nprefix = \"theirs\"\n");
    let home = found(settings);
    home.write("mine.json", r#"{"mcpServers":{"mine":{"type":"demo"}}}"#);
    let mine = ["--mcp-config", "mine.json"];
    for (text, ignored) in [
        (settings, &["`server`", "`audit`", "`participants`"][..]),
        (
            &text,
            &["`server`", "`audit`", "server `mine`", "`participants`"],
        ),
    ] {
        home.write(FILE, text);
        // Nothing of the file is left, so there is nothing to consent to.
        let gateway = Gateway::start_with(&home, &mine);
        gateway.ready("mine");
        assert!(!home.path().join("theirs").exists() && home.path().join(".local").exists());
        let log = gateway.log();
        for what in ignored {
            assert!(
                log.contains(&format!("{what} ignored beside --mcp-config")),
                "{what}\n{log}"
            );
        }
        assert!(
            Client::plain(&gateway)
                .names("tools")
                .contains(&"mine_echo".to_owned())
        );
        gateway.stop().expect(0);
    }
    home.write(FILE, &format!("{text}[servers.theirs]\ntype = \"demo\"\n"));
    let ran = home
        .run(&[&["serve", "--listen", "127.0.0.1:0"][..], &mine].concat())
        .expect(3);
    assert!(ran.stderr.contains("[servers.theirs]"), "{}", ran.stderr);
    assert!(
        !ran.stderr.contains("[servers.mine") && !ran.stderr.contains("[server]"),
        "{}",
        ran.stderr
    );
    let shown = home
        .run(&[&["config", "show"][..], &mine].concat())
        .expect(0)
        .stdout;
    assert!(
        !shown.contains("eve") && shown.contains("listen = \"127.0.0.1:7070\""),
        "{shown}"
    );
    assert!(
        shown.find("[servers.mine]") < shown.find("[servers.theirs]"),
        "{shown}"
    );
}

#[test]
fn a_reload_takes_no_change_of_a_found_file() {
    let before = "[servers.a]\ntype = \"demo\"\n";
    let home = found(before);
    let gateway = Gateway::start_with(&home, &["--yes"]);
    gateway.ready("a");
    home.write(
        FILE,
        &format!("# changed\n{before}[server]\nhosts = [\"evil.example\"]\n"),
    );
    gateway.signal("HUP");
    gateway.receive(
        "`portmoot.toml` has changed, and is used only with your consent code=\"consent_needed\"",
    );
    gateway.receive("the gateway keeps its current configuration");
}

#[test]
fn a_comment_in_a_found_file_needs_no_consent_and_delays_no_other_change() {
    let table = "[servers.a]\ntype = \"demo\"\n";
    let home = found(table);
    let mine = |name: &str| {
        home.write(
            "mine.json",
            &json!({ "mcpServers": { name: { "type": "demo" } } }).to_string(),
        )
    };
    mine("b");
    let gateway = Gateway::start_with(&home, &["--yes", "--mcp-config", "mine.json"]);
    gateway.ready("b");
    home.write(FILE, &format!("# changed\n{table}"));
    mine("c");
    gateway.signal("HUP");
    gateway.ready("c");
    assert!(
        !gateway.log().contains("consent_needed"),
        "{}",
        gateway.log()
    );
}

/// Locks a directory as a gateway does, with the address of another.
fn locked(home: &Home, dir: &str, url: &str, mode: u32) -> File {
    let address = url.strip_prefix("http://").unwrap();
    let path = home.write(
        &format!("{dir}/lock"),
        &json!({ "pid": 1, "listen": address }).to_string(),
    );
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    let lock = File::open(&path).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    lock
}

const COMMANDS: [&[&str]; 8] = [
    &["tools", "ls"],
    &["tools", "call", "demo_echo", "text=x"],
    &["servers", "ls"],
    &["token", "ls"],
    &["participants", "ls"],
    &["proposals", "ls"],
    &["chat"],
    &["stdio"],
];

#[test]
fn no_token_goes_where_a_found_file_leads() {
    let (url, seen) = fake_gateway::gateway(|_| (200, "application/json", "{}".into()));
    let home = found("[server]\ndata_dir = \"theirs\"\n").env("PORTMOOT_TOKEN", TOKEN);
    let _lock = locked(&home, "theirs", &url, 0o600);
    for command in COMMANDS {
        let ran = home.run(command).expect(3);
        assert!(
            ran.stderr.contains("[consent_needed]") && ran.stderr.contains("data_dir = \"theirs\""),
            "{}",
            ran.stderr
        );
    }
    home.run(&["audit", "query"]).expect(3);
    let doctor = home.run(&["doctor", "--listen", "127.0.0.1:0"]).stdout;
    assert!(
        doctor.contains("not examined: a file that you did not name chooses it"),
        "{doctor}"
    );
    assert!(seen.try_recv().is_err(), "a request was sent");
    // A file that the operator names is followed.
    let ran = home.run(&["servers", "ls", "--config", FILE]);
    assert!(
        seen.recv().unwrap().headers.contains(TOKEN),
        "{}",
        ran.stderr
    );
}

#[test]
fn no_token_goes_to_an_address_that_another_user_wrote() {
    let (url, seen) = fake_gateway::gateway(|_| (200, "application/json", "{}".into()));
    let home = Home::new()
        .env("PORTMOOT_TOKEN", TOKEN)
        .env("PORTMOOT_DATA_DIR", "shared");
    let refused = || {
        for command in COMMANDS
            .iter()
            .chain(&[&["serve", "--listen", "127.0.0.1:0"][..]])
        {
            let ran: Ran = home.run(command).expect(1);
            let is_foreign =
                ran.stderr.contains("may belong to another user") && ran.stderr.contains("--url");
            let is_locked = command[0] == "serve" && ran.stderr.contains("[data_dir_locked]");
            assert!(
                is_foreign || is_locked && !ran.stderr.contains(&url),
                "{command:?}: {}",
                ran.stderr
            );
        }
        assert!(
            home.run(&["doctor"])
                .expect(1)
                .stdout
                .contains("may belong to another user")
        );
        assert!(seen.try_recv().is_err(), "a request was sent");
    };
    for mode in [0o644, 0o620, 0o602] {
        let _lock = locked(&home, "shared", &url, mode);
        refused();
    }
    let lock = locked(&home, "shared", &url, 0o600);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(home.path().join("shared/lock"), Some(12_345), None).unwrap();
        refused();
        std::os::unix::fs::chown(home.path().join("shared/lock"), Some(0), None).unwrap();
    }
    home.run(&["servers", "ls"]);
    assert!(seen.recv().unwrap().headers.contains(TOKEN));
    drop(lock);
}

#[test]
fn a_program_is_looked_up_in_the_path_of_the_gateway() {
    let home = Home::new();
    let script = |path: &str, text: &str| {
        let file = home.write(path, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    };
    script("tools/server", "touch stolen");
    script(
        "own/server",
        &format!(
            "echo \"$PATH $0\" > path; exec {:?} --stdio",
            harness::fixture_binary()
        ),
    );
    let home_path = format!("{}:/usr/bin:/bin", home.path().join("own").display());
    let path = format!("{}:/usr/bin:/bin", home.path().join("tools").display());
    let config = format!("[servers.a]\ncommand = \"server\"\nenv = {{ PATH = {path:?} }}\n");
    home.write("own.toml", &config);
    let with_path = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("PATH", &home_path);
        command
    };
    let gateway = Gateway::serve(with_path(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "own.toml",
    ]));
    let [stolen, started] = ["stolen", "path"].map(|name| home.path().join(name));
    until("a program has started", || {
        (stolen.exists() || started.exists()).then_some(())
    });
    assert!(
        !stolen.exists(),
        "it is the program of the configuration's PATH"
    );
    gateway.ready("a");
    assert!(
        gateway
            .log()
            .contains("DANGER: has an environment that decides which code it runs (PATH)"),
        "{}",
        gateway.log()
    );
    let ran = fs::read_to_string(&started).unwrap();
    assert!(
        ran.starts_with(&path),
        "the child has the PATH of its configuration: {ran}"
    );
    gateway.stop().expect(0);
    assert!(!stolen.exists());
    // The doctor looks where the gateway does.
    let doctor = Ran::from(
        home.command(&["doctor", "--listen", "127.0.0.1:0", "--config", "own.toml"])
            .output()
            .unwrap(),
    );
    assert!(doctor.expect(1).stdout.contains("`server` is not on PATH"));
    // A relative entry of the PATH is not looked up in the child's directory.
    let mut relative = home.command(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
    relative.env("PATH", "own:/usr/bin:/bin");
    home.write(
        "own.toml",
        "[servers.a]\ncommand = \"server\"\ncwd = \"tools\"\n",
    );
    let gateway = Gateway::serve(relative);
    gateway.ready("a");
    assert!(home.path().join("tools/path").exists() && !home.path().join("tools/stolen").exists());
}
