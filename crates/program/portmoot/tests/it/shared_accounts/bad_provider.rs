//! An authorization server that is down, slow, lying or on fire, during discovery, sign-ins and
//! renewals.

use serde_json::json;

use super::{Person, Site};
use crate::support::{fixture, until};

/// What goes wrong at a path of the provider.
#[derive(Debug)]
enum Wrong {
    /// The connection ends.
    Cut,
    /// The answer never comes.
    Silence,
    /// This answer.
    Answer(u16, &'static str),
    /// An answer of 10 MB.
    Flood,
}

impl Site {
    fn break_path(&self, path: &str, wrong: &Wrong) {
        match wrong {
            Wrong::Cut => self.fault(path, "cut"),
            Wrong::Silence => self.fault(path, "hold"),
            Wrong::Answer(status, body) => self.answers(path, *status, body),
            Wrong::Flood => {
                let order =
                    json!({ "op": "fault", "path": path, "kind": "answer", "bytes": 10_000_000 });
                drop(self.provider.control(&order));
            }
        }
    }
}

/// Breaks the renewal of an account in these ways, one after the other: each time calls get this
/// code, another server is undisturbed, and the account is used again without a person once the
/// provider is well.
fn survives(path: &str, wrongs: &[(Wrong, &str)]) {
    let site = Site::with(&fixture("b", &[]), 600);
    site.gateway.ready("b");
    let client = site.signed_in();
    let logins = site.provider.asked("/auth");
    for (wrong, code) in wrongs {
        site.break_path(path, wrong);
        let asked = site.provider.asked(path);
        assert_eq!(
            site.call_with_ended_token(&client),
            Err((*code).to_owned()),
            "{wrong:?}"
        );
        let account = site.account();
        assert_eq!(
            (&account["state"], &account["renews"]),
            (&json!("waiting"), &json!(true)),
            "{wrong:?}"
        );
        assert!(
            account["reason"]
                .as_str()
                .is_some_and(|reason| !reason.contains('<')),
            "{wrong:?}: {account}"
        );
        for _ in 0..20 {
            assert!(site.call(&client).is_err(), "{wrong:?}");
            assert_eq!(
                client.call("b_echo", json!({ "text": "on" }))["content"][0]["text"],
                "on",
                "{wrong:?}"
            );
        }
        let again = site.provider.asked(path) - asked;
        assert!((1..=3).contains(&again), "{wrong:?}: {again} requests");
        site.provider.control(&json!({ "op": "drop" }));
        until("the account is used again", || site.call(&client).ok());
        assert_eq!(site.account()["state"], "ready", "{wrong:?}");
    }
    assert_eq!(
        site.provider.asked("/auth"),
        logins,
        "no one had to sign in"
    );
}

const METADATA: &str = "/.well-known/oauth-authorization-server";

#[test]
fn a_renewal_outlives_a_token_endpoint_that_fails() {
    survives(
        "/token",
        &[
            (Wrong::Cut, "upstream_down"),
            (Wrong::Answer(500, "boom"), "upstream_down"),
            (Wrong::Answer(429, ""), "upstream_down"),
        ],
    );
}

#[test]
fn a_renewal_outlives_a_token_endpoint_that_answers_nonsense() {
    survives(
        "/token",
        &[
            (
                Wrong::Answer(200, "<html>sign in to the Wi-Fi</html>"),
                "upstream_metadata_refused",
            ),
            (
                Wrong::Answer(404, "<html>no such page</html>"),
                "upstream_down",
            ),
            (
                Wrong::Answer(200, r#"{"access_token":"a\nb","token_type":"Bearer"}"#),
                "upstream_metadata_refused",
            ),
            (Wrong::Flood, "upstream_metadata_refused"),
        ],
    );
}

#[test]
fn a_renewal_outlives_a_token_endpoint_that_never_answers() {
    survives("/token", &[(Wrong::Silence, "upstream_down")]);
}

#[test]
fn a_renewal_outlives_metadata_that_are_wrong_for_a_while() {
    survives(
        METADATA,
        &[
            (Wrong::Answer(503, ""), "upstream_down"),
            (
                Wrong::Answer(200, r#"{"issuer":"https://elsewhere.example"}"#),
                "upstream_metadata_refused",
            ),
            (Wrong::Flood, "upstream_metadata_refused"),
        ],
    );
}

/// Tries to sign in; what the command says when it fails.
fn refused(site: &Site) -> String {
    let ran = site.home.run(&["servers", "login", "jira", "--paste"]);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    ran.stderr
}

#[test]
fn a_lying_server_gets_no_sign_in() {
    let site = Site::start();
    site.wait_for("needs_login");
    let issuer = site.provider.issuer();
    let of = |resource: &str, server: &str| {
        json!({ "resource": resource, "authorization_servers": [server] }).to_string()
    };
    for (metadata, why) in [
        (
            of("https://elsewhere.example/mcp", &issuer),
            "is of another resource",
        ),
        (
            of(&site.guarded.url(), "https://169.254.169.254"),
            "may not be dialed",
        ),
        (
            of(&site.guarded.url(), "http://192.0.2.1"),
            "may not be dialed",
        ),
        (
            of(
                &site.guarded.url(),
                &issuer.replace("127.0.0.1", "localhost"),
            ),
            "names another one",
        ),
    ] {
        site.guarded.set_metadata(Some(&metadata));
        let said = refused(&site);
        assert!(
            said.contains(why) && said.contains("[upstream_metadata_refused]"),
            "{metadata}: {said}"
        );
    }
    site.guarded.set_metadata(None);
    for (wrong, code) in [
        (Wrong::Cut, "upstream_down"),
        (Wrong::Answer(500, "boom"), "upstream_down"),
        (
            Wrong::Answer(200, r#"{"issuer":"https://elsewhere.example"}"#),
            "upstream_metadata_refused",
        ),
        (Wrong::Flood, "upstream_metadata_refused"),
    ] {
        site.break_path(METADATA, &wrong);
        let said = refused(&site);
        assert!(said.contains(&format!("[{code}]")), "{wrong:?}: {said}");
        site.clear();
    }
    assert_eq!(
        (site.provider.asked("/auth"), site.token_requests()),
        (0, 0)
    );
    site.sign_in();
}

#[test]
fn an_answer_of_another_issuer_is_not_used() {
    let site = Site::start();
    for change in [
        |back: &mut url::Url| {
            back.query_pairs_mut()
                .append_pair("iss", "https://elsewhere.example");
        },
        |back: &mut url::Url| set(back, "iss", None),
        |back: &mut url::Url| set(back, "iss", Some("https://elsewhere.example")),
        |back: &mut url::Url| {
            set(back, "iss", Some("https://elsewhere.example"));
            set(back, "code", None);
            back.query_pairs_mut().append_pair("error", "call_me_maybe");
        },
    ] {
        let asking = site.begin(&["servers", "login", "jira", "--paste"]);
        let mut back = url::Url::parse(&Person::default().open(&asking.url)).unwrap();
        change(&mut back);
        let ran = asking.paste(back.as_str());
        assert!(
            ran.code != 0 && !ran.stderr.contains("call_me_maybe"),
            "{back}: {}",
            ran.stderr
        );
    }
    assert_eq!(
        (site.token_requests(), site.account()["issuer"].as_str()),
        (0, None)
    );
    site.sign_in();
}

/// Sets a parameter, or removes it.
fn set(url: &mut url::Url, name: &str, value: Option<&str>) {
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .into_owned()
        .filter(|(known, _)| known != name)
        .collect();
    let mut query = url.query_pairs_mut();
    query.clear().extend_pairs(pairs);
    query.extend_pairs(value.map(|value| (name, value)));
}

#[test]
fn a_gateway_that_starts_while_the_provider_is_down_finds_it_later() {
    let mut site = Site::start();
    site.wait_for("needs_login");
    site.break_path(METADATA, &Wrong::Answer(503, ""));
    site.restart();
    let waiting = site.wait_for("waiting");
    assert!(
        waiting["reason"].as_str().unwrap().contains("answered 503"),
        "{waiting}"
    );
    site.clear();
    site.wait_for("needs_login");
    site.sign_in();
    assert_eq!(site.call(&site.wait_listed()), Ok("found".to_owned()));
}

#[test]
fn the_words_of_a_refused_sign_in_are_shown_with_hidden_characters_visible() {
    let site = Site::start();
    let (asking, back) = site.asked();
    let mut back = url::Url::parse(&back).unwrap();
    set(&mut back, "code", None);
    back.query_pairs_mut()
        .append_pair("error", "invalid_request")
        .append_pair(
            "error_description",
            "Unregistered\u{1b}[2J\u{9b}31m\u{202e} redirect_uri",
        );
    let ran = asking.paste(back.as_str());
    assert!(
        ran.code != 0 && ran.stderr.contains("invalid_request (Unregistered"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("redirect_uri"), "{}", ran.stderr);
    let hidden = ran
        .stderr
        .chars()
        .any(|one| one != '\n' && ::json::visible::is_hidden(one));
    assert!(!hidden, "{:?}", ran.stderr);
}

#[test]
fn scopes_of_a_token_answer_may_be_a_list_in_json() {
    let site = Site::start();
    site.sign_in();
    let token = site.all_issued("access_token").pop().unwrap();
    let answer = json!({ "access_token": token, "token_type": "Bearer", "expires_in": 600,
        "scope": ["mcp:read mcp:write", "more"] });
    let (asking, back) = site.asked();
    site.answers("/token", 200, &answer.to_string());
    let ran = asking.paste(&back).expect(0);
    assert!(ran.stderr.contains("signed in at `jira`"), "{}", ran.stderr);
    assert_eq!(
        site.account()["scopes"],
        json!(["mcp:read", "mcp:write", "more"])
    );
}
