//! The approver outside of a topic: a service that is asked about proposals by OpenID AuthZEN, and
//! decides on the authority of a participant.
//!
//! It is asked beside people, who see each proposal at once: the first decision counts. Whatever is
//! not a plain answer leaves the proposal to people.

pub(crate) mod breaker;
pub(crate) mod desk;
mod errand;
mod judge;
mod keeper;
pub(crate) mod kept;
mod later;
mod question;
mod recorded;
