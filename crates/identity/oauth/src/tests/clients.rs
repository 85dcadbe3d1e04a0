//! The order of clients: configured, by its document, registered on the spot, asked for.

use super::*;

#[tokio::test]
async fn a_client_is_configured_documented_registered_or_asked_for_in_this_order() {
    const BY_HAND: &str = "by-hand";
    const DOCUMENT: &str = "https://gateway.example/client.json";
    for (configured, documents, registers, expect) in [
        (true, true, true, Some(BY_HAND)),
        (true, false, false, Some(BY_HAND)),
        (false, true, true, Some(DOCUMENT)),
        (false, true, false, Some(DOCUMENT)),
        (false, false, true, Some("client-0")),
        (false, false, false, None),
    ] {
        let script = Script::start().await;
        let all = accounts(None);
        let mut metadata =
            HashMap::from([("client_id_metadata_document_supported", documents.into())]);
        if !registers {
            metadata.insert("registration_endpoint", serde_json::Value::Null);
        }
        script.metadata.lock().unwrap().extend(metadata);
        let auth = AuthConfig {
            client_id: configured.then(|| BY_HAND.to_owned()),
            client_metadata_url: Some(DOCUMENT.to_owned()),
            ..AuthConfig::default()
        };
        let account = server(&all, &script, auth).of(None);
        let asked = refused(&account, 0, unauthorized()).await;
        let begun = all.logins.begin(&account, wish()).await;
        let Some(expect) = expect else {
            assert!(
                matches!(asked, Err(AccountFault::ClientNeeded(_))) && begun.is_err(),
                "{asked:?}"
            );
            assert_eq!(account.state().state, "wants_client");
            continue;
        };
        let url = Url::parse(&begun.unwrap().url).unwrap();
        let id = url
            .query_pairs()
            .find(|(name, _)| name == "client_id")
            .unwrap()
            .1
            .into_owned();
        assert_eq!(id, expect, "{configured} {documents} {registers}");
        let registered = script.registered.load(Ordering::SeqCst);
        assert_eq!(
            registered,
            usize::from(expect == "client-0"),
            "{configured} {documents} {registers}"
        );
    }
}

/// The redirect URIs of each registration so far.
fn registrations(script: &Script) -> Vec<Vec<String>> {
    let wishes = script.wishes.lock().unwrap().clone();
    let read = |wish: &String| serde_json::from_str::<serde_json::Value>(wish).unwrap();
    let uris = |wish: &String| serde_json::from_value(read(wish)["redirect_uris"].clone()).unwrap();
    wishes.iter().map(uris).collect()
}

#[tokio::test]
async fn a_client_is_registered_with_the_port_to_which_the_browser_comes_back() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    let at = |uri: &str| SignInRequest {
        redirect_uri: uri.to_owned(),
        ..wish()
    };
    assert_eq!(account.site.callback_port(), None);
    let own = "http://127.0.0.1:7070/oauth/callback";
    for (uri, registrations_so_far) in [
        ("http://127.0.0.1:50001/callback", 1),
        ("http://127.0.0.1:50001/callback", 1),
        (own, 1),
        ("http://127.0.0.1/callback", 1),
        // Another command, since the port was taken.
        ("http://127.0.0.1:50002/callback", 2),
        // The gateway listens elsewhere now.
        ("http://127.0.0.1:7071/oauth/callback", 3),
        ("http://127.0.0.1:50002/callback", 3),
    ] {
        all.logins.begin(&account, at(uri)).await.unwrap();
        let seen = registrations(&script);
        assert_eq!(seen.len(), registrations_so_far, "{uri}");
        assert!(
            seen.last().unwrap().contains(&uri.to_owned()),
            "{uri} {seen:?}"
        );
    }
    let first = &registrations(&script)[0];
    let without_ports = [
        "http://127.0.0.1/callback",
        "http://127.0.0.1/oauth/callback",
    ];
    assert_eq!(
        *first,
        [
            &["http://127.0.0.1:50001/callback", own][..],
            &without_ports
        ]
        .concat()
    );
    assert_eq!(account.site.callback_port(), Some(50_002));
    let fixed = AuthConfig {
        callback_port: Some(4_000),
        ..AuthConfig::default()
    };
    assert_eq!(
        server(&all, &script, fixed).site.callback_port(),
        Some(4_000)
    );
}

#[tokio::test]
async fn a_port_that_is_registered_is_known_after_a_restart() {
    let script = Script::start().await;
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let all = accounts(Some(&journal));
    let account = server(&all, &script, AuthConfig::default()).of(None);
    all.logins.begin(&account, wish()).await.unwrap();
    let again = accounts(Some(&journal));
    let account = server(&again, &script, AuthConfig::default()).of(None);
    assert_eq!(account.site.callback_port(), Some(1));
    again.logins.begin(&account, wish()).await.unwrap();
    assert_eq!(registrations(&script).len(), 1);
}

