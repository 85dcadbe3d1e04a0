//! Accounts of callers, and of their access tokens.

use super::*;

#[tokio::test]
async fn callers_have_accounts_of_their_own() {
    let script = Script::start().await;
    let all = accounts(None);
    let auth = AuthConfig {
        account: Whose::Caller,
        ..AuthConfig::default()
    };
    let server = server(&all, &script, auth);
    let ann = server.of(Some("ann"));
    let bob = server.of(Some("bob"));
    // Without a token there is no session, not even one without a token.
    assert_eq!(header(&ann).await, Err(AccountFault::LoginNeeded));
    sign_in(&all, &ann, &script).await.unwrap();
    sign_in(&all, &bob, &script).await.unwrap();
    for _ in 0..1_000 {
        assert_eq!(header(&ann).await, Ok(bearer("canary-a0")));
        assert_eq!(header(&bob).await, Ok(bearer("canary-a1")));
    }
    bob.sign_out("boss").await.unwrap();
    assert_eq!(
        (header(&ann).await, header(&bob).await),
        (Ok(bearer("canary-a0")), Err(AccountFault::LoginNeeded))
    );
    assert_eq!(
        server.blocked(None),
        None,
        "no shared session could be blocked"
    );
}

#[tokio::test]
async fn a_machine_asks_by_itself_and_an_exchange_needs_the_callers_token() {
    let script = Script::start().await;
    let all = accounts(None);
    let machine = AuthConfig {
        kind: AuthorizationKind::ClientCredentials,
        client_id: Some("me".to_owned()),
        ..AuthConfig::default()
    };
    let account = server(&all, &script, machine.clone()).of(None);
    assert_eq!(header(&account).await, Ok(None));
    assert_eq!(refused(&account, 0, unauthorized()).await, Ok(()));
    assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
    assert!(script.asked()[0].starts_with("grant_type=client_credentials&scope=read&resource="));
    // The server rejects what was issued just now: the next token is asked for later.
    assert!(matches!(
        refused(&account, 1, unauthorized()).await,
        Err(AccountFault::Refused(_))
    ));
    assert!(matches!(
        refused(&account, 0, unauthorized()).await,
        Err(AccountFault::Refused(_))
    ));
    assert_eq!(
        (script.asked().len(), account.state().state),
        (1, "waiting")
    );
    // The authorization server refuses: so it is asked again, later, without a person.
    let account = server(
        &all,
        &script,
        AuthConfig {
            scopes: vec!["more".to_owned()],
            ..machine.clone()
        },
    )
    .of(None);
    script
        .tokens
        .lock()
        .unwrap()
        .push((401, r#"{"error":"invalid_client"}"#.to_owned()));
    assert!(matches!(
        refused(&account, 0, unauthorized()).await,
        Err(AccountFault::Refused(_))
    ));
    assert_eq!(
        (account.blocked(), account.state().state),
        (None, "waiting")
    );

    let exchange = AuthConfig {
        kind: AuthorizationKind::Exchange,
        account: Whose::Caller,
        audience: Some("api".to_owned()),
        ..machine
    };
    let server = server(&all, &script, exchange);
    let ann = server.of(Some("ann"));
    assert!(matches!(
        refused(&ann, 0, unauthorized()).await,
        Err(AccountFault::MetadataRefused(_) | AccountFault::Refused(_))
    ));
    // Each token is exchanged for its own bearer, also if another one came later.
    let now_ms = unix_ms();
    let participant = ParticipantId::new("ann").unwrap();
    let came = |token: &str, at: u8, ends_ms: u64| {
        let hash = Digest([at; 32]);
        all.came(CheckedToken {
            participant: "ann",
            token,
            hash,
            ends_ms,
        });
        let holder = AccountHolder {
            participant: &participant,
            token: Some(hash),
        };
        (server.of_holder(Some(holder)), hash)
    };
    let (narrow, of_narrow) = came("narrow", 1, now_ms + 60_000);
    let (wide, of_wide) = came("wide", 2, now_ms + 60_000);
    assert_eq!(server.latest_token("ann"), Some(of_wide));
    assert_eq!(came("narrow", 1, now_ms + 60_000).1, of_narrow);
    assert_eq!(server.latest_token("ann"), Some(of_narrow));
    for (account, token) in [(&narrow, "narrow"), (&wide, "wide")] {
        assert_eq!(refused(account, 0, unauthorized()).await, Ok(()));
        let asked = script.asked().pop().unwrap();
        assert!(
            asked.contains(&format!("subject_token={token}&")) && asked.contains("audience=api"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn accounts_of_exchanged_tokens_end_with_them_and_have_a_bound() {
    let script = Script::start().await;
    let all = accounts(None);
    let exchange = AuthConfig {
        kind: AuthorizationKind::Exchange,
        account: Whose::Caller,
        ..AuthConfig::default()
    };
    let server = server(&all, &script, exchange);
    let ann = ParticipantId::new("ann").unwrap();
    let now_ms = unix_ms();
    let hash = |at: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&at.to_be_bytes());
        Digest(bytes)
    };
    let came = |at: usize, ends_ms: u64| {
        all.came(CheckedToken {
            participant: "ann",
            token: "t",
            hash: hash(at),
            ends_ms,
        });
        SessionAccount::new(server.of_holder(Some(AccountHolder {
            participant: &ann,
            token: Some(hash(at)),
        })))
    };
    let ended = came(0, now_ms.saturating_sub(1));
    let first = came(1, u64::MAX);
    assert!(ended.is_void() && !first.is_void());
    for at in 2..=EXCHANGED_TOKENS_MAX {
        came(at, u64::MAX);
    }
    assert!(!first.is_void());
    came(EXCHANGED_TOKENS_MAX + 1, u64::MAX);
    assert!(first.is_void(), "it was used longest ago");
    assert_eq!(
        server.all(&all.logins).len(),
        1,
        "participants are listed, not tokens"
    );
}
