//! Tests of documents against the program: OpenAPI, metrics, test names.

use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::home::Home;
use crate::reviewed::DIRECTED;
use crate::stage::{ECHO, api, echoes};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

fn openapi() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/openapi.json")
}

#[test]
fn the_api_document_is_up_to_date() {
    let made = api::document();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(openapi(), &made).unwrap();
    }
    let written = std::fs::read_to_string(openapi()).unwrap_or_default();
    assert!(
        written == made,
        "docs/openapi.json is stale: UPDATE=1 cargo nextest run -p portmoot api_document"
    );
}

/// Sends one request; returns status, content type and body.
fn request(url: &str, method: &str, path: &str, body: &str) -> (String, String, String) {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    let kind = "content-type: application/json\r\n";
    write!(stream, "{head}{kind}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    let kind = head
        .lines()
        .find_map(|line| line.strip_prefix("content-type: "))
        .unwrap_or_default();
    (status, kind.to_owned(), body.to_owned())
}

#[test]
fn every_documented_path_answers_as_documented() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(openapi()).unwrap()).unwrap();
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let filled = match path.as_str() {
            "/api/v1/pins/{server}" => "/api/v1/pins/demo",
            "/api/v1/pins/{server}/approve" => "/api/v1/pins/demo/approve",
            "/api/v1/servers/{name}" => "/api/v1/servers/demo",
            "/api/v1/servers/{name}/logs" => "/api/v1/servers/demo/logs",
            // The demo server has no accounts.
            "/api/v1/servers/{name}/login" => "/api/v1/servers/demo/login",
            "/api/v1/servers/{name}/login/complete" => "/api/v1/servers/demo/login/complete",
            "/api/v1/servers/{name}/login/device" => "/api/v1/servers/demo/login/device",
            "/api/v1/servers/{name}/login/device/{id}" => "/api/v1/servers/demo/login/device/00",
            "/api/v1/servers/{name}/restart" => "/api/v1/servers/demo/restart",
            "/api/v1/servers/{name}/disable" => "/api/v1/servers/absent/disable",
            "/api/v1/servers/{name}/enable" => "/api/v1/servers/absent/enable",
            "/api/v1/servers/{name}/logout" => "/api/v1/servers/demo/logout",
            "/api/v1/servers/{name}/key" => "/api/v1/servers/demo/key",
            "/api/v1/tokens/{name}/rotate" => "/api/v1/tokens/absent/rotate",
            "/api/v1/participants/{id}/can" => "/api/v1/participants/local/can",
            "/api/v1/clients/{client}" => "/api/v1/clients/absent",
            "/api/v1/consents/{client}" => "/api/v1/consents/absent",
            // No result is kept: every one is unknown.
            "/api/v1/results/{id}" => "/api/v1/results/00",
            "/api/v1/tools/{name}" => "/api/v1/tools/demo_echo",
            "/api/v1/tools/{name}/call" => "/api/v1/tools/demo_now/call",
            "/api/v1/tokens/{name}" => "/api/v1/tokens/absent",
            "/api/v1/audit/calls/{id}" => "/api/v1/audit/calls/00",
            // There are no proposals: every one is unknown.
            "/api/v1/proposals/{id}" => "/api/v1/proposals/00",
            "/api/v1/proposals/{id}/approve" => "/api/v1/proposals/00/approve",
            "/api/v1/proposals/{id}/claim" => "/api/v1/proposals/00/claim",
            "/api/v1/proposals/{id}/amend" => "/api/v1/proposals/00/amend",
            "/api/v1/proposals/{id}/extend" => "/api/v1/proposals/00/extend",
            "/api/v1/proposals/{id}/reject" => "/api/v1/proposals/00/reject",
            "/api/v1/proposals/{id}/like" => "/api/v1/proposals/00/like",
            "/api/v1/proposals/{id}/rules" => "/api/v1/proposals/00/rules",
            "/api/v1/proposals/{id}/withdraw" => "/api/v1/proposals/00/withdraw",
            "/api/v1/participants/{id}/grants" => "/api/v1/participants/local/grants",
            "/admin/participants/{id}/capabilities" => "/admin/participants/local/capabilities",
            "/api/v1/topics/{topic}/messages" => "/api/v1/topics/main/messages",
            "/api/v1/topics/{topic}/participants/{id}/pause" => {
                "/api/v1/topics/main/participants/absent/pause"
            }
            "/api/v1/topics/{topic}/participants/{id}/resume" => {
                "/api/v1/topics/main/participants/absent/resume"
            }
            "/api/v1/topics/{topic}/rules" => "/api/v1/topics/main/rules",
            "/api/v1/topics/{topic}/rules/replay" => "/api/v1/topics/main/rules/replay",
            "/api/v1/topics/{topic}/rules/offers" => "/api/v1/topics/main/rules/offers",
            // Nothing is offered, and no rule is learned.
            "/api/v1/topics/{topic}/rules/offers/{digest}/accept" => {
                "/api/v1/topics/main/rules/offers/00/accept"
            }
            "/api/v1/topics/{topic}/rules/offers/{digest}/dismiss" => {
                "/api/v1/topics/main/rules/offers/00/dismiss"
            }
            "/api/v1/topics/{topic}/rules/{rule}/end" => "/api/v1/topics/main/rules/absent/end",
            plain => plain,
        };
        assert!(!filled.contains('{'), "{path}: what stands in the braces?");
        for (method, operation) in methods.as_object().unwrap() {
            // An issued token would be required by all later requests; a body without a name is
            // refused.
            let body = if method == "post" { "{}" } else { "" };
            let (status, kind, body) =
                request(&gateway.url(), &method.to_uppercase(), filled, body);
            let responses = operation["responses"].as_object().unwrap();
            let range = format!("{}XX", &status[..1]);
            let documented = responses.get(&status).or_else(|| responses.get(&range));
            let documented =
                documented.unwrap_or_else(|| panic!("{method} {path} gave {status}: {body}"));
            let kinds: Vec<_> = documented["content"]
                .as_object()
                .into_iter()
                .flatten()
                .collect();
            let said = kinds
                .iter()
                .any(|(documented, _)| kind.starts_with(documented.as_str()));
            assert!(
                said || kinds.is_empty(),
                "{method} {path} gave {kind}: {body}"
            );
            if status.starts_with('4') {
                let problem: Value = serde_json::from_str(&body).unwrap();
                assert!(
                    problem["code"].is_string() && problem["message"].is_string(),
                    "{body}"
                );
            }
            asked += 1;
        }
    }
    assert!(asked >= 10, "{asked}");
    let (status, _, served) = request(&gateway.url(), "GET", "/api/v1/openapi.json", "");
    assert_eq!(status, "200");
    assert_eq!(served, std::fs::read_to_string(openapi()).unwrap());
    gateway.stop().expect(0);
}

