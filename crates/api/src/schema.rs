//! Schemas of the API's requests and responses. The OpenAPI document follows from these types.

mod health;
mod participants;
mod proposals;
mod servers;
mod tokens;

use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use health::{Health, Ready, ServerNotReady};
pub(crate) use participants::{
    CapabilityChange, CapabilityChanged, GrantEntry, ParticipantEntry, ParticipantList,
};
pub(crate) use proposals::{Approval, Proposal, ProposalList, Rejection};
pub(crate) use servers::{Server, Servers, Tool, Tools};
pub(crate) use tokens::{NewToken, Token, TokenList, TokenWithSecret};

/// An error.
#[derive(Serialize, ToSchema)]
pub(crate) struct Problem {
    /// A stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
