//! The console in a real browser.

mod accessibility;
mod browser;
mod elsewhere;
mod hostile;
mod log;
mod pages;
mod proof;
mod servers;
mod visitor;
mod words;

use harness::repository;
use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::listed_server::ListedServer;
use crate::support::{Gateway, until};
use crate::ws::{people, token};
use browser::Browser;

/// A card that waits for a decision.
const PENDING: &str = "[data-testid=card][data-state=pending]";
/// The button of an approval.
const APPROVE: &str = "[data-testid=approve]";

/// A gateway with a server, an agent that proposes, and people that decide.
struct Stage {
    gateway: Gateway,
    home: Home,
}

impl Stage {
    fn new() -> Stage {
        Stage::with("")
    }

    fn with(more: &str) -> Stage {
        Stage::beside(more, &[])
    }

    /// A gateway with these files beside its configuration.
    fn beside(more: &str, files: &[(&str, &str)]) -> Stage {
        let (home, config) = people(&[
            ("scout", &["mcp/proposal:*", "chat"]),
            ("ann", &["mcp/*", "chat", "portmoot/*"]),
            ("bo", &["mcp/*", "chat"]),
        ]);
        let server = ListedServer::new(&home, "files", &[]).table();
        home.write("files", &tools().to_string());
        for (name, text) in files {
            home.write(name, text);
        }
        let gateway = Gateway::start(&home, &(server + more + &config));
        gateway.ready("files");
        Stage { gateway, home }
    }

    fn port(&self) -> &str {
        self.gateway.address().rsplit_once(':').unwrap().1
    }

    /// The address of a page, under ann's own name of the machine.
    fn page(&self, path: &str) -> String {
        let link = self.link("ann");
        [link.split_once('#').unwrap().0, path].concat()
    }

    /// The address that `portmoot console` prints for a participant.
    #[track_caller]
    fn link(&self, who: &str) -> String {
        let url = self.gateway.url();
        let token = token(who);
        let words = ["console", "--no-browser", "--url", &url, "--token", &token];
        self.home.run(&words).expect(0).stdout.trim().to_owned()
    }

    /// A browser in which a participant has signed in.
    #[track_caller]
    fn browser(&self, who: &str) -> Browser {
        let browser = Browser::open();
        self.enter(&browser, who);
        browser
    }

    /// Signs in, by the link.
    #[track_caller]
    fn enter(&self, browser: &Browser, who: &str) {
        browser.go(&self.link(who));
        browser.reads("form.who", who);
    }

    fn ask(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        let authorization = format!("Bearer {}", token(who));
        let headers = [
            ("authorization", &*authorization),
            ("content-type", "application/json"),
        ];
        Connection::open(self.gateway.address()).exchange(method, path, &headers, &body.to_string())
    }

    /// Proposes a call as the agent; returns the id of the proposal.
    #[track_caller]
    fn propose(&self, tool: &str, arguments: &Value) -> String {
        let path = format!("/api/v1/tools/files_{tool}/call");
        let reply = self.ask("scout", "POST", &path, &json!({ "arguments": arguments }));
        assert_eq!(reply.status, 202, "{reply:?}");
        reply.json()["proposal"].as_str().unwrap().to_owned()
    }

