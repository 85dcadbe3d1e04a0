//! Subscriptions of a link end with its interest.

use super::*;

#[tokio::test]
async fn a_links_subscriptions_end_in_every_session() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    for (link, uri) in [(1, "test://a"), (1, "test://b"), (2, "test://a"), (2, "test://c")] {
        assert_eq!(session.subscribe(LinkId(link), "ann", uri).await.unwrap().outcome, Outcome::Ok);
    }
    fixture.upstream.unsubscribe(LinkId(1), &resource("test://a"));
    fixture.upstream.release(LinkId(1));
    assert_eq!(report(&session).await["subscribed"], json!(["test://a", "test://c"]));
    fixture.upstream.unsubscribe(LinkId(2), &resource("test://c"));
    assert_eq!(report(&session).await["subscribed"], json!(["test://a"]));
    // Whether or not the next session is open already, it does not subscribe for a link that is gone.
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
    assert_eq!(session.subscribe(LinkId(1), "ann", "test://a").await.unwrap().outcome, Outcome::Ok);
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
