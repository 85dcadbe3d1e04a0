//! Subscriptions of links: one for each resource and server, kept over a restart, ended with their
//! links.

use super::*;

#[tokio::test]
async fn a_links_subscriptions_end_in_every_session() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    for (link, uri) in [
        (1, "test://a"),
        (1, "test://b"),
        (2, "test://a"),
        (2, "test://c"),
    ] {
        assert_eq!(
            session
                .subscribe(LinkId(link), "ann", uri)
                .await
                .unwrap()
                .outcome,
            Outcome::Ok
        );
    }
    fixture
        .upstream
        .unsubscribe(LinkId(1), &resource("test://a"));
    fixture.upstream.release(LinkId(1));
    assert_eq!(
        report(&session).await["subscribed"],
        json!(["test://a", "test://c"])
    );
    fixture
        .upstream
        .unsubscribe(LinkId(2), &resource("test://c"));
    assert_eq!(report(&session).await["subscribed"], json!(["test://a"]));
    // Whether or not the next session is open already, it does not subscribe for a link that is
    // gone.
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    fixture.upstream.release(LinkId(2));
    let again = shared(&fixture, Era::Legacy).await;
    assert_eq!(report(&again).await["subscribed"], json!([]));
    fixture.upstream.close().await;
}

#[tokio::test]
async fn subscriptions_survive_a_failed_restart() {
    let marker = std::env::temp_dir().join(format!("portmoot-fail-once-{}", std::process::id()));
    let fixture = start(&["legacy", "fail-once", marker.to_str().unwrap()]);
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(
        session
            .subscribe(LinkId(1), "ann", "test://a")
            .await
            .unwrap()
            .outcome,
        Outcome::Ok
    );
    // The next start finds the marker, removes it and fails; the detected era is forgotten.
    std::fs::write(&marker, "").unwrap();
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    until("a start has failed", || !marker.exists()).await;
    let limit = Instant::now() + Duration::from_secs(20);
    let again = loop {
        match super::session(&fixture, 1, &client("{}"), Era::Legacy).await {
            Ok(again) => break again,
            Err(refusal) => assert!(Instant::now() < limit, "{refusal}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(report(&again).await["subscribed"], json!(["test://a"]));
    fixture.upstream.close().await;
}

#[tokio::test]
async fn subscriptions_are_counted_and_survive_a_restart() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    for link in [1, 2] {
        assert_eq!(
            session
                .subscribe(LinkId(link), "ann", "test://a")
                .await
                .unwrap()
                .outcome,
            Outcome::Ok
        );
    }
    assert_eq!(report(&session).await["subscribed"], json!(["test://a"]));
    session.unsubscribe(LinkId(1), &resource("test://a"));
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    let again = shared(&fixture, Era::Legacy).await;
    assert_eq!(report(&again).await["subscribed"], json!(["test://a"]));
    fixture.upstream.close().await;
}

#[tokio::test]
async fn one_listen_stream_carries_all_subscriptions() {
    let fixture = start(&["modern"]);
    let session = shared(&fixture, Era::Modern).await;
    let limit = Instant::now() + Duration::from_secs(20);
    while report(&session).await["subscribed"]
        .as_array()
        .unwrap()
        .is_empty()
    {
        assert!(Instant::now() < limit, "no listen stream");
    }
    session
        .subscribe(LinkId(1), "ann", "test://a")
        .await
        .unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        let report = report(&session).await;
        let last = report["subscribed"]
            .as_array()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default();
        if last["resourceSubscriptions"] == json!(["test://a"])
            && !report["cancelled"].as_array().unwrap().is_empty()
        {
            assert_eq!(last["toolsListChanged"], true);
            break;
        }
        assert!(Instant::now() < limit, "{report}");
    }
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_callers_own_session_is_opened_again_for_its_subscriptions() {
    let fixture = start(&["legacy"]);
    let asking = client(r#"{"elicitation":{}}"#);
    let own = session(&fixture, 7, &asking, Era::Legacy).await.unwrap();
    assert_eq!(
        own.subscribe(LinkId(7), "ann", "test://a")
            .await
            .unwrap()
            .outcome,
        Outcome::Ok
    );
    assert!(own.want_level(LinkId(7), model::LogLevel::Debug, true));
    own.pass_level().await;
    let _ = done(&mut call(&own, "crash", &json!({}))).await;
    // Without another call of its owner.
    until("it is open again", || {
        fixture.upstream.status().sessions == 2
    })
    .await;
    let again = session(&fixture, 7, &asking, Era::Legacy).await.unwrap();
    let report = report(&again).await;
    assert_eq!(
        (&report["subscribed"], &report["level"]),
        (&json!(["test://a"]), &json!("debug"))
    );
    // Of a caller that has left nothing is opened again.
    again.unsubscribe(LinkId(7), &resource("test://a"));
    let _ = done(&mut call(&again, "crash", &json!({}))).await;
    assert!(!again.is_open());
    let other = session(&fixture, 8, &asking, Era::Legacy).await.unwrap();
    assert!(done(&mut call(&other, "echo", &json!({}))).await.is_ok());
    assert_eq!(
        fixture.upstream.status().sessions,
        2,
        "the shared one and the other's"
    );
    fixture.upstream.close().await;
}
