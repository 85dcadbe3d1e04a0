//! What the topic decides, as entries of the audit log. Every verdict passes here once.
//!
//! Must not know how the log is kept, nor decide anything.

use std::sync::Arc;

use model::{Capabilities, KindRef, OperationId, PROPOSAL, ParticipantId, ProposalState, REQUEST, Refusal};
use store::OpenedProposal;
use store::audit::{Entry, Verdict, What};
use topic::Cause;
use wire::mcp::Params;
use wire::mcpx::Envelope;

use super::{Pump, Routed};
use crate::audit::{Place, entry};
use crate::caller::{Caller, Open};
use crate::desk::Case;
use crate::operation::Operation;

/// The kind of what was said and is no envelope.
const MALFORMED: &str = "portmoot/malformed";

/// What became of a request on its way in.
pub(super) struct Judged<'j> {
    /// Its target, as it was asked for.
    pub(super) target: Option<&'j str>,
    /// Where it goes, or why it goes nowhere.
    pub(super) routed: Result<&'j Routed, &'static str>,
    /// What its caller may do.
    pub(super) authority: Option<&'j Capabilities>,
}

impl Pump {
    fn entry<'e>(&'e self, from: &'e str, kind: impl Into<What<'e>>, verdict: Verdict) -> Entry<'e> {
        entry(Some(self.name.as_str()), from, kind, verdict)
    }

    /// What is refused costs its sender little: of a flood of it only the first are written out, then a count.
    fn write(&self, place: Place, entry: &Entry<'_>) {
        match entry.verdict {
            Verdict::Refused => self.audit.write_counted(place, entry),
            Verdict::Admitted
            | Verdict::Held
            | Verdict::Approved
            | Verdict::Rejected
            | Verdict::Withdrawn
            | Verdict::Expired
            | Verdict::Completed
            | Verdict::Failed
            | Verdict::Broken => place.write(entry),
        }
    }

    /// A request of an MCP client.
    pub(super) fn record_call(
        &self,
        place: Place,
        operation: &Operation,
        params: &Params<'_>,
        judged: &Judged<'_>,
    ) {
        if !place.keeps() {
            return;
        }
        let Judged { target, routed, authority } = *judged;
        let message = params.message();
        let (verdict, to, own) = match routed {
            Ok(Routed::Gateway) => (Verdict::Admitted, Some(self.own.0.as_str()), None),
            Ok(Routed::Upstream(seat, own)) => (Verdict::Admitted, Some(seat.id.as_str()), own.as_deref()),
            Ok(Routed::Held(seat, own)) => (Verdict::Held, Some(seat.id.as_str()), own.as_deref()),
            Err(_) => (Verdict::Refused, None, None),
        };
        let admitting = || {
            let kind = KindRef::request(message.method(), target).ok()?;
            authority.and_then(|all| admitting(all, kind, &[to?]))
        };
        let why = routed.err().or_else(|| admitting().filter(|_| verdict == Verdict::Admitted));
        let from = operation.caller.participant().id.as_str();
        let kind = what(REQUEST, message.method(), target);
        let entry = Entry {
            own,
            to: to.as_slice(),
            why,
            operation: Some(operation.id),
            payload: message.params(),
            ..self.entry(from, kind, verdict)
        };
        self.write(place, &entry);
    }

    /// A request that the room has let through and that nobody carries out.
    pub(super) fn record_unexecuted(&self, operation: &Operation, params: &Params<'_>, to: &str, why: &str) {
        let method = params.message().method();
        let target = params.target().map(wire::mcp::Target::text);
        let from = operation.caller.participant().id.as_str();
        let kind = what(REQUEST, method, target);
        let entry = Entry {
            to: &[to],
            why: Some(why),
            operation: Some(operation.id),
            ..self.entry(from, kind, Verdict::Refused)
        };
        self.write(self.audit.reserve_or_tell(), &entry);
    }

    /// A request that was let through, or held, and may not go on: a verdict about it once more.
    pub(super) fn record_ended(
        &self,
        caller: &Caller,
        operation: OperationId,
        open: &dyn Open,
        cause: Cause,
    ) {
        let (Cause::Withdrawn, Some((method, target))) = (cause, open.about()) else { return };
        let kind = what(REQUEST, method, target);
        let entry = Entry {
            why: Some(cause.as_str()),
            operation: Some(operation),
            ..self.entry(caller.participant().id.as_str(), kind, Verdict::Refused)
        };
        self.write(self.audit.reserve_or_tell(), &entry);
    }

    /// An envelope that was said, and what became of it.
    pub(super) fn record_said(
        &self,
        place: Place,
        caller: &Caller,
        envelope: &Envelope,
        end: Result<&Arc<Capabilities>, &str>,
    ) {
        if !place.keeps() {
            return;
        }
        let to: Vec<&str> = envelope.to().collect();
        let verdict = if end.is_ok() { Verdict::Admitted } else { Verdict::Refused };
        let why = match end {
            Ok(all) => KindRef::parse(envelope.kind()).ok().and_then(|kind| admitting(all, kind, &to)),
            Err(why) => Some(why),
        };
        let entry = Entry {
            to: &to,
            why,
            payload: Some(envelope.payload()),
            ..self.entry(caller.participant().id.as_str(), envelope.kind(), verdict)
        };
        self.write(place, &entry);
    }

    /// What a server says in the room, as one who is hosted here.
    pub(super) fn record_hosted(
        &self,
        from: &str,
        to: &[&str],
        kind: &str,
        payload: &[u8],
        why: Option<&str>,
    ) {
        let verdict = if why.is_none() { Verdict::Admitted } else { Verdict::Refused };
        let place = self.audit.reserve_or_tell();
        place.write(&Entry { to, why, payload: Some(payload), ..self.entry(from, kind, verdict) });
    }

    /// Something that is no envelope.
    pub(super) fn record_malformed(&self, caller: &Caller, why: &str) {
        let from = caller.participant().id.as_str();
        let entry = Entry { why: Some(why), ..self.entry(from, MALFORMED, Verdict::Refused) };
        self.write(self.audit.reserve_or_tell(), &entry);
    }

    /// An envelope that was said, and with which nobody of these does anything.
    pub(crate) fn record_ignored(&self, caller: &Caller, envelope: &Envelope, by: &[&str], why: &str) {
        let from = caller.participant().id.as_str();
        let entry = Entry {
            to: by,
            why: Some(why),
            payload: Some(envelope.payload()),
            ..self.entry(from, envelope.kind(), Verdict::Refused)
        };
        self.write(self.audit.reserve_or_tell(), &entry);
    }

    /// Somebody has come in who hears what is said here.
    pub(crate) fn record_came(&self, caller: &Caller) {
        self.record_connection(caller, Verdict::Admitted, "opened");
    }

    /// Somebody who may come in does not find a place.
    pub(crate) fn record_kept_out(&self, who: &str, refusal: &Refusal) {
        let (topic, why) = (Some(self.name.as_str()), reason(refusal));
        self.audit.write_connection(topic, who, Verdict::Refused, why);
    }

    /// A connection has ended: well, or because of what came over it.
    pub(crate) fn record_went(&self, caller: &Caller, is_well: bool, why: &str) {
        self.record_connection(caller, if is_well { Verdict::Completed } else { Verdict::Refused }, why);
    }

    fn record_connection(&self, caller: &Caller, verdict: Verdict, why: &str) {
        let from = caller.participant().id.as_str();
        self.audit.write_connection(Some(self.name.as_str()), from, verdict, why);
    }

    /// A proposal is open to decisions.
    pub(super) fn record_proposed(&self, id: OperationId) {
        let seen = self.desk.with(id, |case| {
            let call = case.held.as_ref().map(|held| format!("for the call {}", held.operation.id));
            (case.opening.take(), call, case.opened.clone())
        });
        let Some((Some(place), call, opened)) = seen else { return };
        self.record_proposal(
            place,
            id,
            &opened,
            Happened {
                by: &opened.by,
                verdict: Verdict::Held,
                why: call.as_deref(),
                payload: opened.params.as_deref().map(str::as_bytes),
            },
        );
    }

    /// A proposal was not taken.
    pub(super) fn record_not_proposed(&self, id: OperationId, case: &mut Case, cause: Cause) {
        let Some(place) = case.opening.take() else { return };
        self.record_proposal(
            place,
            id,
            &case.opened,
            Happened {
                by: &case.opened.by,
                verdict: Verdict::Refused,
                why: Some(cause.as_str()),
                payload: None,
            },
        );
    }

    /// A proposal may run.
    pub(super) fn record_approved(&self, id: OperationId, by: &ParticipantId) {
        let seen = self.desk.with(id, |case| {
            let place = case.decision_place();
            let edited = case.decided.as_ref().is_some_and(|decided| decided.params.is_some());
            (place, edited, case.opened.clone(), case.params().map(str::to_owned))
        });
        let Some((place, edited, opened, params)) = seen else { return };
        let place = place.unwrap_or_else(|| self.audit.reserve_or_tell());
        let why = match edited {
            true => format!("proposed by {}, arguments edited", opened.by),
            false => format!("proposed by {}", opened.by),
        };
        self.record_proposal(
            place,
            id,
            &opened,
            Happened {
                by: by.as_str(),
                verdict: Verdict::Approved,
                why: Some(&why),
                payload: params.as_deref().map(str::as_bytes),
            },
        );
    }

    /// A proposal is over.
    pub(super) fn record_over(&self, id: OperationId, state: ProposalState, reason: Option<&str>) {
        let verdict = match state {
            ProposalState::Completed => Verdict::Completed,
            ProposalState::Rejected => Verdict::Rejected,
            ProposalState::Withdrawn => Verdict::Withdrawn,
            ProposalState::Expired => Verdict::Expired,
            ProposalState::Failed | ProposalState::Pending | ProposalState::Running => Verdict::Failed,
        };
        let decided = matches!(state, ProposalState::Rejected | ProposalState::Withdrawn);
        let seen = self.desk.with(id, |case| {
            let place = case.decision_place().filter(|_| decided);
            let by = case.decided.as_ref().filter(|_| decided).map(|decided| decided.by.clone());
            let answer = case.answer.clone().filter(|_| !decided);
            (place.or_else(|| case.ending.take()), by, case.opened.clone(), answer)
        });
        let Some((place, by, opened, answer)) = seen else { return };
        let place = place.unwrap_or_else(|| self.audit.reserve_or_tell());
        self.record_proposal(
            place,
            id,
            &opened,
            Happened {
                by: by.as_deref().unwrap_or(&opened.by),
                verdict,
                why: reason,
                payload: answer.as_deref(),
            },
        );
    }

    /// A decision that does not count.
    pub(super) fn record_undecided(
        &self,
        id: OperationId,
        by: &ParticipantId,
        why: &str,
        place: Option<Place>,
    ) {
        let opened = self.desk.with(id, |case| case.opened.clone());
        let place = place.unwrap_or_else(|| self.audit.reserve_or_tell());
        let happened = Happened { by: by.as_str(), verdict: Verdict::Refused, why: Some(why), payload: None };
        match opened {
            Some(opened) => self.record_proposal(place, id, &opened, happened),
            None => {
                let entry = self.entry(by.as_str(), PROPOSAL, Verdict::Refused);
                self.write(place, &Entry { why: Some(why), operation: Some(id), ..entry });
            }
        }
    }

    fn record_proposal(
        &self,
        place: Place,
        id: OperationId,
        opened: &OpenedProposal,
        happened: Happened<'_>,
    ) {
        let Happened { by, verdict, why, payload } = happened;
        let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
        let kind = what(PROPOSAL, &opened.method, opened.context.as_deref());
        let entry = Entry {
            to: &to,
            why,
            operation: Some(id),
            digest: Some(&opened.digest),
            payload,
            ..self.entry(by, kind, verdict)
        };
        self.write(place, &entry);
    }

    /// What somebody wants to propose, and cannot.
    pub(super) fn record_unfit(
        &self,
        by: &ParticipantId,
        to: &[ParticipantId],
        (method, context): (&str, Option<&str>),
        why: &str,
    ) {
        let to: Vec<&str> = to.iter().map(ParticipantId::as_str).collect();
        let kind = what(PROPOSAL, method, context);
        let entry = Entry { to: &to, why: Some(why), ..self.entry(by.as_str(), kind, Verdict::Refused) };
        self.write(self.audit.reserve_or_tell(), &entry);
    }
}

/// What happened to a proposal.
struct Happened<'h> {
    by: &'h str,
    verdict: Verdict,
    why: Option<&'h str>,
    payload: Option<&'h [u8]>,
}

/// What is recorded of a refusal.
pub(super) fn reason(refusal: &Refusal) -> &'static str {
    refusal.code.as_str()
}

/// The capability that admits this.
fn admitting<'c>(all: &'c Capabilities, kind: KindRef<'_>, to: &[&str]) -> Option<&'c str> {
    all.iter().find(|one| one.admits_to(kind, to)).map(model::Capability::as_str)
}

/// As it was asked for, well formed or not.
fn what<'w>(head: &'w str, method: &'w str, context: Option<&'w str>) -> What<'w> {
    What { head, method: Some(method), context }
}
