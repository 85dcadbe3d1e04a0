//! View of a proposal for its proposer: a task, the result of the call, or words for a model.

use std::cell::OnceCell;

use model::{
    Answer, Form, MethodFacts, Outcome, ParticipantId, ProposalState, Refusal, RefusalCode,
};
use platform::unix_ms;
use rules::RejectReason;
use wire::mcp::approval::{self, Disposition, Remedy};
use wire::mcp::result::{tool_result, with_meta, words};
use wire::mcp::task::{self, OperationState, TaskView};
use wire::mcp::{meta, relay};

use crate::by_rule::decided_by::{
    code_of, decider, notes_of, rule_of, words_of_approvals, write_notes,
};
use crate::{delivery::own_answer, dispatch::Dispatch, live::ProposalView};

/// Interval at which a client should ask about a task, in milliseconds.
const POLL_MS: u64 = 1000;
/// The key of `_meta` that has the proposal's id.
const ID_KEY: &str = "portmoot/proposal";

/// A proposal as its proposer sees it in one form.
pub(crate) struct View<'v> {
    id: String,
    proposal: &'v ProposalView,
    form: Form,
    /// Time of the last change of its state, in milliseconds since 1970.
    updated_ms: u64,
    /// Participants that were shown it while it waits, in the topic or not: at a terminal, in a
    /// browser.
    shown_to: Vec<ParticipantId>,
    /// The answer that it led to, in this form: its body alone.
    answer: Option<Answer>,
    /// Its result as a task.
    result: OnceCell<Vec<u8>>,
}

impl<'v> View<'v> {
    /// The view of a proposal in a caller's form.
    pub(crate) fn new(dispatch: &Dispatch, proposal: &'v ProposalView, form: Form) -> Self {
        let age_ms = dispatch
            .context
            .now_ms()
            .saturating_sub(proposal.updated_ms);
        let view = Self::at(proposal, form, unix_ms().saturating_sub(age_ms));
        Self {
            shown_to: dispatch.showings.shown_to(proposal.id),
            ..view
        }
    }

    fn at(proposal: &'v ProposalView, form: Form, updated_ms: u64) -> Self {
        let method = proposal.content.opened.method.as_str();
        let answer = proposal
            .answer
            .as_ref()
            .map(|answer| relay::convert_answer(answer, method, form, &|_| None))
            .map(|answer| noted(answer, proposal));
        let id = proposal.id.to_string();
        Self {
            id,
            proposal,
            form,
            updated_ms,
            shown_to: Vec::new(),
            answer,
            result: OnceCell::new(),
        }
    }

