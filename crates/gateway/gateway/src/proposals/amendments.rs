//! Amendments: the version of a proposal that its proposer puts in place of the former.

use model::{Refusal, RefusalCode};
use topic::Amended;

use super::approvals;
use super::content::Proposed;
use super::open;
use crate::dispatch::Dispatch;
use crate::live::Live;

/// A proposal with these params, as its proposer amends it.
///
/// # Errors
/// If its servers could not run them, they cannot be proposed, or it has them already.
pub(super) fn version(
    dispatch: &Dispatch,
    content: &Proposed,
    params: &str,
) -> Result<Amended<Live>, Refusal> {
    open::check_fit(dispatch, &content.opened, params)?;
    let version = approvals::version(content, params)?;
    let (mut opened, digest) = version.ok_or_else(|| {
        Refusal::new(
            RefusalCode::Conflict,
            "these are the arguments that the proposal has",
        )
    })?;
    opened.amendments += 1;
    Ok(Amended {
        digest,
        bytes: super::content::bytes_of(&opened),
        content: content.amended_by_proposer(opened),
    })
}
