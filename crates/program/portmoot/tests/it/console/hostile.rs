//! The console among hostile programs and texts.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::browser::Browser;
use super::{APPROVE, Stage, card, tools};
use crate::support::until;
use crate::ws::token;

/// Another program of this machine, with a page that a browser visits.
struct OtherProgram {
    port: u16,
    /// Heads of the requests that it got.
    heads: Arc<Mutex<Vec<String>>>,
}

impl OtherProgram {
    fn start(page: String) -> OtherProgram {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, page, seen) = (stream.unwrap(), page.clone(), Arc::clone(&seen));
                // A browser opens connections ahead, on which it asks for nothing.
                std::thread::spawn(move || answer(stream, &page, &seen));
            }
        });
        OtherProgram { port, heads }
    }

    /// What it has seen of the gateway's cookies.
    fn cookies(&self) -> usize {
        let heads = self.heads.lock().unwrap();
        assert!(!heads.is_empty(), "it was visited");
        heads
            .iter()
            .filter(|head| head.contains("pm_console"))
            .count()
    }
}

/// Answers one request with a page.
fn answer(mut stream: TcpStream, page: &str, seen: &Mutex<Vec<String>>) {
    let mut bytes = vec![0; 16 * 1024];
    let count = stream.read(&mut bytes).unwrap_or(0);
    if count == 0 {
        return;
    }
    let head = String::from_utf8_lossy(&bytes[..count]).into_owned();
    seen.lock().unwrap().push(head);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn another_program_of_the_machine_gets_no_cookie_and_decides_nothing() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    let browser = stage.browser("ann");
    browser.sees(&card(&id));
    let field = |name: &str| {
        let input = format!("{} .approve [name={name}]", card(&id));
        browser.attribute(&input, "value").unwrap()
    };
    // The page knows all that a form of the console has, the token of the session too.
    let own = browser.address();
    let form = format!(
        "<!DOCTYPE html><form method=post action=\"{own}/p/{id}/approve\">\
         <input name=token value=\"{}\"><input name=digest value=\"{}\"><input name=confirmed value=1></form>\
         <script>document.forms[0].submit()</script>",
        field("token"),
        field("digest"),
    );
    let evil = OtherProgram::start(form);
    let own_host = own
        .strip_prefix("http://")
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    for host in ["localhost", "127.0.0.1"] {
        browser.go(&format!("http://{host}:{}/", evil.port));
        browser.reads("body", "Code or token");
    }
    assert_eq!(evil.cookies(), 0);
    // A program that has come to know the person's own name gets the cookie, and decides nothing.
    browser.go(&format!("http://{own_host}:{}/", evil.port));
    browser.reads(
        "[data-testid=problem]",
        "not sent by a page of this session",
    );
    assert_eq!(stage.proposal(&id)["state"], "pending");
}

#[test]
fn nothing_counts_at_the_moment_in_which_a_card_comes() {
    let stage = Stage::new();
    let browser = stage.browser("ann");
    browser.sees("[data-testid=empty]");
    browser.run(&format!(
        "window.early = null; new MutationObserver((_, seen) => {{ const button = document.querySelector('{APPROVE}'); \
         if (!button) return; seen.disconnect(); button.click(); window.early = button.dataset.armed ?? 'nothing'; }})\
         .observe(document.querySelector('#cards'), {{ childList: true }});"
    ));
    let id = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    browser.sees(&card(&id));
    assert_eq!(browser.run("return window.early"), json!("nothing"));
    // A moment later the same press counts.
    until("armed", || {
        browser.click(APPROVE);
        browser.text("[data-armed]").map(drop)
    });
    assert_eq!(stage.proposal(&id)["state"], "pending");
}

#[test]
fn a_link_of_an_agent_does_not_replace_the_person_at_the_browser() {
    let stage = Stage::new();
    let browser = stage.browser("ann");
    let own = browser.address();
    // The agent's link leads to the agent's own name, where it is the agent; ann stays ann.
    browser.go(&stage.link("scout"));
    browser.reads("form.who", "scout");
    assert_ne!(browser.address(), own);
    browser.go(&own);
    browser.reads("form.who", "ann");
}

