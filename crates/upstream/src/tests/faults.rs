//! What a bad server costs: its own calls, and nothing else.

use super::*;

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let mut config = config(&["legacy"]);
    config.timeouts.tools.insert("hang".to_owned(), Duration::from_millis(200));
    let house = start_with(config, |_| {});
    let session = shared(&house, Era::Legacy).await;
    let refusal = done(&mut call(&session, "hang", &json!({}))).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamTimeout);
    let (ticket, _heard) = try_call(&session, "hang", &json!({})).unwrap();
    session.cancel(ticket, "changed my mind");
    assert_eq!(report(&session).await["cancelled"].as_array().unwrap().len(), 2);
    assert_eq!(session.calls(), 0);
    house.upstream.close().await;
}

#[tokio::test]
async fn a_crash_costs_only_the_open_calls() {
    let house = start(&["legacy"]);
    let session = shared(&house, Era::Legacy).await;
    let mut hanging = call(&session, "hang", &json!({}));
    let mut crashing = call(&session, "crash", &json!({}));
    for heard in [&mut hanging, &mut crashing] {
        assert_eq!(done(heard).await.unwrap_err().code, RefusalCode::UpstreamFailed);
    }
    assert!(!session.is_open());
    assert_eq!(house.upstream.manifest().tools.items.len(), 11);
    let again = shared(&house, Era::Legacy).await;
    assert!(done(&mut call(&again, "echo", &json!({}))).await.is_ok());
    assert_eq!(house.upstream.status().restarts, 1);
    assert!(house.listener.0.lock().contains(&"ended".to_owned()));
    house.upstream.close().await;
}

#[tokio::test]
async fn garbage_and_overlong_lines_cost_nothing_else() {
    let house = start_with(config(&["legacy"]), |spec| spec.bounds.stdio.line_bytes_max = 100_000);
    let session = shared(&house, Era::Legacy).await;
    assert!(done(&mut call(&session, "garbage", &json!({"lines": 5000}))).await.is_ok());
    let refusal = done(&mut call(&session, "huge", &json!({"bytes": 200_000}))).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamFailed);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    house.upstream.close().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_down_with_a_reason() {
    let mut config = config(&["legacy", "hang"]);
    config.timeouts.start = Duration::from_millis(400);
    let house = start_with(config, |spec| spec.bounds.probe = Duration::from_millis(100));
    let refusal =
        house.upstream.session(&SessionKey::Legacy(1), &hello("{}"), Era::Legacy).await.unwrap_err();
    assert!(matches!(refusal.code, RefusalCode::UpstreamTimeout | RefusalCode::UpstreamDown), "{refusal:?}");
    house.upstream.settled().await;
    assert!(house.upstream.status().reason.is_some());
    house.upstream.close().await;
}

#[tokio::test]
async fn the_whole_group_goes() {
    let house = start(&["legacy"]);
    let session = shared(&house, Era::Legacy).await;
    let child = text_of(&done(&mut call(&session, "child", &json!({}))).await.unwrap()).as_u64().unwrap();
    until("the grandchild runs", || alive(child)).await;
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    until("the grandchild has ended", || !alive(child)).await;
    house.upstream.close().await;
}

#[tokio::test]
async fn a_flood_costs_no_other_server_its_answers() {
    let flooding = start(&["legacy", "flood"]);
    let calm = start(&["legacy"]);
    let session = shared(&calm, Era::Legacy).await;
    let flooded = shared(&flooding, Era::Legacy).await;
    let slow = call(&flooded, "echo", &json!({}));
    for _ in 0..50 {
        assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    }
    let mut slow = slow;
    assert!(done(&mut slow).await.is_ok());
    flooding.upstream.close().await;
    calm.upstream.close().await;
}

#[tokio::test]
async fn an_upstream_that_nobody_holds_ends_its_sessions() {
    let house = start(&["legacy"]);
    let session = shared(&house, Era::Legacy).await;
    let pid = report(&session).await["pid"].as_u64().unwrap();
    drop((session, house));
    until("the child has ended", || !alive(pid)).await;
}
