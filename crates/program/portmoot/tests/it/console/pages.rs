//! Pages of the console about access and coverage, and proposals that are decided together.

use serde_json::json;

use super::browser::Browser;
use super::{Stage, card};
use crate::support::until;
use crate::ws::token;

/// A rule by which each call of a tool waits for a person.
const ASKS: &str = r#"
[[rule]]
id = "r1"
author = "ann"
decision = "ask"
kind = "mcp/request:tools/call:read_file"
to = "files"
proposers = ["*"]
"#;

/// Issues a token to a participant of this name, and returns it.
fn issue(stage: &Stage, name: &str) -> String {
    let body = json!({ "name": name, "capabilities": ["mcp/proposal:*", "chat"] });
    let issued = stage.ask("ann", "POST", "/api/v1/tokens", &body);
    assert_eq!(issued.status, 201, "{issued:?}");
    issued.json()["token"].as_str().unwrap().to_owned()
}

/// Presses a button until its second press counts, and the page says so.
pub(super) fn press_twice(browser: &Browser, button: &str, done: &str) {
    until(done, || {
        browser.click_if_there(button);
        browser.body().contains(done).then_some(())
    });
}

#[test]
fn access_is_given_and_taken_and_tokens_are_revoked() {
    let stage = Stage::new();
    issue(&stage, "cy");
    let browser = stage.browser("ann");
    browser.go(&stage.page("/access"));
    browser.reads("[data-testid=token]", "cy");
    browser.click("[data-testid=token] a");
    browser.reads("h1", "cy");
    browser.reads("[data-testid=right]", "may propose");
    browser.fill("[data-testid=capability]", "portmoot/servers");
    press_twice(&browser, "[data-testid=give]", "Given.");
    browser.reads("[data-testid=grant]", "portmoot/servers");
    browser.reads("[data-testid=held]", "portmoot/servers");
    press_twice(&browser, "[data-testid=undo]", "The changes are undone.");
    assert_eq!(browser.count("[data-testid=grant]"), 0);
    press_twice(
        &browser,
        "[data-testid=revoke-tokens]",
        "Its tokens are revoked.",
    );
    assert_eq!(browser.count("[data-testid=token]"), 0);
    let tokens = stage.ask("ann", "GET", "/api/v1/tokens", &json!(null));
    assert_eq!(tokens.json()["tokens"], json!([]));
    // Without the right a person sees why not, and only what is its own.
    let other = stage.browser("bo");
    let base = stage.link("bo");
    let base = base.split_once('#').unwrap().0;
    other.go(&format!("{base}/access"));
    other.reads("[data-testid=refused]", "portmoot/tokens");
    other.go(&format!("{base}/access/scout"));
    other.reads("[data-testid=refused]", "may know what it may do");
    other.go(&format!("{base}/access/bo"));
    other.reads("[data-testid=right]", "may");
    assert_eq!(other.complaints(), Vec::<String>::new());
}

#[test]
fn the_coverage_follows_capabilities_and_rules() {
    let main = "[topics.main]\nrules = \"rules.toml\"\n";
    let stage = Stage::beside(main, &[("rules.toml", ASKS)]);
    let browser = stage.browser("ann");
    browser.go(&stage.page("/rules"));
    browser.click("main p a[href*=coverage]");
    browser.reads("[data-testid=summary]", "2 of 3 tools");
    browser.reads("[data-testid=covered]", "not covered");
    // Scout may only propose; people decide.
    browser.reads("[data-testid=covered] td:nth-child(5)", "scout");
    let ruled = "[data-testid=covered]:last-child";
    browser.reads(&format!("{ruled} td"), "files_read_file");
    browser.reads(&format!("{ruled} td:nth-child(3)"), "ann (r1.1)");
    browser.reads(&format!("{ruled} td:nth-child(3)"), "bo (r1.1)");
    assert_eq!(browser.count("[data-testid=hidden]"), 0);
    let bo = Browser::open();
    bo.go(&stage.page(""));
    bo.fill("#code", &token("bo"));
    bo.keys("\u{e007}");
    bo.reads("form.who", "bo");
    bo.run("location.href = document.documentElement.dataset.base + '/rules/coverage'");
    bo.reads("[data-testid=hidden]", "portmoot/grants");
}

