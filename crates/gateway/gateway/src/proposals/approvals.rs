//! Proposals that need several approvals: how many, and the version that an approval is about.

use std::sync::Arc;

use auth::LOCAL_USER;
use model::{Capabilities, Digest, MethodFacts, OperationId, ParticipantId, Refusal, RefusalCode};
use topic::{Amended, CountedApproval};
use wire::mcpx::NESTING_MAX;

use super::content::{self, Proposed};
use super::kept::{KeptProposal, OpenedProposal};
use crate::by_rule::tool_facts::{is_harmless_tool, upstream_of};
use crate::dispatch::Dispatch;
use crate::live::Live;

/// The objects that lie around params in an envelope: itself, and its payload.
const AROUND: usize = 2;

/// The number of participants that must approve a proposed request: what the configuration of its
/// servers says about the tool; else what the topic says about tools that may destroy something.
pub(super) fn needed(
    dispatch: &Dispatch,
    to: &[ParticipantId],
    (method, context): (&str, Option<&str>),
    tool: Option<&str>,
) -> usize {
    if !MethodFacts::of(method).calls_tool() {
        return 1;
    }
    let destructive = dispatch.settings().topic.destructive_approvals;
    // A tool that is not known yet may turn out to be destructive.
    let by_risk = if tool.is_some_and(is_harmless_tool) {
        1
    } else {
        destructive
    };
    let of = |to: &ParticipantId| {
        let upstream = dispatch.with(|topic| upstream_of(topic, to))?;
        let curation = upstream.spec().config.curation.clone()?;
        curation.approvals_of(context?)
    };
    let all = to.iter().map(|to| of(to).unwrap_or(by_risk));
    all.max().unwrap_or(by_risk)
}

/// A proposal with other params, as the approvals of others are about it. `None` if it needs none
/// of others, or the params are those that it has.
///
/// # Errors
/// If the params cannot be proposed.
pub(super) fn amended(
    content: &Proposed,
    params: Option<&str>,
) -> Result<Option<Amended<Live>>, Refusal> {
    let Some(params) = params.filter(|_| content.opened.needs_several()) else {
        return Ok(None);
    };
    let version = version(content, params)?;
    Ok(version.map(|(opened, digest)| Amended {
        digest,
        bytes: content::bytes_of(&opened),
        content: content.amended(opened),
    }))
}

/// A proposal with other params, and its digest; `None` if it has them already.
///
/// # Errors
/// If the params cannot be proposed.
pub(super) fn version(
    content: &Proposed,
    params: &str,
) -> Result<Option<(OpenedProposal, Digest)>, Refusal> {
    let opened = &content.opened;
    let wrong = |why: String| {
        Refusal::new(
            RefusalCode::Malformed,
            format!("this cannot be proposed: {why}"),
        )
    };
    if json::nesting(params.as_bytes()) + AROUND > NESTING_MAX {
        return Err(wrong(format!("it is nested deeper than {NESTING_MAX}")));
    }
    let to = opened.to.iter();
    let to: Vec<ParticipantId> = to.filter_map(|to| ParticipantId::new(to).ok()).collect();
    let digest = content::digest(&to, &opened.method, Some(params), opened.tool.as_deref())
        .map_err(|why| wrong(why.to_string()))?;
    if digest.to_string() == opened.digest {
        return Ok(None);
    }
    let mut amended = opened.clone();
    amended.params = Some(params.to_owned());
    amended.digest = digest.to_string();
    Ok(Some((amended, digest)))
}

/// The params that run, of a decision with these: those of an earlier approval, if it changed them.
pub(crate) fn running_params(content: &Proposed, params: Option<String>) -> Option<String> {
    let amended = content.is_amended.then(|| content.opened.params.clone());
    params.or_else(|| amended.flatten())
}

/// The approvals that the journal has of a proposal, of the present bearers of their names.
pub(super) fn restored(dispatch: &Dispatch, kept: &KeptProposal) -> Vec<CountedApproval> {
    let incarnations = dispatch.context.sealer.incarnations();
    let mut all = Vec::new();
    for one in &kept.approvals {
        let since_ms = incarnations.since_ms(&one.by);
        let is_former = since_ms.is_some_and(|since_ms| one.at_ms < since_ms);
        let (Ok(by), Ok(shown)) = (ParticipantId::new(&one.by), one.digest.parse()) else {
            continue;
        };
        if is_former {
            continue;
        }
        // The owner of the data directory is no participant of the configuration.
        let is_operator = one.by == LOCAL_USER;
        all.push(CountedApproval {
            by,
            outside: is_operator.then(|| Arc::new(Capabilities::full())),
            shown,
            note: one.note.as_deref().map(Arc::from),
        });
    }
    all
}

/// Has the topic judge the approvals of a proposal by what their authors may do now.
pub(super) fn refresh(dispatch: &Arc<Dispatch>, proposal: OperationId) {
    for by in dispatch.with(|topic| topic.approvers_of(proposal)) {
        if by.as_str() != LOCAL_USER {
            dispatch.refresh(&by);
        }
    }
}
