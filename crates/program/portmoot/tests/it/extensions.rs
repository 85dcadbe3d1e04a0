//! Extensions between clients and servers: what each declares, apps of two servers with the same
//! tools, and their skills.

use std::process::{Command, Stdio};

use harness::{Running, conformance_of, deps, repository};
use serde_json::{Value, json};

use crate::front::{Front, over_http, over_stdio};
use crate::home::Home;
use crate::http::Reply;
use crate::support::{Client, Gateway, fixture, modern, until};

const UI: &str = "io.modelcontextprotocol/ui";
const SKILLS: &str = "io.modelcontextprotocol/skills";
/// Scenarios of the skills extension in the conformance suite.
const SKILL_SCENARIOS: usize = 3;

/// What a client declares: apps, an extension that is unknown, and that it can be asked.
fn declared() -> Value {
    json!({
        "elicitation": {},
        "extensions": { UI: { "mimeTypes": ["text/html;profile=mcp-app"] }, "com.example/x": { "deep": [1, { "a": null }] } }
    })
}

/// Sends one request of a modern client with these capabilities.
fn modern_with(gateway: &Gateway, capabilities: &Value, method: &str, mut params: Value) -> Reply {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    modern(gateway, None, method, params)
}

/// A gateway with a fixture of each era, alone under its name.
fn eras(flags: &[&str]) -> String {
    let of = |era| fixture(era, &[&["--era", era, "--name", era], flags].concat());
    let [legacy, modern] = ["legacy", "modern"].map(|era| format!("{}era = {era:?}\n", of(era)));
    format!("[topics.main]\nbuiltin = [\"search_tools\"]\n{legacy}{modern}")
}

#[test]
fn extensions_of_clients_reach_servers_in_all_four_cells() {
    let gateway = Gateway::start(&Home::new(), &eras(&[]));
    for server in ["legacy", "modern"] {
        gateway.ready(server);
        let legacy = Client::open(&gateway, None, "/mcp", declared());
        assert_eq!(
            legacy.record(server)["clientCapabilities"]["extensions"],
            declared()["extensions"],
            "{server}"
        );
    }
    let record = |server: &str, capabilities: Value| {
        let params = json!({ "name": format!("{server}_record") });
        let answer = modern_with(&gateway, &capabilities, "tools/call", params).json();
        answer["result"]["structuredContent"]["clientCapabilities"]["extensions"].clone()
    };
    assert_eq!(record("modern", declared()), declared()["extensions"]);
    // A session of the caller's own has them as well; tasks, which the gateway converts, are no
    // extension there.
    let mut with_tasks = declared();
    with_tasks["extensions"]["io.modelcontextprotocol/tasks"] = json!({});
    assert_eq!(record("legacy", with_tasks), declared()["extensions"]);
    // The session of all callers declares what needs only a client that understands it.
    let shared =
        Client::plain(&gateway).record("legacy")["clientCapabilities"]["extensions"].clone();
    assert_eq!(
        shared,
        json!({ SKILLS: {}, UI: { "mimeTypes": ["text/html;profile=mcp-app"] } })
    );
}

#[test]
fn extensions_of_servers_reach_clients_of_both_eras() {
    let gateway = Gateway::start(&Home::new(), &eras(&["--skills"]));
    let check = |answer: &Value, tasks: bool| {
        let extensions = &answer["result"]["capabilities"]["extensions"];
        assert_eq!(
            extensions[SKILLS],
            json!({ "directoryRead": true }),
            "{answer}"
        );
        assert!(extensions[UI].is_object(), "{answer}");
        assert_eq!(
            extensions.get("io.modelcontextprotocol/tasks").is_some(),
            tasks,
            "{answer}"
        );
    };
    for server in ["legacy", "modern"] {
        gateway.ready(server);
    }
    let client = Client::resume(&gateway, None, "/mcp", "");
    let version = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    check(&client.ask("initialize", version), false);
    check(
        &modern_with(&gateway, &json!({}), "server/discover", json!({})).json(),
        true,
    );
}

