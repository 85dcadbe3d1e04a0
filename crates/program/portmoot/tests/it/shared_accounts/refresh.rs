//! Renewal of tokens under load, and by a provider that rotates refresh tokens and detects their
//! reuse.

use std::collections::BTreeSet;

use serde_json::json;

use super::Site;
use crate::support::Client;

/// Calls that meet an expired token at once.
const CALLS: usize = 100;

/// Makes the calls while the provider keeps the answer to a token request, and returns when all are
/// answered.
fn call_at_expiry(site: &Site, client: &Client, has_ended: impl FnOnce()) {
    let before = site.token_requests();
    let kept = site.provider.asked("kept");
    site.fault("/token", "hold");
    has_ended();
    let calls: Vec<_> = (0..CALLS)
        .map(|_| client.begin_call("jira_search", json!({})))
        .collect();
    site.wait_kept(kept + 1);
    site.clear();
    for call in calls {
        let answer = call.rest().pop().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "found", "{answer}");
    }
    assert_eq!(site.token_requests(), before + 1);
}

#[test]
fn a_hundred_calls_at_expiry_are_one_refresh() {
    let site = Site::with("", 2);
    let client = site.signed_in();
    site.provider
        .control(&json!({ "op": "ttl", "seconds": 600 }));
    // By the clock, ahead of the server.
    call_at_expiry(&site, &client, || site.guarded.wait_expired());
    // By a refusal of the server.
    call_at_expiry(&site, &client, || site.guarded.expire());
    assert_eq!(site.all_issued("refresh_token").len(), 3);
}

#[test]
fn a_family_survives_rotation_and_ends_with_reuse() {
    let site = Site::start();
    let client = site.signed_in();
    for _ in 0..5 {
        assert_eq!(site.call_with_ended_token(&client), Ok("found".to_owned()));
    }
    let rotated = site.all_issued("refresh_token");
    assert_eq!(
        rotated.iter().collect::<BTreeSet<_>>().len(),
        6,
        "each is used once: {rotated:?}"
    );
    assert_eq!(site.account()["state"], "ready");
    // A thief uses one of the first: the provider ends the family, and the gateway says so and asks
    // no more.
    let client_id = site.account()["client_id"].as_str().unwrap().to_owned();
    assert_eq!(
        site.renew_as_gateway(&client_id, &rotated[1])["error"],
        "invalid_grant"
    );
    let asked = site.token_requests();
    assert_eq!(
        site.call_with_ended_token(&client),
        Err("upstream_login_lost".to_owned())
    );
    assert_eq!(site.call(&client), Err("upstream_login_lost".to_owned()));
    let lost = site.wait_for("needs_login");
    assert_eq!(
        lost["reason"],
        "the authorization server refused to renew the sign-in"
    );
    assert_eq!(site.token_requests(), asked + 1);
    site.sign_in();
    assert_eq!(site.call(&site.wait_listed()), Ok("found".to_owned()));
    assert_eq!(
        site.provider.asked("/reg"),
        1,
        "the registration is still good"
    );
}
