//! Openings of proposals, and the definitions that they show.

use std::sync::Arc;

use model::{
    Digest, Form, Method, MethodFacts, OperationId, ParticipantId, Refusal, RefusalCode, Request,
};
use platform::{millis, unix_ms};
use topic::Terms;
use upstream::{Manifest, Session, curation::Author};
use wire::mcpx::{Envelope, NESTING_MAX, check};

use super::approvals;
use super::content::{self, HeldCall, Proposed};
use super::waiting;
use crate::live::Server;
use crate::proposals::kept::{OpenedProposal, PlanRecord};
use store::recorder::RecordPermit;

use crate::{call::Call, curation, dispatch::Dispatch, link::Link, record::Record, unfit};

/// The objects that lie around params in an envelope: itself, and its payload.
const AROUND: usize = 2;

/// A proposal that the topic does not have yet.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Its id, which cannot be guessed: a task is known by it.
    pub(crate) id: OperationId,
    /// The proposal in full.
    pub(crate) content: Arc<Proposed>,
    /// The proposal as the topic takes it.
    pub(crate) terms: Terms,
}

impl Opening {
    /// A proposal that the journal has, with a permit for the entry about its end; `None` if its
    /// names cannot be read.
    pub(crate) fn restored(
        opened: &OpenedProposal,
        ending: Option<RecordPermit>,
        expires_ms: u64,
    ) -> Option<Self> {
        let by = ParticipantId::new(&opened.by).ok()?;
        let to = opened
            .to
            .iter()
            .filter_map(|to| ParticipantId::new(to).ok())
            .collect();
        let terms = terms_of(opened, by, to, opened.digest.parse().ok()?, expires_ms);
        let content = Proposed::new(opened.clone(), None, 0, [None, ending]);
        Some(Self {
            id: opened.id.parse().ok()?,
            content,
            terms,
        })
    }
}

fn terms_of(
    opened: &OpenedProposal,
    by: ParticipantId,
    to: Box<[ParticipantId]>,
    digest: Digest,
    expires_ms: u64,
) -> Terms {
    let method = Method::Other(opened.method.as_str().into());
    let context = opened.context.as_deref().map(Into::into);
    let envelope = opened.envelope.as_str().into();
    let bytes = content::bytes_of(opened);
    let expires_wall_ms = opened.expires_ms;
    Terms {
        by,
        method,
        context,
        to,
        envelope,
        digest,
        expires_ms,
        expires_wall_ms,
        bytes,
        approvals: opened.approvals.unwrap_or(1),
        extensions: 0,
        amendments: opened.amendments,
        plan: opened.plan.as_ref().and_then(PlanRecord::place),
    }
}

/// Proposal that a participant wants to make.
pub(super) struct Wanted<'w> {
    pub(super) by: &'w ParticipantId,
    pub(super) to: Vec<ParticipantId>,
    pub(super) method: &'w str,
    pub(super) context: Option<&'w str>,
    pub(super) envelope: String,
    pub(super) params: Option<String>,
    /// The held call.
    pub(super) call: Option<HeldCall>,
    /// The length of the envelope that proposes; 0 if there is none.
    pub(super) envelope_bytes: usize,
}

/// A call with the presets of its tool: what a reviewer is shown, and what runs. `None` if it stays
/// as it is.
pub(crate) fn completed(
    shown: &Request,
    server: &Server,
    own: Option<&str>,
) -> Result<Option<Request>, Refusal> {
    let Some(upstream) = server.upstream().map(|server| &server.upstream) else {
        return Ok(None);
    };
    match upstream.spec().config.curation.as_deref() {
        Some(curation) => {
            curation::completed(curation, &upstream.manifest(), shown, own, Author::Caller)
        }
        None => Ok(None),
    }
}

