//! How a proposal comes to be: from an envelope in the room, from a call that is held, or from the journal.
//!
//! Must not know what is decided about it.

use std::sync::Arc;
use std::time::Duration;

use model::{Digest, Era, OperationId, ParticipantId, ProposalState, Refusal, RefusalCode};
use store::{Decision, EndedProposal, OpenedProposal};
use topic::{Event, Terms};
use wire::digest::Shown;
use wire::mcp::{Params, task};
use wire::mcpx::Envelope;
use wire::mcpx::check::Call;

use super::{Pump, Seat};
use crate::caller::Caller;
use crate::desk::{Case, Held, Way};
use crate::operation::Operation;
use crate::spell;
use platform::{random, unix_ms};
use upstream::ClientProfile;

/// What is told of an approved proposal that a restart interrupted.
const OUTCOME_UNKNOWN: &str = "outcome_unknown: the gateway was restarted while it ran; it may have been carried out, and is not run again";

/// What somebody proposes.
struct Draft<'d> {
    by: &'d ParticipantId,
    to: Vec<ParticipantId>,
    method: &'d str,
    context: Option<&'d str>,
    envelope: String,
    params: Option<String>,
}

impl Pump {
    /// Takes up a proposal that was said in the room and agrees with its kind.
    pub(crate) fn proposed(&self, caller: &Caller, envelope: &Envelope, call: &Call) {
        let by = &caller.participant().id;
        let draft = Draft {
            by,
            to: envelope.to().filter_map(|to| ParticipantId::new(to).ok()).collect(),
            method: call.method(),
            context: call.target(),
            envelope: envelope.id().to_owned(),
            params: call.params().map(|params| String::from_utf8_lossy(params).into_owned()),
        };
        if let Err(why) = self.open_case(draft, None) {
            self.tell_state(by, envelope.id(), None, ProposalState::Rejected, Some(&why.to_string()));
        }
    }

    /// Holds a call as a proposal.
    pub(super) fn hold(
        &self,
        operation: &Arc<Operation>,
        seat: &Seat,
        own: Option<&str>,
        params: &Params<'_>,
        hello: ClientProfile,
    ) {
        let caller = &operation.caller;
        // What the caller gets a task of is for its server a call like any other.
        let plain = task::without_task(params).or_else(|| task::without_extension(params));
        let message = plain.as_ref().unwrap_or(params.message());
        let held = Held {
            operation: Arc::clone(operation),
            message: message.clone(),
            way: way(caller.era(), params, &hello),
            hello,
        };
        let written = spell::legacy_params(caller.era(), message, own);
        let draft = Draft {
            by: &caller.participant().id,
            to: vec![seat.id.clone()],
            method: message.method(),
            context: own.or_else(|| params.target().map(wire::mcp::Target::text)),
            envelope: format!("{:032x}", u128::from_le_bytes(random())),
            params: written,
        };
        let _ = operation.upstream.set((seat.id.clone(), seat.link));
        if let Err(why) = self.open_case(draft, Some(held)) {
            self.step(Event::Cancel { link: caller.link(), operation: operation.id });
            operation.refuse(&why);
        }
    }

    fn open_case(&self, draft: Draft<'_>, held: Option<Held>) -> Result<(), Refusal> {
        let (by, to, act) = (draft.by, draft.to.clone(), (draft.method, draft.context));
        let opened = self.try_open_case(draft, held);
        opened.inspect_err(|refusal| {
            let why = format!("{}: {}", refusal.code.as_str(), refusal.message);
            self.record_unfit(by, &to, act, &why);
        })
    }

    fn try_open_case(&self, draft: Draft<'_>, held: Option<Held>) -> Result<(), Refusal> {
        let Draft { by, to, method, context, envelope, params } = draft;
        let tool = self.definition(&to, method, context);
        let names: Vec<&str> = to.iter().map(ParticipantId::as_str).collect();
        let shown = Shown {
            method,
            to: &names,
            params: params.as_deref().map(str::as_bytes),
            definition: tool.as_deref().map(str::as_bytes),
        };
        let digest = shown.digest().map_err(|why| unfit(&why.to_string()))?;
        let (opening, ending) = (self.audit.reserve()?, self.audit.reserve()?);
        // Nobody can guess it: it is what a task is asked for by.
        let id = OperationId(u128::from_le_bytes(random()));
        let (at_ms, ttl) = (unix_ms(), self.proposal_ttl);
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let call = held.as_ref().map(|held| held.operation.id);
        let opened = OpenedProposal {
            id: id.to_string(),
            topic: self.name.to_string(),
            by: by.to_string(),
            to: names.iter().map(|name| (*name).to_owned()).collect(),
            method: method.to_owned(),
            context: context.map(str::to_owned),
            envelope,
            era: None,
            params: params.clone(),
            tool: tool.clone(),
            digest: digest.to_string(),
            held: held.is_some(),
            door: None,
            at_ms,
            expires_ms: at_ms.saturating_add(ttl_ms),
        };
        let case = Case { opening: Some(opening), ending: Some(ending), ..Case::new(opened, held) };
        if !self.desk.open(id, case) {
            return Err(unfit("an envelope of this id has proposed already"));
        }
        let expires_ms = self.ground.now_ms().saturating_add(ttl_ms);
        let terms = Terms { by, method, context, to: &to, digest, expires_ms };
        self.step(Event::Propose { proposal: id, terms, held: call });
        self.expiry.notify_one();
        Ok(())
    }

