//! Reports of `config check`: problems in the order of their lines, notes about settings and
//! capabilities, files of clients.

use serde_json::{Value, json};

use crate::home::Home;
use crate::support::Gateway;

#[test]
fn check_reports_all_problems_and_exits_with_2() {
    let home = Home::new();
    home.write("bad.toml", "[servers.files]\ncomand = \"x\"\n[sever]\n");
    let ran = home
        .run(&["config", "check", "--config", "bad.toml"])
        .expect(2);
    assert_eq!(ran.stdout, "");
    for (place, message, hint) in [
        (
            "1:1",
            "error[config_missing]: `[servers.files]` has neither `command` nor `url`",
            "add a `command` to start",
        ),
        (
            "2:1",
            "error[config_unknown_key]: unknown key `comand` in `[servers.files]`",
            "did you mean `command`?",
        ),
        (
            "3:2",
            "error[config_unknown_key]: unknown key `sever` in the configuration",
            "did you mean `server`?",
        ),
    ] {
        for part in [&format!("--> bad.toml:{place}\n"), message, hint] {
            assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
        }
    }
    assert!(
        ran.stderr
            .ends_with("\n\nerror: the configuration is not valid: 3 problems\n"),
        "{}",
        ran.stderr
    );
    let ran = home
        .run(&["config", "check", "--json", "--config", "bad.toml"])
        .expect(2);
    assert!(
        ran.stdout.contains("\"line\": 2") && ran.stdout.contains("config_unknown_key"),
        "{}",
        ran.stdout
    );
    home.run(&["config", "check", "--config", "absent.toml"])
        .expect(2);
}

#[test]
fn settings_without_effect_are_notes_in_json_too() {
    let home = Home::new();
    home.write(
        "own.toml",
        "[topics.main]\n[profiles.x]\ncapabilities = [\"mcp/request:tool/call:*\"]\n",
    );
    let check = ["config", "check", "--config", "own.toml"];
    let note = "own.toml:3: `profiles.x.capabilities`: `tool/call` in `mcp/request:tool/call:*` matches no method of MCP: \
                did you mean `tools/call`?";
    let plain = home.run(&check).expect(0);
    assert!(
        plain.stderr.contains(&format!("note: {note}\n")),
        "{}",
        plain.stderr
    );
    let notice: Value = serde_json::from_str(
        &home
            .run(&[&check[..], &["--json"]].concat())
            .expect(0)
            .stdout,
    )
    .unwrap();
    assert_eq!(
        notice,
        json!({ "ok": true, "problems": [], "notes": [note] })
    );
}