    /// Proposes calls as one plan; returns its id.
    #[track_caller]
    fn propose_plan(&self, steps: &[(&str, Value)]) -> String {
        let step = |(tool, arguments): &(&str, Value)| json!({ "name": format!("files_{tool}"), "arguments": arguments });
        let steps: Vec<Value> = steps.iter().map(step).collect();
        let reply = self.ask("scout", "POST", "/api/v1/plans", &json!({ "steps": steps }));
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// A proposal as the API shows it.
    fn proposal(&self, id: &str) -> Value {
        let path = format!("/api/v1/proposals/{id}");
        self.ask("ann", "GET", &path, &Value::Null).json()
    }

    /// The id of a step of a plan; the first is 0.
    fn step(&self, plan: &str, at: usize) -> String {
        let id = &self.proposal(plan)["steps"][at]["id"];
        id.as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn becomes(&self, id: &str, state: &str) {
        until(&format!("{id} is {state}"), || {
            (self.proposal(id)["state"] == state).then_some(())
        });
    }
}

/// Tools of the server, with annotations.
fn tools() -> Value {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string", "description": "A file" }, "lines": { "type": "integer" } }, "required": ["path"] });
    let tool = |name: &str, words: &str, hints: Value| json!({ "name": name, "description": words, "inputSchema": schema, "annotations": hints });
    json!([
        tool(
            "read_file",
            "Reads a file.",
            json!({ "readOnlyHint": true })
        ),
        tool(
            "write_file",
            "Writes a file.",
            json!({ "destructiveHint": false })
        ),
        tool(
            "remove_file",
            "Removes a file.",
            json!({ "destructiveHint": true })
        ),
    ])
}

/// The text of the selector of a proposal's card.
fn card(id: &str) -> String {
    format!("[id=\"p-{id}\"]")
}

#[test]
fn a_person_signs_in_by_the_link_and_out_again() {
    let stage = Stage::new();
    let browser = Browser::open();
    let link = stage.link("ann");
    browser.go(&link);
    browser.reads("h1", "Inbox");
    assert_eq!(
        browser.address(),
        stage.page(""),
        "the code has left the address"
    );
    browser.reads("[data-testid=empty]", "Nothing waits");
    // The code was used; the session goes on.
    browser.go(&stage.page("/servers"));
    browser.reads("[data-testid=server]", "files");
    // No other name of the machine knows the session.
    browser.go(&format!(
        "http://127.0.0.1:{}/console/overview",
        stage.port()
    ));
    browser.reads("label", "Code or token");
    browser.go(&stage.page("/overview"));
    browser.reads("h1", "Overview");
    assert_eq!(browser.run("return document.cookie"), json!(""));
    browser.click("form.who button");
    browser.reads("label", "Code or token");
    browser.back();
    browser.reads("label", "Code or token");
    browser.go(&link);
    browser.reads("[data-testid=problem]", "used before");
    // A token does too.
    browser.fill("#code", &token("bo"));
    browser.keys("\u{e007}");
    browser.reads("form.who", "bo");
    let complaints = browser.complaints().into_iter();
    // The answer to the code that was used before, which is what this is about.
    let others: Vec<String> = complaints.filter(|one| !one.contains("403")).collect();
    assert_eq!(others, Vec::<String>::new());
}

#[test]
fn keys_decide_and_only_after_a_pause() {
    let stage = Stage::new();
    let first = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    let second = stage.propose("remove_file", &json!({ "path": "/srv/b" }));
    let browser = stage.browser("ann");
    browser.sees(PENDING);
    browser.keys("j");
    browser.keys("a");
    // Two at once are one press: what follows within half a second counts for nothing.
    let press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }));";
    until("armed", || {
        browser.run(&[press, press].concat());
        browser
            .text(&format!("{} [data-armed]", card(&first)))
            .map(drop)
    });
    assert_eq!(stage.proposal(&first)["state"], "pending");
    until("decided", || {
        browser.keys("a");
        (stage.proposal(&first)["state"] != "pending").then_some(())
    });
    stage.becomes(&first, "completed");
    assert_eq!(stage.proposal(&first)["decided_by"], "ann");
    browser.sees(&format!("{}:not([data-state=pending])", card(&first)));
    // The next one may destroy: its tool is named.
    browser.keys("j");
    until("the field", || {
        browser.keys("a");
        (browser.run("return document.activeElement.dataset.typed ?? null") == "").then_some(())
    });
    browser.keys("remove_file\u{e007}");
    stage.becomes(&second, "completed");
    let third = stage.propose("write_file", &json!({ "path": "/srv/c" }));
    browser.sees(&card(&third));
    browser.run(&format!("document.getElementById('p-{third}').focus()"));
    browser.keys("r");
    browser.keys("not today\u{e007}");
    stage.becomes(&third, "rejected");
    assert_eq!(stage.proposal(&third)["reason"], "not today");
    browser.sees(&format!("{}:not([data-state=pending])", card(&third)));
    // Help, and keys that are off.
    browser.keys("?");
    browser.sees("#help[open]");
    browser.click("#help button");
    browser.sees("html[data-keys=off]");
    let fourth = stage.propose("write_file", &json!({ "path": "/srv/d" }));
    browser.sees(&card(&fourth));
    browser.keys("j");
    assert_eq!(
        browser.run("return document.activeElement.tagName"),
        json!("BODY")
    );
}

