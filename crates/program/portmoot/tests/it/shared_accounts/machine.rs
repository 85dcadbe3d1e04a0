//! Accounts of the gateway's own: client credentials, by a secret and by an assertion.

use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PublicKeyData};
use serde_json::json;

use super::Site;
use super::guarded::Guarded;
use crate::authorization::provider::Provider;
use crate::home::Home;
use crate::support::until;

/// A gateway whose credentials are good at the provider gets tokens by itself, also after the
/// provider has failed.
fn gets_tokens(home: Home, guarded: Guarded, provider: Provider, auth: &str, secret: &str) {
    let auth = format!(
        "kind = \"client_credentials\"\nissuer = {:?}\n{auth}",
        provider.issuer()
    );
    let mut site = Site::at(home, guarded, provider, &auth);
    let client = site.wait_listed();
    assert_eq!(site.call(&client), Ok("found".to_owned()));
    let account = site.account();
    assert_eq!(
        (&account["state"], &account["issuer"]),
        (&json!("ready"), &json!(site.provider.issuer()))
    );
    assert_eq!(site.call_with_ended_token(&client), Ok("found".to_owned()));
    // What passes by itself ends nothing.
    for (status, body) in [
        (500, ""),
        (200, "<html>hello</html>"),
        (401, r#"{"error":"invalid_client"}"#),
    ] {
        site.answers("/token", status, body);
        assert!(site.call_with_ended_token(&client).is_err());
        assert_eq!(site.account()["state"], "waiting");
        site.clear();
        until("the provider is asked again", || site.call(&client).ok());
    }
    // The server rejects even new tokens for a while: it gets no more than one at a time.
    let asked = site.token_requests();
    site.guarded
        .set_challenge(Some("Bearer error=\"invalid_token\""));
    for _ in 0..10 {
        assert!(site.call(&client).is_err());
    }
    assert_eq!(site.token_requests(), asked + 1);
    site.guarded.set_challenge(None);
    assert_eq!(site.call(&client), Ok("found".to_owned()));
    // Nothing is kept: after a restart it asks again.
    let asked = site.token_requests();
    site.restart();
    assert_eq!(site.call(&site.wait_listed()), Ok("found".to_owned()));
    assert_eq!(site.token_requests(), asked + 1);
    let ran = site.home.run(&["servers", "login", "jira"]);
    assert!(
        ran.code != 0 && ran.stderr.contains("no person signs in"),
        "{}",
        ran.stderr
    );
    let mut secrets = site.all_issued("access_token");
    assert!(
        secrets.len() >= 7 && site.issued().iter().all(|(name, _)| name == "access_token"),
        "{secrets:?}"
    );
    secrets.push(secret.to_owned());
    site.check_nowhere(secrets, None);
}

fn parts() -> (Guarded, Provider) {
    let guarded = Guarded::start();
    let provider = Provider::of(&[guarded.url()], 600);
    guarded.set_provider(provider.address());
    (guarded, provider)
}

#[test]
fn by_a_secret() {
    let (guarded, provider) = parts();
    let home = Home::new().env("SECRET", "machine-secret");
    let auth = "client_id = \"machine\"\nclient_secret_env = \"SECRET\"";
    gets_tokens(home, guarded, provider, auth, "machine-secret");
}

#[test]
fn by_an_assertion() {
    let (guarded, provider) = parts();
    let key = KeyPair::generate().unwrap();
    // An uncompressed point.
    let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&key.der_bytes()[range]);
    let (x, y) = (part(1..33), part(33..65));
    let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "use": "sig", "alg": "ES256" });
    provider.control(&json!({ "op": "client", "client": {
        "client_id": "signer", "token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": "ES256",
        "grant_types": ["client_credentials"], "redirect_uris": [], "response_types": [], "jwks": { "keys": [jwk] },
    } }));
    // Beside what is searched.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("signer.pem");
    std::fs::write(&file, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let body = key.serialize_pem().lines().nth(1).unwrap().to_owned();
    let auth = format!("client_id = \"signer\"\nprivate_key_file = {file:?}");
    gets_tokens(Home::new(), guarded, provider, &auth, &body);
}