/// The proposal that an envelope makes whose payload agrees with its kind.
///
/// # Errors
/// Why it cannot be proposed. The audit log has it.
pub(crate) fn of_envelope(
    dispatch: &Dispatch,
    link: &Link,
    envelope: &Envelope,
    call: &check::EnvelopeCall,
) -> Result<Opening, Refusal> {
    let mut wanted = Wanted {
        by: &link.participant.id,
        to: envelope
            .to()
            .filter_map(|to| ParticipantId::new(to).ok())
            .collect(),
        method: call.method(),
        context: call.target(),
        envelope: envelope.id().to_owned(),
        params: call
            .params()
            .map(|params| String::from_utf8_lossy(params).into_owned()),
        call: None,
        envelope_bytes: envelope.frame().len(),
    };
    let act = (wanted.method, wanted.context);
    let params = wanted.params.as_deref();
    let whole = curation::completed_params(dispatch, &wanted.to, act, params, Author::Caller);
    let whole = whole.inspect_err(|_| {
        Record(dispatch).unproposable(wanted.by, &wanted.to, act, unfit::WORD);
    })?;
    wanted.params = whole.or(wanted.params);
    if let Some(refusal) = unfit_at(dispatch, wanted.by, &wanted.to, act, params_of(&wanted)) {
        Record(dispatch).unproposable(wanted.by, &wanted.to, act, unfit::WORD);
        return Err(refusal);
    }
    let definition = definition(
        dispatch,
        wanted.by,
        &wanted.to,
        wanted.method,
        wanted.context,
    );
    open(dispatch, wanted, definition)
}

fn params_of<'w>(wanted: &'w Wanted<'_>) -> &'w str {
    wanted.params.as_deref().unwrap_or("{}")
}

/// Checks that the servers of a proposal could run it with other params.
///
/// # Errors
/// If one of those whose arguments are checked could not.
pub(super) fn check_fit(
    dispatch: &Dispatch,
    opened: &OpenedProposal,
    params: &str,
) -> Result<(), Refusal> {
    let Ok(by) = ParticipantId::new(&opened.by) else {
        return Ok(());
    };
    let to = opened.to.iter();
    let to: Vec<ParticipantId> = to.filter_map(|to| ParticipantId::new(to).ok()).collect();
    let act = (opened.method.as_str(), opened.context.as_deref());
    unfit_at(dispatch, &by, &to, act, params).map_or(Ok(()), Err)
}

/// Checks that the servers of a call could run it.
///
/// # Errors
/// If one of those whose arguments are checked could not. The audit log has it.
pub(super) fn check_call(
    dispatch: &Dispatch,
    by: &ParticipantId,
    to: &[ParticipantId],
    act: (&str, Option<&str>),
    params: &str,
) -> Result<(), Refusal> {
    let Some(refusal) = unfit_at(dispatch, by, to, act, params) else {
        return Ok(());
    };
    Record(dispatch).unproposable(by, to, act, unfit::WORD);
    Err(refusal)
}

/// The refusal of a proposed call that one of the servers whose arguments are checked could not
/// run. It is checked again when it runs.
fn unfit_at(
    dispatch: &Dispatch,
    by: &ParticipantId,
    to: &[ParticipantId],
    (method, context): (&str, Option<&str>),
    params: &str,
) -> Option<Refusal> {
    let calls_tool = MethodFacts::of(method).calls_tool();
    let tool = context.filter(|_| calls_tool)?;
    let params = params.as_bytes();
    to.iter().find_map(|to| {
        let server = dispatch.with(|topic| topic.server(to))?.handle;
        let server = server.upstream()?;
        let manifest = server.manifest_for(by, Form::ENVELOPE);
        server
            .validates(&manifest)
            .then(|| unfit::of(&manifest, tool, params))?
    })
}

/// Checks the params that a reviewer wrote in place of proposed ones: by the input schema of the tool
/// at each of its servers, also where calls are not checked otherwise.
///
/// # Errors
/// The refusal that names each place which does not fit.
pub(super) fn check_edit(
    dispatch: &Dispatch,
    opened: &OpenedProposal,
    params: &str,
) -> Result<(), Refusal> {
    let calls_tool = MethodFacts::of(&opened.method).calls_tool();
    let tool = opened.context.as_deref().filter(|_| calls_tool);
    let (Some(tool), Ok(by)) = (tool, ParticipantId::new(&opened.by)) else {
        return Ok(());
    };
    let arguments = json::at(params.as_bytes(), &["arguments"]);
    for to in &opened.to {
        let Ok(to) = ParticipantId::new(to) else {
            continue;
        };
        let server = dispatch.with(|topic| Some(topic.server(&to)?.handle.upstream()?.clone()));
        let manifest = server.map(|server| server.manifest_for(&by, Form::ENVELOPE));
        if let Some(refusal) = manifest.and_then(|manifest| manifest.misfit(tool, arguments)) {
            return Err(refusal);
        }
    }
    Ok(())
}