#[test]
fn the_mouse_decides_and_a_card_under_it_is_not_swapped() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a", "lines": 1 }));
    let other = stage.propose("write_file", &json!({ "path": "/srv/b" }));
    let browser = stage.browser("ann");
    let approve = format!("{} {APPROVE}", card(&id));
    browser.sees(&approve);
    until("armed", || {
        browser.click_if_there(&approve);
        browser
            .text(&approve)
            .filter(|text| text.starts_with("Press again"))
            .map(drop)
    });
    // It changes under the finger: the proposer amends it.
    let amended = json!({ "arguments": { "path": "/etc/passwd" } });
    let path = format!("/api/v1/proposals/{id}/amend");
    assert_eq!(stage.ask("scout", "POST", &path, &amended).status, 200);
    browser.reads(&format!("{} [data-answer]", card(&id)), "It has changed");
    assert!(browser.attribute(&approve, "disabled").is_some());
    assert!(!browser.text(&card(&id)).unwrap().contains("/etc/passwd"));
    browser.click(&format!("{} [data-answer] button", card(&id)));
    browser.reads(&card(&id), "/etc/passwd");
    // Another reviewer is quicker with the other one.
    let digest = stage.proposal(&other)["digest"].clone();
    let path = format!("/api/v1/proposals/{other}/approve");
    assert_eq!(
        stage
            .ask("bo", "POST", &path, &json!({ "digest": digest }))
            .status,
        200
    );
    browser.reads(&format!("{} [data-answer]", card(&other)), "waits no more");
    until("decided", || {
        browser.click_if_there(&approve);
        (stage.proposal(&id)["state"] != "pending").then_some(())
    });
    stage.becomes(&id, "completed");
}

#[test]
fn two_reviewers_see_each_other_and_one_decides() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    let (ann, bo) = (stage.browser("ann"), stage.browser("bo"));
    bo.sees(&card(&id));
    ann.click("[data-testid=claim]");
    bo.reads(&format!("{} [data-testid=claims]", card(&id)), "ann");
    bo.click("[data-testid=reject-open]");
    bo.fill("[data-testid=reason]", "no");
    ann.click("[data-testid=more]");
    ann.reads("#say", "Ten minutes more");
    bo.click("[data-testid=reject]");
    stage.becomes(&id, "rejected");
    assert_eq!(stage.proposal(&id)["decided_by"], "bo");
    ann.reads(&card(&id), "waits no more");
    ann.go(&stage.page(&format!("/p/{id}")));
    ann.reads("[data-testid=verdict]", "decided by bo: no");
}

#[test]
fn a_plan_is_shown_with_every_step_and_decided_as_one() {
    let stage = Stage::new();
    let id = stage.propose_plan(&[
        ("write_file", json!({ "path": "/srv/a", "lines": 7 })),
        ("remove_file", json!({ "path": "/srv/b" })),
    ]);
    let browser = stage.browser("ann");
    browser.reads(&card(&id), "a plan of 2 steps");
    for (number, seen) in [(1, "/srv/a"), (2, "/srv/b")] {
        let step = format!("{} [data-testid=step]:nth-child({number})", card(&id));
        browser.reads(&step, seen);
        browser.reads(&step, "says its server");
    }
    assert_eq!(browser.count("[data-testid=card]"), 1);
    assert_eq!(browser.count("[data-edit]"), 0);
    browser.fill("[data-testid=typed]", "remove_file\u{e007}");
    stage.becomes(&id, "completed");
    browser.go(&stage.page(&format!("/p/{id}")));
    browser.reads("[data-testid=verdict]", "decided by ann");
    browser.reads("[data-testid=step]:nth-child(2)", "completed");
    browser.click("[data-testid=step]:nth-child(2) h3 a");
    browser.reads("[data-testid=plan]", "Step 2 of 2");
    browser.reads(&card(&stage.step(&id, 1)), "remove_file of the server");
}