#[test]
fn metrics_and_their_documentation_agree() {
    let home = Home::new();
    // The demo server is there without a configuration; issuers, accounts at servers over HTTP, and
    // notifications with one.
    let gateway = Gateway::start_with(&home, &[]);
    let (with, config) = people(&[
        ("boss", &["mcp/*", "portmoot/*"]),
        ("agent", &["mcp/proposal:*"]),
    ]);
    let config = config
        + "public_url = \"http://127.0.0.1:1\"\n[issuers.corp]\nissuer = \"http://127.0.0.1:1\"\n\
           [servers.s]\nurl = \"http://127.0.0.1:9/mcp\"\n[notifications.n]\nexec = [\"true\"]\n\
           [telemetry]\notlp = \"http://127.0.0.1:1\"\ninterval = \"100ms\"\naudit = true\n"
        + &fixture("tools", &[]);
    let other = Gateway::start(&with, &config);
    other.ready("tools");
    Client::open(&gateway, None, "/mcp", json!({})).call("demo_echo", json!({ "text": "x" }));
    let boss = Client::of(&other, &token("boss"));
    for _ in 0..2 {
        // The first one waits until its session at the server is open.
        boss.call("tools_echo", json!({ "text": "x" }));
    }
    propose_and_withdraw(&other);
    for later in [
        "portmoot_telemetry_exports_total{",
        "portmoot_overhead_seconds",
        "portmoot_audit_export_waiting",
    ] {
        until(later, || {
            let page = other.get("/metrics", Some(&token("boss"))).body;
            page.contains(later).then_some(())
        });
    }
    let metrics =
        gateway.get("/metrics", None).body + &other.get("/metrics", Some(&token("boss"))).body;
    let page = std::fs::read_to_string(openapi().with_file_name("metrics.md")).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows: BTreeSet<&str> = rows.collect();
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    let there: BTreeSet<&str> = samples
        .map(|line| metric_of(line.split(['{', ' ']).next().unwrap(), &rows))
        .collect();
    assert_eq!(there, rows, "{metrics}");
}

