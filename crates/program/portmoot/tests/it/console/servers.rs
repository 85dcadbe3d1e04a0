//! Pages of servers: changed definitions, and the person's account there.

use serde_json::json;

use super::Stage;
use super::accessibility::Judge;
use super::browser::Browser;
use super::pages::press_twice;
use super::tools;
use crate::oauth_client::Site;

const CY: &str = "the-token-of-cy-is-long-enough";

#[test]
fn a_changed_definition_is_compared_word_by_word_and_approved() {
    let stage = Stage::with("pins = \"block\"\n");
    let mut listed = tools();
    listed[1]["description"] =
        json!("Writes a file. </ins><img src=x onerror=\"document.title='owned'\">\u{202e}");
    stage.home.write("files", &listed.to_string());
    let restart = "/api/v1/servers/files/restart";
    assert_eq!(stage.ask("ann", "POST", restart, &json!({})).status, 200);
    stage.gateway.ready("files");
    let mut judge = Judge::new();
    stage.enter(&judge.browser, "ann");
    judge.browser.go(&stage.page("/servers/files"));
    judge.browser.click("[data-testid=compare]");
    judge
        .browser
        .reads("[data-testid=definition] h2", "write_file");
    judge
        .browser
        .reads("[data-testid=definition] ins", "document.title");
    assert_eq!(judge.browser.count("[data-testid=definition]"), 1);
    assert_eq!(judge.browser.count("main img"), 0);
    assert!(!judge.browser.body().contains('\u{202e}'));
    judge.judge("definitions");
    let approve = "[data-testid=approve-definition]";
    press_twice(&judge.browser, approve, "It lists what is pinned");
    assert_eq!(judge.faults, Vec::<String>::new());
    assert_eq!(judge.browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_person_signs_in_at_a_server_from_its_page_and_out_again() {
    let cy =
        "[participants.cy]\ntoken_env = \"CY\"\ncapabilities = [\"mcp/*\", \"portmoot/servers\"]\n";
    let site = Site::with_env("", cy, &[("CY", CY)]);
    let url = site.gateway.url();
    let words = ["console", "--no-browser", "--url", &url, "--token", CY];
    let link = site.home.run(&words).expect(0).stdout.trim().to_owned();
    let base = link.split_once('#').unwrap().0;
    let browser = Browser::open();
    browser.go(&link);
    browser.reads("form.who", "cy");
    browser.go(&format!("{base}/servers/jira"));
    browser.reads("[data-testid=account]", "You have none yet");
    browser.click("[data-testid=sign-in]");
    let issuer = "[data-testid=issuer]";
    browser.sees(issuer);
    let address = browser.attribute(issuer, "href").unwrap();
    browser.fill(
        "[data-testid=callback]",
        "http://127.0.0.1/callback\u{e007}",
    );
    browser.reads("[data-testid=problem]", "code");
    let back = site.approve(&address, "carol");
    browser.fill("[data-testid=callback]", &format!("{back}\u{e007}"));
    browser.reads("[data-testid=done]", "Signed in.");
    browser.reads("[data-testid=account]", "ready");
    press_twice(&browser, "[data-testid=sign-out]", "Signed out.");
    browser.reads("[data-testid=account]", "needs login");
}