#[test]
fn a_token_at_a_name_that_others_know_leads_to_the_persons_own() {
    let stage = Stage::new();
    let browser = Browser::open();
    browser.go(&format!(
        "http://127.0.0.1:{}/console/servers",
        stage.port()
    ));
    browser.fill("#code", &token("ann"));
    browser.keys("\u{e007}");
    browser.reads("form.who", "ann");
    browser.reads("h1", "Servers");
    assert!(
        browser.address().starts_with("http://pm-"),
        "{}",
        browser.address()
    );
    assert_eq!(browser.run("return document.cookie"), json!(""));
}

#[test]
fn texts_of_servers_stay_texts_on_every_page() {
    let stage = Stage::new();
    let evil = "</script><img src=x onerror=\"document.title='owned'\"><b>x\u{202e}\u{2003}\u{2003}\u{2003}\u{2003}</b>";
    let mut listed = tools();
    for tool in listed.as_array_mut().unwrap() {
        tool["description"] = json!(evil);
        tool["title"] = json!(evil);
        tool["inputSchema"]["properties"]["path"]["description"] = json!(evil);
        tool["inputSchema"]["properties"][evil] = json!({ "type": "string", "description": evil });
    }
    stage.home.write("files", &listed.to_string());
    let restart = "/api/v1/servers/files/restart";
    assert_eq!(stage.ask("ann", "POST", restart, &json!({})).status, 200);
    until("the tools of the server that started again", || {
        let tools = stage.ask("ann", "GET", "/api/v1/tools/files_write_file", &json!(null));
        tools.body.contains("owned").then_some(())
    });
    let id = stage.propose("write_file", &json!({ "path": evil }));
    let reject = format!("/api/v1/proposals/{id}/reject");
    let reason = json!({ "reason": evil });
    assert_eq!(stage.ask("ann", "POST", &reject, &reason).status, 200);
    // A name that no tool has, which the log has as it was asked for.
    let rpc = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": evil, "arguments": {} } });
    stage.ask("ann", "POST", "/mcp", &rpc);
    let browser = stage.browser("ann");
    let proposal = format!("/p/{id}");
    let timeline = format!("/calls/{id}");
    let pages = [
        "",
        "/past",
        &proposal,
        "/tools",
        "/tools/files_write_file",
        "/servers/files",
        "/topic",
        "/rules",
        "/overview",
        "/audit",
        "/calls",
        &timeline,
    ];
    for path in pages {
        browser.go(&stage.page(path));
        browser.sees("footer");
        let elements = "main img, main b, main script, main article article";
        assert_eq!(browser.count(elements), 0, "{path}");
        assert!(!browser.body().contains('\u{202e}'), "{path}");
        assert_ne!(
            browser.run("return document.title"),
            json!("owned"),
            "{path}"
        );
    }
    for path in ["/audit", &timeline, "/tools/files_write_file"] {
        browser.go(&stage.page(path));
        browser.reads("main", "\\u{202e}");
    }
    browser.reads("main", "4 blanks");
    browser.go(&stage.page(&proposal));
    browser.reads("[data-testid=verdict]", "\\u{202e}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_small_proposal_with_very_many_rows_kills_nothing() {
    let stage = Stage::new();
    let zeros = vec![0; 1 << 15];
    let arguments = json!({ "path": "/srv/a", "k".repeat(1 << 15): zeros });
    let id = stage.propose("write_file", &arguments);
    let browser = stage.browser("ann");
    browser.reads(&card(&id), "Show all 32,769 values");
    browser.go(&stage.page(&format!("/p/{id}?all=1")));
    browser.reads(&card(&id), "Too large for the console");
    assert!(
        browser
            .attribute(&format!("{} {APPROVE}", card(&id)), "disabled")
            .is_some()
    );
    stage.gateway.ready("files");
}
