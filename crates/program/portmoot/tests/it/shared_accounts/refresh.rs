//! Renewal of tokens under load, and by a provider that rotates refresh tokens and detects their
//! reuse.

use std::collections::BTreeSet;

use serde_json::json;

use super::guarded::Guarded;
use super::{Site, config};
use crate::authorization::provider::Provider;
use crate::home::Home;
use crate::support::{Client, Gateway};

/// Calls that meet an expired token at once.
const CALLS: usize = 100;

/// Makes the calls of these clients while the provider keeps the answer to a token request, and
/// returns when all are answered.
#[track_caller]
fn call_at_expiry(site: &Site, clients: &[Client], has_ended: impl FnOnce()) {
    let before = site.token_requests();
    let kept = site.provider.asked("kept");
    site.fault("/token", "hold");
    has_ended();
    let callers = clients.iter().cycle().take(CALLS);
    let calls: Vec<_> = callers
        .map(|client| client.begin_call("jira_search", json!({})))
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
    renewed_twice(&site, &[client]);
}

#[track_caller]
fn renewed_twice(site: &Site, clients: &[Client]) {
    site.provider
        .control(&json!({ "op": "ttl", "seconds": 600 }));
    // By the clock, ahead of the server.
    call_at_expiry(site, clients, || site.guarded.wait_expired());
    // By a refusal of the server.
    call_at_expiry(site, clients, || site.guarded.expire());
    assert_eq!(site.all_issued("refresh_token").len(), 3);
}

/// Checks that clients of several gateways that are one get one refresh at expiry. `start` starts
/// the gateways with a configuration in a home, whose environment leads commands to the first one.
#[track_caller]
pub(crate) fn renewed_by_one(start: impl FnOnce(&Home, String) -> (Home, Vec<Gateway>)) {
    let guarded = Guarded::start();
    let provider = Provider::of(&[guarded.url()], 2);
    guarded.set_provider(provider.address());
    let home = Home::new();
    let written = config(&home, &guarded, "");
    let (home, mut gateways) = start(&home, written);
    let site = Site {
        home,
        gateway: gateways.remove(0),
        provider,
        guarded,
        logs: String::new(),
    };
    let first = site.signed_in();
    let others = gateways.iter().map(Client::plain);
    let clients: Vec<Client> = [first].into_iter().chain(others).collect();
    renewed_twice(&site, &clients);
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
