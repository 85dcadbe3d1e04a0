//! The proposals of one topic in full: what each says, what became of it, and who waits for that.
//!
//! Owns the cases and their records in the journal. What is decided the topic decides; it knows proposals by id and digest
//! only. Must not know rooms, doors or upstreams.

mod case;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use model::{OperationId, ProposalState, Refusal, RefusalCode};
use platform::{Mutex, MutexGuard, unix_ms};
use store::{DecidedProposal, Decision, EndedProposal, Record, StoreError, Writer};
use topic::Record as What;

use wire::mcpx::Envelope;

use crate::caller::Caller;
pub(crate) use case::{Case, Fulfilment, Held, Ruling, Way};

/// Proposals that are over and can still be asked for.
pub const ENDED_CASES_MAX: usize = 1000;

#[derive(Default)]
struct Book {
    cases: HashMap<OperationId, Case>,
    /// By the id of the envelope that proposed.
    proposed: HashMap<String, OperationId>,
    /// Who says to fulfil what, by the id of the envelope that says so.
    claims: HashMap<String, Vec<Claim>>,
    /// By the call that is held.
    held: HashMap<OperationId, OperationId>,
    ended: VecDeque<OperationId>,
}

/// Somebody's envelope that is to fulfil a proposal, or does.
struct Claim {
    by: String,
    proposal: OperationId,
    /// An answer to it in the room that came before the approval was on disk.
    early: Option<Early>,
}

/// An answer in the room, and who gave it.
pub(crate) type Early = (Arc<Caller>, Envelope);

/// What an answer in the room is to the proposal that it is about.
pub(crate) enum Heard {
    /// Its outcome, of which this proposer is to hear.
    Counts(String),
    /// An answer to a fulfilment that does not count yet.
    Early,
}

/// The proposals of one topic.
#[derive(Default)]
pub(crate) struct Desk {
    journal: Option<Writer>,
    book: Mutex<Book>,
}

impl Desk {
    /// An empty desk; without a journal it keeps nothing on disk.
    pub(crate) fn new(journal: Option<Writer>) -> Self {
        Self { journal, book: Mutex::default() }
    }

    /// Opens a case. False when an envelope of this id has proposed already.
    pub(crate) fn open(&self, id: OperationId, case: Case) -> bool {
        let mut book = self.book();
        if book.proposed.contains_key(&case.opened.envelope) {
            return false;
        }
        book.proposed.insert(case.opened.envelope.clone(), id);
        if let Some(held) = &case.held {
            book.held.insert(held.operation.id, id);
        }
        book.cases.insert(id, case);
        true
    }

    /// Forgets a case that never came to be.
    pub(crate) fn forget(&self, id: OperationId) -> Option<Case> {
        let mut book = self.book();
        let case = book.cases.remove(&id)?;
        book.proposed.remove(&case.opened.envelope);
        if let Some(held) = &case.held {
            book.held.remove(&held.operation.id);
        }
        Some(case)
    }

    /// Notes a decision that is to be written down: one at a time.
    ///
    /// # Errors
    /// When there is no such proposal, or it is decided or being decided.
    pub(crate) fn rule(&self, id: OperationId, ruling: Ruling) -> Result<(), Refusal> {
        let mut book = self.book();
        let case = book.cases.get_mut(&id).ok_or_else(unknown_proposal)?;
        if case.ruling.is_some() || case.state.is_over() {
            return Err(Refusal::new(RefusalCode::Conflict, "this proposal is decided already"));
        }
        case.ruling = Some(ruling);
        Ok(())
    }

    /// Looks at a case, or changes it.
    pub(crate) fn with<T>(&self, id: OperationId, look: impl FnOnce(&mut Case) -> T) -> Option<T> {
        self.book().cases.get_mut(&id).map(look)
    }

    /// Looks at all cases, the oldest first.
    pub(crate) fn all<T>(&self, mut look: impl FnMut(OperationId, &Case) -> Option<T>) -> Vec<T> {
        let book = self.book();
        let mut cases: Vec<_> = book.cases.iter().collect();
        cases.sort_unstable_by_key(|(id, case)| (case.opened.at_ms, **id));
        cases.into_iter().filter_map(|(id, case)| look(*id, case)).collect()
    }

