//! Rights to sign in for all callers, and tokens of callers, which no one else gets.

use serde_json::json;

use super::guarded::Guarded;
use super::{Person, Site};
use crate::authorization::provider::Provider;
use crate::home::Home;
use crate::support::{Client, until};

/// The token of an operator's participant, and of one that only calls.
const ANN: &str = "canary-of-ann-canary-of-ann-canary";
const BOB: &str = "canary-of-bob-canary-of-bob-canary";

#[test]
fn a_caller_signs_in_for_all_with_a_capability_only_and_its_token_reaches_no_one() {
    let guarded = Guarded::start();
    let provider = Provider::of(&[guarded.url()], 600);
    guarded.set_provider(provider.address());
    let home = Home::new().env("T_ANN", ANN).env("T_BOB", BOB);
    let participants = "[participants.ann]\ntoken_env = \"T_ANN\"\ncapabilities = [\"mcp/*\", \"portmoot/*\"]\n\
                        [participants.bob]\ntoken_env = \"T_BOB\"\ncapabilities = [\"mcp/*\"]\n";
    let site = Site::at(home, guarded, provider, participants);
    let url = site.gateway.url();
    let login = |token: &'static str| {
        vec![
            "servers", "login", "jira", "--paste", "--url", &url, "--token", token,
        ]
    };
    site.gateway.receive("needs a sign-in");
    let refused = site.home.run(&login(BOB));
    assert!(
        refused.code != 0 && refused.stderr.contains("portmoot/accounts"),
        "{}",
        refused.stderr
    );
    let asking = site.begin(&login(ANN));
    let back = Person::default().open(&asking.url);
    // Another one brings the answer: it is unknown, and stays good for the one who began.
    let body = json!({ "callback": back }).to_string();
    let stolen = site.post("/api/v1/servers/jira/login/complete", BOB, &body);
    assert_eq!(stolen.json()["code"], "conflict", "{stolen:?}");
    asking.paste(&back).expect(0);
    let bob = Client::of(&site.gateway, BOB);
    until("the tools are listed", || {
        bob.names("tools")
            .contains(&"jira_search".to_owned())
            .then_some(())
    });
    assert_eq!(site.call(&bob), Ok("found".to_owned()));
    assert_eq!(site.call_with_ended_token(&bob), Ok("found".to_owned()));
    let out = site.post("/api/v1/servers/jira/logout", BOB, "{}");
    assert_eq!(out.status, 403, "{out:?}");
    let mut secrets = site.secrets();
    secrets.extend([ANN.to_owned(), BOB.to_owned()]);
    site.check_nowhere(secrets, Some(ANN));
    let got = site.guarded.got() + &site.provider.control(&json!({ "op": "got" })).to_string();
    assert!(got.contains("tools/call") && got.contains("/token"));
    assert!(!got.contains("canary"), "{got}");
}
