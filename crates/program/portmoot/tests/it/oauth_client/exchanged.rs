//! Callers' access tokens that are exchanged for tokens of a server (RFC 8693): the only way in
//! which one leaves the gateway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{ANN, Site, text};
use crate::authorization::provider::Provider;
use crate::support::{Client, modern};

/// The address of the gateway for its callers, which they reach otherwise.
const PUBLIC: &str = "https://mcp.example.com/gw";

fn resource() -> String {
    format!("{PUBLIC}/mcp")
}

/// A gateway that exchanges the tokens of an issuer at `jira`.
fn exchanging() -> (Site, Provider) {
    let provider = Provider::of(&[resource()], 600);
    let service = super::Service::start();
    let auth = format!(
        "kind = \"exchange\"\nissuer = {:?}\nclient_id = \"gateway\"\naudience = \"jira-api\"\nscopes = [\"read\"]",
        service.origin()
    );
    let more = format!(
        "[profiles.ops]\ncapabilities = [\"mcp/*\"]\n[participants.carl]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n\
         [issuers.corp]\nissuer = \"{}\"\n[[issuers.corp.map]]\nwhen = {{ groups = \"ops\" }}\nprofile = \"ops\"\n",
        provider.issuer()
    );
    let site = Site::at(
        service,
        &[],
        &format!("public_url = {PUBLIC:?}"),
        &auth,
        &more,
    );
    (site, provider)
}

#[test]
fn a_token_of_an_issuer_is_exchanged_for_its_bearer_and_no_other_token_is() {
    let (site, provider) = exchanging();
    let token = |name: &str, number: u32| {
        let jti = number.to_string();
        let changes =
            json!({ "sub": name, "preferred_username": name, "aud": resource(), "jti": jti });
        provider.forged(json!({}), changes, "a")
    };
    let (dora, emil) = (token("dora", 1), token("emil", 1));
    let clients = [
        ("dora", Client::of(&site.gateway, &dora)),
        ("emil", Client::of(&site.gateway, &emil)),
    ];
    for round in 0..3 {
        for (user, client) in &clients {
            let said = client.call("jira_whoami", json!({ "as": user, "round": round }));
            assert_eq!(text(&said), format!("{user} with read"), "{said}");
        }
    }
    let exchanged = site.service.exchanged();
    assert_eq!(
        exchanged,
        [
            (dora.clone(), "jira-api".to_owned()),
            (emil, "jira-api".to_owned())
        ],
        "once for each"
    );
    // The next token of a caller takes the place of the one before.
    let again = token("dora", 2);
    let said = Client::of(&site.gateway, &again).call("jira_whoami", json!({ "as": "dora" }));
    assert_eq!(text(&said), "dora with read");
    assert_eq!(site.service.exchanged().last().unwrap().0, again);
    // A token that the gateway has given out, or the operator has configured, is no other server's
    // business.
    let carl = Client::of(&site.gateway, ANN);
    let answer = carl.ask(
        "tools/call",
        json!({ "name": "jira_whoami", "arguments": {} }),
    );
    assert!(
        answer.get("error").is_some() || answer["result"]["isError"] == true,
        "{answer}"
    );
    assert!(
        !answer.to_string().contains("/connect/"),
        "no person can help: {answer}"
    );
    assert!(
        site.service
            .exchanged()
            .iter()
            .all(|(subject, _)| subject != ANN)
    );
    // The server itself saw the exchanged tokens alone.
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
    let seen = site.service.bearers();
    assert!(
        seen.iter().all(|token| token.starts_with("access-")),
        "{seen:?}"
    );
}

#[test]
fn each_call_runs_with_the_exchange_of_the_token_that_it_came_with() {
    let (site, provider) = exchanging();
    let token = |scope: &str, jti: &str| {
        let changes = json!({ "sub": "dora", "preferred_username": "dora", "aud": resource(), "scope": scope, "jti": jti });
        provider.forged(json!({}), changes, "a")
    };
    let (narrow, wide) = (token("narrow", "1"), token("wide", "2"));
    // Two clients of one participant at once, in both eras: modern ones are one link of the
    // gateway.
    std::thread::scope(|scope| {
        for (token, wanted) in [(&narrow, "dora with narrow"), (&wide, "dora with wide")] {
            let site = &site;
            scope.spawn(move || {
                let client = Client::of(&site.gateway, token);
                for _ in 0..40 {
                    assert_eq!(
                        text(&client.call("jira_whoami", json!({ "as": "dora" }))),
                        wanted
                    );
                }
            });
            scope.spawn(move || {
                for _ in 0..40 {
                    let params = json!({ "name": "jira_whoami", "arguments": { "as": "dora" } });
                    let said = modern(&site.gateway, Some(token), "tools/call", params).json();
                    assert_eq!(text(&said["result"]), wanted, "{said}");
                }
            });
        }
    });
    // One client session of the gateway whose requests come with both.
    let client = Client::of(&site.gateway, &narrow);
    let other = Client::resume(&site.gateway, Some(&wide), "/mcp", &client.session);
    for _ in 0..3 {
        assert_eq!(
            text(&client.call("jira_whoami", json!({ "as": "dora" }))),
            "dora with narrow"
        );
        assert_eq!(
            text(&other.call("jira_whoami", json!({ "as": "dora" }))),
            "dora with wide"
        );
    }
    let exchanged = site.service.exchanged();
    let times = |token: &String| {
        exchanged
            .iter()
            .filter(|(subject, _)| subject == token)
            .count()
    };
    assert_eq!(
        (times(&narrow), times(&wide)),
        (1, 1),
        "once for each token"
    );
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}

/// The subject of a JWT.
pub(super) fn subject(token: &str) -> Option<String> {
    claim(token, "sub")
}

/// A claim of a JWT that is a text.
pub(super) fn claim(token: &str, name: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims[name].as_str().map(str::to_owned)
}