    /// The proposal that this envelope made.
    pub(crate) fn proposed_by(&self, envelope: &str) -> Option<OperationId> {
        self.book().proposed.get(envelope).copied()
    }

    /// Notes that an envelope is to fulfil this proposal, before anybody hears it: it may be answered before it counts.
    /// False if that is noted already, or nothing can fulfil the proposal any more.
    pub(crate) fn claim(&self, id: OperationId, fulfilment: &Fulfilment) -> bool {
        let mut book = self.book();
        let waits = book.cases.get(&id).is_some_and(|case| case.state == ProposalState::Pending);
        waits && book.claim(id, fulfilment)
    }

    /// It fulfils nothing.
    pub(crate) fn unclaim(&self, fulfilment: &Fulfilment) {
        self.book().unclaim(|claim| claim.by == fulfilment.by, &fulfilment.envelope);
    }

    /// The proposal that this answer in the room is about, and what fulfils it. Two participants may use one id: then the
    /// answer is for the one whom it names.
    pub(crate) fn claimed(&self, answer: &Envelope) -> Option<(OperationId, Fulfilment)> {
        let (book, envelope) = (self.book(), answer.correlation_id()?);
        let all = book.claims.get(envelope)?;
        let is_named = |claim: &&Claim| answer.to().any(|to| to == claim.by);
        let one = match all.as_slice() {
            [only] => Some(only),
            several => several.iter().find(is_named),
        };
        one.map(|one| (one.proposal, Fulfilment { by: one.by.clone(), envelope: envelope.to_owned() }))
    }

    /// Takes an answer in the room to what fulfils this proposal; nothing if it does not count.
    pub(crate) fn answered(
        &self,
        id: OperationId,
        fulfilment: &Fulfilment,
        (caller, envelope): (&Arc<Caller>, &Envelope),
        frame: &Bytes,
    ) -> Option<Heard> {
        let mut book = self.book();
        let from = caller.participant().id.as_str();
        let case = book.cases.get_mut(&id)?;
        if case.state.is_over() || !case.is_answered_by(from, envelope.kind()) {
            return None;
        }
        if let Some(counting) = &case.fulfilment {
            let counts = case.held.is_none() && counting == fulfilment;
            return counts.then(|| {
                case.answer = Some(frame.clone());
                Heard::Counts(case.opened.by.clone())
            });
        }
        let claims = book.claims.get_mut(&fulfilment.envelope)?;
        let claim = claims.iter_mut().find(|claim| claim.by == fulfilment.by)?;
        claim.early.get_or_insert_with(|| (Arc::clone(caller), envelope.clone()));
        Some(Heard::Early)
    }

    /// The proposal behind which this call is held.
    pub(crate) fn behind(&self, call: OperationId) -> Option<OperationId> {
        self.book().held.get(&call).copied()
    }

    /// An approved proposal runs, and this fulfils it. Gives the answer that came already.
    pub(crate) fn runs(&self, id: OperationId, fulfilment: &Fulfilment) -> Option<Early> {
        let mut book = self.book();
        book.claim(id, fulfilment);
        let case = book.cases.get_mut(&id)?;
        case.fulfilment = Some(fulfilment.clone());
        let claims = book.claims.get_mut(&fulfilment.envelope)?;
        claims.iter_mut().find(|claim| claim.by == fulfilment.by)?.early.take()
    }

    /// The call behind a proposal was answered for now.
    pub(crate) fn release(&self, id: OperationId) -> Option<Held> {
        let mut book = self.book();
        let held = book.cases.get_mut(&id)?.held.take()?;
        book.held.remove(&held.operation.id);
        Some(held)
    }

    /// Notes how a proposal stands, and wakes who waits for it.
    pub(crate) fn stands(&self, id: OperationId, state: ProposalState, reason: Option<&str>) {
        let mut book = self.book();
        let Some(case) = book.cases.get_mut(&id) else { return };
        case.stands(state, reason);
        if !state.is_over() {
            return;
        }
        let (held, fulfilment) = (case.held.take(), case.fulfilment.take());
        if let Some(held) = held {
            book.held.remove(&held.operation.id);
        }
        if let Some(fulfilment) = fulfilment {
            book.unclaim(|claim| claim.by == fulfilment.by, &fulfilment.envelope);
        }
        book.ended.push_back(id);
        if book.ended.len() > ENDED_CASES_MAX
            && let Some(oldest) = book.ended.pop_front()
            && let Some(gone) = book.cases.remove(&oldest)
        {
            book.proposed.remove(&gone.opened.envelope);
        }
    }

