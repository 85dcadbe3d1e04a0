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
        let (script, all) = (Script::start().await, accounts(None));
        let mut metadata = HashMap::from([("client_id_metadata_document_supported", documents.into())]);
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
            assert!(matches!(asked, Err(AccountFault::ClientNeeded(_))) && begun.is_err(), "{asked:?}");
            assert_eq!(account.state().state, "wants_client");
            continue;
        };
        let url = Url::parse(&begun.unwrap().url).unwrap();
        let id = url.query_pairs().find(|(name, _)| name == "client_id").unwrap().1.into_owned();
        assert_eq!(id, expect, "{configured} {documents} {registers}");
        let registered = script.registered.load(Ordering::SeqCst);
        assert_eq!(registered, usize::from(expect == "client-0"), "{configured} {documents} {registers}");
    }
}
