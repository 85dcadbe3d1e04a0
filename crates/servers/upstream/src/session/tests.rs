//! Requests that are sent later than they were made, or a second time.

use client::{Closing, LinkTransport, SendError};
use model::{Answer, ParticipantId};
use wire::mcp::{Params, relay};
use wire::rpc::Message;

use super::*;
use crate::session_api::{CallEvents, CallNumber, Outgoing};
use crate::tests::bare_session;

const FIRST: u64 = 1_000;
const SECOND: u64 = 1_001;
const THIRD: u64 = 1_002;

/// A link that keeps how each message was to be delivered.
#[derive(Default)]
struct Deliveries(Mutex<Vec<SendMeta>>);

impl LinkTransport for Deliveries {
    fn send(&self, _: Bytes, meta: SendMeta) -> Result<(), SendError> {
        self.0.lock().push(meta);
        Ok(())
    }

    fn names_senders(&self) -> bool {
        true
    }

    fn close(&self) -> Closing<'_> {
        Box::pin(std::future::ready(()))
    }
}

impl Deliveries {
    fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Checks that the last message was a request in the name and on the account of a caller.
    fn assert_last(&self, number: Option<u64>, caller: &str, session: &Session) {
        let sent = self.0.lock();
        let last = sent.last().unwrap();
        assert_eq!(last.from.as_deref(), Some(caller));
        if let Some(number) = number {
            assert_eq!(last.request, Some(number));
        }
        let share = last.unsent.as_ref().expect("it is on no account");
        let account = session.queue_shares.of(&account(caller));
        assert!(Arc::ptr_eq(share, &account), "it is on another account");
    }
}

/// The account of a caller, which has another name than the caller.
fn account(caller: &str) -> String {
    format!("account of {caller}")
}

struct Ignored;

impl CallEvents for Ignored {
    fn notice(&self, _: Notice) {}
    fn question(&self, _: Question) {}
    fn done(&self, _: Result<Answer, Refusal>) {}
}

/// An open session of this revision, and the other end of its link.
fn open(key: SessionKey, version: Version) -> (Arc<Session>, Arc<Deliveries>) {
    let session = bare_session(key);
    let deliveries = Arc::new(Deliveries::default());
    let transport = Arc::<Deliveries>::clone(&deliveries);
    assert!(session.link.set(ServerLink::custom(transport)).is_ok());
    session.set_handshake(Handshake::of(version, Bytes::from_static(b"{}"), false));
    (session, deliveries)
}

/// A session in which calls run one after the other.
fn open_serial() -> (Arc<Session>, Arc<Deliveries>) {
    let key = SessionKey::Principal {
        participant: ParticipantId::new("ann").unwrap(),
        capabilities: 0,
        token: None,
    };
    open(key, Version::NEWEST_LEGACY)
}

fn message(text: String) -> Message {
    Message::read(Bytes::from(text)).unwrap()
}

/// Calls a tool as a caller of the legacy era.
fn call(session: &Session, number: u64, caller: &str) {
    let written =
        message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#.into());
    let request = relay::decode_request(&Params::read(&written).unwrap(), Era::Legacy);
    let outgoing = Outgoing {
        request: &request,
        number: CallNumber(number),
        own: None,
        related_task: None,
        tasks: false,
        trace: None,
        client_info: None,
        capabilities: b"{}",
        log_level: None,
        from: caller,
        account: &account(caller),
    };
    session.call(outgoing, Arc::new(Ignored)).unwrap();
}

/// The server answers a request with this result.
fn answer(session: &Session, number: u64, result: &str) {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{result}}}"#);
    session.settle_answer(number, message(text));
}

#[tokio::test]
async fn a_call_that_waited_for_its_turn_is_its_callers() {
    let (session, sent) = open_serial();
    call(&session, FIRST, "bob");
    sent.assert_last(Some(FIRST), "bob", &session);
    call(&session, SECOND, "ann");
    assert_eq!(sent.len(), 1);
    answer(&session, FIRST, "{}");
    sent.assert_last(Some(SECOND), "ann", &session);
}

#[tokio::test]
async fn a_call_that_is_moved_is_its_callers_in_the_other_session() {
    let (session, _) = open_serial();
    call(&session, FIRST, "bob");
    call(&session, SECOND, "ann");
    let (other, sent) = open_serial();
    other.adopt(session.take_unsent(CallNumber(SECOND)).unwrap());
    sent.assert_last(Some(SECOND), "ann", &other);
}

#[tokio::test]
async fn a_call_that_is_sent_again_is_its_callers() {
    let (session, sent) = open(SessionKey::Shared, Version::NEWEST_LEGACY);
    call(&session, FIRST, "ann");
    call(&session, SECOND, "bob");
    assert!(session.await_reopen(FIRST, false));
    assert_eq!(sent.len(), 3);
    sent.assert_last(Some(FIRST), "ann", &session);
}

#[tokio::test]
async fn a_call_that_comes_back_with_answers_is_its_callers() {
    let (session, sent) = open(SessionKey::Shared, Version::NEWEST);
    call(&session, FIRST, "ann");
    // It asks nothing, but wants its state back.
    let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
    answer(&session, FIRST, asks);
    assert_eq!(sent.len(), 2);
    sent.assert_last(None, "ann", &session);
}

#[tokio::test]
async fn a_call_that_has_ended_is_not_sent_again() {
    let (session, sent) = open(SessionKey::Shared, Version::NEWEST_LEGACY);
    call(&session, FIRST, "ann");
    let kept = session.pending.lock().take_sent(FIRST).unwrap();
    answer(&session, FIRST, "{}");
    session.send_kept(FIRST, kept);
    assert_eq!(sent.len(), 1);
}

#[tokio::test]
async fn a_call_whose_turn_comes_while_the_session_is_opened_again_is_sent_after_that() {
    let (session, sent) = open_serial();
    call(&session, FIRST, "ann");
    call(&session, SECOND, "ann");
    session.pending.lock().awaiting_reopen = Some(Vec::new());
    answer(&session, FIRST, "{}");
    // One that comes meanwhile does not pass the one before it.
    call(&session, THIRD, "bob");
    assert_eq!(sent.len(), 1);
    let mut pending = session.pending.lock();
    assert_eq!(pending.awaiting_reopen.take(), Some(vec![SECOND]));
    let kept = pending.take_sent(SECOND).unwrap();
    drop(pending);
    session.send_kept(SECOND, kept);
    sent.assert_last(Some(SECOND), "ann", &session);
    answer(&session, SECOND, "{}");
    sent.assert_last(Some(THIRD), "bob", &session);
}