    /// Writes down what the topic says must be written down before anybody is told. `told` hears whether it is durable.
    pub(crate) fn store(&self, id: OperationId, what: &What, told: impl FnOnce(bool) + Send + 'static) {
        let record = self.with(id, |case| record(id, case, what)).flatten();
        let (Some(journal), Some(record)) = (&self.journal, record) else { return told(true) };
        journal.submit(vec![record], move |result: Result<(), StoreError>| {
            if let Err(error) = &result {
                tracing::error!(%error, "the journal cannot be written");
            }
            told(result.is_ok());
        });
    }

    /// Every proposal that the journal knows for this topic.
    pub(crate) fn recorded(&self, topic: &str) -> Vec<store::Proposal> {
        let Some(journal) = &self.journal else { return Vec::new() };
        journal.state(|state| {
            let all = state.ended_proposals().chain(state.open_proposals());
            all.filter(|proposal| proposal.opened.topic == topic).cloned().collect()
        })
    }

    /// Writes down an end outside of the topic's steps: after a restart.
    pub(crate) fn settle(&self, ended: EndedProposal) {
        if let Some(journal) = &self.journal {
            journal.submit(vec![Record::ProposalEnded(ended)], |result| {
                if let Err(error) = result {
                    tracing::error!(%error, "the journal cannot be written");
                }
            });
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }
}

impl Book {
    /// False when there is such a claim already.
    fn claim(&mut self, proposal: OperationId, fulfilment: &Fulfilment) -> bool {
        let Fulfilment { by, envelope } = fulfilment;
        let claims = self.claims.entry(envelope.clone()).or_default();
        let new = !claims.iter().any(|claim| claim.by == *by);
        if new {
            claims.push(Claim { by: by.clone(), proposal, early: None });
        }
        new
    }

    fn unclaim(&mut self, is_it: impl Fn(&Claim) -> bool, envelope: &str) {
        let Some(claims) = self.claims.get_mut(envelope) else { return };
        claims.retain(|claim| !is_it(claim));
        if claims.is_empty() {
            self.claims.remove(envelope);
        }
    }
}

fn record(id: OperationId, case: &mut Case, what: &What) -> Option<Record> {
    let (id, at_ms) = (id.to_string(), unix_ms());
    Some(match what {
        What::Opened => Record::ProposalOpened(case.opened.clone()),
        What::Decided { by, state, reason } => {
            let decision = match state {
                ProposalState::Running => Decision::Approved,
                ProposalState::Rejected => Decision::Rejected,
                // The topic decides nothing else.
                ProposalState::Withdrawn
                | ProposalState::Pending
                | ProposalState::Completed
                | ProposalState::Failed
                | ProposalState::Expired => Decision::Withdrawn,
            };
            let ruling = case.ruling.as_ref();
            let decided = DecidedProposal {
                id,
                by: by.to_string(),
                decision,
                reason: reason.as_deref().map(str::to_owned),
                digest: Some(case.opened.digest.clone()),
                params: ruling.and_then(|ruling| ruling.params.clone()),
                envelope: ruling.and_then(|ruling| ruling.envelope.clone()),
                at_ms,
            };
            case.decided = Some(decided.clone());
            Record::ProposalDecided(decided)
        }
        What::Ended { state, reason } => Record::ProposalEnded(EndedProposal {
            id,
            state: state.as_str().to_owned(),
            reason: reason.as_deref().map(str::to_owned),
            answer: case.answer.as_ref().map(|answer| String::from_utf8_lossy(answer).into_owned()),
            at_ms,
        }),
    })
}

/// The refusal of whoever asks for a proposal that is not there, or not for them.
pub(crate) fn unknown_proposal() -> Refusal {
    Refusal::new(RefusalCode::UnknownTarget, "there is no such proposal")
        .hint("`portmoot proposals ls` shows those that you may see")
}

#[cfg(test)]
mod tests;
