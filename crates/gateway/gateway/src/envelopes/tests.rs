//! Envelopes in a topic in which the gateway is the only server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use auth::Participant;
use model::{Capabilities, Form};
use serde_json::{Value, json};
use store::recorder::Recorder;
use topic::Joining;

use super::*;
use crate::dispatch::Run;
use crate::fixture::{context, settings};
use crate::link::{NoOutlet, plain_client};
use crate::live::Effect;

pub(crate) struct Stage {
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) ann: Arc<Link>,
    start: topic::Cursor,
}

impl Stage {
    /// A topic in which `ann` has these capabilities. Must be called inside a runtime.
    pub(crate) fn new(capabilities: &[&str]) -> Self {
        Self::running(capabilities, crate::run::run)
    }

    /// A stage whose lists wait so long for servers that start.
    pub(crate) fn waiting(capabilities: &[&str], list_wait: Duration) -> Self {
        let stage = Self::new(capabilities);
        let mut settings = settings();
        settings.topic.list_wait = list_wait;
        stage.dispatch.take_settings(settings);
        stage
    }

    /// A stage with another interpreter of effects.
    pub(crate) fn running(capabilities: &[&str], run: Run) -> Self {
        let capabilities = Arc::new(Capabilities::parse(capabilities.iter().copied()).unwrap());
        let granted = Arc::clone(&capabilities);
        let standing = Box::new(move |_: &_| Some(Arc::clone(&granted)));
        let dispatch = Dispatch::new(
            settings(),
            context(),
            Recorder::default(),
            None,
            standing,
            run,
        );
        dispatch.configure(&[], &[], <_>::default());
        let start = dispatch.with(topic::Topic::next_message);
        let participant = Participant::new(
            ParticipantId::new("ann").unwrap(),
            Arc::clone(&capabilities),
            vec![dispatch.name().clone()],
        );
        let id = dispatch.context.link();
        let form = Form::Legacy;
        let client = plain_client();
        let ann = Link::new(id, Arc::new(participant), form, client, Arc::new(NoOutlet));
        dispatch
            .join(&ann, &capabilities, Joining::default())
            .unwrap();
        Self {
            dispatch,
            ann,
            start,
        }
    }

    fn speak(&self, members: Value) -> Result<(), RefusalCode> {
        self.dispatch
            .speak(self.ann.opener(), envelope(members))
            .map_err(|refusal| refusal.code)
    }

    /// The envelopes that were published, oldest first.
    fn published(&self) -> Vec<Value> {
        let all = self
            .dispatch
            .with(|topic| topic.messages(&self.ann.participant.id, self.start));
        all.messages
            .iter()
            .map(|one| serde_json::from_slice(one.message.frame()).unwrap())
            .collect()
    }

    /// Kind, correlation and payload of the last envelope that was published.
    fn last(&self) -> [Value; 3] {
        let last = self.published().pop().unwrap();
        ["kind", "correlation_id", "payload"].map(|key| last[key].clone())
    }
}

/// An envelope of ann's, unless these members name another sender.
pub(crate) fn envelope(members: Value) -> Envelope {
    let mut whole = json!({ "protocol": "mcpx/v0.1", "id": "a", "from": "ann", "payload": {} });
    whole
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    Envelope::read(whole.to_string().into()).unwrap()
}

fn ping(id: &str) -> Value {
    let payload = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" });
    json!({ "id": id, "to": ["portmoot", "portmoot"], "kind": "mcp/request:ping", "payload": payload })
}

#[test]
fn an_addressee_that_is_named_twice_counts_once() {
    let envelope = envelope(json!({ "to": ["b", "c", "b"], "kind": "chat" }));
    assert_eq!(addressees(&envelope), ["b", "c"]);
}

