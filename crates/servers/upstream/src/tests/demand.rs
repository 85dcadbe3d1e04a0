//! Servers that run on demand: when they start, what they list while they do not run, and when they
//! stop.

use super::*;

const IDLE: Duration = Duration::from_millis(300);

fn on_demand(args: &[&str]) -> ServerConfig {
    ServerConfig {
        start: Start::Demand,
        idle_stop: IDLE,
        ..config(args)
    }
}

fn start_on_demand(args: &[&str], dir: &Path) -> Fixture {
    start_kept(on_demand(args), dir)
}

/// A server that keeps in a directory what it lists and who uses it.
fn start_kept(config: ServerConfig, dir: &Path) -> Fixture {
    let kept = KeptManifests::open(Some(dir));
    start_in(
        config,
        |_| {},
        |environment| {
            environment.kept = kept;
            environment.starts = Arc::new(Starts::new(4, 0));
        },
    )
}

/// Waits until the lists of a server are in the directory.
async fn kept(dir: &Path) {
    until("the lists are kept", || {
        std::fs::read_dir(dir.join("manifests")).is_ok_and(|all| all.count() == 1)
    })
    .await;
}

async fn idle(fixture: &Fixture) {
    until("it is idle", || {
        fixture.upstream.status().state == ServerState::Idle
    })
    .await;
}

