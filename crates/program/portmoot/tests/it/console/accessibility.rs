//! Every page of the console, judged by axe-core.

use harness::deps;
use serde_json::json;

use super::browser::Browser;
use super::{Stage, card};

/// Judges the page that is shown: each fault with its rule, its help and the elements that have it. What
/// styles say is read from the elements: the policy of a page lets no script read style sheets anew.
const JUDGE: &str = "return axe.run(document, { ...arguments[0], preload: false, iframes: false, resultTypes: ['violations'] }) \
    .then(found => found.violations.map(one => `${one.id}: ${one.help}: ` + one.nodes.slice(0, 3).map(node => \
    node.html.slice(0, 120) + ' ' + node.any.map(why => why.message)).join(' | ')))";

/// A browser with axe.
pub(super) struct Judge {
    pub(super) browser: Browser,
    axe: String,
    pub(super) faults: Vec<String>,
}

impl Judge {
    pub(super) fn new() -> Judge {
        let axe = deps().npm("axe-core/axe.min.js");
        Judge {
            browser: Browser::open(),
            axe: std::fs::read_to_string(axe).unwrap(),
            faults: Vec::new(),
        }
    }

    /// Judges the page that is shown: wide and light, then narrow and dark.
    pub(super) fn judge(&mut self, page: &str) {
        self.browser.looks(1280, "light");
        self.browser.run(&self.axe);
        let all = json!({ "rules": { "target-size": { "enabled": true } } });
        // The rest is as it was.
        let looks = json!({ "runOnly": ["color-contrast", "target-size"] });
        for (width, scheme, options) in [(1280, "light", all), (320, "dark", looks)] {
            self.browser.looks(width, scheme);
            let found = self.browser.run_with(JUDGE, options);
            let found = found.as_array().unwrap().iter();
            let faults =
                found.map(|fault| format!("{page}, {scheme}: {}", fault.as_str().unwrap()));
            self.faults.extend(faults);
        }
    }

    /// Makes sure that a page which breaks rules is found to break them.
    fn finds_what_is_wrong(&mut self) {
        self.browser
            .go("data:text/html,<html><body><img src=x><input></body></html>");
        self.judge("bad");
        let all = std::mem::take(&mut self.faults).join("\n");
        for rule in ["image-alt", "label", "document-title"] {
            assert!(all.contains(rule), "{rule}: {all}");
        }
    }
}

/// A gateway with something on each page; returns the ids of proposals by what they are.
fn furnished() -> (Stage, [String; 4]) {
    // Whatever asks again who the person is does so at once.
    let stage = Stage::with("[console]\nproof = \"1ms\"\n");
    let write = |path: &str| stage.propose("write_file", &json!({ "path": path }));
    let ended = write("/srv/ended");
    let reject = format!("/api/v1/proposals/{ended}/reject");
    let reason = json!({ "reason": "not today" });
    assert_eq!(stage.ask("ann", "POST", &reject, &reason).status, 200);
    let one = write("/srv/a");
    write("/srv/b\u{202e}");
    let risky = stage.propose("remove_file", &json!({ "path": "/srv/c" }));
    stage.propose("read_file", &json!({ "path": "x".repeat(10_000) }));
    let plan = stage.propose_plan(&[
        ("write_file", json!({ "path": "/srv/d", "lines": 7 })),
        ("remove_file", json!({ "path": "/srv/d" })),
    ]);
    let url = stage.gateway.url();
    let by = crate::ws::token("ann");
    let words = ["--url", &url, "--token", &by];
    for command in [
        &[
            "token",
            "new",
            "cy",
            "--capability",
            "mcp/*",
            "--expires",
            "90d",
        ][..],
        &[
            "participants",
            "grant",
            "scout",
            "portmoot/servers",
            "--for",
            "1h",
        ],
    ] {
        stage.home.run(&[command, &words].concat()).expect(0);
    }
    let read = json!({ "arguments": { "path": "/srv/a" } });
    let path = "/api/v1/tools/files_read_file/call";
    assert_eq!(stage.ask("ann", "POST", path, &read).status, 200);
    (stage, [ended, one, risky, plan])
}

#[test]
fn no_page_breaks_a_rule_of_axe() {
    let (stage, [ended, one, risky, plan]) = furnished();
    let mut judge = Judge::new();
    judge.finds_what_is_wrong();
    judge.browser.go(&stage.page(""));
    judge.judge("sign-in");
    stage.enter(&judge.browser, "ann");
    judge.browser.sees(&card(&one));
    let pages = [
        "",
        &format!("/p/{ended}"),
        &format!("/p/{risky}"),
        &format!("/p/{risky}/like"),
        &format!("/p/{plan}"),
        &format!("/p/{one}?edit=1"),
        "/past",
        "/overview",
        "/topic",
        "/servers",
        "/servers/files",
        "/servers/files/definitions",
        "/tools",
        "/tools/files_write_file",
        "/rules",
        "/rules/coverage",
        "/access",
        "/access/cy",
        "/access/scout",
        "/audit",
        "/audit?participant=eve&verify=1",
        "/calls",
        &format!("/calls/{ended}"),
        "/nowhere",
    ];
    let base = stage.page("");
    for path in pages {
        judge.browser.go(&format!("{base}{path}"));
        judge.browser.sees("footer");
        judge.judge(if path.is_empty() { "inbox" } else { path });
    }
    // Comparison, question and answers come after a form.
    judge.browser.go(&format!("{base}/p/{one}?edit=1"));
    judge.browser.empty("[data-testid=arguments]");
    judge
        .browser
        .fill("[data-testid=arguments]", "{\"path\": \"/srv/e\"}");
    judge.browser.click("[data-testid=compare]");
    judge.browser.sees("[data-testid=difference]");
    judge.judge("comparison");
    judge.browser.go(&format!("{base}/access/cy"));
    judge
        .browser
        .run("document.querySelector('[data-testid=revoke-tokens]').form.submit()");
    judge.browser.sees("[data-testid=confirm]");
    judge.judge("question");
    judge.browser.click("[data-testid=confirm]");
    judge.browser.sees("[data-testid=proof]");
    judge.judge("proof");
    judge.browser.go(&base);
    judge.browser.sees("[data-testid=batch]");
    // No click counts at the moment in which a card comes.
    judge.browser.run(
        "document.querySelector('[data-testid=choose]').checked = true; \
         document.querySelector('[data-testid=batch] form').submit()",
    );
    judge.browser.sees("[data-testid=decided]");
    judge.judge("batch");
    let complaints: Vec<String> = judge.browser.complaints();
    let unexpected: Vec<&String> = complaints
        .iter()
        .filter(|one| !one.contains("404"))
        .collect();
    assert_eq!(unexpected, Vec::<&String>::new());
    assert_eq!(judge.faults, Vec::<String>::new());
}