#[test]
fn tools_for_apps_alone_are_listed_to_clients_that_show_apps() {
    let gateway = Gateway::start(&Home::new(), &eras(&["--apps"]));
    for server in ["legacy", "modern"] {
        gateway.ready(server);
        let tools = |client: &Client| {
            let mut names = client.names("tools");
            names.retain(|name| {
                ["open_board", "save"]
                    .iter()
                    .any(|tool| *name == format!("{server}_{tool}"))
            });
            names
        };
        let plain = Client::plain(&gateway);
        assert_eq!(
            tools(&plain),
            [format!("{server}_open_board")],
            "the session of all callers has it"
        );
        let shows = Client::open(
            &gateway,
            None,
            "/mcp",
            json!({ "extensions": declared()["extensions"] }),
        );
        assert_eq!(
            tools(&shows),
            [format!("{server}_open_board"), format!("{server}_save")]
        );
        let found = plain.call(
            "search_tools",
            json!({ "query": "save open board", "limit": 50 }),
        );
        let found = found["structuredContent"]["tools"].to_string();
        assert!(
            found.contains(&format!("{server}_open_board"))
                && !found.contains(&format!("{server}_save")),
            "{found}"
        );
        // It is no secret: it can be called.
        assert_eq!(
            plain.call(&format!("{server}_save"), json!({}))["content"][0]["text"],
            format!("{server}: save ")
        );
    }
}

const HOST: &str = "token-of-the-one-with-the-apps";
const BOSS: &str = "token-of-the-one-who-decides";

/// Two servers with the same app. The host may use all of the first; of the second it may open the
/// board, propose to save, and not erase.
fn boards(home: &Home) -> Gateway {
    let server = |id: &str, name: &str| fixture(id, &["--apps", "--name", name]);
    let boss = "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/*\", \"portmoot/*\"]\n";
    let host = "[participants.host]\ntoken_env = \"HOST_TOKEN\"\ncapabilities = [\"mcp/request:resources/read:*\", \
        \"mcp/request:tools/call:a_*\", \"mcp/request:tools/call:b_open_board\", \"mcp/proposal:tools/call:b_save\"]\n";
    let data = home.path().join("data");
    let head = format!("[server]\ndata_dir = {data:?}\n[server.limits]\nhold = \"300ms\"\n");
    let gateway = Gateway::start(
        home,
        &(head + &server("a", "alpha") + &server("b", "beta") + boss + host),
    );
    ["a", "b"].iter().for_each(|server| gateway.ready(server));
    gateway
}