    /// The proposal's id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn act(&self) -> String {
        let opened = &self.proposal.content.opened;
        let name = opened.context.as_deref().unwrap_or(&opened.method);
        let act = format!("`{name}` of {}", opened.to.join(", "));
        match &self.proposal.plan {
            Some(place) => {
                let (number, of) = (place.number(), place.of());
                format!("{act} (step {number} of {of} of the plan {})", place.plan)
            }
            None => act,
        }
    }

    /// Text about what the caller waits for, and what to do meanwhile.
    pub(crate) fn waiting(&self) -> String {
        let act = self.act();
        let id = self.proposal.id;
        let what = if self.proposal.state == ProposalState::Running {
            format!("was approved under the id {id} and runs now")
        } else {
            let deciders = self.who_can_approve();
            format!("needs approval and was proposed under the id {id}; {deciders}")
        };
        format!(
            "Not done yet: the call of {act} {what}. Do not call it again: to go on waiting, call the tool \
             `wait_for_proposal` with {{\"id\":\"{id}\"}}."
        )
    }

    /// The approvals so far, and the participants that can approve.
    fn who_can_approve(&self) -> String {
        let deciders = match (self.proposal.deciders.as_slice(), self.shown_to.as_slice()) {
            ([], []) => {
                "no participant that could approve it is here now, or has looked at it".to_owned()
            }
            ([], [one]) => format!("{one} has seen it and can approve it"),
            ([], seen) => format!("{} have seen it and can approve it", names(seen)),
            ([one], _) => format!("{one} can approve it"),
            (some, _) => format!("any of {} can approve it", names(some)),
        };
        let is_pending = self.proposal.state == ProposalState::Pending;
        if is_pending && self.proposal.approvals > 1 {
            format!("{}; {deciders}", words_of_approvals(self.proposal))
        } else {
            deciders
        }
    }

    /// The state of the proposal, in words for its proposer.
    pub(crate) fn verdict(&self) -> String {
        let act = self.act();
        let decider = match rule_of(self.proposal) {
            Some(rule) => rule.to_string(),
            None => decider(self.proposal).unwrap_or("a reviewer").to_owned(),
        };
        let why = self.proposal.reason.as_deref();
        let because = why
            // It may be a sentence: the point follows.
            .map(|why| format!(", with the reason: {}", why.trim_end_matches('.')))
            .unwrap_or_default();
        let notes = notes_of(self.proposal);
        let notes: Vec<String> = notes
            .iter()
            .map(|one| format!(" {} notes: {}", one.by, one.note))
            .collect();
        let notes = notes.concat();
        let chosen = self.proposal.ruling.as_ref().map(|ruling| ruling.code);
        let (object, after) = match chosen.unwrap_or_default() {
            RejectReason::Unsaid => ("", "do not repeat it unchanged"),
            RejectReason::Arguments => (" for its arguments", "do not repeat it unchanged"),
            RejectReason::Context => (" for the moment or the context", "another time it may be"),
        };
        match self.proposal.state {
            ProposalState::Pending => self.waiting(),
            ProposalState::Running => {
                format!("The call of {act} was approved by {decider} and runs now.{notes}")
            }
            ProposalState::Completed => {
                format!("The call of {act} was approved by {decider} and is done.{notes}")
            }
            ProposalState::Failed => {
                let why = why.unwrap_or("no answer");
                let after = if self.proposal.answer.is_some() {
                    ""
                } else {
                    " Whether it was carried out is not known: look before you repeat it."
                };
                format!(
                    "The call of {act} was approved by {decider} and failed: {why}.{notes}{after}"
                )
            }
            ProposalState::Rejected => format!(
                "The call of {act} was rejected by {decider}{object}{because}. It was not run; {after}."
            ),
            ProposalState::Withdrawn => {
                format!("The proposed call of {act} was withdrawn{because}. It was not run.")
            }
            ProposalState::Expired => format!(
                "The call of {act} was not decided in time, so it was not run. Propose it again if it is still needed."
            ),
        }
    }

    /// What became of a call of a tool; `None` while that is open, and for an error of its server,
    /// with which its task fails.
    fn disposition(&self) -> Option<Disposition> {
        if !MethodFacts::of(&self.proposal.content.opened.method).calls_tool() {
            return None;
        }
        let answer = self.answer.as_ref().map(task::standing_of);
        match self.proposal.state {
            ProposalState::Pending | ProposalState::Running | ProposalState::Withdrawn => None,
            ProposalState::Rejected | ProposalState::Expired => {
                Some(Disposition::DeniedNotExecuted)
            }
            ProposalState::Completed | ProposalState::Failed => match answer {
                Some(OperationState::Result(result)) => Some(Disposition::of_result(result)),
                Some(_) => None,
                None if self.proposal.state == ProposalState::Completed => {
                    Some(Disposition::ApprovedExecuted)
                }
                None => Some(Disposition::OutcomeUnknown),
            },
        }
    }

    /// The state in words that say neither who decides nor what was said: they reach the caller's
    /// model.
    fn message(&self) -> Option<&'static str> {
        match self.proposal.state {
            ProposalState::Pending => Some("The call waits for approval. It has not been made."),
            ProposalState::Running => Some("The call was approved, and runs now."),
            ProposalState::Withdrawn => Some("The call was withdrawn. It was not made."),
            ProposalState::Completed
            | ProposalState::Failed
            | ProposalState::Rejected
            | ProposalState::Expired => None,
        }
    }

    /// The verdict as a result in this form, with what became of the call.
    fn verdict_result(&self) -> Vec<u8> {
        let is_error = self.proposal.state != ProposalState::Completed;
        tool_result(&self.verdict(), is_error, self.form, |result| {
            if let Some(disposition) = self.disposition() {
                result.object("_meta", |meta| {
                    approval::write_disposition(meta, disposition);
                });
            }
        })
    }

    /// The result of the proposal as a task: that of its server with what became of the call, or
    /// words.
    fn result(&self) -> Vec<u8> {
        let Some(answer) = &self.answer else {
            return self.verdict_result();
        };
        let body = answer.payload.body_bytes();
        let marked = self
            .disposition()
            .and_then(|disposition| approval::with_disposition(body, disposition).ok());
        // A result that is no object stays as its server wrote it.
        marked.unwrap_or_else(|| body.to_vec())
    }

    /// The proposal as a task.
    pub(crate) fn task(&self) -> TaskView<'_> {
        let answer = self.answer.as_ref().map(task::standing_of);
        let standing = match self.proposal.state {
            ProposalState::Pending | ProposalState::Running => OperationState::Working,
            ProposalState::Withdrawn => OperationState::Cancelled,
            ProposalState::Completed
            | ProposalState::Failed
            | ProposalState::Rejected
            | ProposalState::Expired => match answer {
                Some(OperationState::Error(error)) => OperationState::Error(error),
                Some(_) | None => OperationState::Result(self.result.get_or_init(|| self.result())),
            },
        };
        TaskView {
            id: &self.id,
            standing,
            message: self.message(),
            created_ms: self.proposal.content.opened.at_ms,
            updated_ms: self.updated_ms,
            ttl_ms: None,
            poll_ms: Some(POLL_MS),
            awaits_approval: self.proposal.state == ProposalState::Pending,
        }
    }

    /// Report of the proposal for a program that was away: the state, who decided and why, and
    /// whether there is an answer.
    pub(crate) fn report(&self) -> Vec<u8> {
        let proposal = self.proposal;
        let data = json::object(|data| {
            data.text("id", &self.id)
                .text("state", proposal.state.as_str());
            data.optional_text("by", decider(proposal));
            if let Some(rule) = rule_of(proposal) {
                rule.write_members(data);
            }
            data.optional_text("code", code_of(proposal));
            data.optional_text("reason", proposal.reason.as_deref());
            write_notes(&notes_of(proposal), data);
            data.optional_text("fulfilment", proposal.fulfilment.as_deref());
            data.bool("answered", self.answer.is_some());
        });
        tool_result(&self.verdict(), false, self.form, |result| {
            result.raw("structuredContent", &data);
        })
    }

    /// The result of a tool for a caller that is answered for now, with the proposal's id for
    /// programs.
    pub(crate) fn still_waiting(&self) -> Vec<u8> {
        tool_result(&self.waiting(), true, self.form, |result| {
            result.object("_meta", |meta| {
                meta.text(ID_KEY, &self.id);
                if self.proposal.state == ProposalState::Pending {
                    approval::write_denial(meta, Remedy::Undisclosed);
                }
            });
        })
    }

    /// The answer to a request of this method that waited for the end of the proposal: that of the
    /// server, or the reason why there is none. `None` while the proposal is not over.
    ///
    /// # Errors
    /// The refusal of a request that is no tool's call, if the proposal was not carried out.
    pub(crate) fn end(&self, method: &str) -> Option<Result<Answer, Refusal>> {
        if !self.proposal.state.is_over() {
            return None;
        }
        let in_words =
            |text: &str, is_error| own_answer(self.form, words(text, is_error, self.form));
        let is_same = method == self.proposal.content.opened.method;
        Some(match (&self.answer, &self.proposal.answer) {
            // As its server wrote it: the caller's door converts it, and spells its URIs.
            (_, Some(answer)) if is_same => Ok(noted(answer.clone(), self.proposal)),
            // A tool waited for another method: its result has the answer as text.
            (Some(answer), _) => Ok(in_words(
                &String::from_utf8_lossy(answer.payload.body_bytes()),
                answer.outcome != Outcome::Ok,
            )),
            (None, _) if MethodFacts::of(method).calls_tool() => {
                Ok(own_answer(self.form, self.verdict_result()))
            }
            (None, _) => Err(Refusal::new(
                RefusalCode::CapabilityViolation,
                self.verdict(),
            )),
        })
    }
}

fn names(participants: &[ParticipantId]) -> String {
    let names: Vec<&str> = participants.iter().map(ParticipantId::as_str).collect();
    names.join(", ")
}

/// The answer to a proposed call, for its proposer: with the notes of the reviewers, if they gave some.
pub(super) fn noted(answer: Answer, proposal: &ProposalView) -> Answer {
    let notes = notes_of(proposal);
    if notes.is_empty() {
        return answer;
    }
    let approval = json::object(|approval| write_notes(&notes, approval));
    with_meta(&answer, meta::APPROVAL, &approval)
}

#[cfg(test)]
mod tests;
