//! People who sign in at an issuer for the gateway's own pages.

use serde_json::{Value, json};

use super::*;
use crate::dialer::Dialer;
use crate::person::{
    Asked, BegunPerson, PageClient, PageIssuer, PageSpec, PersonError, PersonSignIn, PersonWish,
    SignInPlace as _,
};
use crate::{Secret, Trouble};

const RESOURCE: &str = "https://gw.example/mcp";
const CALLBACK: &str = "https://gw.example/console/signed-in/corp";

fn issuer(script: &Script, scopes: &[&str], has_resource: bool) -> PageIssuer {
    let spec = PageSpec {
        issuer: script.origin.clone(),
        client: PageClient {
            id: "gw".to_owned(),
            secret: None,
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            params: Vec::new(),
            has_resource,
        },
        allowed: Vec::new(),
    };
    PageIssuer::new(spec, Dialer::new(ClientTls::of_machine())).unwrap()
}

async fn begun(issuer: &PageIssuer) -> Result<BegunPerson, PersonError> {
    let wish = PersonWish {
        redirect_uri: CALLBACK,
        resource: RESOURCE,
        max_age_secs: 60,
    };
    issuer.begin(wish).await
}

/// The address to which the issuer leads back.
fn answer(script: &Script, sign_in: &PersonSignIn) -> String {
    let (state, origin) = (sign_in.state(), &script.origin);
    format!("{CALLBACK}?code=c&state={state}&iss={origin}")
}

