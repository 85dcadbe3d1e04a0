//! History of a topic for participants on the SDK: on entering, and after a connection that broke.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use participant::{Event, Events, Participant, ParticipantSpec, Tools};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::http::TIMEOUT;
use crate::participants::{config, echo, enter, home, join, read, receive, spec};
use crate::support::Gateway;

/// A line to the gateway that can be cut.
pub(crate) struct Line {
    url: String,
    is_cut: Arc<AtomicBool>,
    cut: Arc<Notify>,
}

impl Line {
    pub(crate) async fn to(gateway: &Gateway) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (address, is_cut, cut) = (
            gateway.address().to_owned(),
            Arc::default(),
            Arc::<Notify>::default(),
        );
        let line = Self {
            url,
            is_cut: Arc::clone(&is_cut),
            cut: Arc::clone(&cut),
        };
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                if AtomicBool::load(&is_cut, Ordering::SeqCst) {
                    continue;
                }
                let (mut far, cut) = (
                    TcpStream::connect(&address).await.unwrap(),
                    Arc::clone(&cut),
                );
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        () = cut.notified() => {}
                    }
                });
            }
        });
        line
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Cuts the line.
    pub(crate) fn break_off(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.cut.notify_waiters();
    }

    /// Cuts the line and waits until the participant at its end knows.
    async fn cut(&self, events: &mut Events) {
        self.break_off();
        let lost = |event| {
            matches!(
                event,
                Event::Disconnected {
                    is_final: false,
                    ..
                }
            )
            .then_some(())
        };
        receive(events, "the connection is lost", lost).await;
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

/// Participants of a topic that keeps so many envelopes.
pub(crate) fn keeping(envelopes: usize) -> (crate::home::Home, Gateway) {
    let home = home();
    let gateway = Gateway::start(
        &home,
        &(config(&home) + &format!("[topics.main]\nhistory = {envelopes}\n")),
    );
    (home, gateway)
}

/// The next history: the texts of its chats, and whether more was missed.
async fn history(events: &mut Events) -> (Vec<String>, bool) {
    receive(events, "the history", |event| match event {
        Event::History { past, is_cut } => {
            let text = |event| match event {
                Event::Chat { text, .. } => Some(text),
                _ => None,
            };
            Some((past.into_iter().filter_map(text).collect(), is_cut))
        }
        _ => None,
    })
    .await
}

async fn receive_chat(events: &mut Events, wanted: &str) {
    let said = |event| matches!(event, Event::Chat { text, .. } if text == wanted).then_some(());
    receive(events, wanted, said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_participant_receives_what_it_missed_once_and_runs_none_of_it() {
    let (_home, gateway) = keeping(5);
    // It receives what it says, and so learns when the topic has it.
    let (boss, mut said) = enter(ParticipantSpec {
        echo: true,
        ..spec(&gateway, "boss")
    })
    .await;
    for text in ["1", "2"] {
        boss.chat(text).unwrap();
        receive_chat(&mut said, text).await;
    }
    let ran = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&ran);
    let tools = Tools::new("worker", "1").tool("echo", "Counts", json!({}), move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(Value::Null) }
    });
    let line = Line::to(&gateway).await;
    let near = ParticipantSpec {
        url: line.url.clone(),
        ..spec(&gateway, "worker")
    };
    let (worker, mut events) = enter(near.serving(tools)).await;
    assert_eq!(
        history(&mut events).await,
        (vec!["1".to_owned(), "2".to_owned()], false)
    );
    boss.chat("3").unwrap();
    receive_chat(&mut events, "3").await;
    worker.chat("4, its own").unwrap();
    receive_chat(&mut said, "4, its own").await;
    line.cut(&mut events).await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": echo("x") });
    boss.send("mcp/request:tools/call:echo", &["worker"], None, &call)
        .unwrap();
    boss.chat("5").unwrap();
    receive_chat(&mut said, "5").await;
    line.mend();
    // Neither what it has received nor what it has sent; in order.
    assert_eq!(history(&mut events).await, (vec!["5".to_owned()], false));
    boss.chat("6").unwrap();
    receive_chat(&mut events, "6").await;
    assert_eq!(
        ran.load(Ordering::SeqCst),
        0,
        "a request from before the connection is not run"
    );
    line.cut(&mut events).await;
    for number in 7..14 {
        boss.chat(&number.to_string()).unwrap();
    }
    receive_chat(&mut said, "13").await;
    line.mend();
    let (texts, is_cut) = history(&mut events).await;
    assert_eq!(
        (texts, is_cut),
        (
            ["9", "10", "11", "12", "13"].map(String::from).to_vec(),
            true
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_begins_where_an_earlier_one_connected() {
    let (_home, gateway) = keeping(5);
    let (boss, mut said) = enter(ParticipantSpec {
        echo: true,
        ..spec(&gateway, "boss")
    })
    .await;
    boss.chat("1").unwrap();
    receive_chat(&mut said, "1").await;
    let (worker, _) = join(&gateway, "worker").await;
    let since = worker.cursor();
    worker.close().await;
    boss.chat("2").unwrap();
    receive_chat(&mut said, "2").await;
    for (since, expect) in [(since, vec!["2"]), (None, vec!["1", "2"])] {
        let (worker, mut events) = enter(ParticipantSpec {
            since,
            ..spec(&gateway, "worker")
        })
        .await;
        assert_eq!(
            history(&mut events).await,
            (expect.into_iter().map(String::from).collect(), false)
        );
        worker.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposer_that_was_away_gets_the_outcome_of_its_proposal() {
    let (_home, gateway) = keeping(20);
    let (_worker, _) = enter(spec(&gateway, "worker").serving(crate::participants::tools())).await;
    let (boss, mut asked) = join(&gateway, "boss").await;
    let line = Line::to(&gateway).await;
    let near = ParticipantSpec {
        url: line.url.clone(),
        ..spec(&gateway, "scout")
    };
    let (scout, mut events): (Participant, _) = enter(near).await;
    let mut proposal = scout
        .propose(&["worker"], "tools/call", &echo("please"))
        .unwrap();
    let proposed = receive(&mut asked, "a proposal", |event| match event {
        Event::Proposal(proposed) => Some(proposed),
        _ => None,
    });
    let proposed = proposed.await;
    line.cut(&mut events).await;
    boss.fulfil(&proposed, None).await.unwrap();
    line.mend();
    let outcome = read(&proposal.outcome(TIMEOUT).await.unwrap());
    assert_eq!(outcome["content"][0]["text"], "please");
}
