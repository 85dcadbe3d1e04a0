//! A proposal as its proposer sees it: a task of either revision, the result of the call, or words that a model can act on.
//!
//! Must not know how proposals are decided or kept.

use auth::Sealer;
use bytes::Bytes;
use json::{Splice, quote};
use model::{Era, OperationId, ProposalState, Refusal, RefusalCode};
use wire::mcp::task::{Standing, Task};
use wire::mcp::{refusal, translate};
use wire::rpc::{self, Id, Message, Shape};

use crate::desk::Case;
use crate::operation::Operation;
use platform::{random, unix_ms};

/// How long a sealed state to go on waiting with may be used.
const STATE_SECS: u64 = 24 * 3600;
const STATE: &str = "held";
/// Between two looks at a task, milliseconds.
const POLL_MS: u64 = 1000;

/// One proposal, seen by whoever made it.
pub(crate) struct View<'c> {
    id: String,
    case: &'c Case,
    deciders: &'c [String],
    /// What it comes to, where no server has answered.
    said: Vec<u8>,
    answer: Option<Message>,
}

impl<'c> View<'c> {
    pub(crate) fn new(id: OperationId, case: &'c Case, deciders: &'c [String]) -> Self {
        let answer = case.answer.clone().and_then(|answer| Message::read(answer).ok());
        let mut view = Self { id: id.to_string(), case, deciders, said: Vec::new(), answer };
        view.said = words(&view.verdict(), true);
        view
    }

    /// The proposal's id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn act(&self) -> String {
        let opened = &self.case.opened;
        let to = opened.to.join(", ");
        match &opened.context {
            Some(context) => format!("`{context}` of {to}"),
            None => format!("`{}` of {to}", opened.method),
        }
    }

    /// What is waited for, and what to do meanwhile.
    pub(crate) fn waiting(&self) -> String {
        let who = match self.deciders {
            [] => "nobody who could approve it is here now".to_owned(),
            [one] => format!("{one} can approve it"),
            some => format!("any of {} can approve it", some.join(", ")),
        };
        format!(
            "Not done yet: the call of {} needs approval and was proposed under the id {}; {who}. Do not call it again: to \
             go on waiting, call the tool `wait_for_proposal` with {{\"id\":\"{}\"}}.",
            self.act(),
            self.id,
            self.id
        )
    }

    /// How it ended, in words for the proposer.
    pub(crate) fn verdict(&self) -> String {
        let act = self.act();
        let decider = self.case.decided.as_ref().map_or("somebody", |decided| decided.by.as_str());
        let why = self.case.reason.as_deref();
        let because = why.map(|why| format!(", saying: {why}")).unwrap_or_default();
        match self.case.state {
            ProposalState::Pending => self.waiting(),
            ProposalState::Running => format!("The call of {act} was approved by {decider} and runs now."),
            ProposalState::Completed => format!("The call of {act} was approved by {decider} and is done."),
            ProposalState::Failed => {
                format!(
                    "The call of {act} was approved by {decider} and failed: {}.",
                    why.unwrap_or("no answer")
                )
            }
            ProposalState::Rejected => format!(
                "The call of {act} was rejected by {decider}{because}. It was not run; do not repeat it unchanged."
            ),
            ProposalState::Withdrawn => {
                format!("The proposed call of {act} was withdrawn{because}. It was not run.")
            }
            ProposalState::Expired => format!(
                "Nobody decided in time about the call of {act}, so it was not run. Propose it again if it is still needed."
            ),
        }
    }

    /// As a task.
    pub(crate) fn task(&self) -> Task<'_> {
        let opened = &self.case.opened;
        let standing = match (self.case.state, &self.answer) {
            (ProposalState::Pending | ProposalState::Running, _) => Standing::Working,
            (ProposalState::Withdrawn, _) => Standing::Cancelled,
            (_, Some(answer)) => match (answer.result(), answer.error()) {
                (Some(result), _) => Standing::Result(result),
                (None, Some(error)) => Standing::Error(error),
                (None, None) => Standing::Result(&self.said),
            },
            (_, None) => Standing::Result(&self.said),
        };
        Task {
            id: &self.id,
            standing,
            message: None,
            created_ms: opened.at_ms,
            updated_ms: self.case.updated_ms,
            ttl_ms: None,
            poll_ms: Some(POLL_MS),
        }
    }

    /// What the call is answered once the proposal is over: the server's answer, or why there is none.
    pub(crate) fn end(&self, request: &Id, method: &str, era: Era) -> Option<Bytes> {
        if !self.case.state.is_over() {
            return None;
        }
        let tool = method == "tools/call";
        let Some(answer) = &self.answer else {
            return Some(match tool {
                true => rpc::result(request, &words_in(&self.verdict(), true, era)),
                false => {
                    let refusal = Refusal::new(RefusalCode::CapabilityViolation, self.verdict());
                    refusal::spell(&refusal, era, method, None).answer(Some(request))
                }
            });
        };
        if method != self.case.opened.method {
            // Waited for by a tool: what it came to is told in a tool's form.
            let (text, failed) =
                (answer.result().or(answer.error()).unwrap_or_default(), answer.result().is_none());
            return Some(rpc::result(request, &words_in(&String::from_utf8_lossy(text), failed, era)));
        }
        let mut splice = Splice::default();
        answer.set_id(&mut splice, request);
        if era == Era::Modern && answer.shape() == Shape::Result {
            translate::result(answer, method, era, &mut splice);
        }
        Some(answer.edited(&splice))
    }
}

/// A tool's result in words.
pub(crate) fn words(text: &str, is_error: bool) -> Vec<u8> {
    let text = quote(text);
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":{is_error}}}").into_bytes()
}

/// What a caller is told for now, with the proposal's id where a program finds it.
pub(crate) fn still_waiting(view: &View<'_>) -> Vec<u8> {
    let mut result = words(&view.waiting(), true);
    result.pop();
    let meta = format!(",\"_meta\":{{\"portmoot/proposal\":\"{}\"}}}}", view.id());
    [result, meta.into_bytes()].concat()
}

/// The same as an era writes it.
pub(crate) fn words_in(text: &str, is_error: bool, era: Era) -> Vec<u8> {
    let mut result = words(text, is_error);
    if era == Era::Modern {
        result.pop();
        result.extend_from_slice(b",\"resultType\":\"complete\"}");
    }
    result
}

/// What tells a modern caller to come back with this state.
pub(crate) fn retry(state: &str) -> Vec<u8> {
    format!("{{\"resultType\":\"input_required\",\"requestState\":{}}}", quote(state)).into_bytes()
}

/// The state with which a caller goes on waiting; only that participant can use it.
pub(crate) fn seal(sealer: &Sealer, operation: &Operation, id: &str) -> String {
    let who = operation.caller.participant().id.as_str();
    sealer.seal(STATE, who, unix_ms() + STATE_SECS * 1000, random(), id.as_bytes())
}

/// The proposal that a state of ours stands for.
pub(crate) fn open(sealer: &Sealer, participant: &str, state: &str) -> Option<OperationId> {
    let id = sealer.open(STATE, participant, unix_ms(), state).ok()?;
    String::from_utf8(id).ok()?.parse().ok()
}
