//! Spans of calls and of proposals that wait, by the conventions of OpenTelemetry for MCP.
//!
//! A call has one span towards its client and, if it goes to a server, one towards that; a proposal
//! that waits has one between them.

mod at_server;
mod of_call;
mod of_proposal;

pub(crate) use at_server::{SentTrace, ended_at_server, not_sent, sent};
pub(crate) use of_call::{SpanEnd, begin, end, note_asked, note_verdict};
pub(crate) use of_proposal::{WaitEnd, context_of, waited};