#[test]
fn the_like_of_a_call_is_approved_for_an_hour() {
    let stage = Stage::new();
    let write = |path: &str| stage.propose("write_file", &json!({ "path": path }));
    let one = write("/srv/docs/a");
    let browser = stage.browser("ann");
    browser.sees(&card(&one));
    browser.click(&format!("{} [data-like]", card(&one)));
    browser.reads("h1", "Approve calls like this one");
    let remark = r##"# "/path" = { one_of = ["/srv/docs/a"] }"##;
    browser.reads("[data-testid=when]", remark);
    let wrong = r#""/path" = { under = "docs" }"#;
    browser.run("document.querySelector('[data-testid=when]').value = ''");
    browser.fill("[data-testid=when]", wrong);
    browser.click("[data-testid=draft]");
    browser.reads("main", "does not fit the condition on /path");
    browser.reads("[data-testid=when]", wrong);
    browser.run("document.querySelector('[data-testid=when]').value = ''");
    let within = r#""/path" = { under = "/srv/docs" }"#;
    browser.fill("[data-testid=when]", within);
    browser.click("[data-testid=draft]");
    browser.reads(".sentence", "path is a path under \"/srv/docs\"");
    browser.reads(".sentence", "at most 5 times");
    // What was written is still there.
    browser.click("[data-testid=again]");
    browser.reads("[data-testid=when]", within);
    browser.click("[data-testid=draft]");
    browser.reads(".sentence", "at most 5 times");
    until("the rule decides", || {
        browser.click_if_there("[data-testid=put-in-force]");
        (stage.proposal(&one)["state"] == "completed").then_some(())
    });
    browser.reads("[data-testid=done]", "The rule is in force");
    browser.reads("[data-testid=done]", "ends by itself");
    browser.sees("[data-testid=done] a[href*=rules]");
    browser.reads("[data-testid=verdict]", "decided by rules");
    let next = write("/srv/docs/b");
    stage.becomes(&next, "completed");
    assert_eq!(stage.proposal(&next)["decided_by"], "rules");
    let other = write("/srv/other");
    assert_eq!(stage.proposal(&other)["state"], "pending");
    // No rule is made of a call that does not wait any more.
    browser.go(&stage.page(&format!("/p/{other}/like")));
    browser.click("[data-testid=draft]");
    browser.reads(".sentence", "path is \"/srv/other\"");
    let reject = format!("/api/v1/proposals/{other}/reject");
    assert_eq!(stage.ask("bo", "POST", &reject, &json!({})).status, 200);
    press_twice(
        &browser,
        "[data-testid=put-in-force]",
        "no rule was made of it",
    );
    browser.reads("[data-testid=no-rule]", "single call that waits");
    // The browser notes the status of the refused conditions.
    let complaints = browser.complaints();
    let is_refusal = |one: &String| one.contains("status of 400") || one.contains("status of 409");
    assert!(complaints.iter().all(is_refusal), "{complaints:?}");
}

#[test]
fn chosen_proposals_are_decided_together() {
    let stage = Stage::new();
    let write = |path: &str| stage.propose("write_file", &json!({ "path": path }));
    let ids = ["/srv/a", "/srv/b", "/srv/c"].map(write);
    let browser = stage.browser("ann");
    browser.sees(&card(&ids[2]));
    let choose = |id: &str| format!("{} [data-testid=choose]", card(id));
    for id in &ids[..2] {
        let is_chosen = format!("{}:checked", choose(id));
        // A card that has just come takes no press.
        until("chosen", || {
            browser.click_if_there(&choose(id));
            browser.text(&is_chosen).map(drop)
        });
    }
    // The second one changes under the choice: what was chosen is not what waits.
    let amended = json!({ "arguments": { "path": "/etc/passwd" } });
    let path = format!("/api/v1/proposals/{}/amend", ids[1]);
    assert_eq!(stage.ask("scout", "POST", &path, &amended).status, 200);
    browser.reads(
        &format!("{} [data-answer]", card(&ids[1])),
        "It has changed",
    );
    press_twice(&browser, "[data-testid=approve-chosen]", "were decided");
    browser.reads("[data-testid=summary]", "1 of 2 were decided");
    browser.reads("main", "has changed since you looked");
    stage.becomes(&ids[0], "completed");
    assert_eq!(stage.proposal(&ids[1])["state"], "pending");
    // Without a script a page asks.
    let plain = Browser::without_scripts();
    let link = stage.link("ann");
    let (page, code) = link.split_once('#').unwrap();
    plain.go(page);
    plain.fill("#code", code);
    plain.click("button.main");
    plain.reads("form.who", "ann");
    for id in &ids[1..] {
        plain.click(&choose(id));
    }
    plain.click("[data-testid=approve-chosen]");
    plain.reads("main", "/etc/passwd");
    assert_eq!(plain.count("[data-testid=asked]"), 2);
    plain.click("[data-testid=confirm]");
    plain.reads("[data-testid=summary]", "2 of 2 were decided");
    for id in &ids[1..] {
        stage.becomes(id, "completed");
        assert_eq!(stage.proposal(id)["decided_by"], "ann");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