/// An ID token for a sign-in, with the claims changed.
fn id_token(script: &Script, begun: &BegunPerson, changes: &Value) -> String {
    use base64::Engine as _;
    let url = Url::parse(&begun.address).unwrap();
    let nonce = url.query_pairs().find(|(name, _)| name == "nonce").unwrap();
    let now = unix_ms() / 1_000;
    let mut claims = json!({
        "iss": script.origin, "aud": "gw", "nonce": nonce.1, "sub": "ann", "iat": now, "exp": now + 60,
        "auth_time": now - 30,
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let part =
        |value: &Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.x", part(&json!({ "alg": "none" })), part(&claims))
}

fn next_tokens(script: &Script, members: &Value) {
    let mut tokens = json!({ "access_token": "a", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r" });
    for (name, value) in members.as_object().unwrap() {
        tokens[name] = value.clone();
    }
    script
        .tokens
        .lock()
        .unwrap()
        .push((200, tokens.to_string()));
}

#[tokio::test]
async fn a_person_of_an_issuer_gets_tokens_and_new_ones_for_the_resource_alone() {
    for (has_resource, expect) in [(true, 2), (false, 0)] {
        let script = Script::start().await;
        let issuer = issuer(&script, &[], has_resource);
        let begun = begun(&issuer).await.unwrap();
        let tokens = issuer
            .end(&begun.sign_in, &answer(&script, &begun.sign_in))
            .await;
        let tokens = tokens.ok().unwrap();
        assert_eq!(tokens.asked, Asked::Unknown);
        let refresh = tokens.refresh.unwrap();
        assert!(issuer.renew(&refresh, RESOURCE).await.is_ok());
        let asked = script.asked.lock().unwrap().clone();
        let named = |body: &&String| body.contains("resource=https%3A%2F%2Fgw.example%2Fmcp");
        assert_eq!(asked.iter().filter(named).count(), expect, "{asked:?}");
        assert!(asked[0].contains("code_verifier=") && asked[0].contains("client_id=gw"));
        // A server that returns no refresh token leaves the one before in force.
        next_tokens(&script, &json!({ "refresh_token": null }));
        let renewed = issuer.renew(&Secret::new("r-0".to_owned()), RESOURCE).await;
        assert_eq!(renewed.ok().unwrap().refresh.unwrap().expose(), "r-0");
        script
            .tokens
            .lock()
            .unwrap()
            .push((400, "{\"error\":\"invalid_grant\"}".to_owned()));
        let refused = issuer.renew(&refresh, RESOURCE).await.err().unwrap();
        assert!(refused.is_refusal(), "{refused}");
    }
}

#[tokio::test]
async fn an_id_token_that_is_not_of_the_sign_in_signs_no_person_in() {
    for (changes, expect) in [
        (json!({}), None),
        (
            json!({ "nonce": "of another" }),
            Some(PersonError::IdToken("is of another sign-in")),
        ),
        (
            json!({ "aud": "app" }),
            Some(PersonError::IdToken("is for another client")),
        ),
        (json!({ "auth_time": 5 }), Some(PersonError::NotAsked)),
    ] {
        let script = Script::start().await;
        let issuer = issuer(&script, &["openid"], true);
        let begun = begun(&issuer).await.unwrap();
        let token = id_token(&script, &begun, &changes);
        next_tokens(&script, &json!({ "id_token": token }));
        let ended = issuer
            .end(&begun.sign_in, &answer(&script, &begun.sign_in))
            .await;
        assert_eq!(ended.err(), expect, "{changes}");
        // Unused tokens are given back.
        let given_back = script.asked().iter().any(|body| {
            body.starts_with("revoke ") && body.contains("token=r&token_type_hint=refresh_token")
        });
        assert_eq!(given_back, expect.is_some(), "{:?}", script.asked());
    }
    let script = Script::start().await;
    let issuer = issuer(&script, &["openid"], true);
    let begun = begun(&issuer).await.unwrap();
    let ended = issuer
        .end(&begun.sign_in, &answer(&script, &begun.sign_in))
        .await;
    assert_eq!(ended.err(), Some(PersonError::IdToken("is missing")));
}

#[tokio::test]
async fn a_sign_in_without_an_id_token_is_no_proof_that_the_person_was_asked_anew() {
    let script = Script::start().await;
    let issuer = issuer(&script, &["profile"], true);
    let wish = PersonWish {
        redirect_uri: CALLBACK,
        resource: RESOURCE,
        max_age_secs: 0,
    };
    let begun = issuer.begin(wish).await.unwrap();
    let ended = issuer
        .end(&begun.sign_in, &answer(&script, &begun.sign_in))
        .await;
    assert_eq!(ended.err(), Some(PersonError::NoTime));
}

#[tokio::test]
async fn one_fetch_of_metadata_that_fails_is_for_all_that_wait_and_for_a_while() {
    let script = Script::start().await;
    let issuer = issuer(&script, &[], true);
    let metadata = &script.metadata;
    metadata
        .lock()
        .unwrap()
        .insert("issuer", json!("https://evil.example"));
    let (one, two) = tokio::join!(begun(&issuer), begun(&issuer));
    assert!(one.is_err() && one.err() == two.err());
    metadata.lock().unwrap().clear();
    assert!(begun(&issuer).await.is_err(), "not asked again at once");
    assert_eq!(script.looks.load(Ordering::SeqCst), 1);
    tokio::time::pause();
    tokio::time::advance(crate::retries::RETRY_FIRST).await;
    tokio::time::resume();
    assert!(begun(&issuer).await.is_ok());
}

#[tokio::test]
async fn an_issuer_with_which_no_safe_sign_in_is_possible_is_not_used() {
    for (member, value) in [
        ("code_challenge_methods_supported", json!(["plain"])),
        ("code_challenge_methods_supported", Value::Null),
        ("authorization_endpoint", Value::Null),
        (
            "authorization_endpoint",
            json!("http://idp.example/authorize"),
        ),
        ("authorization_endpoint", json!("javascript:alert(1)")),
        ("token_endpoint", Value::Null),
        ("token_endpoint", json!("http://169.254.169.254/token")),
        ("issuer", json!("https://evil.example")),
    ] {
        let script = Script::start().await;
        script
            .metadata
            .lock()
            .unwrap()
            .insert(member, value.clone());
        let refused = begun(&issuer(&script, &[], true)).await.err();
        let is_trouble = matches!(
            refused,
            Some(PersonError::Step(LoginError::Trouble(
                Trouble::Metadata(_) | Trouble::Dial(_)
            )))
        );
        assert!(is_trouble, "{member} {value}: {refused:?}");
    }
}

#[tokio::test]
async fn the_metadata_of_an_issuer_is_fetched_anew_when_it_does_not_answer_as_it_did() {
    let script = Script::start().await;
    let issuer = issuer(&script, &[], true);
    let refresh = Secret::new("r".to_owned());
    begun(&issuer).await.unwrap();
    let moved = json!("https://idp.example/authorize");
    let metadata = &script.metadata;
    metadata
        .lock()
        .unwrap()
        .insert("authorization_endpoint", moved);
    let address = async || begun(&issuer).await.unwrap().address;
    assert!(address().await.starts_with(&script.origin), "it is kept");
    // A refusal says nothing about it.
    script
        .tokens
        .lock()
        .unwrap()
        .push((400, "{\"error\":\"invalid_grant\"}".to_owned()));
    assert!(issuer.renew(&refresh, RESOURCE).await.is_err());
    assert!(address().await.starts_with(&script.origin));
    script.tokens.lock().unwrap().push((404, String::new()));
    assert!(issuer.renew(&refresh, RESOURCE).await.is_err());
    assert!(
        address()
            .await
            .starts_with("https://idp.example/authorize?")
    );
}