/// Opens a proposal, or records why that cannot be.
///
/// # Errors
/// Why it cannot be proposed.
pub(super) fn open(
    dispatch: &Dispatch,
    wanted: Wanted<'_>,
    tool: Option<String>,
) -> Result<Opening, Refusal> {
    let by = wanted.by;
    let to = wanted.to.clone();
    let act = (wanted.method, wanted.context);
    try_open(dispatch, wanted, tool).inspect_err(|refusal| {
        let why = format!("{}: {}", refusal.code.as_str(), refusal.message);
        Record(dispatch).unproposable(by, &to, act, &why);
    })
}

fn try_open(
    dispatch: &Dispatch,
    wanted: Wanted<'_>,
    tool: Option<String>,
) -> Result<Opening, Refusal> {
    let Wanted {
        by,
        to,
        method,
        context,
        envelope,
        params,
        call,
        envelope_bytes,
    } = wanted;
    let digest = content::digest(&to, method, params.as_deref(), tool.as_deref());
    let digest = digest.map_err(|why| {
        Refusal::new(
            RefusalCode::Malformed,
            format!("this cannot be proposed: {why}"),
        )
    })?;
    if params
        .as_deref()
        .is_some_and(|params| json::nesting(params.as_bytes()) + AROUND > NESTING_MAX)
    {
        let why = format!("this cannot be proposed: it is nested deeper than {NESTING_MAX}");
        return Err(Refusal::new(RefusalCode::Malformed, why));
    }
    let account = dispatch.audit.account(by);
    let reserve = || dispatch.audit.reserve_on(account.as_ref());
    // For its opening and its end: once it is open, neither entry may find the log full.
    let permits = [Some(reserve()?), Some(reserve()?)];
    let approvals = approvals::needed(dispatch, &to, (method, context), tool.as_deref());
    let id = Dispatch::secret_id();
    let at_ms = unix_ms();
    let ttl_ms = millis(dispatch.settings().topic.proposal_ttl);
    let opened = OpenedProposal {
        id: id.to_string(),
        topic: dispatch.name().to_string(),
        by: by.to_string(),
        to: to.iter().map(ToString::to_string).collect(),
        method: method.to_owned(),
        context: context.map(str::to_owned),
        envelope,
        era: None,
        params,
        tool,
        digest: digest.to_string(),
        held: call.is_some(),
        door: None,
        approvals: (approvals > 1).then_some(approvals),
        amendments: 0,
        plan: None,
        at_ms,
        expires_ms: at_ms.saturating_add(ttl_ms),
    };
    // On the steady clock too, which goes on evenly if the time of the machine is set.
    let expires_ms = dispatch.context.now_ms().saturating_add(ttl_ms);
    let terms = terms_of(&opened, by.clone(), to.into(), digest, expires_ms);
    let content = Proposed::new(opened, call, envelope_bytes, permits);
    refuse_without_room(dispatch, &content)?;
    Ok(Opening { id, content, terms })
}

/// Refuses a proposal that does not fit into what its proposer may have waiting for the disk: with
/// the later steps of the plan that it begins.
pub(super) fn refuse_without_room(dispatch: &Dispatch, content: &Proposed) -> Result<(), Refusal> {
    let has_room = dispatch
        .ledgers
        .as_ref()
        .is_none_or(|ledgers| waiting::has_room(ledgers.proposals.journal(), content));
    if has_room {
        return Ok(());
    }
    let why = "too much of your proposals waits to be written down";
    Err(Refusal::new(RefusalCode::Overloaded, why).hint("propose more slowly"))
}

/// A proposal whose tool had no definition, with the one that its server lists now, and the digest
/// of both; `None` if there is still none, or had been one.
pub(super) fn described(
    dispatch: &Dispatch,
    proposed: &Proposed,
) -> Option<(Digest, Arc<Proposed>)> {
    let opened = &proposed.opened;
    if opened.tool.is_some() || !MethodFacts::of(&opened.method).calls_tool() {
        return None;
    }
    let to: Vec<ParticipantId> = opened
        .to
        .iter()
        .filter_map(|to| ParticipantId::new(to).ok())
        .collect();
    let by = ParticipantId::new(&opened.by).ok()?;
    let tool = definition(
        dispatch,
        &by,
        &to,
        &opened.method,
        opened.context.as_deref(),
    )?;
    let digest =
        content::digest(&to, &opened.method, opened.params.as_deref(), Some(&tool)).ok()?;
    let opened = OpenedProposal {
        tool: Some(tool),
        digest: digest.to_string(),
        ..opened.clone()
    };
    Some((digest, proposed.described(opened)))
}

