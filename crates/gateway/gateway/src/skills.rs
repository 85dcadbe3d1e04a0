//! Entries of skills that servers give when they are asked for one (`skills/get`, SEP-2640),
//! compared with their lists.

use model::{Answer, ListKind, Outcome, Refusal};
use topic::Cause;
use vetting::{Part, PartDefinition, PinMode};

use crate::{call::Call, call::Delivered, dispatch::Dispatch};

/// Checks an answer to `skills/get`, in which a server whose definitions are pinned describes one of its skills. If
/// its list has another description, its lists are fetched and judged again.
///
/// # Errors
/// The refusal of what has changed.
pub(crate) fn as_pinned(
    dispatch: &Dispatch,
    call: &Call,
    delivered: &Delivered,
    answer: &Answer,
) -> Result<(), Refusal> {
    if answer.outcome != Outcome::Ok {
        return Ok(());
    }
    let server = dispatch.server(&delivered.server);
    let blocks =
        server.is_some_and(|server| server.upstream.spec().config.pins.mode == PinMode::Block);
    if !blocks {
        return Ok(());
    }
    let Some(session) = call.sessions.last() else {
        return Ok(());
    };
    let Some(given) = json::at(answer.payload.body_bytes(), &["skill"]) else {
        return Ok(());
    };
    let uri = json::at(given, &["uri"])
        .and_then(json::text)
        .unwrap_or_default();
    let manifest = session.manifest();
    let listed = manifest
        .list(ListKind::Skills)
        .items
        .iter()
        .find(|item| item.key == uri);
    let of = |raw: &[u8]| PartDefinition::of(Part::Skill, &uri, raw);
    // What is in no list was never approved.
    if listed.is_some_and(|listed| of(&listed.raw) == of(given)) {
        return Ok(());
    }
    session.list_again();
    Err(*topic::request_refusal(Cause::ToolChanged, None))
}