#[tokio::test]
async fn an_unused_server_is_listed_and_stops() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = start_on_demand(&["legacy"], dir.path());
    fixture.upstream.settled().await;
    let pid = u64::from(fixture.upstream.status().pid.unwrap());
    idle(&fixture).await;
    until("its process has ended", || !alive(pid)).await;
    let status = fixture.upstream.status();
    assert_eq!(
        (status.sessions, status.restarts, status.listed[0]),
        (0, 0, 12)
    );
    // Its next use starts it.
    let session = shared(&fixture, Era::Legacy).await;
    assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
    assert_eq!(
        (fixture.starts(), fixture.upstream.status().users.len()),
        (2, 1)
    );
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_runs_while_a_client_that_used_it_is_connected() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = start_on_demand(&["legacy"], dir.path());
    let session = shared(&fixture, Era::Legacy).await;
    until("it was unused for long", || {
        session.since_last_call() > 3 * IDLE
    })
    .await;
    assert!(session.is_open());
    fixture.upstream.release(LinkId(1));
    until("it is stopped", || !session.is_open()).await;
    idle(&fixture).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_link_that_left_before_its_session_was_open_keeps_no_server_running() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = start_on_demand(&["legacy"], dir.path());
    fixture.upstream.release(LinkId(1));
    let session = shared(&fixture, Era::Legacy).await;
    until("it was unused for long", || {
        session.since_last_call() > 2 * IDLE
    })
    .await;
    assert!(session.is_open());
    fixture.log.2.lock().push(LinkId(1));
    idle(&fixture).await;
    assert!(fixture.upstream.status().users.is_empty());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn an_own_session_ends_when_its_client_is_not_connected_and_does_not_use_it() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = start_on_demand(&["legacy"], dir.path());
    let own = session(&fixture, 7, &client(r#"{"elicitation":{}}"#), Era::Legacy)
        .await
        .unwrap();
    until("it was unused for long", || {
        own.since_last_call() > 2 * IDLE
    })
    .await;
    assert!(own.is_open());
    fixture.log.2.lock().push(LinkId(7));
    until("it is closed", || !own.is_open()).await;
    idle(&fixture).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_with_a_call_or_a_subscription_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = start_on_demand(&["legacy"], dir.path());
    let session = shared(&fixture, Era::Legacy).await;
    session
        .subscribe(LinkId(2), "ann", "test://a")
        .await
        .unwrap();
    fixture.upstream.release(LinkId(1));
    until("it was unused for long", || {
        session.since_last_call() > 3 * IDLE
    })
    .await;
    assert!(session.is_open(), "a link is subscribed");
    // Its end does not end the subscription.
    assert!(
        done(&mut call(&session, "crash", &json!({})))
            .await
            .is_err()
    );
    until("it runs again", || {
        fixture.upstream.open_shared(Era::Legacy).is_some()
    })
    .await;
    let again = fixture.upstream.open_shared(Era::Legacy).unwrap();
    assert_eq!(report(&again).await["subscribed"], json!(["test://a"]));
    let hanging = call(&again, "hang", &json!({}));
    fixture.upstream.release(LinkId(2));
    until("it was unused for long", || {
        again.since_last_call() > 3 * IDLE
    })
    .await;
    assert!(again.is_open(), "a call is open");
    drop(hanging);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_gateway_that_has_just_started_lists_what_was_kept_and_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for era in ["legacy", "modern", "both"] {
        let dir = dir.path().join(era);
        std::fs::create_dir(&dir).unwrap();
        let first = start_on_demand(&[era], &dir);
        first.upstream.settled().await;
        kept(&dir).await;
        let listed = first.upstream.manifest();
        first.upstream.close().await;
        let second = start_on_demand(&[era], &dir);
        assert!(second.upstream.has_settled());
        assert_eq!(*second.upstream.manifest(), *listed);
        let status = second.upstream.status();
        assert_eq!(
            (status.state, status.eras),
            (ServerState::Idle, first.upstream.status().eras)
        );
        assert_eq!(
            (second.starts(), &*listed.quarantined[0].name),
            (0, "broken")
        );
        let session = shared(&second, Era::Modern).await;
        assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
        assert_eq!(second.starts(), 1);
        second.upstream.close().await;
        // Another configuration may list something else.
        let other = start_on_demand(&[era, "lists-modern"], &dir);
        assert!(!other.upstream.has_settled());
        other.upstream.close().await;
    }
}

#[tokio::test]
async fn a_server_is_warm_for_a_client_that_used_it_lately() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = start_on_demand(&["legacy"], dir.path());
    let ann = ParticipantId::new("ann").unwrap();
    let bob = ParticipantId::new("bob").unwrap();
    let plain = client("{}");
    let mut asked = client(r#"{"elicitation":{}}"#);
    asked.client_info = Some(Bytes::from_static(br#"{"name":"cursor"}"#));
    let caller = |link, participant, client| Caller {
        link: LinkId(link),
        participant,
        account: "ann",
        form: Era::Legacy,
        client,
        token: None,
    };
    fixture
        .upstream
        .session(&caller(1, &ann, &asked))
        .await
        .unwrap();
    fixture
        .upstream
        .session(&caller(2, &bob, &plain))
        .await
        .unwrap();
    [1, 2]
        .into_iter()
        .for_each(|link| fixture.upstream.release(LinkId(link)));
    idle(&fixture).await;
    let eve = ParticipantId::new("eve").unwrap();
    fixture.upstream.warm(&caller(3, &eve, &asked)).await;
    assert_eq!(fixture.upstream.status().sessions, 0, "it never used it");
    // A client that had a session of its own gets one, another one the shared session.
    for (link, participant, own) in [(4, &ann, 1), (5, &bob, 0)] {
        fixture
            .upstream
            .warm(&caller(link, participant, &asked))
            .await;
        let status = fixture.upstream.status();
        assert_eq!((status.sessions, status.own_sessions), (1, own));
        fixture.upstream.release(LinkId(link));
        idle(&fixture).await;
    }
    fixture.upstream.close().await;
}

#[tokio::test]
async fn no_session_for_one_call_is_opened_ahead_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = on_demand(&["legacy"]);
    config.sessions = SessionSharing::Call;
    let fixture = start_kept(config, dir.path());
    let ann = ParticipantId::new("ann").unwrap();
    let mut named = client("{}");
    named.client_info = Some(Bytes::from_static(br#"{"name":"cursor"}"#));
    let caller = Caller {
        link: LinkId(1),
        participant: &ann,
        account: "ann",
        form: Era::Legacy,
        client: &named,
        token: None,
    };
    let session = fixture.upstream.session(&caller).await.unwrap();
    let called = done(&mut call(&session, "echo", &json!({}))).await;
    assert!(called.is_ok());
    fixture.upstream.release(LinkId(1));
    idle(&fixture).await;
    fixture.upstream.warm(&caller).await;
    assert_eq!(fixture.upstream.status().sessions, 0);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_server_of_which_one_process_can_run_is_shared() {
    let plain = client("{}");
    let asked = client(r#"{"elicitation":{}}"#);
    for (first, second) in [(&plain, &asked), (&asked, &plain), (&asked, &asked)] {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        let fixture = start_on_demand(&["legacy", "locks", lock.to_str().unwrap()], dir.path());
        fixture.upstream.settled().await;
        idle(&fixture).await;
        for (link, client) in [(1, first), (2, second), (1, first)] {
            let session = session(&fixture, link, client, Era::Legacy).await.unwrap();
            assert!(
                done(&mut call(&session, "echo", &json!({}))).await.is_ok(),
                "{link}"
            );
        }
        let status = fixture.upstream.status();
        assert_eq!(
            status.single.as_deref(),
            Some("process ended (exit code 5)")
        );
        assert_eq!((status.sessions, status.state), (1, ServerState::Ready));
        fixture.upstream.close().await;
    }
}

#[tokio::test]
async fn a_process_that_still_works_is_not_killed_at_the_start_timeout() {
    let dir = tempfile::tempdir().unwrap();
    // Its patience is over once while it writes, also where the machine does not let it write for
    // half a second.
    let mut config = on_demand(&["legacy", "writes-slowly", "4"]);
    config.timeouts.start = Duration::from_secs(2);
    let fixture = start_in(
        config,
        |_| {},
        |environment| environment.kept = KeptManifests::open(Some(dir.path())),
    );
    let is_slow = || {
        let reason = fixture.upstream.status().reason.unwrap_or_default();
        reason.starts_with("has been starting for")
            && reason.ends_with("it still writes to its log")
    };
    until("it says what it waits for", is_slow).await;
    fixture.upstream.settled().await;
    assert_eq!(
        (fixture.starts(), fixture.upstream.status().listed[0]),
        (1, 12)
    );
    fixture.upstream.close().await;
    // One that is silent and idle is, and its next start gets more time.
    let mut config = on_demand(&["legacy", "slow-start", "1"]);
    config.timeouts.start = Duration::from_millis(400);
    let fixture = start_in(config, |_| {}, |_| {});
    // It is ready for a moment only: once it is listed, its idle limit is over.
    until("it has started", || {
        fixture.upstream.status().listed[0] == 12
    })
    .await;
    assert!(fixture.starts() >= 2, "{}", fixture.starts());
    fixture.upstream.close().await;
}

/// The process of a server that has not answered yet.
async fn opening(fixture: &Fixture) -> u64 {
    until("its process runs", || fixture.starts() > 0).await;
    u64::from(fixture.upstream.stderr().after(0).0[0].pid)
}

fn waits_for_its_turn(fixture: &Fixture) -> bool {
    fixture
        .upstream
        .status()
        .reason
        .is_some_and(|why| why.starts_with("waits for its turn"))
}

/// A server that has its place in a gate of one place.
fn start_behind(gate: &Arc<Starts>, args: &[&str], patience: Duration) -> Fixture {
    let mut config = on_demand(args);
    config.timeouts.start = patience;
    start_in(
        config,
        |_| {},
        |environment| environment.starts = Arc::clone(gate),
    )
}

#[tokio::test]
async fn a_server_that_does_nothing_does_not_keep_others_from_their_start() {
    // Of the two places one is for callers.
    let gate = Arc::new(Starts::new(2, 0));
    let silent = start_behind(&gate, &["legacy", "hang"], Duration::from_secs(12));
    opening(&silent).await;
    let other = start_behind(&gate, &["legacy"], Duration::from_secs(20));
    until("it waits for its turn, and says so", || {
        waits_for_its_turn(&other)
    })
    .await;
    until("it has started", || {
        other.upstream.status().state == ServerState::Ready
    })
    .await;
    assert_eq!(silent.upstream.status().state, ServerState::Starting);
    silent.upstream.close().await;
    other.upstream.close().await;
}

#[tokio::test]
async fn a_server_that_is_closed_while_it_starts_ends_at_once() {
    let gate = Arc::new(Starts::new(2, 0));
    let silent = start_behind(&gate, &["legacy", "hang"], Duration::from_secs(600));
    let pid = opening(&silent).await;
    let queued = start_behind(&gate, &["legacy"], Duration::from_secs(600));
    until("another waits", || waits_for_its_turn(&queued)).await;
    queued.upstream.close().await;
    silent.upstream.close().await;
    until("its process has ended", || !alive(pid)).await;
    let third = start_behind(&gate, &["legacy"], Duration::from_secs(600));
    until("the place is free", || {
        third.upstream.status().state == ServerState::Ready
    })
    .await;
    assert_eq!((silent.starts(), queued.starts()), (1, 0));
    third.upstream.close().await;
}
