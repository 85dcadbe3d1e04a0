//! Renewal of tokens.

use super::*;

#[tokio::test]
async fn a_hundred_calls_at_the_expiry_renew_once() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    script.tokens.lock().unwrap().push(tokens("old", 0));
    sign_in(&all, &account, &script).await.unwrap();
    assert_eq!(account.stamp(), 0);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let account = Arc::clone(&account);
        calls.spawn(async move { header(&account).await });
    }
    while let Some(header) = calls.join_next().await {
        assert_eq!(header.unwrap(), Ok(bearer("canary-a0")));
    }
    let asked = script.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked[1].contains("grant_type=refresh_token&refresh_token=r-old")
            && !asked[1].contains("scope=")
    );
    // The same after a refusal by the server: one renewal for all that were refused.
    let stamp = account.grant().await.ok().unwrap().stamp;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let account = Arc::clone(&account);
        calls.spawn(async move { account.refused(stamp, 0, unauthorized()).await });
    }
    while let Some(again) = calls.join_next().await {
        assert_eq!(again.unwrap(), Ok(()));
    }
    assert_eq!(
        (script.asked().len(), header(&account).await),
        (3, Ok(bearer("canary-a1")))
    );
    // The renewed token is refused too: a person has to act.
    assert_eq!(
        refused(&account, 1, unauthorized()).await,
        Err(AccountFault::LoginNeeded)
    );
}

#[tokio::test]
async fn only_a_refused_renewal_ends_a_sign_in() {
    for (answers, expect, state) in [
        (vec![(503, String::new())], "waiting", "waiting"),
        (vec![(429, String::new())], "waiting", "waiting"),
        (
            vec![(400, r#"{"error":"temporarily_unavailable"}"#.to_owned())],
            "waiting",
            "waiting",
        ),
        // What says nothing about the tokens: pages of proxies, answers of another program.
        (
            vec![(200, "<html>hello</html>".to_owned())],
            "waiting",
            "waiting",
        ),
        (
            vec![(404, "<html>no such page</html>".to_owned())],
            "waiting",
            "waiting",
        ),
        (
            vec![(403, r#"{"message":"denied"}"#.to_owned())],
            "waiting",
            "waiting",
        ),
        (
            vec![(
                200,
                r#"{"access_token":"a b","token_type":"Bearer"}"#.to_owned(),
            )],
            "waiting",
            "waiting",
        ),
        (vec![(200, "x".repeat(100_000))], "waiting", "waiting"),
        (
            vec![(400, r#"{"error":"invalid_grant"}"#.to_owned())],
            "lost",
            "needs_login",
        ),
        (
            vec![(401, r#"{"error":"invalid_client"}"#.to_owned())],
            "lost",
            "needs_login",
        ),
    ] {
        let script = Script::start().await;
        let all = accounts(None);
        let account = server(&all, &script, AuthConfig::default()).of(None);
        script.tokens.lock().unwrap().push(tokens("old", 0));
        sign_in(&all, &account, &script).await.unwrap();
        script.tokens.lock().unwrap().extend(answers.clone());
        let found = match header(&account).await {
            Err(AccountFault::Waiting { retry_after_ms, .. })
                if (500..=1_000).contains(&retry_after_ms) =>
            {
                "waiting"
            }
            Err(AccountFault::MetadataRefused(_)) => "waiting",
            Err(AccountFault::LoginLost) => "lost",
            other => panic!("{answers:?} {other:?}"),
        };
        assert_eq!(
            (found, account.state().state),
            (expect, state),
            "{answers:?}"
        );
        // It is not asked again at once, and not at all once it is lost.
        let _ = header(&account).await;
        assert_eq!(script.asked().len(), 2, "{answers:?}");
    }
    // A token that still serves goes on to be used meanwhile.
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    sign_in(&all, &account, &script).await.unwrap();
    script.tokens.lock().unwrap().push((503, String::new()));
    assert!(refused(&account, 0, unauthorized()).await.is_err());
    assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
}
