//! Sessions of callers: which calls share one, and when one is closed.

use std::task::Poll;

use wire::mcp::ListKind;
use wire::mcp::list::Item;

use super::*;
use crate::manifest::List;

#[tokio::test]
async fn a_server_of_both_eras_has_one_process_for_each() {
    let fixture = start(&["both"]);
    let modern = shared(&fixture, Era::Modern).await;
    let legacy = shared(&fixture, Era::Legacy).await;
    assert_eq!((modern.era(), legacy.era()), (Era::Modern, Era::Legacy));
    assert_ne!(report(&modern).await["pid"], report(&legacy).await["pid"]);
    assert!(Arc::ptr_eq(&modern, &shared(&fixture, Era::Modern).await));
    assert_eq!(fixture.upstream.status().sessions, 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_modern_server_is_asked_once_whether_it_speaks_legacy() {
    for (flags, eras) in [
        (
            &["both", "lists-modern"][..],
            &[Era::Modern, Era::Legacy][..],
        ),
        (&["modern"], &[Era::Modern]),
    ] {
        let fixture = start(flags);
        let modern = shared(&fixture, Era::Modern).await;
        assert_eq!(
            fixture.upstream.status().eras,
            [Era::Modern],
            "no caller has needed the other era yet"
        );
        assert!(fixture.upstream.open_shared(Era::Legacy).is_none());
        let asked = client(r#"{"elicitation":{}}"#);
        for link in 0..3 {
            let legacy = session(&fixture, link, &asked, Era::Legacy).await.unwrap();
            assert_eq!(legacy.era(), *eras.last().unwrap(), "{flags:?}");
            assert_eq!(legacy.key().is_own(), legacy.era() == Era::Legacy);
        }
        let status = fixture.upstream.status();
        assert_eq!(
            (status.eras, status.state, status.restarts),
            (eras.to_vec(), ServerState::Ready, 0)
        );
        assert!(modern.is_open() && shared(&fixture, Era::Modern).await.era() == Era::Modern);
        // A server of one era was started once more, to be asked; one of both has a process for
        // each caller.
        let expected = if eras.len() == 2 { 4 } else { 2 };
        until("all have started", || fixture.starts() == expected).await;
        fixture.upstream.close().await;
    }
}

#[tokio::test]
async fn a_participant_is_listed_what_its_own_open_sessions_list() {
    let fixture = start(&["both"]);
    let scout = ParticipantId::new("scout").unwrap();
    let other = ParticipantId::new("other").unwrap();
    let listed = |who, form| fixture.upstream.manifest_of(who, form);
    shared(&fixture, Era::Modern).await;
    assert!(
        listed(&scout, Era::Modern).is_none(),
        "the shared session is no participant's own"
    );
    let asked = client(r#"{"elicitation":{}}"#);
    let own = session(&fixture, 7, &asked, Era::Legacy).await.unwrap();
    assert!(own.key().is_own());
    for form in [Era::Legacy, Era::Modern] {
        assert!(
            listed(&scout, form).is_some_and(|listed| Arc::ptr_eq(&listed, &own.manifest())),
            "{form:?}"
        );
        assert!(listed(&other, form).is_none(), "{form:?}");
    }
    fixture.upstream.release(LinkId(7));
    until("the session has ended", || {
        listed(&scout, Era::Legacy).is_none()
    })
    .await;
    fixture.upstream.close().await;
}

/// Sessions of callers of the modern form at a legacy server on a pipe run calls one after the
/// other.
#[tokio::test]
async fn a_call_that_is_moved_waits_for_no_result_of_a_task() {
    let fixture = start(&["legacy"]);
    let declared = [
        r#"{"elicitation":{}}"#,
        r#"{"elicitation":{},"sampling":{}}"#,
    ];
    let [asking, other] = declared.map(client);
    let asking = session(&fixture, 1, &asking, Era::Modern).await.unwrap();
    let other = session(&fixture, 2, &other, Era::Modern).await.unwrap();
    assert!(!Arc::ptr_eq(&asking, &other));

    let mut asked = call(&asking, "ask", &json!({}));
    let question = next(&mut asked).await;
    assert!(matches!(question, CallEvent::Question(..)));
    let (number, mut behind) = try_call(&asking, "echo", &json!({})).unwrap();
    let result = try_request(&other, "tasks/result", json!({"taskId": "t"}), None);
    let (_, _result) = result.unwrap();
    // Its own events learn of it: calls of several topics share a session.
    asking.offer_deferred();
    assert!(matches!(next(&mut behind).await, CallEvent::Deferred));
    other.adopt(asking.take_unsent(number).unwrap());
    assert!(asking.take_unsent(number).is_none());
    assert!(done(&mut behind).await.is_ok());
    fixture.upstream.close().await;
}

#[test]
fn a_definition_is_the_same_however_it_is_spelled() {
    let raw =
        r#"{"name":"a","description":"Reads.","inputSchema":{"type":"object"},"_meta":{"x":1}}"#;
    let items = vec![Item::read(ListKind::Tools, raw.into()).unwrap()];
    let manifest = Manifest {
        tools: List {
            items,
            ..List::default()
        },
        ..Manifest::default()
    };
    for (tool, definition, expected) in [
        ("a", raw, true),
        (
            "a",
            r#"{ "inputSchema": {"type":"object"}, "description":"\u0052eads.", "name":"a" }"#,
            true,
        ),
        (
            "a",
            r#"{"name":"a","description":"Steals.","inputSchema":{"type":"object"}}"#,
            false,
        ),
        (
            "a",
            r#"{"name":"a","description":"Reads.","inputSchema":{"type":"object","properties":{}}}"#,
            false,
        ),
        ("b", raw, false),
    ] {
        assert_eq!(
            manifest.defines(tool, definition.as_bytes()),
            expected,
            "{tool} {definition}"
        );
    }
}

#[tokio::test]
async fn sessions_of_modern_links_end_with_the_last_link_that_used_them() {
    let fixture = start(&["legacy"]);
    let asked = client(r#"{"elicitation":{}}"#);
    // One participant in three topics; the third link uses no session of this server.
    let own = session(&fixture, 7, &asked, Era::Modern).await.unwrap();
    assert!(Arc::ptr_eq(
        &own,
        &session(&fixture, 8, &asked, Era::Modern).await.unwrap()
    ));
    for link in [9, 7, 7] {
        fixture.upstream.release(LinkId(link));
        assert_eq!(
            (own.is_open(), fixture.upstream.status().sessions),
            (true, 2),
            "link {link}"
        );
    }
    fixture.upstream.release(LinkId(8));
    until("the session has ended", || !own.is_open()).await;
    let again = session(&fixture, 8, &asked, Era::Modern).await.unwrap();
    assert_eq!(again.key(), own.key());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn calls_of_a_modern_caller_with_questions_run_one_after_the_other() {
    let fixture = start(&["legacy"]);
    let own = session(&fixture, 7, &client(r#"{"elicitation":{}}"#), Era::Modern)
        .await
        .unwrap();
    let mut first = call(&own, "ask", &json!({}));
    let mut second = call(&own, "echo", &json!({}));
    let CallEvent::Question(question, _) = next(&mut first).await else {
        panic!("no question")
    };
    assert!(second.try_recv().is_err());
    question.answer(&accepted("{}")).unwrap();
    assert!(done(&mut first).await.is_ok());
    assert!(done(&mut second).await.is_ok());
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_call_that_waits_behind_another_is_refused_as_not_sent() {
    let fixture = start(&["legacy"]);
    let own = session(&fixture, 7, &client(r#"{"elicitation":{}}"#), Era::Modern)
        .await
        .unwrap();
    let pid = report(&own).await["pid"].to_string();
    let mut first = call(&own, "hang", &json!({}));
    let mut second = call(&own, "echo", &json!({}));
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "KILL", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        done(&mut first).await.unwrap_err().code,
        RefusalCode::UpstreamFailed
    );
    assert_eq!(
        done(&mut second).await.unwrap_err().code,
        RefusalCode::UpstreamDown
    );
    fixture.upstream.close().await;
}

#[tokio::test]
async fn each_call_has_its_own_process_if_configured() {
    let mut config = config(&["legacy"]);
    config.sessions = SessionSharing::Call;
    let fixture = start_with(config, |_| {});
    let mut pids = Vec::new();
    for _ in 0..2 {
        let session = shared(&fixture, Era::Legacy).await;
        pids.push(report(&session).await["pid"].as_u64().unwrap());
    }
    assert_ne!(pids[0], pids[1]);
    until("both have ended", || !pids.iter().any(|pid| alive(*pid))).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn the_session_that_was_idle_longest_is_closed_for_a_new_one() {
    let fixture = start_with(config(&["legacy"]), |spec| {
        spec.limits.caller_sessions_max = 2
    });
    let mut open = Vec::new();
    let asking = client(r#"{"roots":{}}"#);
    for number in 1..=3 {
        let session = session(&fixture, number, &asking, Era::Legacy)
            .await
            .unwrap();
        assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
        open.push(session);
    }
    until("the first session is closed", || !open[0].is_open()).await;
    assert!(open[1].is_open() && open[2].is_open());
    let _busy = (
        call(&open[1], "hang", &json!({})),
        call(&open[2], "hang", &json!({})),
    );
    let refusal = session(&fixture, 4, &asking, Era::Legacy)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, RefusalCode::UpstreamBusy);
    fixture.upstream.close().await;
}

/// A caller of the legacy form, whose client declares nothing.
struct Scout {
    participant: ParticipantId,
    client: ClientProfile,
}

impl Scout {
    fn new() -> Self {
        Self {
            participant: ParticipantId::new("scout").unwrap(),
            client: client("{}"),
        }
    }

    fn caller(&self) -> Caller<'_> {
        Caller {
            link: LinkId(7),
            participant: &self.participant,
            account: "scout",
            form: Era::Legacy,
            client: &self.client,
            token: None,
        }
    }
}

/// A server with sessions of each caller or call, which answers once a file is there; a caller
/// begins to wait for its own, and gives up.
async fn given_up(sharing: SessionSharing, gate: &std::path::Path) -> Fixture {
    let mut config = config(&["legacy", "waits-for", gate.to_str().unwrap()]);
    config.sessions = sharing;
    config.era = EraChoice::Legacy;
    let fixture = start_with(config, |_| {});
    let upstream = Arc::clone(&fixture.upstream);
    let waiting = tokio::spawn(async move {
        let scout = Scout::new();
        upstream.session(&scout.caller()).await
    });
    until("both have started", || fixture.starts() == 2).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    fixture
}

#[tokio::test]
async fn a_start_goes_on_when_its_caller_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let fixture = given_up(SessionSharing::Caller, &gate).await;
    std::fs::write(&gate, "").unwrap();
    until("the caller's session is open", || {
        fixture.upstream.status().sessions == 2
    })
    .await;
    let own = session(&fixture, 7, &client("{}"), Era::Legacy)
        .await
        .unwrap();
    assert!(own.key().is_own());
    assert_eq!(fixture.starts(), 2);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_session_ends_whose_caller_has_given_up_and_left() {
    for sharing in [SessionSharing::Caller, SessionSharing::Call] {
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        let fixture = given_up(sharing, &gate).await;
        fixture.upstream.release(LinkId(7));
        std::fs::write(&gate, "").unwrap();
        until_one_is_left(&fixture).await;
        fixture.upstream.close().await;
    }
}

/// The session of a caller or call has ended, and the shared one is open.
async fn until_one_is_left(fixture: &Fixture) {
    until("the caller's session has ended", || {
        fixture.log.0.lock().iter().any(|event| event == "ended")
    })
    .await;
    until("the shared one is open", || {
        fixture.upstream.status().sessions == 1
    })
    .await;
}

/// A server that has a session for each call.
fn with_sessions_of_calls(idle: Duration) -> Fixture {
    let mut config = config(&["legacy"]);
    config.sessions = SessionSharing::Call;
    config.era = EraChoice::Legacy;
    start_with(config, |spec| spec.limits.caller_idle = idle)
}

#[tokio::test]
async fn a_session_for_a_call_ends_whose_caller_gives_up_before_it_takes_the_session() {
    let fixture = with_sessions_of_calls(Duration::from_secs(600));
    let scout = Scout::new();
    let caller = scout.caller();
    let mut waiting = Box::pin(fixture.upstream.session(&caller));
    // It is looked at once: it begins to wait, and does not see the answer.
    std::future::poll_fn(|context| {
        assert!(waiting.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    until("the shared session and that of the call are open", || {
        fixture.upstream.status().sessions == 2
    })
    .await;
    drop(waiting);
    until_one_is_left(&fixture).await;
    fixture.upstream.close().await;
}

#[tokio::test]
async fn a_session_for_a_call_that_never_comes_ends_when_it_was_idle() {
    let fixture = with_sessions_of_calls(Duration::ZERO);
    until("the shared session is open", || {
        fixture.upstream.status().sessions == 1
    })
    .await;
    let session = shared(&fixture, Era::Legacy).await;
    assert!(session.key().is_own());
    until_one_is_left(&fixture).await;
    fixture.upstream.close().await;
}
