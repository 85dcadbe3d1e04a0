//! Tests of plans, of what is sent, and of signatures.

mod notification;
mod plan;
mod properties;

use model::{OperationId, ParticipantId, TopicName};

use crate::WaitingProposal;

const MINUTE: u64 = 60_000;

/// A proposal of `scout` that was opened at the beginning and has an hour.
fn proposal(id: u128) -> WaitingProposal {
    WaitingProposal {
        id: OperationId(id),
        topic: TopicName::new("main").unwrap(),
        by: ParticipantId::new("scout").unwrap(),
        tool: "create_issue".to_owned(),
        server: Some("github".to_owned()),
        opened_ms: 0,
        expires_ms: 60 * MINUTE,
        is_claimed: false,
    }
}

fn by(name: &str, proposal: WaitingProposal) -> WaitingProposal {
    WaitingProposal {
        by: ParticipantId::new(name).unwrap(),
        ..proposal
    }
}