/// Has a proposal wait, and end.
fn propose_and_withdraw(gateway: &Gateway) {
    let mut agent = Socket::enter(gateway, "agent", DIRECTED);
    agent.send(ECHO, "p1", &["tools"], json!({}), &echoes("x"));
    agent.receive_until(|received| received["payload"]["state"] == "pending");
    agent.leave();
    let address = gateway.address();
    let all = api(address, "agent", "GET", "", &Value::Null).json();
    let id = all["proposals"][0]["id"].as_str().unwrap().to_owned();
    let reply = api(
        address,
        "agent",
        "POST",
        &format!("/{id}/withdraw"),
        &json!({}),
    );
    assert!(reply.status < 300, "{reply:?}");
}

/// The metric of a sample: a histogram has three kinds of them.
fn metric_of<'s>(sample: &'s str, metrics: &BTreeSet<&str>) -> &'s str {
    let mut bases = ["_bucket", "_sum", "_count"]
        .into_iter()
        .filter_map(|kind| sample.strip_suffix(kind));
    bases.find(|base| metrics.contains(base)).unwrap_or(sample)
}

/// The names of all tests of the workspace.
fn tests_in(folder: &Path, found: &mut HashSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let after = text
                .split("#[test]")
                .chain(text.split("#[tokio::test"))
                .skip(1);
            let names = after.filter_map(|rest| rest.split("fn ").nth(1)?.split('(').next());
            found.extend(names.map(str::to_owned));
            // Property tests are inside a macro.
            let plain = text
                .split("\n        fn ")
                .skip(1)
                .filter_map(|rest| rest.split('(').next());
            found.extend(plain.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_named_in_the_documents_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut tests = HashSet::new();
    tests_in(&root.join("crates"), &mut tests);
    let mut pages = conformance_pages();
    // The table of attacks is in the module docs; the code below it is left out.
    pages.push(PathBuf::from("crates/program/portmoot/tests/it/attacks.rs"));
    let mut total = 0;
    for page in pages {
        let (text, name) = (
            std::fs::read_to_string(root.join(&page)).unwrap(),
            page.display(),
        );
        let prose: String = match page.extension().and_then(|end| end.to_str()) {
            Some("rs") => text
                .lines()
                .take_while(|line| line.starts_with("//!"))
                .collect(),
            // Its text names tests between the tables too.
            _ if page.ends_with("mcpx.md") => text.replace("`correlation_id`", ""),
            // The last cell of a row names tests; the others name keys and codes.
            _ => {
                let rows = text
                    .lines()
                    .filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "));
                rows.map(|(_, tests)| tests).collect()
            }
        };
        let words = prose
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|word| word.rsplit("::").next().unwrap());
        let snake = |word: &&str| {
            word.contains('_')
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
        };
        let (known, gone): (Vec<&str>, Vec<&str>) =
            words.filter(snake).partition(|word| tests.contains(*word));
        assert!(
            gone.is_empty(),
            "{name} names tests that do not exist: {gone:#?}"
        );
        assert!(known.len() > 15, "{name} names only {}", known.len());
        total += known.len();
    }
    assert!(total > 600, "{total}");
}

