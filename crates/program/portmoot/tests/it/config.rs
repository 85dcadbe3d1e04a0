//! Configuration with the binary: layers, consent, stored tokens, directories, `doctor`.

use std::os::unix::fs::PermissionsExt;

use crate::home::{Home, Ran};
use crate::support::Gateway;

const SERVER: &str =
    "[servers.files]\ncommand = \"sudo\"\nargs = [\"server\", \"${ROOT:-/srv}\"]\n";

#[test]
fn later_layers_override_earlier_ones() {
    let home = Home::new()
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("ROOT", "/data");
    home.write(
        "own.toml",
        "[server]\nlisten = \"127.0.0.1:1111\"\n[servers.a]\nprefix = \"x\"\n",
    );
    home.write(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "npx", "env": {"KEY": "bare"}, "alwaysAllow": []}}}"#,
    );
    let args = [
        "config",
        "show",
        "--origin",
        "--config",
        "own.toml",
        "--mcp-config",
        "mcp.json",
    ];
    let shown = home.run(&args).expect(0).stdout;
    for line in [
        "listen = \"127.0.0.1:1111\"  # own.toml:2",
        "servers = [\"*\"]  # the defaults:10",
        "prefix = \"x\"  # own.toml:4",
        "command = \"npx\"  # mcp.json",
        "KEY = \"(hidden)\"  # mcp.json",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let ran = home
        .run(&[
            "config",
            "check",
            "--config",
            "own.toml",
            "--mcp-config",
            "mcp.json",
        ])
        .expect(0);
    assert!(
        ran.stderr.contains("`alwaysAllow` ignored"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout
            .contains("1 server, 0 participants, 1 topic (from own.toml, mcp.json)"),
        "{}",
        ran.stdout
    );
    let ran = home.run(&["config", "check"]).expect(0);
    assert!(ran.stdout.contains("from defaults only"), "{}", ran.stdout);
}

#[test]
fn a_found_configuration_needs_consent() {
    let home = Home::new();
    let path = home.write("portmoot.toml", SERVER);
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]).expect(3);
    for part in [
        "    command = \"sudo\"\n    args = [\"server\", \"${ROOT:-/srv}\"]\n",
        "DANGER: server `files` runs with another user's rights",
        "[consent_needed]",
        "--yes",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    home.run(&["stdio"]).expect(3);
    assert!(path.exists());
}