#[test]
fn without_a_script_everything_works_too() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    let browser = Browser::without_scripts();
    let link = stage.link("ann");
    let (page, code) = link.split_once('#').unwrap();
    browser.go(page);
    browser.fill("#code", code);
    browser.click("button.main");
    browser.reads("form.who", "ann");
    browser.click(APPROVE);
    browser.reads("[data-testid=confirmation]", "Approve this call?");
    assert_eq!(stage.proposal(&id)["state"], "pending");
    browser.click("[data-testid=confirm]");
    browser.reads("[data-testid=verdict]", "decided by ann");
    let edited = stage.propose("write_file", &json!({ "path": "/srv/b", "lines": 3 }));
    browser.go(&stage.page(&format!("/p/{edited}?edit=1")));
    browser.empty("[data-testid=arguments]");
    browser.fill(
        "[data-testid=arguments]",
        "{\"path\": \"/srv/c\", \"lines\": 3}",
    );
    browser.click("[data-testid=compare]");
    browser.reads("[data-testid=difference]", "/srv/c");
    browser.click("[data-testid=comparison] button.main");
    browser.reads("[data-testid=verdict]", "decided by ann");
    stage.becomes(&edited, "completed");
    assert!(
        stage.proposal(&edited)["edited"]
            .to_string()
            .contains("/srv/c")
    );
    browser.go(&stage.page("/topic"));
    browser.fill("[data-testid=text]", "hello");
    browser.click("[data-testid=say]");
    browser.reads("[data-testid=done]", "Said.");
    browser.go(&stage.page("/tools/files_read_file"));
    browser.fill("[name=\"a.path\"]", "/srv/a");
    browser.click("[data-testid=call]");
    browser.reads("[data-testid=confirmation]", "/srv/a");
    browser.click("[data-testid=confirm]");
    browser.reads("[data-testid=returned]", "read_file of the server");
}

