//! Command line tests with a real gateway: tokens, consent, forms and URLs at a terminal.

use crate::home::{Home, Ran};
use crate::pty::run_at_terminal;
use crate::support::Gateway;

const ASKER: &str = include_str!("asker.py");

/// A home whose `own.toml` configures `asker.py`, a server that requests input.
fn home() -> Home {
    let home = Home::new();
    let script = home.write("asker.py", ASKER);
    let toml = format!(
        "[servers.a]\ncommand = \"python3\"\nargs = [{script:?}]\nenv = {{ KEY = \"v\" }}\n"
    );
    home.write("own.toml", &toml);
    home
}

#[test]
fn a_form_is_filled_in_at_the_terminal() {
    let home = home();
    let steps = [
        ("Fill in the form? [y/N]", "y"),
        ("Your name", "Ada"),
        ("size", "70"),
        (">", "7"),
        ("colour", ""),
        ("Send it? [y/N]", "y"),
    ];
    let ran = run_at_terminal(
        &home,
        &["tools", "call", "a_form", "--config", "own.toml"],
        &steps,
    )
    .expect(0);
    assert_eq!(
        ran.stdout.trim(),
        r#"{"action": "accept", "content": {"colour": "green", "name": "Ada", "size": 7}}"#
    );
    assert!(
        ran.stderr
            .contains("The server requests input: Who are you?"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("This will be sent: "), "{}", ran.stderr);
}

#[test]
fn a_url_is_shown_whole_and_not_opened() {
    let home = home();
    // Fake browsers that leave a file behind when they are started.
    let opened = home.path().join("opened");
    for opener in ["xdg-open", "open", "sensible-browser", "browser"] {
        let path = home.write(
            &format!("bin/{opener}"),
            &format!("#!/bin/sh\ntouch {}\n", opened.display()),
        );
        std::process::Command::new("chmod")
            .arg("+x")
            .arg(path)
            .status()
            .unwrap();
    }
    let bin = home.path().join("bin").display().to_string();
    let home = home
        .env("PATH", &format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
        .env("BROWSER", "browser");
    let args = ["tools", "call", "a_link", "--config", "own.toml"];
    let ran = run_at_terminal(&home, &args, &[("Accept and open it? [y/N]", "n")]).expect(0);
    let url = format!("https://example.com/{}?state=end", "long/".repeat(40));
    assert!(
        ran.stderr.contains(&url) && ran.stderr.contains("Host: example.com"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stdout.trim(), r#"{"action": "decline"}"#);
    let ran = run_at_terminal(&home, &args, &[("Accept and open it? [y/N]", "yes")]).expect(0);
    assert_eq!(ran.stdout.trim(), r#"{"action": "accept"}"#);
    assert!(!opened.exists(), "the URL was opened");
}

#[test]
fn without_a_terminal_servers_cannot_ask() {
    let home = home();
    for tool in ["a_form", "a_link"] {
        let ran = home
            .run(&["tools", "call", tool, "--config", "own.toml"])
            .expect(0);
        assert!(
            ran.stdout.contains("this client does not support"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn servers_of_a_found_configuration_start_only_after_consent() {
    let home = home();
    let named = std::fs::read_to_string(home.path().join("own.toml")).unwrap();
    home.write(
        "portmoot.toml",
        // The home directory as a working directory is not read in a sandbox.
        &named
            .replace("\"python3\"", "\"env\"")
            .replace("[\"", "[\"python3\", \"-u\", \"")
            .replace(
                "command",
                &format!(
                    "sandbox_read = [{:?}]\ncommand",
                    home.path().join("asker.py")
                ),
            ),
    );
    let call = ["tools", "call", "a_env"];
    let refused = home.run(&call).expect(3).stderr;
    for part in [
        "    command = \"env\"\n    args = [\"python3\", \"-u\", ",
        "asker.py",
        "    KEY = ",
        "--yes",
        "    sandbox_read = ",
    ] {
        assert!(refused.contains(part), "{part}\n{refused}");
    }
    let ran = home.run(&[&call[..], &["--yes"]].concat()).expect(0);
    let variables: Vec<&str> = ran.stdout.trim().split(',').collect();
    assert!(
        variables.contains(&"KEY") && variables.contains(&"PATH"),
        "{variables:?}"
    );
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    let question = "Use all of `portmoot.toml`? [y/N]";
    run_at_terminal(&home, &call, &[(question, "y")]).expect(0);
    let declined = run_at_terminal(&home, &call, &[(question, "")]).expect(3);
    assert!(
        declined
            .stderr
            .contains("you did not consent to `portmoot.toml`"),
        "{}",
        declined.stderr
    );
}

#[test]
fn with_participants_every_caller_needs_a_token() {
    let home = home();
    let named = std::fs::read_to_string(home.path().join("own.toml")).unwrap();
    let toml = format!(
        "{named}[participants.boss]\ntoken_env = \"BOSS\"\ncapabilities = [\"mcp/*\", \"portmoot/*\"]\n\
         [participants.ci]\ncapabilities = [\"mcp/request:tools/call:a_env\"]\n"
    );
    home.write("own.toml", &toml);
    let home = home.env("BOSS", "a-token-that-is-long-enough");
    let gateway = Gateway::start_with(&home, &["--config", "own.toml"]);
    let as_boss = |args: &[&str]| {
        home.run(
            &[
                args,
                &[
                    "--url",
                    &gateway.url(),
                    "--token",
                    "a-token-that-is-long-enough",
                ],
            ]
            .concat(),
        )
    };
    let without = home
        .run(&["tools", "ls", "--url", &gateway.url()])
        .expect(4)
        .stderr;
    assert!(
        without.contains("--token") && without.contains("PORTMOOT_TOKEN"),
        "{without}"
    );
    home.run(&["tools", "ls", "--url", &gateway.url(), "--token", "wrong"])
        .expect(4);
    assert!(
        as_boss(&["tools", "ls"])
            .expect(0)
            .stdout
            .contains("a_form")
    );
    let token = as_boss(&["token", "new", "ci"]).expect(0).stdout;
    let as_ci = |args: &[&str]| {
        home.run(&[args, &["--url", &gateway.url(), "--token", token.trim()]].concat())
    };
    let listed = as_ci(&["tools", "ls"]).expect(0).stdout;
    assert!(
        listed.contains("a_env") && !listed.contains("a_form"),
        "{listed}"
    );
    as_ci(&["tools", "call", "a_env"]).expect(0);
    as_ci(&["tools", "call", "a_form"]).expect(5);
    as_ci(&["servers", "ls"]).expect(3);
    as_ci(&["token", "new", "me"]).expect(3);
    as_boss(&["token", "revoke", "ci"]).expect(0);
    as_ci(&["tools", "ls"]).expect(4);
    gateway.stop().expect(0);
}

#[test]
fn server_state_changes_are_logged() {
    let home = home();
    let gateway = Gateway::start_with(&home, &["--config", "own.toml"]);
    let ready = gateway.receive("ready");
    assert!(
        ready.contains(" INFO ") && ready.contains("server=\"a\"") && ready.contains("tools=4"),
        "{ready}"
    );
    let failed = home
        .run(&["tools", "call", "a_die", "--url", &gateway.url()])
        .expect(1)
        .stderr;
    assert!(
        failed.contains("the server `a`") && !failed.contains("python3"),
        "{failed}"
    );
    home.write("own.toml", "[servers.b]\ncommand = \"no-such-program\"\n");
    // The server that died may be down for a moment as well.
    let down = gateway.receive("down server=\"b\"");
    assert!(down.contains("No such file"), "{down}");
    let listed = home
        .run(&["servers", "ls", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    assert!(
        listed.contains(
            "the server `b` cannot be reached: the program `no-such-program` was not found"
        ),
        "{listed}"
    );
    gateway.stop().expect(0);
}

#[test]
fn arguments_have_the_types_of_the_schema_and_can_be_files() {
    let home = Home::new();
    let call = |args: &[&str]| home.run(&[&["tools", "call", "--quiet"], args].concat());
    assert_eq!(call(&["demo_add", "a=40", "b=2"]).expect(0).stdout, "42\n");
    assert_eq!(
        call(&["demo_add", "a=-1.5", "b:=2"]).expect(0).stdout,
        "0.5\n"
    );
    // A text of the schema stays a text; one that spells no number is the server's to refuse.
    assert_eq!(call(&["demo_echo", "text=42"]).expect(0).stdout, "42\n");
    call(&["demo_add", "a=x", "b=2"]).expect(1);
    home.write("all.json", "{\"a\": 1, \"b\": 2}\n");
    home.write("text", "{\"in\": \"a file\"}");
    home.write("number", " 41 \n");
    assert_eq!(
        call(&["demo_add", "--args", "@all.json"]).expect(0).stdout,
        "3\n"
    );
    assert_eq!(
        call(&["demo_add", "--args", "@all.json", "b:=@number"])
            .expect(0)
            .stdout,
        "42\n"
    );
    assert_eq!(
        call(&["demo_echo", "text=@text"]).expect(0).stdout,
        "{\"in\": \"a file\"}\n"
    );
    assert_eq!(
        call(&["demo_echo", "text=@@ada"]).expect(0).stdout,
        "@ada\n"
    );
    let mut piped = home.command(&["tools", "call", "--quiet", "demo_add", "--args", "-"]);
    piped.stdin(std::fs::File::open(home.path().join("all.json")).unwrap());
    assert_eq!(Ran::from(piped.output().unwrap()).expect(0).stdout, "3\n");
    let large = home.write("large", "");
    std::fs::File::create(large)
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    for wrong in [
        &["text=@absent"][..],
        &["text=@large"],
        &["--args", "@absent"],
        &["--args", "@text", "text:=@all"],
    ] {
        let ran = call(&[&["demo_echo"], wrong].concat()).expect(2).stderr;
        assert!(ran.contains("cannot read `"), "{wrong:?}: {ran}");
    }
}

#[test]
fn an_unknown_tool_is_named_with_the_most_similar_one() {
    let home = Home::new();
    for (command, name) in [
        ("call", "demo_ecko"),
        ("show", "demo_ecko"),
        ("call", "demo-echo"),
        ("show", "Demo_Echo"),
    ] {
        let ran = home
            .run(&["tools", command, name, "--quiet"])
            .expect(5)
            .stderr;
        let expect = format!(
            "error: there is no tool `{name}` [unknown_target]\nhint: did you mean `demo_echo`?\n"
        );
        assert_eq!(ran, expect, "{command}");
    }
    let own = home
        .run(&["tools", "call", "echo", "--quiet"])
        .expect(5)
        .stderr;
    assert!(own.ends_with("hint: did you mean `demo_echo`?\n"), "{own}");
    let none = home
        .run(&["tools", "show", "xyz", "--quiet"])
        .expect(5)
        .stderr;
    assert!(
        none.contains("there is no tool `xyz`") && none.contains("portmoot tools ls"),
        "{none}"
    );
    // Of a topic, not of a tool.
    let topic = home
        .run(&["tools", "call", "demo_echo", "--topic", "nope", "--quiet"])
        .expect(5)
        .stderr;
    assert!(topic.contains("topic"), "{topic}");
}

#[test]
fn tools_are_listed_by_name() {
    let home = Home::new();
    for (pattern, expect) in [
        ("demo_*", &["demo_echo", "demo_add", "demo_now"][..]),
        ("*o*e*", &["demo_echo"]),
        ("demo_add", &["demo_add"]),
        ("_n", &["demo_now"]),
        ("*d", &["demo_add"]),
        ("add*", &[]),
        ("nothing", &[]),
    ] {
        let listed = home
            .run(&["tools", "ls", pattern, "--json", "--quiet"])
            .expect(0)
            .stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let names: Vec<&str> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expect, "{pattern}");
    }
    let table = home
        .run(&["tools", "ls", "*_add", "--quiet"])
        .expect(0)
        .stdout;
    assert!(
        table.contains("demo_add") && table.lines().count() == 2,
        "{table}"
    );
}
