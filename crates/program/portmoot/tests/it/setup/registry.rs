//! Commands `search` and `add --from-registry` with a scripted registry.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_gateway::{Seen, gateway};
use crate::home::Home;
use crate::pty::run_at_terminal;

const JSON: &str = "application/json";

fn server() -> Value {
    json!({ "server": {
        "name": "io.github.me/files", "description": "Files \u{1b}[2J of mine", "version": "1.2.0",
        "packages": [{ "registryType": "npm", "identifier": "@me/files", "version": "1.2.0", "transport": { "type": "stdio" },
            "packageArguments": [{ "type": "positional", "valueHint": "dir", "isRequired": true }],
            "environmentVariables": [{ "name": "FILES_KEY", "isRequired": true, "isSecret": true }] }],
        "remotes": [{ "type": "streamable-http", "url": "https://files.example/mcp" }],
    }, "_meta": { "io.modelcontextprotocol.registry/official": { "status": "active", "isLatest": true } } })
}

fn registry(seen: &Seen) -> (u16, &'static str, String) {
    let path = seen.line.split(' ').nth(1).unwrap();
    match path {
        "/v0.1/servers?search=files&version=latest&limit=20" => (
            200,
            JSON,
            json!({ "servers": [server()], "metadata": { "count": 1 } }).to_string(),
        ),
        "/v0.1/servers?search=a%2Fb%20c&version=latest&limit=100" => {
            (200, JSON, json!({ "servers": [] }).to_string())
        }
        "/base/v0.1/servers?search=files&version=latest&limit=20" => {
            (200, JSON, r#"{"servers":[]}"#.to_owned())
        }
        "/v0.1/servers/io.github.me%2Ffiles/versions/latest" => (200, JSON, server().to_string()),
        "/v0.1/servers?search=slow&version=latest&limit=20" => {
            // Longer than a wait without a sign on the terminal.
            std::thread::sleep(Duration::from_millis(900));
            (200, JSON, r#"{"servers":[]}"#.to_owned())
        }
        "/v0.1/servers?search=odd&version=latest&limit=20" => {
            (200, "text/html", "<html>".to_owned())
        }
        _ => (404, JSON, r#"{"error":"Server not found"}"#.to_owned()),
    }
}

#[test]
fn a_registry_is_searched() {
    let (url, _seen) = gateway(registry);
    let home = Home::new();
    let found = home.run(&["search", "files", "--registry", &url]).expect(0);
    assert_eq!(
        found.stdout,
        "NAME                VERSION  VIA        DESCRIPTION\n\
         io.github.me/files  1.2.0    npm, http  Files \\u{1b}[2J of mine\n"
    );
    let json = home
        .run(&["search", "files", "--registry", &url, "--json"])
        .expect(0)
        .stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["servers"][0]["server"]["name"], "io.github.me/files");
    let none = home
        .run(&["search", "a/b c", "--limit", "200", "--registry", &url])
        .expect(0);
    assert!(
        none.stderr.contains("no server has `a/b c`"),
        "{}",
        none.stderr
    );
    home.run(&["search", "files", "--registry", &format!("{url}/base/")])
        .expect(0);
    let odd = home
        .run(&["search", "odd", "--registry", &url])
        .expect(1)
        .stderr;
    assert!(odd.contains("[registry_foreign]"), "{odd}");
    let offline = home
        .run(&["search", "files", "--registry", "http://127.0.0.1:1"])
        .expect(1)
        .stderr;
    assert!(
        offline.contains("[registry_unreachable]") && offline.contains("is this machine online?"),
        "{offline}"
    );
}

#[test]
fn a_server_of_a_registry_is_added_after_consent() {
    let (url, _seen) = gateway(registry);
    let home = Home::new();
    let add = |more: &[&str]| {
        let args = [
            "add",
            "files",
            "--from-registry",
            "io.github.me/files",
            "--registry",
            &url,
            "--config",
            "own.toml",
        ];
        [&args[..], more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let run = |more: &[&str], exit| {
        let args = add(more);
        home.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
            .expect(exit)
            .stderr
    };
    let missing = run(&["--yes"], 2);
    assert!(
        missing.contains("this server needs values: dir") && missing.contains("--set dir=VALUE"),
        "{missing}"
    );
    assert!(run(&["--set", "dir=/tmp"], 3).contains("[consent_needed]"));
    assert!(run(&["--via", "oci"], 1).contains("it is offered via: npm, http"));
    assert!(!home.path().join("own.toml").exists());
    let done = run(&["--set", "dir=/tmp", "--yes"], 0);
    assert!(
        done.contains("set FILES_KEY where the gateway starts"),
        "{done}"
    );
    let text = fs::read_to_string(home.path().join("own.toml")).unwrap();
    assert!(
        text.ends_with(
            "[servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"@me/files@1.2.0\", \"/tmp\"]\nenv = { FILES_KEY = \"${FILES_KEY}\" }\n"
        ),
        "{text}"
    );
    let args = add(&["--via", "http", "--replace"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run_at_terminal(
        &home,
        &args,
        &[("It runs what the registry says. [y/N]", "y")],
    )
    .expect(0);
    let text = fs::read_to_string(home.path().join("own.toml")).unwrap();
    assert!(
        text.ends_with("[servers.files]\nurl = \"https://files.example/mcp\"\n"),
        "{text}"
    );
    let unknown = home
        .run(&["add", "x", "--from-registry", "a/b", "--registry", &url])
        .expect(5)
        .stderr;
    assert!(unknown.contains("[unknown_server]"), "{unknown}");
}

#[test]
fn a_wait_has_a_sign_on_a_terminal_with_colours() {
    let (url, _seen) = gateway(registry);
    for (home, is_shown) in [
        (Home::new().env("TERM", "xterm"), true),
        (Home::new().env("TERM", "xterm").env("NO_COLOR", "1"), false),
    ] {
        let ran = run_at_terminal(&home, &["search", "slow", "--registry", &url], &[]).expect(0);
        assert_eq!(
            ran.stderr.contains("asking the registry"),
            is_shown,
            "{:?}",
            ran.stderr
        );
        // It is gone before anything else is written.
        assert!(
            ran.stderr.ends_with("no server has `slow` in its name\n"),
            "{:?}",
            ran.stderr
        );
        if is_shown {
            assert!(
                ran.stderr.contains("\r\u{1b}[2Kno server has"),
                "{:?}",
                ran.stderr
            );
        }
    }
}
