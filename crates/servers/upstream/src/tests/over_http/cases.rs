//! Sessions with these servers: calls, streams, schemas, new sessions, eras.

use super::*;

#[tokio::test]
async fn a_legacy_http_server_loses_its_session_and_no_call() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!(
        (session.era(), server.inits.load(Ordering::SeqCst)),
        (Era::Legacy, 1)
    );
    assert_eq!(session.manifest().tools.items.len(), 2);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    let headers = server.seen("tools/call")[0].clone();
    assert_eq!(headers["mcp-session-id"], "s-1");
    assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
    assert_eq!(headers["authorization"], "Bearer ours");
    assert_eq!(headers.len(), 7, "{headers:?}");

    assert_eq!(session.version(), Version::NEWEST_LEGACY);
    server.session.store(2, Ordering::SeqCst);
    *server.revision.lock() = Some("2025-06-18");
    let mut calls: Vec<_> = (0..100)
        .map(|_| call(&session, "echo", &json!({})))
        .collect();
    for events in &mut calls {
        assert_eq!(done(events).await.unwrap()["id"], "a-1");
    }
    assert_eq!(server.inits.load(Ordering::SeqCst), 2);
    assert!(session.is_open());
    // The server that was started anew has chosen another revision.
    assert_eq!(session.version(), Version::V2025_06_18);
    assert_eq!(
        fixture.upstream.status().version.as_deref(),
        Some("2025-06-18")
    );
    done(&mut call(&session, "echo", &json!({}))).await.unwrap();
    assert_eq!(
        server.seen("tools/call").last().unwrap()["mcp-protocol-version"],
        "2025-06-18"
    );
    fixture.upstream.close().await;
    assert!(
        server
            .seen
            .lock()
            .iter()
            .any(|(method, ..)| *method == Method::DELETE)
    );
}

