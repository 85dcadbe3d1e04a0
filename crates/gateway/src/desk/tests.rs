//! Answers in a room to what fulfils: too early, in time, to another, of another.

use model::{LinkId, TopicName};
use store::OpenedProposal;

use super::*;
use crate::bounds::{Bounds, Held};

const P1: OperationId = OperationId(1);
const P2: OperationId = OperationId(2);

/// A desk with two proposals of ann, to have the gateway's own participant dig; it is who answers.
fn desk() -> (Desk, Arc<Caller>) {
    let desk = Desk::new(None);
    for id in [P1, P2] {
        let opened = OpenedProposal {
            id: id.to_string(),
            topic: "main".into(),
            by: "ann".into(),
            to: vec![model::GATEWAY.into()],
            method: "tools/call".into(),
            context: Some("dig".into()),
            envelope: format!("proposal {id}"),
            era: None,
            params: None,
            tool: None,
            digest: String::new(),
            held: false,
            door: None,
            at_ms: 0,
            expires_ms: 0,
        };
        assert!(desk.open(id, Case::new(opened, None)));
    }
    let limits = crate::config::Limits::default();
    let bounds = Bounds::new(&limits, Held::new(limits.held_bytes_max));
    (desk, Arc::new(Caller::own(LinkId(1), &TopicName::new("main").unwrap(), &bounds)))
}

fn fulfilment(by: &str) -> Fulfilment {
    Fulfilment { by: by.into(), envelope: "f".into() }
}

fn answer(kind: &str, to: &str) -> Envelope {
    let text = format!(
        r#"{{"protocol":"mcpx/v0.1","id":"a","from":"portmoot","to":[{to}],"kind":"{kind}","correlation_id":"f","payload":{{}}}}"#
    );
    Envelope::read(text.into()).unwrap()
}

fn answered(desk: &Desk, caller: &Arc<Caller>, answer: &Envelope) -> Option<&'static str> {
    let (id, fulfilment) = desk.claimed(answer)?;
    let heard = desk.answered(id, &fulfilment, (caller, answer), &Bytes::from_static(b"{}"))?;
    Some(match heard {
        Heard::Counts(proposer) => {
            assert_eq!(proposer, "ann");
            "counts"
        }
        Heard::Early => "early",
    })
}

const DUG: &str = "mcp/response:tools/call:dig";

#[test]
fn an_answer_before_the_approval_is_kept_until_it_counts() {
    let (desk, caller) = desk();
    let (one, dug) = (fulfilment("boss"), answer(DUG, r#""boss""#));
    assert_eq!(answered(&desk, &caller, &dug), None, "nothing fulfils it yet");
    assert!(desk.claim(P1, &one));
    assert!(!desk.claim(P1, &one), "it comes again");
    assert_eq!(answered(&desk, &caller, &answer("mcp/response:tools/call:rest", "")), None);
    assert_eq!(answered(&desk, &caller, &answer("mcp/response:prompts/get:dig", "")), None);
    assert_eq!(answered(&desk, &caller, &dug), Some("early"));
    // Approved, but its proposer has not heard so.
    desk.stands(P1, ProposalState::Running, None);
    assert_eq!(answered(&desk, &caller, &answer(DUG, "")), Some("early"));
    let (_, early) = desk.runs(P1, &one).unwrap();
    assert!(early.to().eq(["boss"]), "the first one");
    assert_eq!(answered(&desk, &caller, &early), Some("counts"));
    assert!(desk.runs(P1, &one).is_none());
    desk.stands(P1, ProposalState::Completed, None);
    assert_eq!(answered(&desk, &caller, &dug), None);
    assert!(desk.book().claims.is_empty());
}

#[test]
fn what_does_not_fulfil_is_forgotten_with_its_answers() {
    let (desk, caller) = desk();
    let (boss, chief) = (fulfilment("boss"), fulfilment("chief"));
    assert!(desk.claim(P1, &boss) && desk.claim(P2, &chief));
    let (to_boss, to_chief, to_all) =
        (answer(DUG, r#""boss""#), answer(DUG, r#""ann","chief""#), answer(DUG, ""));
    assert_eq!(answered(&desk, &caller, &to_all), None, "it may be either's");
    assert_eq!(answered(&desk, &caller, &to_boss), Some("early"));
    desk.stands(P2, ProposalState::Running, None);
    assert!(desk.runs(P2, &chief).is_none(), "what was said to another is none of its");
    assert_eq!(answered(&desk, &caller, &to_chief), Some("counts"));
    desk.unclaim(&boss);
    assert!(desk.claim(P1, &boss), "the same may be tried again");
    assert!(desk.runs(P1, &boss).is_none());
    for id in [P1, P2] {
        desk.stands(id, ProposalState::Failed, None);
        assert!(!desk.claim(id, &boss), "it is over");
    }
    assert!(desk.book().claims.is_empty());
}