fn app_host(gateway: &Gateway, era: &str, plan: &Value) -> Value {
    let mut command = Command::new(deps().node());
    command.arg(repository().join("tests/third-party/app_host.mjs"));
    command.args([
        &format!("{}/mcp", gateway.url()),
        HOST,
        era,
        &plan.to_string(),
    ]);
    let ran = command
        .env("NPM_MODULES", deps().npm(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = ran.spawn().unwrap().wait_with_output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn calls_of_apps_are_admitted_held_and_refused_as_those_of_the_public_names() {
    for era in ["legacy", "modern"] {
        let home = Home::new().env("HOST_TOKEN", HOST).env("BOSS_TOKEN", BOSS);
        let gateway = boards(&home);
        let plan = json!([
            { "open": "a_open_board", "calls": ["save", "erase", "only_alpha", "only_beta", "a_save"] },
            { "open": "b_open_board", "calls": ["open_board", "erase", "nothing", "only_alpha"] }
        ]);
        let report = app_host(&gateway, era, &plan);
        let [a, b] = [
            &report["tools"]["a_open_board"],
            &report["tools"]["b_open_board"],
        ];
        assert_eq!(
            (a, b),
            (
                &json!("ui://board/main.html"),
                &json!("ui://portmoot/b/board/main.html")
            ),
            "{report:#}"
        );
        let [alpha, beta] = [&report["apps"][0], &report["apps"][1]];
        assert_eq!(
            (&alpha["title"], &beta["title"]),
            (&json!("Board of alpha"), &json!("Board of beta"))
        );
        assert_eq!((&alpha["uri"], &beta["uri"]), (a, b), "{report:#}");
        let text = |app: &Value, at: usize| app["called"][at]["text"].clone();
        assert_eq!(text(alpha, 0), "alpha: save it", "{report:#}");
        assert_eq!(text(alpha, 1), "alpha: erase it");
        assert_eq!(text(alpha, 2), "alpha: only_alpha it");
        assert_eq!(
            text(alpha, 4),
            "alpha: save it",
            "a public name is what it says"
        );
        assert_eq!(text(beta, 0), "beta: open_board it");
        assert_eq!(
            text(beta, 3),
            "alpha: only_alpha it",
            "the one tool of this name"
        );
        // What the host may not use is unknown to it, also where another server has a tool of this
        // name.
        let unknown = |app: &Value, at: usize, name: &str| {
            let said = app["called"][at]["error"]
                .as_str()
                .unwrap_or_else(|| panic!("{report:#}"))
                .to_owned();
            assert!(said.contains("no tool of this name"), "{said}");
            said.replace(name, "NAME")
        };
        assert_eq!(unknown(alpha, 3, "only_beta"), unknown(beta, 1, "erase"));
        assert_eq!(unknown(beta, 1, "erase"), unknown(beta, 2, "nothing"));
        // The log has the public names, once its last entries are written.
        let query = [
            "audit",
            "query",
            "--participant",
            "host",
            "--json",
            "--config",
            "portmoot.toml",
        ];
        let named = ["a_save", "a_erase", "a_only_alpha", "b_open_board"]
            .map(|name| format!("tools/call:{name}"));
        let log = until("all calls are in the log", || {
            let log = home.run(&query).expect(0).stdout;
            named.iter().all(|name| log.contains(name)).then_some(log)
        });
        assert!(!log.contains("tools/call:save"), "{log}");
    }
}

#[test]
fn a_call_of_an_app_is_held_for_approval() {
    let home = Home::new().env("HOST_TOKEN", HOST).env("BOSS_TOKEN", BOSS);
    let gateway = boards(&home);
    let plan = json!([{ "open": "b_open_board", "calls": ["save"] }]);
    let report = app_host(&gateway, "legacy", &plan);
    let called = &report["apps"][0]["called"][0];
    assert!(
        called["failed"] == true
            && called["text"]
                .as_str()
                .unwrap()
                .contains("wait_for_proposal"),
        "{report:#}"
    );
    let proposal = gateway.pending(&home, BOSS);
    assert_eq!(
        (&proposal["by"], &proposal["to"]),
        (&json!("host"), &json!(["b"])),
        "{proposal:#}"
    );
    assert_eq!(proposal["context"], "save");
    assert_eq!(proposal["params"]["arguments"], json!({ "text": "it" }));
    let (url, id) = (gateway.url(), proposal["id"].as_str().unwrap().to_owned());
    home.run(&[
        "proposals",
        "approve",
        &id,
        "--yes",
        "--url",
        &url,
        "--token",
        BOSS,
    ])
    .expect(0);
    let shown = || {
        home.run(&[
            "proposals",
            "show",
            &id,
            "--json",
            "--url",
            &url,
            "--token",
            BOSS,
        ])
        .expect(0)
        .stdout
    };
    let shown = until("the outcome", || {
        Some(shown()).filter(|shown| shown.contains("\"completed\""))
    });
    assert!(shown.contains("beta: save it"), "{shown}");
}

/// Two servers with the same skills, one of each era.
fn skilled() -> Gateway {
    let gateway = Gateway::start(&Home::new(), &eras(&["--skills"]));
    ["legacy", "modern"]
        .iter()
        .for_each(|server| gateway.ready(server));
    gateway
}

#[test]
fn skills_of_two_servers_are_merged_with_their_origins_and_read_at_their_servers() {
    let gateway = skilled();
    let legacy = Client::plain(&gateway);
    let ask = |era: &str, method: &str, params: Value| match era {
        "legacy" => legacy.ask(method, params)["result"].clone(),
        _ => modern_with(&gateway, &json!({}), method, params).json()["result"].clone(),
    };
    for era in ["legacy", "modern"] {
        let listed = ask(era, "skills/list", json!({}));
        let skills = listed["skills"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        assert_eq!(skills.len(), 4, "{listed:#}");
        assert_eq!(listed.get("ttlMs").is_some(), era == "modern", "{listed:#}");
        for (at, server) in ["legacy", "legacy", "modern", "modern"]
            .into_iter()
            .enumerate()
        {
            assert_eq!(skills[at]["_meta"]["portmoot/server"], server, "{listed:#}");
        }
        assert_eq!(skills[0]["uri"], "skill://git-workflow/SKILL.md");
        assert_eq!(
            skills[2]["uri"],
            "skill://portmoot/modern/git-workflow/SKILL.md"
        );
        for skill in skills {
            let uri = skill["uri"].as_str().unwrap();
            let server = skill["_meta"]["portmoot/server"].as_str().unwrap();
            let got = ask(era, "skills/get", json!({ "uri": uri }));
            assert_eq!(got["skill"]["uri"], uri, "{got:#}");
            assert_eq!(got["skill"]["resources"], skill["resources"], "{got:#}");
            assert!(
                got["skill"]["frontmatter"]["description"]
                    .as_str()
                    .unwrap()
                    .ends_with(&format!("of {server}"))
            );
            let root = uri.strip_suffix("/SKILL.md").unwrap();
            for file in skill["resources"].as_array().into_iter().flatten() {
                let file = file["uri"].as_str().unwrap();
                assert!(file.starts_with(root), "{file}");
                let read = ask(era, "resources/read", json!({ "uri": file }));
                assert_eq!(read["contents"][0]["uri"], file, "{read}");
                assert!(
                    read["contents"][0]["text"]
                        .as_str()
                        .unwrap()
                        .contains(server),
                    "{read}"
                );
            }
            let children = ask(era, "resources/directory/read", json!({ "uri": root }));
            let uris: Vec<&str> = children["resources"]
                .as_array()
                .unwrap_or_else(|| panic!("{children}"))
                .iter()
                .map(|child| child["uri"].as_str().unwrap())
                .collect();
            assert!(
                !uris.is_empty() && uris.iter().all(|child| child.starts_with(root)),
                "{children}"
            );
        }
    }
    let unknown = modern_with(
        &gateway,
        &json!({}),
        "skills/get",
        json!({ "uri": "skill://x/SKILL.md" }),
    )
    .json();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let found = legacy.call("search_tools", json!({ "query": "git conventions" }));
    let skills = &found["structuredContent"]["skills"];
    assert_eq!(
        skills[0]["uri"], "skill://git-workflow/SKILL.md",
        "{found:#}"
    );
    assert_eq!(skills[1]["server"], "modern", "{found:#}");
}

#[test]
fn the_suites_checks_of_skills_pass() {
    for flags in [
        &["--skills"][..],
        &["--skills", "--era", "legacy"],
        &["--skills", "--era", "modern"],
    ] {
        let fixture = Running::fixture(flags);
        let front = Front::serve(&over_http(&fixture, ""));
        assert_eq!(
            conformance_of(&front.url("/mcp"), "sep-2640-skills-"),
            SKILL_SCENARIOS
        );
    }
    let front = Front::serve(&over_stdio("", &["--skills"]));
    assert_eq!(
        conformance_of(&front.url("/mcp"), "sep-2640-skills-"),
        SKILL_SCENARIOS
    );
}