#[tokio::test]
async fn response_streams_carry_progress_and_questions_and_resume() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = session(&fixture, 7, &client(r#"{"elicitation":{}}"#), Era::Legacy)
        .await
        .unwrap();

    let mut events = call(&session, "progress", &json!({}));
    match next(&mut events).await {
        CallEvent::Notice(_, frame) => assert_eq!(frame["params"]["progressToken"], "mine"),
        other => panic!("{other:?}"),
    }
    assert!(done(&mut events).await.is_ok());

    // With another call open, the question reaches the call on whose stream it came.
    let (number, mut other) = try_call(&session, "hang", &json!({})).unwrap();
    let mut events = call(&session, "ask", &json!({}));
    let CallEvent::Question(question, _) = next(&mut events).await else {
        panic!("no question")
    };
    question
        .answer(&accepted(r#"{"action":"accept"}"#))
        .unwrap();
    until("the answer has arrived", || {
        server
            .seen
            .lock()
            .iter()
            .any(|(_, _, body)| body["id"] == "q" && body["result"]["action"] == "accept")
    })
    .await;
    assert!(other.try_recv().is_err());
    session.cancel(number, "enough");
    until("the cancellation has arrived", || {
        server.seen("notifications/cancelled").len() == 1
    })
    .await;

    let answer = done(&mut call(&session, "resume", &json!({})))
        .await
        .unwrap();
    assert_eq!(answer["result"]["resumed"], "e-1");
    let refusal = done(&mut call(&session, "drop", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamFailed);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_get_stream_announces_list_changes() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    until("the stream is open", || {
        server.streams.lock().contains_key("free")
    })
    .await;
    let before = server.seen("tools/list").len();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.stream("free").send(event(None, &changed)).unwrap();
    until("the list is read again", || {
        server.seen("tools/list").len() > before
    })
    .await;
    assert!(session.is_open());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_modern_http_server_gets_mirrored_headers_and_closed_streams() {
    let server = Server::start(Kind::Modern).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.era(), Era::Modern);
    let manifest = session.manifest();
    assert_eq!(
        (
            manifest.tools.items.len(),
            manifest.quarantined[0].name.as_str()
        ),
        (1, "bad")
    );
    assert!(
        done(&mut call(&session, "echo", &json!({"place": "h\u{e9}"})))
            .await
            .is_ok()
    );
    let headers = server.seen("tools/call")[0].clone();
    assert_eq!(
        (&headers["mcp-method"], &headers["mcp-name"]),
        (&"tools/call".parse().unwrap(), &"echo".parse().unwrap())
    );
    assert_eq!(headers["mcp-param-place"], "=?base64?aMOp?=");
    assert!(!headers.contains_key("mcp-session-id"));

    let answer = done(&mut call(&session, "none", &json!({}))).await.unwrap();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("a-1"), &json!(-32601))
    );

    let (number, _heard) = try_call(&session, "hang", &json!({})).unwrap();
    until("the call has arrived", || {
        server.streams.lock().contains_key("hang")
    })
    .await;
    assert!(!server.stream("hang").is_closed());
    session.cancel(number, "enough");
    until("the stream is closed", || server.stream("hang").is_closed()).await;
    assert!(server.seen("notifications/cancelled").is_empty());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn notifications_on_a_replaced_listen_stream_still_arrive() {
    let server = Server::start(Kind::Modern).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    until("the first stream is open", || {
        server.streams.lock().contains_key("lists")
    })
    .await;
    session
        .subscribe(model::LinkId(7), "ann", "test://followed")
        .await
        .unwrap();
    // `subscribe` returns after the server has the subscription.
    assert!(server.streams.lock().contains_key("both"));
    let before = server.seen("tools/list").len();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.stream("lists").send(event(None, &changed)).unwrap();
    until("the list is read again", || {
        server.seen("tools/list").len() > before
    })
    .await;
    until("the old stream is closed", || {
        server.stream("lists").is_closed()
    })
    .await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn calls_whose_headers_are_refused_are_sent_again_with_those_of_the_new_schema() {
    let server = Server::start(Kind::Modern).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    let arguments = json!({"place": "here"});
    assert!(done(&mut call(&session, "echo", &arguments)).await.unwrap()["result"].is_object());
    let listed = || server.seen("tools/list").len();
    let before = listed();
    let called = server.seen("tools/call").len();
    *server.place.lock() = "Where";
    let mut calls: Vec<_> = (0..3).map(|_| call(&session, "echo", &arguments)).collect();
    for events in &mut calls {
        let answer = done(events).await.unwrap();
        assert_eq!(answer["result"]["echo"]["arguments"], arguments, "{answer}");
    }
    assert_eq!(
        server.seen("tools/call").last().unwrap()["mcp-param-where"],
        "here"
    );
    assert!(
        !server
            .seen("tools/call")
            .last()
            .unwrap()
            .contains_key("mcp-param-place")
    );
    // Calls that are refused while it lists wait for the same list.
    assert!(listed() <= before + 3 && server.seen("tools/call").len() <= called + 6);
    assert!(fixture.log.0.lock().contains(&"changed".to_owned()));
    // A name that cannot be a header leaves the tool without one: the call is refused for good.
    *server.place.lock() = "no name";
    let called = server.seen("tools/call").len();
    let answer = done(&mut call(&session, "echo", &arguments)).await.unwrap();
    assert_eq!(answer["error"]["code"], -32020, "{answer}");
    assert!(server.seen("tools/call").len() <= called + 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_lost_session_is_opened_again_with_all_that_it_had() {
    let server = Server::start(Kind::Legacy).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    let in_session = |method: &str, number: usize| {
        let named = format!("s-{number}");
        server
            .seen(method)
            .iter()
            .filter(|headers| headers["mcp-session-id"] == *named)
            .count()
    };
    let restored = |number: usize, subscribed: usize| {
        in_session("resources/subscribe", number) >= subscribed
            && in_session("logging/setLevel", number) > 0
    };
    assert!(session.want_level(LinkId(1), model::LogLevel::Debug, true));
    session.pass_level().await;
    assert_eq!(
        session
            .subscribe(LinkId(1), "ann", "test://a")
            .await
            .unwrap()
            .outcome,
        Outcome::Ok
    );
    until("the stream is open", || {
        server.streams.lock().contains_key("free")
    })
    .await;
    // A request of the session itself finds it lost.
    server.session.store(2, Ordering::SeqCst);
    assert_eq!(
        session
            .subscribe(LinkId(1), "ann", "test://b")
            .await
            .unwrap()
            .outcome,
        Outcome::Ok
    );
    until("it has all again", || restored(2, 2)).await;
    // A notification finds it lost.
    server.session.store(3, Ordering::SeqCst);
    session
        .notify(wire::rpc::notification(
            "notifications/roots/list_changed",
            None,
        ))
        .unwrap();
    until("it has all again", || restored(3, 2)).await;
    // Its stream finds it lost.
    until("the stream is open", || {
        server.seen.lock().iter().any(|(method, headers, _)| {
            *method == Method::GET && headers["mcp-session-id"] == "s-3"
        })
    })
    .await;
    server.session.store(4, Ordering::SeqCst);
    server.streams.lock().remove("free");
    until("it has all again", || restored(4, 2)).await;
    assert_eq!(server.inits.load(Ordering::SeqCst), 4);
    assert!(session.is_open());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn no_request_overtakes_the_end_of_the_handshake() {
    let server = Server::start(Kind::Strict).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(session.manifest().tools.items.len(), 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_of_2024_is_detected() {
    let server = Server::start(Kind::Older).await;
    let fixture = fixture(&server);
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!(session.era(), Era::Legacy);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn an_http_server_without_an_answer_to_the_probe_is_legacy() {
    let server = Server::start(Kind::Silent).await;
    let http = HttpConfig {
        url: SecretText::new(server.url.as_str()),
        headers: Vec::new(),
        tls: tls::ClientTls::of_machine(),
    };
    let mut config = ServerConfig {
        transport: Transport::Http(http),
        ..config(&[])
    };
    config.timeouts.start = Duration::from_secs(5);
    let fixture = start_with(config, |spec| {
        spec.limits.probe = Duration::from_millis(100)
    });
    let session = shared(&fixture, Era::Modern).await;
    assert_eq!(session.era(), Era::Legacy);
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_down_and_its_url_stays_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
    drop(listener);
    let http = HttpConfig {
        url: SecretText::new(url),
        headers: Vec::new(),
        tls: tls::ClientTls::of_machine(),
    };
    let fixture = start_with(
        ServerConfig {
            transport: Transport::Http(http),
            ..config(&[])
        },
        |_| {},
    );
    let refusal = session(&fixture, 1, &client("{}"), Era::Legacy)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamDown);
    assert!(
        !format!("{refusal:?}").contains("secret-path"),
        "{refusal:?}"
    );
    fixture.upstream.close().await;
}
