//! Proposals: what is proposed and shown, decided, carried out, written down, and answered to
//! waiting callers.

mod amendments;
pub(crate) mod announce;
pub(crate) mod answer;
pub(crate) mod approvals;
mod claims;
pub(crate) mod content;
pub mod decide;
pub(crate) mod describe;
pub(crate) mod hold;
pub(crate) mod journal;
pub mod kept;
pub(crate) mod open;
pub mod plans;
pub mod showings;
pub(crate) mod view;
mod waiting;