#[test]
fn tokens_are_stored_as_hashes_in_a_private_directory() {
    let home = Home::new();
    let issue = [
        "token",
        "new",
        "scout",
        "--capability",
        "chat",
        "--expires",
        "90d",
        "--data-dir",
        "state",
    ];
    let ran = home.run(&issue).expect(0);
    let token = ran.stdout.trim();
    assert!(
        token.starts_with("pm_") && token.len() == 46 && ran.stdout.lines().count() == 1,
        "{token}"
    );
    let journal = home.path().join("state/journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    assert!(
        !text.contains(token) && text.contains("\"scout\""),
        "{text}"
    );
    assert_eq!(
        journal.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        home.path()
            .join("state")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    let ran = home.run(&issue).expect(3);
    assert!(
        ran.stderr.contains("has a token already") && ran.stderr.contains("token revoke scout"),
        "{}",
        ran.stderr
    );
    let listed = home
        .run(&["token", "ls", "--data-dir", "state"])
        .expect(0)
        .stdout;
    assert!(
        listed.contains("scout") && listed.contains("chat") && !listed.contains("pm_"),
        "{listed}"
    );
    home.run(&["token", "revoke", "scout", "--data-dir", "state"])
        .expect(0);
    home.run(&["token", "revoke", "scout", "--data-dir", "state"])
        .expect(5);
    home.run(&["token", "new", "two words", "--data-dir", "state"])
        .expect(2);
    home.run(&[
        "token",
        "new",
        "a",
        "--capability",
        "*",
        "--data-dir",
        "state",
    ])
    .expect(2);
    home.run(&[
        "token",
        "new",
        "a",
        "--expires",
        "soon",
        "--data-dir",
        "state",
    ])
    .expect(2);
    let json = home
        .run(&["token", "ls", "--json", "--data-dir", "state"])
        .expect(0)
        .stdout;
    assert_eq!(
        json.split_whitespace().collect::<String>(),
        r#"{"tokens":[]}"#
    );
}

#[test]
fn the_doctor_suggests_a_fix_for_every_failed_check() {
    let home = Home::new();
    home.write(
        "own.toml",
        "[server]\nlisten = \"0.0.0.0:0\"\n[servers.a]\ncommand = \"no-such-program\"\n",
    );
    let ran = home.run(&["doctor", "--config", "own.toml"]).expect(1);
    for line in [
        "`no-such-program` is not on PATH",
        "would give every client full access",
        "fix: listen on 127.0.0.1",
    ] {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
    assert!(
        !home.path().join(".local").exists(),
        "the doctor creates no files"
    );
    home.write("own.toml", "[servers.a]\ncommand = \"sh\"\n");
    let ran = home
        .run(&[
            "doctor",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--config",
            "own.toml",
        ])
        .expect(0);
    assert!(ran.stdout.contains("\"ok\": true"), "{}", ran.stdout);
    let ran = home.run(&["doctor", "--listen", "nowhere"]).expect(1);
    assert!(
        ran.stdout.contains("`server.listen` must be an address"),
        "{}",
        ran.stdout
    );
}

#[test]
fn without_a_home_the_gateway_says_that_it_keeps_nothing() {
    let home = Home::new();
    let serve = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = home.command(&[&["serve", "--listen", "127.0.0.1:0"], more].concat());
        command.env_remove("HOME").envs(variables.iter().copied());
        let gateway = Gateway::serve(command);
        gateway.ready("demo");
        gateway.stop().expect(0).stderr
    };
    let warning = "nothing is kept after the end";
    for (variables, more) in [
        (&[][..], &[][..]),
        (&[("HOME", "")], &[]),
        (&[("HOME", "relative")], &[]),
    ] {
        assert!(
            serve(variables, more).contains(warning),
            "{variables:?} {more:?}"
        );
    }
    let ran = Ran::from(
        home.command(&["doctor"])
            .env_remove("HOME")
            .output()
            .unwrap(),
    )
    .expect(1);
    assert!(
        !ran.stdout.contains("managed by the running gateway"),
        "no gateway is running: {}",
        ran.stdout
    );
    // systemd gives a service its directories, also without HOME.
    let service = home.path().join("service").display().to_string();
    let many = format!("{service}/first:{service}/second");
    let config = home.path().join("etc").display().to_string();
    home.write(
        "etc/portmoot.toml",
        "[servers.demo]\ntype = \"demo\"\n[topics.side]\n",
    );
    for (variables, kept) in [
        (
            &[("STATE_DIRECTORY", &*service)][..],
            "service/journal.jsonl",
        ),
        (
            &[("STATE_DIRECTORY", &*many), ("HOME", "/nowhere")],
            "service/first/journal.jsonl",
        ),
    ] {
        assert!(!serve(variables, &[]).contains(warning), "{variables:?}");
        assert!(home.path().join(kept).exists(), "{kept}");
    }
    let mut check = home.command(&["config", "check"]);
    let ran = Ran::from(
        check
            .env("CONFIGURATION_DIRECTORY", &config)
            .output()
            .unwrap(),
    )
    .expect(0);
    assert!(
        ran.stdout.contains("2 topics (from ") && ran.stdout.contains("etc/portmoot.toml"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_tilde_is_the_home_directory() {
    let home = Home::new().env("PORTMOOT_DATA_DIR", "~/of-env");
    home.write("secret/token", "a-token-that-is-long-enough\n");
    std::fs::create_dir(home.path().join("work")).unwrap();
    let program = home.write(
        "bin/server",
        &format!(
            "#!/bin/sh\npwd > seen\nexec {:?} --stdio\n",
            harness::fixture_binary()
        ),
    );
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let toml = "[servers.a]\ncommand = \"~/bin/server\"\ncwd = \"~/work\"\nargs = [\"~/notes\"]\n\
                [participants.me]\ntoken_file = \"~/secret/token\"\ncapabilities = [\"mcp/*\"]\n";
    let gateway = Gateway::start(&home, toml);
    gateway.ready("a");
    let log = gateway.stop().stderr;
    assert!(
        log.contains("portmoot.toml:4: `servers.a.args`: `~` in `~/notes` is not expanded"),
        "{log}"
    );
    assert!(
        home.path().join("work/seen").exists() && home.path().join("of-env/journal.jsonl").exists()
    );
    home.write("own.toml", "[server]\ndata_dir = \"~/of-file\"\n");
    let mut new = home.command(&["token", "new", "ci", "--config", "own.toml"]);
    Ran::from(new.env_remove("PORTMOOT_DATA_DIR").output().unwrap()).expect(0);
    assert!(home.path().join("of-file/journal.jsonl").exists() && !home.path().join("~").exists());
    for wrong in [
        "[server]\ndata_dir = \"~ann\"\n",
        "[servers.a]\ncommand = \"~ann/x\"\n",
        "[participants.me]\ntoken_file = \"~ann/x\"\n",
    ] {
        home.write("wrong.toml", wrong);
        let mut check = home.command(&["config", "check", "--config", "wrong.toml"]);
        let ran = Ran::from(check.env_remove("PORTMOOT_DATA_DIR").output().unwrap()).expect(2);
        assert!(
            ran.stderr.contains("`~ann` is not expanded") && ran.stderr.contains("wrong.toml:2"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_running_gateway_needs_no_valid_configuration_of_the_command() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    home.write("portmoot.toml", "[sever]\n");
    home.write(
        "named.toml",
        "[participants.me]\ntoken_env = \"NOT_SET\"\n[servers.a]\ncommand = \"${NOT_SET}\"\n",
    );
    let all: [&[&str]; 9] = [
        &["servers", "ls"],
        &["tools", "ls"],
        &["tools", "call", "demo_echo", "text=x"],
        &["proposals", "ls"],
        &["token", "ls"],
        &["chat"],
        &["participants", "ls"],
        &["audit", "query"],
        &["audit", "verify"],
    ];
    for command in all {
        for more in [&[][..], &["--config", "named.toml"]] {
            let ran = home.run(&[command, more].concat()).expect(0);
            assert!(!ran.stderr.contains("no gateway"), "{}", ran.stderr);
        }
    }
    gateway.stop().expect(0);
    for command in all.iter().filter(|command| command[0] != "audit") {
        home.run(command).expect(2);
        home.run(&[command, &["--config", "named.toml"][..]].concat())
            .expect(2);
    }
    // A file with a data directory of its own is another gateway's.
    home.write("other.toml", "[server]\ndata_dir = \"other\"\n");
    let _gateway = Gateway::start_with(&home, &["--config", "other.toml"]);
    home.run(&["servers", "ls"]).expect(2);
    home.run(&["servers", "ls", "--config", "other.toml"])
        .expect(0);
    home.run(&["servers", "ls", "--data-dir", "other"])
        .expect(0);
}
