//! Subscriptions of a link end with its interest.

use super::*;

#[tokio::test]
async fn a_links_subscriptions_end_in_every_session() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    for (link, uri) in [(1, "test://a"), (1, "test://b"), (2, "test://a"), (2, "test://c")] {
        assert_eq!(session.subscribe(LinkId(link), uri).await.unwrap().outcome, Outcome::Ok);
    }
    fixture.upstream.unsubscribe(LinkId(1), "test://a");
    fixture.upstream.forget(LinkId(1));
    assert_eq!(report(&session).await["subscribed"], json!(["test://a", "test://c"]));
    fixture.upstream.unsubscribe(LinkId(2), "test://c");
    assert_eq!(report(&session).await["subscribed"], json!(["test://a"]));
    // Whether or not the next session is open already, it does not subscribe for a link that is gone.
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    fixture.upstream.forget(LinkId(2));
    let again = shared(&fixture, Era::Legacy).await;
    assert_eq!(report(&again).await["subscribed"], json!([]));
    fixture.upstream.close().await;
}