#[tokio::test]
async fn a_token_request_names_the_client_however_it_authenticates() {
    for method in ["none", "client_secret_basic", "client_secret_post"] {
        let script = Script::start().await;
        let all = accounts(None);
        let methods = serde_json::json!([method]);
        script
            .metadata
            .lock()
            .unwrap()
            .insert("token_endpoint_auth_methods_supported", methods);
        *script.secret.lock().unwrap() = (method != "none").then(|| "s3cret".to_owned());
        let account = server(&all, &script, AuthConfig::default()).of(None);
        sign_in(&all, &account, &script).await.unwrap();
        assert!(
            script.asked()[0].contains("client_id=client-0"),
            "{method} {:?}",
            script.asked()
        );
        assert_eq!(
            script.asked()[0].contains("s3cret"),
            method == "client_secret_post",
            "{method}"
        );
    }
}

#[tokio::test]
async fn an_issuer_without_a_path_is_the_same_with_a_slash_and_no_other_is() {
    for (named, document, pinned, expect) in [
        ("ORIGIN", "ORIGIN", None, true),
        ("ORIGIN/", "ORIGIN", None, true),
        ("ORIGIN", "ORIGIN/", None, true),
        ("ORIGIN/", "ORIGIN", Some("ORIGIN"), true),
        ("ORIGIN/", "ORIGIN", Some("ORIGIN/"), true),
        ("ORIGIN", "ORIGIN", Some("ORIGIN/"), true),
        ("ORIGIN//", "ORIGIN", None, false),
        ("ORIGIN/tenant/", "ORIGIN/tenant", None, false),
        ("ORIGIN/tenant", "ORIGIN", None, false),
        ("ORIGIN", "ORIGIN/x", None, false),
        ("ORIGIN/", "ORIGIN", Some("https://other.example/"), false),
    ] {
        let script = Script::start().await;
        let all = accounts(None);
        let at = |text: &str| text.replace("ORIGIN", &script.origin);
        *script.issuer.lock().unwrap() = at(named);
        script
            .metadata
            .lock()
            .unwrap()
            .insert("issuer", at(document).into());
        let auth = AuthConfig {
            issuer: pinned.map(at),
            ..AuthConfig::default()
        };
        let account = server(&all, &script, auth).of(None);
        let begun = all.logins.begin(&account, wish()).await;
        assert_eq!(
            begun.is_ok(),
            expect,
            "{named} {document} {pinned:?} {:?}",
            begun.err()
        );
    }
}

#[tokio::test]
async fn null_members_are_absent_and_what_is_wrong_is_named() {
    use serde_json::json;
    for (name, value, why) in [
        ("scopes_supported", json!(null), None),
        ("client_id_metadata_document_supported", json!(null), None),
        (
            "authorization_response_iss_parameter_supported",
            json!(null),
            None,
        ),
        ("revocation_endpoint", json!(null), None),
        ("token_endpoint_auth_methods_supported", json!(null), None),
        (
            "scopes_supported",
            json!("read write"),
            Some("expected a sequence"),
        ),
        ("registration_endpoint", json!(5), Some("expected a string")),
        (
            "code_challenge_methods_supported",
            json!(null),
            Some("PKCE"),
        ),
    ] {
        let script = Script::start().await;
        let all = accounts(None);
        script.metadata.lock().unwrap().insert(name, value);
        let account = server(&all, &script, AuthConfig::default()).of(None);
        let said = all
            .logins
            .begin(&account, wish())
            .await
            .err()
            .map(|error| error.to_string());
        let is_as_expected = match (&said, why) {
            (None, None) => true,
            (Some(said), Some(why)) => said.contains(why),
            (Some(_), None) | (None, Some(_)) => false,
        };
        assert!(is_as_expected, "{name} {said:?}");
    }
}

#[tokio::test]
async fn an_error_in_an_answer_with_200_is_told() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    let error =
        r#"{"error":"bad_verification_code","error_description":"The code is wrong or expired."}"#;
    script.tokens.lock().unwrap().push((200, error.to_owned()));
    let said = sign_in(&all, &account, &script)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        said,
        "127.0.0.1 refused: bad_verification_code (The code is wrong or expired.)"
    );
    // A member that is null, or an empty text, is no error.
    let (_, good) = tokens("good", 60);
    let good = good.replacen('{', r#"{"error":null,"#, 1);
    script.tokens.lock().unwrap().push((200, good));
    sign_in(&all, &account, &script).await.unwrap();
}

#[tokio::test]
async fn a_server_without_metadata_is_told_of_its_way_out() {
    let script = Script::start().await;
    let all = accounts(None);
    script.resource.lock().unwrap().clear();
    let account = server(&all, &script, AuthConfig::default()).of(None);
    let said = all
        .logins
        .begin(&account, wish())
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("legacy_discovery = true"), "{said}");
    let legacy = AuthConfig {
        legacy_discovery: true,
        ..AuthConfig::default()
    };
    let account = server(&all, &script, legacy).of(None);
    all.logins.begin(&account, wish()).await.unwrap();
}
