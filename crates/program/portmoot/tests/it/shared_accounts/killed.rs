//! `kill -9` of the gateway at every step of a sign-in and of a renewal.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Site;
use crate::support::{is_alive, signal, until};

/// Kills the gateway when the server gets the first request with a token that it has not had
/// before.
fn kill_at_first_use(site: &Site) {
    let (pid, known) = (site.gateway.pid(), site.guarded.accepted());
    let killed = AtomicBool::new(false);
    site.guarded.watch(move |token| {
        if !known.iter().any(|known| known == token) && !killed.swap(true, Ordering::SeqCst) {
            signal(pid, "KILL");
            until("the gateway is gone", || {
                (!is_alive(pid.into())).then_some(())
            });
        }
    });
}

fn wait_dead(site: &Site) {
    let pid = u64::from(site.gateway.pid());
    until("the gateway is killed", || (!is_alive(pid)).then_some(()));
}

#[test]
fn no_step_of_a_sign_in_leaves_half_of_one() {
    let mut site = Site::start();
    site.wait_for("needs_login");
    // It has begun: what comes back finds nothing.
    let (_asking, back) = site.asked();
    site.restart();
    let late = site
        .begin(&["servers", "login", "jira", "--paste"])
        .paste(&back);
    assert!(
        late.code != 0
            && late
                .stderr
                .contains("no sign-in is under way for this answer"),
        "{}",
        late.stderr
    );
    // The code is on its way: the provider has not seen it, or has used it up.
    for kind in ["hold", "mute"] {
        let (asking, back) = site.asked();
        let kept = site.provider.asked("kept");
        site.fault("/token", kind);
        let waiting = std::thread::spawn(move || asking.paste(&back));
        site.wait_kept(kept + 1);
        site.clear_faults();
        site.restart();
        site.clear();
        assert_ne!(waiting.join().unwrap().code, 0, "{kind}");
        let account = site.wait_for("needs_login");
        assert_eq!(
            (&account["issuer"], site.guarded.accepted().len()),
            (&serde_json::Value::Null, 0),
            "{kind}"
        );
    }
    // The tokens are here: they are on disk before their first use.
    kill_at_first_use(&site);
    let (asking, back) = site.asked();
    asking.paste(&back);
    wait_dead(&site);
    site.restart();
    let asked = site.token_requests();
    let client = site.wait_listed();
    assert_eq!(site.account()["state"], "ready");
    // It is done.
    site.restart();
    assert_eq!(site.call(&site.wait_listed()), Ok("found".to_owned()));
    assert_eq!(
        (site.token_requests(), site.provider.asked("/reg")),
        (asked, 1)
    );
    drop(client);
    site.check_secrets_nowhere();
}

#[test]
fn no_step_of_a_renewal_loses_the_family() {
    let mut site = Site::start();
    let mut client = site.signed_in();
    let logins = site.provider.asked("/auth");
    // The provider has not seen the request: the same token is good once more.
    site.fault("/token", "hold");
    site.guarded.expire();
    let call = client.begin_call("jira_search", serde_json::json!({}));
    site.wait_kept(1);
    site.provider.control(&serde_json::json!({ "op": "drop" }));
    site.restart();
    drop(call);
    client = site.wait_listed();
    assert_eq!(
        (site.call(&client), site.account()["state"].as_str()),
        (Ok("found".to_owned()), Some("ready"))
    );
    // Between answer and use, and after: the new tokens are on disk, and the old ones are not
    // tried.
    for _ in 0..2 {
        site.guarded.expire();
        kill_at_first_use(&site);
        let call = client.begin_call("jira_search", serde_json::json!({}));
        wait_dead(&site);
        site.guarded.unwatch();
        drop(call);
        let asked = site.token_requests();
        site.restart();
        client = site.wait_listed();
        assert_eq!(site.call(&client), Ok("found".to_owned()));
        assert_eq!(site.token_requests(), asked);
    }
    assert_eq!(site.call_with_ended_token(&client), Ok("found".to_owned()));
    assert_eq!(
        site.provider.asked("/auth"),
        logins,
        "no one had to sign in"
    );
    // The provider has renewed, and its answer is lost with the gateway: that family ends at the
    // next attempt, the only one.
    let kept = site.provider.asked("kept");
    site.fault("/token", "mute");
    site.guarded.expire();
    let call = client.begin_call("jira_search", serde_json::json!({}));
    site.wait_kept(kept + 1);
    site.clear_faults();
    let asked = site.token_requests();
    site.restart();
    drop(call);
    let lost = site.wait_for("needs_login");
    assert_eq!(
        lost["reason"],
        "the authorization server refused to renew the sign-in"
    );
    site.restart();
    site.wait_for("needs_login");
    assert!(
        site.token_requests() <= asked + 2,
        "one attempt for each start"
    );
    client = site.signed_in();
    assert_eq!(site.call(&client), Ok("found".to_owned()));
    site.check_secrets_nowhere();
}