#[test]
fn client_files_of_other_clients_are_understood() {
    let home = Home::new().env("PORTMOOT_TOKEN", "x");
    let check = |json: &str| {
        home.write("c.json", json);
        home.run(&["config", "check", "--mcp-config", "c.json"])
    };
    let servers = |server: &str| format!(r#"{{"mcpServers":{{"a":{server}}}}}"#);
    let url = "http://127.0.0.1:1/mcp";
    for (server, shown) in [
        (format!(r#"{{"serverUrl":"{url}"}}"#), "url ="),
        (format!(r#"{{"httpUrl":"{url}","trust":true}}"#), "url ="),
        (format!(r#"{{"transport":"http","url":"{url}"}}"#), "type = \"http\""),
        (format!(r#"{{"transport":"sse","url":"{url}"}}"#), "type = \"sse\""),
        (
            format!(r#"{{"type":"streamableHttp","transport":"?","serverUrl":"{url}"}}"#),
            "type = \"streamableHttp\"",
        ),
        (format!(r#"{{"httpUrl":"{url}","serverUrl":"http://127.0.0.1:2"}}"#), "127.0.0.1:1"),
        (format!(r#"{{"serverUrl":"http://127.0.0.1:2","url":"{url}"}}"#), "127.0.0.1:1"),
        (
            r#"{"command":"sh","envFile":".env","disabledTools":[],"startup_timeout_sec":9,"timeout":3}"#
                .into(),
            "command =",
        ),
    ] {
        let ran = check(&servers(&server)).expect(0);
        assert!(ran.stdout.contains("1 server,"), "{server}: {}", ran.stdout);
        let tree = home.run(&["config", "show", "--mcp-config", "c.json"]).expect(0).stdout;
        assert!(tree.contains(shown), "{server}: {tree}");
    }
    check(&format!("\u{feff}{}", servers(r#"{"command":"sh"}"#))).expect(0);
    home.write("bom.toml", "\u{feff}[servers.a]\ncommand = \"sh\"\n");
    home.run(&["config", "check", "--config", "bom.toml"])
        .expect(0);
    for (json, hint) in [
        (servers(r#"{"comand":"sh"}"#), "did you mean `command`?"),
        (
            servers(r#"{"command":"sh","arg":[]}"#),
            "did you mean `args`?",
        ),
        (
            servers(r#"{"url":"http://127.0.0.1:1","header":{}}"#),
            "did you mean `headers`?",
        ),
        (
            r#"{"mcpServer":{}}"#.into(),
            "`mcpServer`: did you mean `mcpServers`?",
        ),
        (
            r#"{"McpServers":{}}"#.into(),
            "`McpServers`: did you mean `mcpServers`?",
        ),
        (r#"{"theme":"dark"}"#.into(), "expected: {\"mcpServers\""),
    ] {
        let ran = check(&json).expect(2);
        assert!(ran.stderr.contains(hint), "{json}: {}", ran.stderr);
    }
    // The client's entry for Portmoot is not a server of Portmoot.
    for own in [
        r#""portmoot":{"url":"http://127.0.0.1:7070/mcp"}"#,
        r#""hub":{"command":"/opt/portmoot","args":["stdio"]}"#,
    ] {
        let ran = check(&format!(
            r#"{{"mcpServers":{{{own},"b":{{"command":"sh"}}}}}}"#
        ))
        .expect(0);
        assert!(
            ran.stdout.contains("1 server,") && ran.stderr.contains("this gateway itself, ignored"),
            "{}",
            ran.stderr
        );
    }
    let chained =
        r#"{"mcpServers":{"hub":{"command":"portmoot","args":["stdio","--config","other.toml"]}}}"#;
    assert!(check(chained).expect(0).stdout.contains("1 server,"));
}

#[test]
fn problems_are_in_the_order_of_the_lines() {
    let home = Home::new();
    let toml = "[topics.side]\nservers = [\"none\"]\n[participants.me]\ntopics = [\"nowhere\"]\nrate = \"x\"\n\
                [servers.a]\nsessions = \"x\"\ncomand = \"sh\"\n[sever]\n[server]\nlisten = \"x\"\nhost = []\n";
    home.write("bad.toml", toml);
    home.write("bad.json", r#"{"mcpServers":{"b":{"comand":"sh"}}}"#);
    let args = [
        "config",
        "check",
        "--json",
        "--config",
        "bad.toml",
        "--mcp-config",
        "bad.json",
    ];
    let found: Value = serde_json::from_str(&home.run(&args).expect(2).stdout).unwrap();
    let problems = found["problems"].as_array().unwrap();
    let lines = |file: &str| -> Vec<u64> {
        let of = problems.iter().filter(|problem| problem["file"] == file);
        of.filter_map(|problem| problem["line"].as_u64()).collect()
    };
    assert_eq!(lines("bad.toml"), [2, 4, 5, 6, 7, 8, 9, 11, 12]);
    let files: Vec<&Value> = problems.iter().map(|problem| &problem["file"]).collect();
    let changes = files.windows(2).filter(|two| two[0] != two[1]).count();
    assert!(
        changes == 1,
        "the problems of a file are together: {files:?}"
    );
    let printed = home
        .run(
            &args[..2]
                .iter()
                .chain(&args[3..])
                .copied()
                .collect::<Vec<_>>(),
        )
        .expect(2)
        .stderr;
    let place = |line: usize| printed.find(&format!("--> bad.toml:{line}:")).unwrap();
    assert!(place(2) < place(4) && place(9) < place(11), "{printed}");
}

#[test]
fn a_command_with_its_arguments_is_a_problem() {
    let home = Home::new();
    let check = |command: &str| {
        home.write("own.toml", &format!("[servers.a]\n{command}\n"));
        home.run(&["config", "check", "--config", "own.toml"])
    };
    for (command, hint) in [
        (
            "\"npx -y @x/server-filesystem /tmp\"",
            r#"command = "npx" and args = ["-y", "@x/server-filesystem", "/tmp"]"#,
        ),
        (
            "\"sh\\t-c  true\"",
            r#"command = "sh" and args = ["-c", "true"]"#,
        ),
        (
            "\"/bin/sh -c true\"",
            r#"command = "/bin/sh" and args = ["-c", "true"]"#,
        ),
    ] {
        let ran = check(&format!("command = {command}")).expect(2);
        assert!(
            ran.stderr.contains(hint) && ran.stderr.contains("own.toml:2"),
            "{}",
            ran.stderr
        );
    }
    let program = home.write("my tools/a server", "#!/bin/sh\n");
    for command in [
        format!("{program:?}"),
        "\"my tools/a server\"".into(),
        "\"~/my tools/a server\"".into(),
        "\"sh\"".into(),
    ] {
        check(&format!("command = {command}")).expect(0);
    }
    check("command = \"a server\"\ncwd = \"my tools\"").expect(0);
    check("command = \"${DIR}/a server\"\nenabled = false").expect(0);
}

#[test]
fn capabilities_that_can_match_nothing_are_noted() {
    let home = Home::new();
    let text = "[servers.search]\ntype = \"demo\"\ncapabilities = [\"mcp/request:root/list\"]\n\
                [profiles.p]\ncapabilities = [\"mcp/requests\"]\n[participants.me]\n\
                capabilities = [\"mcp/request:tools/call:search_search_web\", \"mcp/request:tools/cal:x\", \"portmoot/token\", { kind = \"chat\", to = [\"serch\", \"me\"] }]\n";
    home.write("own.toml", text);
    let noted = |place: &str, hint: &str| {
        let ran = home
            .run(&["config", "check", "--config", "own.toml"])
            .expect(0);
        let found = ran.stderr.lines().any(|line| {
            line.starts_with(&format!("note: own.toml:{place}: ")) && line.contains(hint)
        });
        assert!(found, "{place} {hint}\n{}", ran.stderr);
    };
    noted(
        "3",
        "`servers.search.capabilities`: `root/list` in `mcp/request:root/list` matches no method of MCP: did you mean `roots/list`?",
    );
    noted("5", "did you mean `mcp/request`?");
    noted("7", "did you mean `tools/call`?");
    noted("7", "did you mean `portmoot/tokens`?");
    noted("7", "did you mean `mcp/request:tools/call:search_web`?");
    noted(
        "7",
        "there is no server or participant `serch`: did you mean `search`?",
    );
    let issued = home
        .run(&[
            "token",
            "new",
            "ci",
            "--capability",
            "portmoot/token",
            "--data-dir",
            "state",
        ])
        .expect(0);
    assert!(
        issued.stderr.contains("did you mean `portmoot/tokens`?"),
        "{}",
        issued.stderr
    );
}

#[test]
fn check_names_rules_of_files_that_can_match_nothing() {
    let home = Home::new();
    home.write(
        "own.toml",
        "[servers.bank]\ncommand = \"bank\"\n[topics.main]\nrules = \"rules.toml\"\n",
    );
    let rule = |id: &str, kind: &str, to: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"ask\"\n\
             kind = \"{kind}\"\nto = \"{to}\"\nproposers = [\"*\"]\n"
        )
    };
    let rules = [
        rule("fine", "mcp/request:tools/call:pay", "bank"),
        rule("cal", "mcp/request:tools/cal:pay", "bank"),
        rule("bnak", "mcp/request:tools/call:pay", "bnak"),
        rule("named", "mcp/request:tools/call:bank_pay", "bank"),
    ];
    home.write("rules.toml", &rules.concat());
    let ran = home
        .run(&["config", "check", "--config", "own.toml"])
        .expect(0);
    for (id, hint) in [
        ("cal", "did you mean `tools/call`?"),
        (
            "bnak",
            "there is no server or participant `bnak`: did you mean `bank`?",
        ),
        (
            "named",
            "a rule names `bank_pay` as its server does, without prefix: did you mean `pay`?",
        ),
    ] {
        let noted = format!("rules.toml: rule {id}: ");
        let found = ran
            .stderr
            .lines()
            .any(|line| line.starts_with("note: ") && line.contains(&noted) && line.contains(hint));
        assert!(found, "{id}\n{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("rule fine"), "{}", ran.stderr);
}

#[test]
fn check_reports_what_serve_refuses() {
    let home = Home::new().env("ME", "a-token-that-is-long-enough");
    let open = "[server]\nlisten = \"0.0.0.0:0\"\n";
    home.write("own.toml", open);
    let [check, serve] = [["config", "check"], ["serve", "--quiet"]]
        .map(|args| [&args[..], &["--config", "own.toml"]].concat());
    let refused = home.run(&serve).expect(3).stderr;
    let checked = home.run(&check).expect(2).stderr;
    assert!(
        refused.contains("would give every client full access"),
        "{refused}"
    );
    assert!(
        checked.contains("would give every client full access") && checked.contains("own.toml:2"),
        "{checked}"
    );
    let rows: Value = serde_json::from_str(
        &home
            .run(&[&check[..], &["--json"]].concat())
            .expect(2)
            .stdout,
    )
    .unwrap();
    assert_eq!(
        (&rows["problems"][0]["code"], &rows["problems"][0]["line"]),
        (&json!("config_listen"), &json!(2))
    );
    home.write("own.toml", "");
    let by_flag = home
        .run(&[&check[..], &["--listen", "0.0.0.0:0"]].concat())
        .expect(2)
        .stderr;
    assert!(
        by_flag.contains("would give every client full access") && by_flag.contains("--> --listen"),
        "{by_flag}"
    );
    // With a configured token, or an issued one, callers need a token.
    home.write(
        "own.toml",
        &format!("{open}[participants.me]\ntoken_env = \"ME\"\n"),
    );
    home.run(&check).expect(0);
    home.write("own.toml", open);
    home.run(&["token", "new", "ci", "--config", "own.toml"])
        .expect(0);
    home.run(&check).expect(0);
    assert!(
        Gateway::start(&home, open)
            .stop()
            .expect(0)
            .stderr
            .contains("need a token")
    );
}

#[test]
fn a_variable_that_is_not_set_stops_only_its_own_server() {
    let home = Home::new();
    let lacking = [
        r#"{"command":"${GONE}"}"#,
        r#"{"command":"sh","args":["-c","${GONE}"]}"#,
        r#"{"command":"sh","env":{"KEY":"${GONE}"}}"#,
        r#"{"command":"sh","cwd":"${GONE}"}"#,
        r#"{"url":"${GONE}/mcp"}"#,
        r#"{"url":"http://127.0.0.1:1","headers":{"k":"${env:GONE}"}}"#,
    ];
    let keys = ["command", "args", "env.KEY", "cwd", "url", "headers.k"];
    let servers: Vec<String> = lacking
        .iter()
        .enumerate()
        .map(|(at, text)| format!("\n\"s{at}\":{text}"))
        .collect();
    home.write(
        "mcp.json",
        &format!(
            "{{\"mcpServers\":{{{},\n\"well\":{{\"type\":\"demo\"}}}}}}",
            servers.join(",")
        ),
    );
    let files = ["--mcp-config", "mcp.json"];
    let checked = home
        .run(&[&["config", "check"][..], &files].concat())
        .expect(0)
        .stderr;
    let gateway = Gateway::start_with(&home, &files);
    gateway.ready("well");
    for (at, key) in keys.iter().enumerate() {
        let note = format!(
            "note: mcp.json:{}: `servers.s{at}.{key}`: the environment variable `GONE` is not set, so the server `s{at}` cannot start",
            at + 2
        );
        assert!(checked.contains(&note), "{note}\n{checked}");
        // At the start of a gateway it is more than a note.
        let warning = note.replacen("note: ", "WARN portmoot::run: ", 1);
        assert!(
            gateway.log().contains(&warning),
            "{warning}\n{}",
            gateway.log()
        );
        let down = gateway.wait_for(&format!("s{at}"), "down");
        assert_eq!(
            down["cause"], "the environment variable `GONE` is not set",
            "{down}"
        );
    }
    let log = gateway.receive("down server=\"s0\"");
    assert!(
        log.contains("cause=\"the environment variable `GONE` is not set\""),
        "{log}"
    );
    let client = crate::support::Client::plain(&gateway);
    assert!(client.names("tools").contains(&"well_echo".to_owned()));
    let doctor = home
        .run(&[&["doctor"][..], &files].concat())
        .expect(1)
        .stdout;
    assert!(
        doctor.contains("server s3: the environment variable `GONE` is not set")
            && doctor.contains("fix: set GONE"),
        "{doctor}"
    );
    gateway.stop().expect(0);
    // What is wrong in the text itself is a problem for a check: it is a mistake, whatever the
    // environment.
    home.write(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"sh","args":["${GONE"]}}}"#,
    );
    let refused = home
        .run(&[&["config", "check"][..], &files].concat())
        .expect(2)
        .stderr;
    assert!(
        refused.contains("`servers.a.args`: `${` is never closed"),
        "{refused}"
    );
}

#[test]
fn every_message_about_a_client_file_has_its_line_and_its_server() {
    let home = Home::new();
    for (server, message) in [
        (
            r#"{"comand":"sh"}"#,
            "unknown key `comand` in `[servers.files]`",
        ),
        (
            r#"{"args":[]}"#,
            "`[servers.files]` has neither `command` nor `url`",
        ),
        (
            r#"{"command":"sh","url":"http://x/"}"#,
            "`[servers.files]` has both",
        ),
        (
            r#"{"command":"sh","args":[1]}"#,
            "`servers.files.args` must be a list of texts",
        ),
        (
            r#"{"command":"sh","env":{"K":[]}}"#,
            "`servers.files.env.K` must be a text",
        ),
        (
            r#"{"command":"sh","env":{"K":"${"}}"#,
            "`servers.files.env.K`: `${` is never closed",
        ),
        (
            r#"{"command":"sh","env":{"a=b":"c"}}"#,
            "`servers.files.env`: `a=b` is not a valid",
        ),
        (
            r#"{"command":"~ann/x"}"#,
            "`servers.files.command`: `~ann` is not expanded",
        ),
        (
            r#"{"command":"no such program"}"#,
            "`servers.files.command` is one program",
        ),
        (
            r#"{"url":"nowhere"}"#,
            "`servers.files.url` is not an absolute",
        ),
        (
            r#"{"url":"http://x/","headers":{"a b":"c"}}"#,
            "`servers.files.headers`: `a b` is not a valid header",
        ),
        (
            r#"{"type":"smtp","url":"http://x/"}"#,
            "`smtp` is not a value of `servers.files.type`",
        ),
        (
            r#"{"command":"sh","prefix":"a b"}"#,
            "`servers.files.prefix`: `a b` cannot be part of a tool name",
        ),
        (
            r#"{"command":"sh","era":"auto","protocolEra":"auto"}"#,
            "`[servers.files]`: `era` and",
        ),
        (
            r#"{"command":"sh","capabilities":["*"]}"#,
            "`servers.files.capabilities`: `*` is not a capability",
        ),
        (
            r#"{"command":"sh","tool_timeouts":{"t":1}}"#,
            "`servers.files.tool_timeouts.t` must be a duration",
        ),
        (
            r#"{"command":"sh","max_timeout":"1s"}"#,
            "`servers.files.max_timeout` is shorter",
        ),
        (
            r#"{"command":"sh","validate":"yes"}"#,
            "`servers.files.validate` must be true or false",
        ),
        (
            r#"{"command":"sh","retries":1e999}"#,
            "`mcpServers.files.retries`: a number is too large",
        ),
        (
            r#"{"command":"sh","command":"sh"}"#,
            "`mcpServers.files`: the member `command` occurs twice",
        ),
    ] {
        home.write(
            "mcp.json",
            &format!("{{\n\"mcpServers\": {{\n\"files\": {server}\n}}\n}}"),
        );
        let ran = home
            .run(&["config", "check", "--mcp-config", "mcp.json"])
            .expect(2)
            .stderr;
        assert!(
            ran.contains(message) && ran.contains("--> mcp.json:3:"),
            "{server}: {message}\n{ran}"
        );
        let json = home
            .run(&["config", "check", "--json", "--mcp-config", "mcp.json"])
            .expect(2)
            .stdout;
        let found: Value = serde_json::from_str(&json).unwrap();
        assert!(
            found["problems"]
                .as_array()
                .unwrap()
                .iter()
                .all(|problem| problem["line"] == 3),
            "{found}"
        );
    }
}

#[test]
fn capabilities_that_mean_more_in_rooms_are_noted() {
    let home = Home::new();
    let servers = "[servers.gh]\ncommand = \"true\"\n[servers.other]\ncommand = \"true\"\n[servers.bare]\ncommand = \"true\"\nprefix = \"\"\n";
    let notes = |capabilities: &str, more: &str| {
        let config = format!("{servers}[participants.ci]\ncapabilities = [{capabilities}]\n{more}");
        home.write("own.toml", &config);
        let checked = home
            .run(&["config", "check", "--config", "own.toml", "--json"])
            .expect(0)
            .stdout;
        let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
        let notes = checked["notes"].as_array().unwrap().clone();
        notes
            .iter()
            .map(|note| note.as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    let gh = notes("\"mcp/request:tools/call:gh_*\"", "");
    let [note] = gh.as_slice() else {
        panic!("{gh:?}")
    };
    assert!(
        note.starts_with("own.toml:9: `mcp/request:tools/call:gh_*` of `ci`"),
        "{note}"
    );
    assert!(
        note.contains("(of gh)") && note.contains("also of other:"),
        "{note}"
    );
    assert!(
        note.contains(r#"{ kind = "mcp/request:tools/call:gh_*", to = ["gh"] }"#),
        "{note}"
    );
    assert!(note.contains(r#"wires = ["mcp"]"#), "{note}");
    let own = notes("\"mcp/request:tools/call:read_file\"", "");
    assert!(
        own[0].contains("of no server") && own[0].contains("also of gh, other"),
        "{own:?}"
    );
    for (capabilities, more) in [
        // Narrowed, or the same on both wires, or not about tools and prompts, or in no room.
        (
            "{ kind = \"mcp/request:tools/call:gh_*\", to = [\"gh\"] }",
            "",
        ),
        (
            "\"mcp/request:tools/call:*\", \"mcp/request:tools/call\", \"mcp/*\", \"chat\"",
            "",
        ),
        ("\"mcp/request:tools/call:*_echo\"", ""),
        ("\"mcp/request:resources/read:file:*\"", ""),
        ("\"mcp/request:tools/call:gh_*\"", "wires = [\"mcp\"]\n"),
        (
            "\"mcp/request:tools/call:gh_*\"",
            "[topics.main]\nservers = [\"gh\", \"bare\"]\n",
        ),
    ] {
        assert_eq!(
            notes(capabilities, more),
            Vec::<String>::new(),
            "{capabilities} {more}"
        );
    }
    let shown = home
        .run(&["config", "check", "--config", "own.toml"])
        .expect(0);
    assert!(!shown.stderr.contains("note:"), "{}", shown.stderr);
}

#[test]
fn tokens_that_are_not_for_one_server_are_a_note() {
    let home = Home::new();
    let config = |resource: &str| {
        format!(
            "[topics.main]\n[profiles.x]\ncapabilities = [\"portmoot/accounts\"]\n[servers.s]\nurl = \"https://mcp.example/mcp\"\n\
             [servers.s.auth]\nresource = {resource}\n"
        )
    };
    for (resource, count) in [
        ("true", 0),
        ("\"https://mcp.example/other\"", 0),
        ("false", 1),
    ] {
        home.write("own.toml", &config(resource));
        let ran = home
            .run(&["config", "check", "--config", "own.toml"])
            .expect(0);
        let note = "note: own.toml:7: `servers.s.auth.resource`: tokens are asked for without naming the server";
        assert_eq!(
            ran.stderr.matches("note: ").count(),
            count,
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stderr.matches(note).count(), count, "{}", ran.stderr);
    }
}
