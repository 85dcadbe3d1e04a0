//! Acts at the console that ask again who the person is.

use serde_json::json;

use super::browser::Browser;
use super::{Stage, card};
use crate::support::until;
use crate::ws::token;

/// Every proof is too old at once.
const ALWAYS: &str = "[console]\nproof = \"1ms\"\n";
/// The entries of the console in the audit log.
const LOG: &str = "/api/v1/audit?kinds=portmoot/console";
/// The field for a code or token.
const PROOF: &str = "[data-testid=proof]";

#[test]
fn what_may_destroy_is_approved_after_a_proof_at_its_card() {
    let stage = Stage::with(ALWAYS);
    let id = stage.propose("remove_file", &json!({ "path": "/srv/a" }));
    let browser = stage.browser("ann");
    browser.fill("[data-testid=typed]", "remove_file\u{e007}");
    let field = format!("{} {PROOF}", card(&id));
    browser.sees(&field);
    browser.fill(&field, &format!("{}\u{e007}", token("bo")));
    browser.reads("[data-testid=problem]", "wrong");
    assert_eq!(stage.proposal(&id)["state"], "pending");
    // A card that comes meanwhile leaves the form where it is.
    let other = stage.propose("write_file", &json!({ "path": "/srv/b" }));
    browser.sees(&card(&other));
    browser.fill(&field, &format!("{}\u{e007}", token("ann")));
    stage.becomes(&id, "completed");
    // The log is written behind the act.
    let recorded = until("both proofs are recorded", || {
        let log = stage.ask("ann", "GET", LOG, &json!(null)).body;
        let has = |why: &str| log.contains(why);
        let both = has("a wrong proof of who it is") && has("proved again who it is");
        both.then_some(log)
    });
    assert!(!recorded.contains(&token("bo")), "{recorded}");
}

#[test]
fn an_act_goes_on_after_a_proof_without_a_script() {
    let stage = Stage::with(ALWAYS);
    let browser = Browser::without_scripts();
    browser.go(&stage.page("/access/scout"));
    browser.fill("#code", &token("ann"));
    browser.click("button.main");
    browser.fill("[data-testid=capability]", "portmoot/servers");
    browser.fill("[name=reason]", "for \"today\"");
    browser.click("[data-testid=give]");
    browser.click("[data-testid=confirm]");
    browser.reads("h1", "Is it still you?");
    browser.click("[data-testid=prove-it]");
    browser.reads("h1", "Is it still you?");
    // The address of a fresh code, as it is printed.
    browser.fill(PROOF, &stage.link("ann"));
    browser.click("[data-testid=prove-it]");
    browser.reads("[data-testid=done]", "Given.");
    browser.reads("[data-testid=grant]", "for \"today\"");
}