/// The pages that name tests, below the root.
fn conformance_pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/conformance");
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .map(|name| Path::new("docs/conformance").join(name))
        .collect()
}

/// Guides are for readers who have no checkout: which test holds which sentence stands in
/// `docs/conformance`.
#[test]
fn no_guide_names_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut tests = HashSet::new();
    tests_in(&root.join("crates"), &mut tests);
    // Names of one or two words are those of states, keys and tools too, and one of three that of a
    // tool.
    tests.retain(|name| name.matches('_').count() > 1 && name != "wait_for_proposal");
    let docs = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let guides = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut looked = 0;
    for path in guides.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        let named: Vec<&str> = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| tests.contains(*word))
            .collect();
        assert!(
            named.is_empty(),
            "{} names tests: {named:?}",
            path.display()
        );
        looked += 1;
    }
    assert!(looked > 20, "{looked}");
}

/// Every row of a table whose last column is of tests.
#[test]
fn every_requirement_in_the_documents_names_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for (page, rows_min) in [
        ("docs/conformance/architecture.md", 30),
        ("docs/conformance/guides.md", 15),
        ("docs/conformance/limits.md", 40),
        ("docs/conformance/mcp.md", 60),
        ("docs/conformance/mcpx.md", 40),
        ("docs/conformance/proxy.md", 40),
        ("docs/conformance/security.md", 55),
        ("docs/conformance/sep-2848.md", 30),
    ] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let (mut is_of_tests, mut rows) = (false, 0);
        for line in text.lines() {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            match (line.starts_with('|'), cells.last()) {
                (true, Some(&"tests")) => is_of_tests = true,
                (true, Some(tests)) if is_of_tests && !line.starts_with("|---") => {
                    assert!(tests.starts_with('`'), "{page} names no test: {line}");
                    assert!(
                        !cells.contains(&"-") && !cells.contains(&""),
                        "{page} has an empty cell: {line}"
                    );
                    rows += 1;
                }
                (true, _) => {}
                (false, _) => is_of_tests = false,
            }
        }
        assert!(rows >= rows_min, "{page} has {rows} rows");
    }
}

/// The commands of a page that begin so, each with the output below it.
pub(crate) fn transcripts<'p>(page: &'p str, begin: &str) -> Vec<(&'p str, &'p str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let commands = blocks.flat_map(|block| block.split("\n$ ").skip(1));
    let split = |text: &'p str| text.split_once('\n').unwrap_or((text, ""));
    commands
        .map(split)
        .filter(|(command, _)| command.starts_with(begin))
        .collect()
}

#[test]
fn the_page_on_proto_shows_what_convert_prints() {
    let page = std::fs::read_to_string(openapi().with_file_name("proto.md")).unwrap();
    let home = Home::new();
    let tool = r#"{"name":"web_search","inputSchema":{"type":"object","properties":{"query":{"type":"string"},
        "max_results":{"type":"integer","minimum":1}},"required":["query"]}}"#;
    ["web_search.json", "weather.json"]
        .iter()
        .for_each(|name| drop(home.write(name, tool)));
    let shown = transcripts(&page, "portmoot proto convert ");
    assert_eq!(shown.len(), 3, "{shown:?}");
    for (command, expect) in shown {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let ran = home.run(&words).expect(0);
        assert_eq!(
            (ran.stdout + &ran.stderr).trim_end(),
            expect.trim_end(),
            "{command}"
        );
    }
    assert!(home.path().join("module/buf.yaml").exists());
}

