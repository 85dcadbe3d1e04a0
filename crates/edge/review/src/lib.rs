//! Proposals as their reviewers read them, at a terminal and in a browser: what the API says of one,
//! judged for a second look, its arguments row by row.
//!
//! - [`ProposalDetails`]: a proposal of the API. [`approval_body`]: the body of an approval.
//! - [`ToolEffects`], [`marks`]: what its tool may do, and what deserves a second look.
//! - [`leaves`]: the arguments, one row for each value.
//!
//! Nothing here knows a terminal or HTML. Texts are of strangers: the views make hidden characters
//! visible.

mod details;
mod judgement;
mod leaves;

pub use details::{
    ClaimDetails, NoteDetails, PlanDetails, ProposalDetails, RestOfParams, StepDetails,
    WouldDetails, approval_body,
};
pub use judgement::{LONG_VALUE_CHARS, ToolEffects, marks};
pub use leaves::{LEAF_DEPTH_MAX, Leaf, LeafKind, LeafPlace, Leaves, leaves};