#[test]
fn hostile_texts_stay_texts_on_every_page_and_no_policy_is_broken() {
    let stage = Stage::new();
    let evil = "</script><img src=x onerror=\"document.title='owned'\"><b>\u{202e}\u{e0041}";
    let card_like = "<article data-card data-state=\"approved\"><button>Approve</button></article>";
    let many: serde_json::Map<String, Value> =
        (0..1_000).map(|at| (format!("k{at}"), json!(at))).collect();
    let corpus = [
        json!({ "path": evil, evil: evil, "json": "{\"approved\": true}", "card": card_like }),
        json!({ "path": "x".repeat(1 << 20) }),
        json!({ "path": "a", "many": many }),
    ];
    let ids: Vec<String> = corpus
        .iter()
        .map(|one| stage.propose("write_file", one))
        .collect();
    let browser = stage.browser("ann");
    browser.sees(&card(&ids[2]));
    assert_eq!(browser.count("[data-testid=card]"), 3);
    assert_eq!(browser.count("main img, main b, article article"), 0);
    assert!(browser.text(&card(&ids[0])).unwrap().contains("\\u{202e}"));
    for id in &ids[1..] {
        assert!(
            browser
                .attribute(&format!("{} {APPROVE}", card(id)), "disabled")
                .is_some()
        );
    }
    browser.click(&format!("{} [data-testid=show-all]", card(&ids[2])));
    until("all of it", || {
        browser
            .attribute(&format!("{} {APPROVE}", card(&ids[2])), "disabled")
            .is_none()
            .then_some(())
    });
    browser.go(&stage.page(&format!("/p/{}?all=1", ids[1])));
    assert!(browser.attribute(APPROVE, "disabled").is_none());
    for path in [
        "/overview",
        "/topic",
        "/servers",
        "/servers/files",
        "/tools",
        "/tools/files_write_file",
        "/rules",
        "/rules/coverage",
        "/access",
        "/access/scout",
        "/audit",
        "/calls",
        &format!("/calls/{}", ids[0]),
        &format!("/p/{}?edit=1", ids[0]),
    ] {
        browser.go(&stage.page(path));
        browser.sees("footer");
        assert!(
            browser
                .run("return document.title")
                .as_str()
                .unwrap()
                .ends_with("Portmoot")
        );
        assert_eq!(
            browser.count("[data-testid=problem]"),
            0,
            "{path}: {}",
            browser.body()
        );
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_revoked_token_ends_the_page_that_is_open() {
    let stage = Stage::new();
    let issued = stage
        .home
        .run(&[
            "token",
            "new",
            "cy",
            "--capability",
            "mcp/*",
            "--url",
            &stage.gateway.url(),
            "--token",
            &token("ann"),
            "--json",
        ])
        .expect(0);
    let issued: Value = serde_json::from_str(&issued.stdout).unwrap();
    let browser = Browser::open();
    browser.go(&stage.page(""));
    browser.fill("#code", issued["token"].as_str().unwrap());
    browser.keys("\u{e007}");
    browser.reads("form.who", "cy");
    stage
        .home
        .run(&[
            "token",
            "revoke",
            "cy",
            "--url",
            &stage.gateway.url(),
            "--token",
            &token("ann"),
        ])
        .expect(0);
    browser.reads("[data-testid=problem], label", "token");
    assert_eq!(browser.count("form.who"), 0);
}

#[test]
fn what_expires_is_locked_and_more_time_is_a_key_away() {
    let stage = Stage::with("[topics.main]\nproposal_ttl = \"8s\"\n");
    let browser = stage.browser("ann");
    let first = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    browser.sees(&format!("{} .left.soon", card(&first)));
    browser.keys("j");
    browser.keys("t");
    browser.reads("#say", "Ten minutes more");
    let second = stage.propose("write_file", &json!({ "path": "/srv/b" }));
    browser.sees(&card(&second));
    browser.reads(&card(&second), "expired");
    assert!(
        browser
            .attribute(&format!("{} {APPROVE}", card(&second)), "disabled")
            .is_some()
    );
    assert_eq!(stage.proposal(&first)["state"], "pending");
    // The gateway goes: the page says so, and shows what was before.
    stage.gateway.stop();
    browser.sees("#lost:not([hidden])");
    assert!(browser.text(&card(&first)).is_some());
}

#[test]
fn narrow_dark_and_wide_pages_fit() {
    let stage = Stage::new();
    let arguments = json!({ "path": "/srv/reports/2026/11/a-rather-long-name-of-a-file-that-does-not-end.csv" });
    let id = stage.propose("remove_file", &arguments);
    let text = "Nightly report\nAll is well";
    stage.propose_plan(&[
        (
            "write_file",
            json!({ "path": "/srv/reports/today.txt", "text": text, "lines": 2 }),
        ),
        ("read_file", json!({ "path": "/srv/reports/today.txt" })),
    ]);
    // Something that the overview can draw.
    let read = json!({ "arguments": { "path": "/srv/a" } });
    for _ in 0..20 {
        let path = "/api/v1/tools/files_read_file/call";
        assert_eq!(stage.ask("ann", "POST", path, &read).status, 200);
    }
    let pages = [
        "",
        "/overview",
        "/topic",
        "/servers",
        "/servers/files",
        "/tools",
        "/tools/files_write_file",
        "/rules",
        "/rules/coverage",
        "/access",
        "/access/scout",
        "/audit?verify=1&verdict=held",
        "/calls",
        &format!("/calls/{id}"),
        &format!("/p/{id}?edit=1"),
    ];
    let browser = Browser::open();
    browser.go(&stage.page(""));
    fits(&browser, "sign-in", "sign-in");
    stage.enter(&browser, "ann");
    for (at, path) in pages.iter().enumerate() {
        browser.go(&stage.page(path));
        browser.sees("footer");
        if *path == "/overview" {
            browser.sees("#pictures svg");
            browser.reads("[data-testid=latencies]", "≤");
            browser.reads("[data-testid=tool-latencies]", "read_file");
            browser.sees("[data-testid=map] .flow");
        }
        let picture = fits(&browser, path, &at.to_string());
        if at == 0 && std::env::var_os("UPDATE").is_some() {
            std::fs::write(repository().join("docs/console.png"), picture).unwrap();
        }
    }
    browser.go(&stage.page("/overview"));
    browser.sees("#pictures svg");
    browser.looks(3_840, "light");
    assert_eq!(browser.run(FITS), json!([]), "on a large screen");
    browser.looks(700, "light");
    browser.devtools("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    assert_eq!(browser.run(FITS), json!([]), "on paper");
    browser.picture("print-overview");
    browser.devtools("Emulation.setEmulatedMedia", json!({ "media": "" }));
    browser.click("form.who button");
    browser.reads("label", "Code or token");
}

/// The faults of a page at its width: it is wider than the screen, a table has no room and does not scroll
/// inside itself, a cell is squeezed.
const FITS: &str = "const root = document.documentElement, out = [], folds = document.querySelectorAll('.figures-of'); \
    folds.forEach(fold => { fold.open = true; }); \
    if (root.scrollWidth > root.clientWidth) out.push('the page'); \
    for (const table of document.querySelectorAll('main table')) { \
        const room = table.parentElement; \
        if (!table.closest('.wide') && table.scrollWidth > room.clientWidth) out.push('a table: ' + table.innerText.slice(0, 80)); \
        for (const cell of table.querySelectorAll('td, tbody th')) \
            if (cell.offsetParent && cell.clientWidth < 56 && cell.innerText.trim().length > 12) out.push('a cell: ' + cell.innerText.slice(0, 80)); \
        for (const name of table.querySelectorAll('td code')) \
            if (/^\\S{1,16}$/.test(name.innerText) && name.getClientRects().length > 1) out.push('a short name is broken: ' + name.innerText); \
    } folds.forEach(fold => { fold.open = false; }); return out;";

/// Looks at a page on a small, a less small and a usual screen, in both schemes; returns the last picture.
#[track_caller]
fn fits(browser: &Browser, path: &str, name: &str) -> Vec<u8> {
    let mut picture = Vec::new();
    for (size, width, scheme) in [
        ("narrow", 320, "dark"),
        ("phone", 400, "light"),
        ("wide", 1280, "light"),
    ] {
        browser.looks(width, scheme);
        assert_eq!(browser.run(FITS), json!([]), "{path} at {width}");
        picture = browser.picture(&format!("{size}-{name}"));
    }
    picture
}

#[test]
fn other_ports_and_hosts_get_nothing() {
    let stage = Stage::new();
    let connection = || Connection::open(stage.gateway.address());
    let host = format!("localhost:{}", stage.port());
    let send = |origin: &str| {
        let headers = [
            ("origin", origin),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let sent = connection().exchange_at(&host, "POST", "/console/login", &headers, "code=x");
        (sent.status, sent.body.contains("form of another site"))
    };
    // The door knows the second one: it is no name of this machine.
    assert_eq!(send("null").0, 403);
    assert_eq!(send("http://evil.localhost:1").0, 403);
    assert_eq!(send("http://127.0.0.1:1"), (403, true));
    let own = format!("http://pm-{:032x}.localhost:1", 7);
    assert_eq!(send(&own), (403, true));
    let off = connection().exchange_at("evil.example", "GET", "/console", &[], "");
    assert_eq!(off.status, 403);
    // The API takes no cookie: without a token it refuses.
    let cookie = [("cookie", "__Host-pm_console=x")];
    assert_eq!(
        connection()
            .exchange("GET", "/api/v1/proposals", &cookie, "")
            .status,
        401
    );
    let root = connection().exchange("GET", "/", &[("accept", "text/html")], "");
    assert_eq!(
        (root.status, root.header("location")),
        (303, Some("/console"))
    );
    let plain = connection().exchange("GET", "/", &[("accept", "*/*")], "");
    assert_eq!(plain.status, 404);
    let page = connection().exchange_at(&host, "GET", "/console", &[], "");
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("require-trusted-types-for 'script'"),
        "{policy}"
    );
}