/// Whether a word in a page about the sources is a path.
fn is_path(word: &str) -> bool {
    let is_file = [".rs", ".md", ".json"]
        .iter()
        .any(|end| word.ends_with(end));
    let is_place = is_file || word.contains("/src") || word.contains("/tests");
    is_place && !word.contains(char::is_whitespace)
}

/// A place that such a page names: its path begins at the root or at `crates/`.
fn place(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    [root.join(path), root.join("crates").join(path)]
        .into_iter()
        .find(|path| path.exists())
}

/// A section of a page, by its title.
pub(crate) fn section<'a>(page: &'a str, title: &str) -> &'a str {
    page.split("\n## ")
        .find(|section| section.starts_with(title))
        .unwrap()
}

#[test]
fn every_file_named_in_the_map_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for (page, paths_min) in [("ARCHITECTURE.md", 5), ("docs/where.md", 400)] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let mut named = 0;
        for line in text.lines() {
            for word in line
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|word| is_path(word))
            {
                assert!(place(word).is_some(), "{page} names `{word}`: {line}");
                named += 1;
            }
        }
        assert!(named >= paths_min, "{page} names {named} paths");
    }
}

/// A line of the index is one place: its path, in brackets what to look for in that file, and what
/// is there.
#[test]
fn every_place_of_the_index_has_what_to_look_for() {
    let page = std::fs::read_to_string(openapi().with_file_name("where.md")).unwrap();
    let mut places = 0;
    for line in page.lines().filter(|line| line.starts_with("- `")) {
        let (named, about) = line.split_once(": ").unwrap_or((line, ""));
        assert!(
            !about.is_empty(),
            "the index does not say what is there: {line}"
        );
        let mut words = named.split('`').skip(1).step_by(2);
        let path = words.next().and_then(place);
        let path =
            path.unwrap_or_else(|| panic!("the index names a place that does not exist: {line}"));
        for word in words {
            let code = std::fs::read_to_string(&path).unwrap();
            assert!(has_word(&code, word), "`{word}` is not in the file: {line}");
        }
        let is_second = about.split('`').skip(1).step_by(2).any(is_path);
        assert!(!is_second, "the index has two places in a line: {line}");
        places += 1;
    }
    assert!(places > 400, "{places}");
}

/// The list at the top of the index names each section, in their order.
#[test]
fn the_index_lists_all_of_its_tasks() {
    let page = std::fs::read_to_string(openapi().with_file_name("where.md")).unwrap();
    let (list, _) = page.split_once("\n## ").unwrap();
    let titles = list.split("](#").filter_map(|part| part.rsplit_once('['));
    let listed: Vec<&str> = titles.map(|(_, title)| title).collect();
    let headings = page.lines().filter_map(|line| {
        let title = line.strip_prefix("## ");
        title.or_else(|| line.strip_prefix("### "))
    });
    assert_eq!(listed, headings.collect::<Vec<_>>());
    assert!(listed.len() > 60, "{}", listed.len());
}

/// Whether a text has this word, not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let goes_on = |one: char| one.is_alphanumeric() || one == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        // A word that ends with a sign, such as `Version::`, goes on with whatever it is about.
        let ends = !word.ends_with(goes_on) || !after.is_some_and(goes_on);
        ends && !before.is_some_and(goes_on)
    })
}

/// The text of all sources below a folder.
fn sources_below(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources_below(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// An item that is named with its crate (`topic::Effect`) is in the sources of that crate.
#[test]
fn every_item_named_in_the_map_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let crates = harness::crates();
    let mut named = 0;
    for page in ["ARCHITECTURE.md", "docs/where.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            let Some((name, item)) = word.split_once("::") else {
                continue;
            };
            let Some(folder) = crates.get(name) else {
                continue;
            };
            let item = item.rsplit("::").next().unwrap_or(item);
            let mut code = String::new();
            sources_below(&folder.join("src"), &mut code);
            assert!(
                has_word(&code, item),
                "{page} names `{word}`, which the crate does not have"
            );
            named += 1;
        }
    }
    assert!(named > 50, "{named}");
}