/// The digest of a proposal under what its server lists now; `None` if there is none any more.
/// Where each caller has an account, that is known while its proposer has a session there, and
/// looked at again when the proposal runs.
pub(crate) fn current_digest(dispatch: &Dispatch, opened: &OpenedProposal) -> Option<Digest> {
    let OpenedProposal {
        method,
        context,
        params,
        ..
    } = opened;
    let to: Vec<ParticipantId> = opened
        .to
        .iter()
        .filter_map(|to| ParticipantId::new(to).ok())
        .collect();
    let by = ParticipantId::new(&opened.by).ok()?;
    if !curation::is_as_shown(dispatch, opened) {
        return None;
    }
    if let Some(server) = addressee(dispatch, &to)
        .as_ref()
        .and_then(|server| server.upstream())
        && server.callers.is_some()
        && server
            .listed_to(&by, Form::ENVELOPE)
            .is_none_or(|listed| is_as_shown(opened, &listed))
    {
        return opened.digest.parse().ok();
    }
    let tool = definition(dispatch, &by, &to, method, context.as_deref());
    if tool == opened.tool {
        return opened.digest.parse().ok();
    }
    content::digest(&to, method, params.as_deref(), tool.as_deref()).ok()
}

/// Whether a call carries out a proposal of a tool that its session, at a server where each caller
/// has an account, lists otherwise than the reviewer was shown: what such a server lists to a
/// proposer need not be known when the proposal is approved.
pub(crate) fn is_redefined(dispatch: &Dispatch, call: &Call, session: &Session) -> bool {
    let delivered = call.delivered.get();
    let Some(proposal) = delivered.and_then(|delivered| delivered.proposal) else {
        return false;
    };
    let content = dispatch.with(|topic| {
        topic
            .proposed(proposal)
            .map(|(content, _)| Arc::clone(content))
    });
    content.is_some_and(|content| !is_as_shown(&content.opened, &session.manifest()))
}

/// Whether a tool is listed as the reviewer of its proposal was shown it. The sessions of a
/// participant may have other spellings of one definition.
fn is_as_shown(opened: &OpenedProposal, listed: &Manifest) -> bool {
    match (&opened.context, &opened.tool) {
        (Some(name), Some(shown)) => listed.defines(name, shown.as_bytes()),
        (_, None) | (None, Some(_)) => true,
    }
}

/// The only addressee of a proposal, if that is a server.
fn addressee(dispatch: &Dispatch, to: &[ParticipantId]) -> Option<Server> {
    let [only] = to else { return None };
    Some(dispatch.with(|topic| topic.server(only))?.handle)
}

/// The definition of a tool as its server lists it to a participant. A decision is bound to it.
pub(crate) fn definition(
    dispatch: &Dispatch,
    by: &ParticipantId,
    to: &[ParticipantId],
    method: &str,
    context: Option<&str>,
) -> Option<String> {
    tool_of(&addressee(dispatch, to)?, by, method, context)
}

pub(super) fn tool_of(
    server: &Server,
    by: &ParticipantId,
    method: &str,
    context: Option<&str>,
) -> Option<String> {
    if !MethodFacts::of(method).calls_tool() {
        return None;
    }
    let manifest = server.upstream()?.listed_to(by, Form::ENVELOPE)?;
    let tool = manifest.original(context?)?;
    Some(String::from_utf8_lossy(&tool.raw).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposals::content::digest;

    #[test]
    fn a_digest_binds_to_what_a_reviewer_is_shown() {
        let to = ["a", "b"].map(|name| ParticipantId::new(name).unwrap());
        let params = Some(r#"{"name":"echo","arguments":{"n":1.0}}"#);
        let of =
            |to: &[ParticipantId], params, tool| digest(to, "tools/call", params, tool).unwrap();
        let first = of(&to, params, Some(r#"{"name":"echo"}"#));
        let spaced = Some(r#"{ "arguments":{"n":1.0}, "name":"echo" }"#);
        assert_eq!(
            first,
            of(&to, spaced, Some(r#"{ "name": "echo" }"#)),
            "spelling does not count"
        );
        assert_ne!(first, of(&to[..1], params, Some(r#"{"name":"echo"}"#)));
        assert_ne!(
            first,
            of(&to, params, Some(r#"{"name":"echo","title":"other"}"#))
        );
        assert_ne!(first, of(&to, params, None));
        assert!(digest(&to, "tools/call", Some("[]"), None).is_err());
    }
}