#[tokio::test]
async fn refused_envelopes_are_not_published() {
    let stage = Stage::new(&["chat"]);
    for (members, expected) in [
        (
            json!({ "kind": "chat", "from": "bob" }),
            RefusalCode::AuthViolation,
        ),
        (json!({ "kind": "news" }), RefusalCode::CapabilityViolation),
        (
            json!({ "kind": "system/welcome" }),
            RefusalCode::CapabilityViolation,
        ),
        (json!({ "kind": "mcp/request" }), RefusalCode::Malformed),
    ] {
        assert_eq!(stage.speak(members), Err(expected));
    }
    assert!(stage.published().is_empty());
    assert_eq!(stage.speak(json!({ "kind": "chat" })), Ok(()));
    assert_eq!(stage.published().len(), 1);
}

#[tokio::test]
async fn a_published_proposal_is_known() {
    let stage = Stage::new(&["mcp/proposal:*"]);
    assert_eq!(stage.speak(proposal("p1")), Ok(()));
    // Once it is on disk.
    while stage.published().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.published().first().unwrap()["id"], "p1");
    assert!(
        stage
            .dispatch
            .with(|topic| topic.proposed_by("p1").is_some())
    );
}

#[tokio::test]
async fn a_proposal_whose_kind_and_payload_differ_is_rejected() {
    let stage = Stage::new(&["mcp/proposal:*"]);
    let payload = json!({ "method": "tools/call", "params": { "name": "fill" } });
    let proposal = json!({ "id": "p1", "kind": "mcp/proposal:tools/call:dig", "payload": payload });
    assert_eq!(stage.speak(proposal), Ok(()));
    assert_eq!(
        stage.published().len(),
        1,
        "its sender alone receives the state"
    );
    assert!(
        stage
            .dispatch
            .with(|topic| topic.proposed_by("p1").is_none())
    );
}

#[tokio::test]
async fn a_request_to_the_gateway_is_answered_once() {
    let stage = Stage::new(&["mcp/request:ping"]);
    assert_eq!(stage.speak(ping("a")), Ok(()));
    let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": {} });
    assert_eq!(
        stage.last(),
        [json!("mcp/response:ping"), json!("a"), answer]
    );
    assert_eq!(stage.published().len(), 2);
    assert_eq!(stage.speak(ping("a")), Ok(()));
    assert_eq!(
        stage.published().len(),
        3,
        "the repeat is published and not answered"
    );
}

#[tokio::test]
async fn a_request_whose_kind_and_payload_differ_is_answered_with_an_error() {
    let stage = Stage::new(&["mcp/request:*"]);
    let mut wrong = ping("a");
    wrong["kind"] = json!("mcp/request:tools/list");
    assert_eq!(stage.speak(wrong), Ok(()));
    let [kind, correlation, payload] = stage.last();
    assert_eq!([kind, correlation], ["mcp/response:tools/list", "a"]);
    assert_eq!(payload["error"]["code"], -32600);
}

fn proposal(id: &str) -> Value {
    let payload = json!({ "method": "tools/call", "params": { "name": "dig", "arguments": {} } });
    json!({ "id": id, "kind": "mcp/proposal:tools/call:dig", "payload": payload })
}

#[tokio::test]
async fn a_panic_in_the_effects_of_one_record_does_not_stop_the_others() {
    let stage = Stage::running(&["mcp/proposal:*"], |dispatch, effect| match &effect {
        Effect::Proposed { proposal } if &*proposal.envelope == "p1" => {
            panic!("a fault of the gateway")
        }
        _ => crate::run::run(dispatch, effect),
    });
    for id in ["p1", "p2", "p3"] {
        // Without a journal what follows from the record is carried out at once.
        let spoken = catch_unwind(AssertUnwindSafe(|| stage.speak(proposal(id))));
        assert_eq!(spoken.is_err(), id == "p1");
    }
    let announced = || {
        stage
            .published()
            .into_iter()
            .filter(|one| one["kind"] == "portmoot/proposal")
    };
    while announced().count() < 2 {
        tokio::task::yield_now().await;
    }
    let about: Vec<_> = announced()
        .map(|one| one["correlation_id"].clone())
        .collect();
    assert_eq!(about, ["p2", "p3"]);
}