    /// The tool's definition as its server lists it; a decision is bound to it.
    fn definition(&self, to: &[ParticipantId], method: &str, context: Option<&str>) -> Option<String> {
        let ([only], "tools/call") = (to, method) else { return None };
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.id == *only)?;
        let manifest = seat.upstream.manifest_in(Era::Legacy);
        let tool = manifest.tools.items.iter().find(|tool| Some(tool.key.as_str()) == context)?;
        Some(String::from_utf8_lossy(&tool.raw).into_owned())
    }

    /// Whether a proposal that waits was made of a tool that its server describes otherwise now, or does not list any more.
    pub(super) fn is_redefined(&self, id: OperationId) -> bool {
        let waiting = |case: &mut Case| (case.state == ProposalState::Pending).then(|| case.opened.clone());
        let Some(opened) = self.desk.with(id, waiting).flatten() else { return false };
        let to: Vec<_> = opened.to.iter().filter_map(|to| ParticipantId::new(to).ok()).collect();
        self.definition(&to, &opened.method, opened.context.as_deref()) != opened.tool
    }

    /// Brings back what the journal knows: what waited waits on, what ran is settled as unknown and never run again.
    pub(crate) fn restore(&self) {
        for proposal in self.desk.recorded(self.name.as_str()) {
            let Ok(id) = proposal.opened.id.parse::<OperationId>() else { continue };
            let over = proposal.is_over();
            let mut case = Case::new(proposal.opened.clone(), None);
            case.told = true;
            case.decided = proposal.decided.clone();
            case.ending = (!over).then(|| self.audit.reserve_or_tell());
            case.answer = proposal.ended.as_ref().and_then(|end| end.answer.clone()).map(Into::into);
            self.desk.open(id, case);
            if over {
                let (state, reason) = end_of(&proposal);
                self.desk.stands(id, state, reason.as_deref());
            } else if proposal.decided.is_some() {
                self.unknown_outcome(id);
            } else {
                self.reopen(id, &proposal.opened);
            }
        }
    }

    fn unknown_outcome(&self, id: OperationId) {
        let state = ProposalState::Failed;
        self.desk.settle(EndedProposal {
            id: id.to_string(),
            state: state.as_str().to_owned(),
            reason: Some(OUTCOME_UNKNOWN.to_owned()),
            answer: None,
            at_ms: unix_ms(),
        });
        self.record_over(id, state, Some(OUTCOME_UNKNOWN));
        self.desk.stands(id, state, Some(OUTCOME_UNKNOWN));
    }

    fn reopen(&self, id: OperationId, opened: &OpenedProposal) {
        let (Ok(by), Ok(digest)) = (ParticipantId::new(&opened.by), opened.digest.parse::<Digest>()) else {
            return;
        };
        let to: Vec<_> = opened.to.iter().filter_map(|to| ParticipantId::new(to).ok()).collect();
        let left_ms = opened.expires_ms.saturating_sub(unix_ms());
        let (method, context) = (opened.method.as_str(), opened.context.as_deref());
        let expires_ms = self.ground.now_ms().saturating_add(left_ms);
        let terms = Terms { by: &by, method, context, to: &to, digest, expires_ms };
        self.step(Event::Restore { proposal: id, terms });
        self.expiry.notify_one();
    }

    /// Lets proposals expire on time, for as long as there is a topic.
    pub(super) fn watch_expiry(self: &Arc<Self>) {
        let (pump, expiry) = (Arc::downgrade(self), Arc::clone(&self.expiry));
        tokio::spawn(async move {
            loop {
                let Some((next_ms, now_ms)) = pump
                    .upgrade()
                    .map(|pump| (pump.with(topic::Topic::next_expiry_ms), pump.ground.now_ms()))
                else {
                    return;
                };
                let wait = next_ms.map(|next_ms| Duration::from_millis(next_ms.saturating_sub(now_ms)));
                tokio::select! {
                    () = expiry.notified() => {}
                    () = tokio::time::sleep(wait.unwrap_or(Duration::from_secs(3600))) => {
                        if let Some(pump) = pump.upgrade() {
                            pump.step(Event::Tick);
                        }
                    }
                }
            }
        });
    }
}

/// How the caller of a held call is answered.
fn way(era: Era, params: &Params<'_>, hello: &ClientProfile) -> Way {
    let task = params.method() == "tools/call"
        && match era {
            Era::Legacy => task::asked(params).is_ok_and(|asked| asked.is_some()),
            Era::Modern => task::declares(&hello.capabilities),
        };
    match era {
        _ if task => Way::Task,
        Era::Modern => Way::Retry,
        Era::Legacy => Way::Words,
    }
}

fn unfit(why: &str) -> Refusal {
    Refusal::new(RefusalCode::Malformed, format!("this cannot be proposed: {why}"))
}

fn end_of(proposal: &store::Proposal) -> (ProposalState, Option<String>) {
    if let Some(end) = &proposal.ended {
        let state = ProposalState::ALL.into_iter().find(|state| state.as_str() == end.state);
        return (state.unwrap_or(ProposalState::Failed), end.reason.clone());
    }
    match &proposal.decided {
        Some(decided) if decided.decision == Decision::Rejected => {
            (ProposalState::Rejected, decided.reason.clone())
        }
        Some(decided) => (ProposalState::Withdrawn, decided.reason.clone()),
        None => (ProposalState::Failed, None),
    }
}
