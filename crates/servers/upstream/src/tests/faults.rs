//! Faulty servers: each costs its own calls and nothing else.

use super::*;

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let mut config = config(&["legacy"]);
    config
        .timeouts
        .tools
        .insert("hang".to_owned(), Duration::from_millis(200));
    let fixture = start_with(config, |_| {});
    let session = shared(&fixture, Era::Legacy).await;
    let refusal = done(&mut call(&session, "hang", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamTimeout);
    let (number, _heard) = try_call(&session, "hang", &json!({})).unwrap();
    session.cancel(number, "changed my mind");
    assert_eq!(
        report(&session).await["cancelled"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(session.calls(), 0);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_crash_costs_only_the_open_calls() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    let mut hanging = call(&session, "hang", &json!({}));
    let mut crashing = call(&session, "crash", &json!({}));
    for events in [&mut hanging, &mut crashing] {
        assert_eq!(
            done(events).await.unwrap_err().code,
            RefusalCode::UpstreamFailed
        );
    }
    assert!(!session.is_open());
    assert_eq!(fixture.upstream.manifest().tools.items.len(), 12);
    let again = shared(&fixture, Era::Legacy).await;
    assert!(done(&mut call(&again, "echo", &json!({}))).await.is_ok());
    assert_eq!(fixture.upstream.status().restarts, 1);
    assert!(fixture.log.0.lock().contains(&"ended".to_owned()));
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_that_dislikes_the_probe_is_started_again_for_the_handshake() {
    let flags = [
        "ends-at-probe",
        "spoilt-by-probe",
        "closes-stdout-at-probe",
        "closes-stdin-at-probe",
        "hangs-at-probe",
        "initializes-at-probe",
        "takes-probe-for-initialize",
    ];
    let checks = flags.map(|flag| tokio::spawn(is_started_again(flag)));
    for check in checks {
        check.await.unwrap();
    }
}

async fn is_started_again(flag: &'static str) {
    let mut config = config(&["legacy", flag]);
    config.timeouts.start = Duration::from_secs(4);
    let fixture = start_with(config, |spec| spec.limits.probe = Duration::from_secs(1));
    fixture.upstream.settled().await;
    let session = shared(&fixture, Era::Legacy).await;
    assert!(
        done(&mut call(&session, "echo", &json!({}))).await.is_ok(),
        "{flag}"
    );
    let status = fixture.upstream.status();
    assert_eq!(
        (status.state, status.restarts, status.eras),
        (ServerState::Ready, 0, vec![Era::Legacy]),
        "{flag}"
    );
    // A crash later costs no probe: the era is known.
    assert!(
        done(&mut call(&session, "crash", &json!({})))
            .await
            .is_err()
    );
    let again = shared(&fixture, Era::Legacy).await;
    assert!(
        done(&mut call(&again, "echo", &json!({}))).await.is_ok(),
        "{flag}"
    );
    until("its starts are counted", || fixture.starts() == 3).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_noise_of_a_first_process_is_a_reason_although_the_second_prints_none() {
    const SCRIPT: &str = r#"echo >> "$0"; case $(wc -l < "$0") in 1) echo Hello;; 2) ;; *) exec sleep 1000;; esac; exit 3"#;
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let mut config = config(&[]);
    config.transport = Transport::Stdio(StdioConfig {
        command: "sh".to_owned(),
        args: ["-c", SCRIPT, count.to_str().unwrap()]
            .map(SecretText::new)
            .into(),
        env: Vec::new(),
        cwd: None,
        confinement: Default::default(),
    });
    let fixture = start_with(config, |_| {});
    fixture.upstream.settled().await;
    let cause = fixture.upstream.status().cause.unwrap();
    assert!(cause.contains("on stderr: \"Hello\""), "{cause}");
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_dislike_of_the_probe_is_remembered_after_a_failed_restart() {
    let marker = std::env::temp_dir().join(format!("portmoot-dislikes-{}", std::process::id()));
    let fixture = start(&[
        "legacy",
        "ends-at-probe",
        "fail-once",
        marker.to_str().unwrap(),
    ]);
    let session = shared(&fixture, Era::Legacy).await;
    std::fs::write(&marker, "").unwrap();
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    until("a start has failed", || !marker.exists()).await;
    until("it runs again", || {
        fixture.upstream.status().state == ServerState::Ready
    })
    .await;
    let again = shared(&fixture, Era::Legacy).await;
    assert!(done(&mut call(&again, "echo", &json!({}))).await.is_ok());
    // The probe of the first start, the handshake after it, the start after the failed one.
    until("its starts are counted", || fixture.starts() == 3).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_call_that_an_ending_session_did_not_take_has_a_successor() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    assert!(done(&mut call(&session, "deaf", &json!({}))).await.is_ok());
    let mut refused = None;
    until("it takes no call any more", || {
        refused = try_call(&session, "echo", &json!({})).err();
        refused.is_some()
    })
    .await;
    assert_eq!(refused.unwrap().code, RefusalCode::UpstreamDown);
    let participant = &ParticipantId::new("scout").unwrap();
    let client = &client("{}");
    let caller = Caller {
        link: LinkId(1),
        participant,
        account: "scout",
        form: Era::Legacy,
        client,
        token: None,
    };
    let successor = fixture.upstream.successor(&session, &caller).await.unwrap();
    assert!(!Arc::ptr_eq(&session, &successor));
    assert!(
        done(&mut call(&successor, "echo", &json!({})))
            .await
            .is_ok()
    );
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_status_says_why_a_server_failed() {
    let mut config = config(&["legacy", "fail-once", "/no/such/file", "ends-at-probe"]);
    config.era = EraChoice::Modern;
    let fixture = start_with(config, |_| {});
    fixture.upstream.settled().await;
    let status = fixture.upstream.status();
    assert_eq!(status.cause.as_deref(), Some("process ended (exit code 7)"));
    assert_eq!(status.last_words, [Arc::from("echo server starts")]);
    fixture.upstream.close().await;
    // After an end in the middle of a session, too.
    let marker = std::env::temp_dir().join(format!("portmoot-fails-{}", std::process::id()));
    let fixture = start(&["legacy", "fail-once", marker.to_str().unwrap()]);
    let session = shared(&fixture, Era::Legacy).await;
    assert_eq!(
        (
            fixture.upstream.status().cause,
            fixture.upstream.status().last_words.len()
        ),
        (None, 0)
    );
    // It never starts again: it cannot remove a folder.
    std::fs::create_dir(&marker).unwrap();
    assert!(
        done(&mut call(&session, "crash", &json!({})))
            .await
            .is_err()
    );
    let cause = fixture.upstream.status().cause.unwrap();
    let causes = [3, 1].map(|code| format!("process ended (exit code {code})"));
    assert!(
        causes.iter().any(|known| cause.starts_with(known)),
        "{cause}"
    );
    fixture.upstream.close().await;
    std::fs::remove_dir(&marker).unwrap();
    let absent = |command: &str, cwd: Option<&str>| {
        let mut config = super::config(&[]);
        config.transport = Transport::Stdio(StdioConfig {
            command: command.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.map(Into::into),
            confinement: Default::default(),
        });
        start_with(config, |_| {})
    };
    for (fixture, cause) in [
        (
            absent("/no/such/program", None),
            "the program `program` was not found",
        ),
        (
            absent("/etc/passwd", None),
            "the program `passwd` cannot be started",
        ),
        (
            absent("sh", Some("/no/such/directory")),
            "the working directory does not exist",
        ),
    ] {
        fixture.upstream.settled().await;
        let found = fixture.upstream.status().cause.unwrap();
        assert!(
            found.starts_with(cause) && !found.contains("/no/such"),
            "{found}"
        );
        fixture.upstream.close().await;
    }
}

#[tokio::test]
async fn garbage_and_overlong_lines_cost_no_other_call() {
    let fixture = start_with(config(&["legacy"]), |spec| {
        spec.limits.line_bytes_max = 100_000
    });
    let session = shared(&fixture, Era::Legacy).await;
    assert!(
        done(&mut call(&session, "garbage", &json!({"lines": 5000})))
            .await
            .is_ok()
    );
    let refusal = done(&mut call(&session, "huge", &json!({"bytes": 200_000})))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamFailed);
    let hint = refusal.hint.unwrap_or_default();
    assert!(hint.contains("`line_bytes_max`"), "{hint}");
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_down_with_a_reason() {
    let mut config = config(&["legacy", "hang"]);
    config.timeouts.start = Duration::from_millis(400);
    let fixture = start_with(config, |spec| {
        spec.limits.probe = Duration::from_millis(100)
    });
    let refusal = session(&fixture, 1, &client("{}"), Era::Legacy)
        .await
        .unwrap_err();
    assert!(
        matches!(
            refusal.code,
            RefusalCode::UpstreamTimeout | RefusalCode::UpstreamDown
        ),
        "{refusal:?}"
    );
    fixture.upstream.settled().await;
    assert!(fixture.upstream.status().reason.is_some());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_whole_process_group_ends() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    let child = text_of(
        &done(&mut call(&session, "child", &json!({})))
            .await
            .unwrap(),
    )
    .as_u64()
    .unwrap();
    until("the grandchild runs", || alive(child)).await;
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    until("the grandchild has ended", || !alive(child)).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_flood_delays_no_other_server() {
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
async fn dropping_an_upstream_ends_its_sessions() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    let pid = report(&session).await["pid"].as_u64().unwrap();
    drop((session, fixture));
    until("the child has ended", || !alive(pid)).await;
}

#[tokio::test]
async fn a_server_is_reported_when_it_ceases_and_begins_to_run() {
    let fixture = start(&["legacy"]);
    let session = shared(&fixture, Era::Legacy).await;
    let reports = || fixture.log.1.lock().clone();
    let report = |runs| ("echo".to_owned(), runs);
    assert_eq!(reports(), [report(true)]);
    let _ = done(&mut call(&session, "crash", &json!({}))).await;
    until("it runs again", || {
        reports() == [true, false, true].map(report)
    })
    .await;
    let asked = || {
        let mut found = None;
        fixture.upstream.report_available(|runs| found = Some(runs));
        found
    };
    assert_eq!(asked(), Some(true));
    // Stopped by the gateway, it reports nothing any more: another one may run under its name.
    fixture.upstream.close().await;
    assert_eq!((asked(), reports().len()), (None, 3));
}