/// An invariant is an item of a list, in bold; the page of their tests has the same ones.
#[test]
fn every_invariant_of_the_map_names_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let tests = std::fs::read_to_string(root.join("docs/conformance/architecture.md")).unwrap();
    let items = map
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    let stated: BTreeSet<&str> = items.map(|(invariant, _)| invariant).collect();
    let rows = tests
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut tested: BTreeSet<&str> = rows.map(|(invariant, _)| invariant).collect();
    assert!(tested.remove("invariant"), "the table has a head");
    assert_eq!(stated, tested);
    assert!(stated.len() > 30, "{}", stated.len());
}

/// Code without its layout, so that a statement of several lines can be quoted in one.
fn packed(code: &str) -> String {
    let code: String = code.split_whitespace().collect();
    code.replace(",}", "}").replace(",)", ")")
}

/// The map quotes statements of the path; two spaces and a comment may follow each.
#[test]
fn the_code_quoted_in_the_map_is_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let quoted = page
        .split("```")
        .find_map(|block| block.strip_prefix("rust\n"))
        .unwrap();
    let (mut file, mut code) = ("", String::new());
    for line in quoted.lines() {
        if let Some(path) = line.strip_prefix("// ") {
            (file, code) = (path, std::fs::read_to_string(root.join(path)).unwrap());
            continue;
        }
        let line = line.split("  // ").next().unwrap();
        assert!(
            packed(&code).contains(&packed(line)),
            "{file} has no line `{line}`"
        );
    }
}

#[test]
fn a_slash_at_the_end_is_the_same_endpoint() {
    let home = Home::new().env("ME", "a-token-that-is-long-enough");
    let people =
        "[participants.me]\ntoken_env = \"ME\"\ncapabilities = [\"mcp/*\", \"portmoot/*\"]\n";
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(openapi()).unwrap()).unwrap();
    let mut paths: Vec<&str> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    paths.extend([
        "/mcp",
        "/mcp/main",
        "/mcp/nowhere",
        "/ws",
        "/sse",
        "/messages",
        "/nowhere",
    ]);
    for people in ["", people] {
        let config =
            format!("[server]\nlegacy_sse = true\n[servers.demo]\ntype = \"demo\"\n{people}");
        let gateway = Gateway::start(&home, &config);
        gateway.ready("demo");
        let ask = |method: &str, path: &str| {
            let path = path
                .replace("{name}", "demo")
                .replace("{id}", "00")
                .replace("{client}", "absent");
            // The stream of `GET /sse` does not end.
            let method = if path.starts_with("/sse") {
                "PUT"
            } else {
                method
            };
            let (status, _, body) = request(&gateway.url(), method, &path, "");
            let is_never_the_same = path.contains("/metrics")
                || path.contains("/connect-code")
                || path.contains("/console-codes");
            // The second time a server is disabled or enabled already.
            let is_switched = path.contains("/disable") || path.contains("/enable");
            let is_there = if status == "404" { "404" } else { "there" }.to_owned();
            let status = if is_switched { is_there } else { status };
            (
                status,
                if is_never_the_same || is_switched {
                    String::new()
                } else {
                    body
                },
            )
        };
        let mut found = 0;
        for path in &paths {
            for method in ["GET", "POST", "DELETE"] {
                let plain = ask(method, path);
                found += usize::from(plain.0 != "404");
                assert_eq!(ask(method, &format!("{path}/")), plain, "{method} {path}/");
                assert_eq!(
                    ask(method, &format!("{path}/?topic=main")),
                    ask(method, &format!("{path}?topic=main"))
                );
                // Not more than one, and no empty segment within.
                assert_eq!(
                    ask(method, &format!("{path}//")).0,
                    "404",
                    "{method} {path}//"
                );
                assert_eq!(
                    ask(method, &format!("/{path}")).0,
                    "404",
                    "{method} /{path}"
                );
            }
        }
        assert!(found > 30, "{found}");
    }
}
