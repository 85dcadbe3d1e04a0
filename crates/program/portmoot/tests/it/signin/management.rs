//! Commands about sign-ins, and what takes force at once.

use serde_json::Value;

use super::browser::Browser;
use super::{REDIRECT, Site, Tokens};
use crate::support::until;

fn listed(site: &Site, what: &str, token: Option<&str>) -> Vec<Value> {
    let url = site.gateway.url();
    let with = token
        .map(|token| ["--url", &url, "--token", token].map(str::to_owned))
        .into_iter()
        .flatten();
    let args: Vec<String> = [what, "ls", "--json"]
        .map(str::to_owned)
        .into_iter()
        .chain(with)
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let printed: Value = serde_json::from_str(&site.home.run(&args).expect(0).stdout).unwrap();
    printed[what].as_array().unwrap().clone()
}

#[test]
fn a_revoked_client_is_out_at_once() {
    let site = Site::start("", "");
    let (client, tokens) = site.signed_in("ann", &[]);
    let (_, others) = site.signed_in("bob", &[]);
    let all = listed(&site, "clients", None);
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[0]["participant"], &all[0]["name"]),
        (&"ann".into(), &"Editor".into())
    );
    assert_eq!(all[0]["resource"], format!("{}/mcp", site.url()));
    assert_eq!(listed(&site, "consents", None).len(), 2);
    // A participant sees its own.
    let own = listed(&site, "clients", Some(&others.access));
    assert!(own.len() == 1 && own[0]["participant"] == "bob", "{own:?}");
    let (_, stream) = site.streamed(&tokens.access);
    let id = all[0]["client"].as_str().unwrap();
    assert_eq!(
        site.home.run(&["clients", "revoke", &id[..4]]).code,
        5,
        "too few digits name nothing"
    );
    let theirs = listed(&site, "clients", None)[1]["client"]
        .as_str()
        .unwrap()
        .to_owned();
    let url = site.gateway.url();
    let by_bob = ["--url", &url, "--token", &others.access];
    let refused = site
        .home
        .run(&[&["clients", "revoke", id], &by_bob[..]].concat());
    assert_eq!(
        refused.code, 5,
        "to others it does not exist: {}",
        refused.stderr
    );
    site.home.run(&["clients", "revoke", id]).expect(0);
    assert_eq!(site.initialize("/mcp", &tokens.access), 401);
    stream.rest();
    assert_eq!(
        site.refresh(&client, &tokens.refresh).json()["error"],
        "invalid_grant"
    );
    assert_eq!(
        site.initialize("/mcp", &others.access),
        200,
        "the other one stays"
    );
    // A participant ends its own without being an operator.
    site.home
        .run(&[&["clients", "revoke", &theirs], &by_bob[..]].concat())
        .expect(0);
    assert_eq!(site.initialize("/mcp", &others.access), 401);
    site.recorded("ann", "admitted", "revoked");
}

#[test]
fn a_participant_that_leaves_the_configuration_is_out_at_once() {
    let site = Site::start("", "");
    let (client, tokens) = site.signed_in("bob", &[]);
    let (_, ann) = site.signed_in("ann", &[]);
    assert_eq!(site.initialize("/mcp", &tokens.access), 200);
    let path = site.home.path().join("portmoot.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("[participants.bob]", "[participants.bobby]");
    std::fs::write(&path, text).unwrap();
    site.gateway.signal("HUP");
    until("the reload", || {
        (site.initialize("/mcp", &tokens.access) == 401).then_some(())
    });
    assert_eq!(
        site.refresh(&client, &tokens.refresh).json()["error"],
        "invalid_grant"
    );
    assert_eq!(site.initialize("/mcp", &ann.access), 200);
}

#[test]
fn codes_are_given_for_those_that_the_giver_may_act_for() {
    let site = Site::start("", "");
    let (_, ann) = site.signed_in("ann", &[]);
    let url = site.gateway.url();
    let by_ann = ["--url", &url, "--token", &ann.access];
    let code =
        |name: &str, with: &[&str]| site.home.run(&[&["login", "code", name], with].concat());
    assert_eq!(code("nowhere", &[]).code, 5);
    assert_eq!(
        code("local", &[]).code,
        5,
        "the operator does not sign in from outside"
    );
    let refused = code("bob", &by_ann);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    // Its own token ends before a sign-in would.
    assert_eq!(code("ann", &by_ann).code, 3);
    code("ann", &[]).expect(0);
}

#[test]
fn every_event_of_a_sign_in_is_in_the_audit_log() {
    let scopes = "[scopes.read]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
                  [scopes.all]\ncapabilities = [\"mcp/*\"]";
    let site = Site::start("", scopes);
    let (client, mut browser) = (site.register(&[REDIRECT]), Browser::default());
    let mut sign_in = |scope: &str| {
        let back = site.allowed(&mut browser, &client, "ann", &[("scope", scope)]);
        Tokens::of(&site.exchange(&client, &back.parameter("code"), &[]))
    };
    let first = sign_in("read");
    site.recorded("ann", "admitted", "consented");
    site.recorded("ann", "admitted", "issued: ");
    let next = Tokens::of(&site.refresh(&client, &first.refresh));
    site.recorded("ann", "admitted", "refreshed: ");
    assert_eq!(site.exchange(&client, "no-such-code", &[]).status, 400);
    site.recorded(
        "system:nobody",
        "refused",
        "invalid_grant: a code that is not known",
    );
    let all = sign_in("read all");
    site.recorded("ann", "admitted", "stepped up: ");
    // Signed in once more with no more than before: that is no step.
    sign_in("all");
    until("it is recorded", || {
        (site.audited_count("issued: ") == 2).then_some(())
    });
    assert_eq!(
        site.audited_count("stepped up: "),
        1,
        "{:?}",
        site.reasons()
    );
    let revoke = [
        ("client_id", client.as_str()),
        ("token", next.refresh.as_str()),
    ];
    assert_eq!(site.form("/oauth/revoke", &revoke).status, 200);
    site.recorded("ann", "admitted", "revoked by the client: ");
    let id = listed(&site, "clients", None)[0]["client"]
        .as_str()
        .unwrap()
        .to_owned();
    site.home.run(&["clients", "revoke", &id]).expect(0);
    site.recorded("ann", "admitted", "revoked: ");
    // None of the tokens is in it.
    let printed = site
        .home
        .run(&["audit", "query", "--json"])
        .expect(0)
        .stdout;
    for secret in [&first, &next, &all]
        .iter()
        .flat_map(|tokens| [&tokens.access, &tokens.refresh])
    {
        assert!(!printed.contains(secret.as_str()));
    }
}
