//! Contents of proposals and of decisions, which the gateway gives the topic and gets back.

use std::sync::Arc;

use model::{Digest, OperationId, ParticipantId, Refusal};
use platform::Mutex;
use rules::{Deliberation, RejectReason, RuleName};
use store::recorder::RecordPermit;
use telemetry::trace::TraceContext;
use tokio::sync::oneshot;
use wire::digest::{ReviewedCall, call_params};
use wire::mcpx::Envelope;

use crate::by_rule::kept::RuleRecord;
use crate::link::Link;
use crate::proposals::kept::OpenedProposal;

/// The call behind a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldCall {
    /// The call.
    pub(crate) id: OperationId,
    /// The context of its span, if it is recorded.
    pub(crate) trace: Option<TraceContext>,
}

/// A proposal in full, and the permits for the audit entries about it.
#[derive(Debug)]
pub struct Proposed {
    /// The proposal as the journal keeps it.
    pub opened: OpenedProposal,
    /// Whether a reviewer has changed its params, of one that needs several approvals.
    pub is_amended: bool,
    /// The held call behind it, if there was one in this run of the gateway.
    pub(crate) call: Option<HeldCall>,
    /// The length of its envelope, which is kept until the journal has the opening; 0 if there is
    /// none.
    envelope_bytes: usize,
    /// The later steps of the plan that it begins, in their order: what is decided about with it.
    pub later: Vec<Arc<Proposed>>,
    /// Permits for the entries about it, which its versions share.
    permits: Arc<Permits>,
    /// The caller that waits until the plan that it begins is on disk.
    opening: Mutex<Option<oneshot::Sender<Result<(), Refusal>>>>,
}

#[derive(Debug)]
struct Permits {
    /// Permit for the entry about its opening.
    opening: Mutex<Option<RecordPermit>>,
    /// Permit for the entry about its end.
    ending: Mutex<Option<RecordPermit>>,
}

impl Proposed {
    /// A proposal, with permits for the entries about its opening and its end.
    pub(crate) fn new(
        opened: OpenedProposal,
        call: Option<HeldCall>,
        envelope_bytes: usize,
        permits: [Option<RecordPermit>; 2],
    ) -> Arc<Self> {
        let [opening, ending] = permits.map(Mutex::new);
        let permits = Arc::new(Permits { opening, ending });
        Arc::new(Self {
            opened,
            is_amended: false,
            call,
            envelope_bytes,
            later: Vec::new(),
            permits,
            opening: Mutex::default(),
        })
    }

    /// The proposal as a step of a plan.
    pub(super) fn as_step(&self, opened: OpenedProposal) -> Arc<Self> {
        self.with_opened(opened, self.is_amended)
    }

    /// The first step of a plan with those after it, and the end of their opening.
    pub(super) fn with_later(
        &self,
        later: Vec<Arc<Self>>,
    ) -> (Arc<Self>, oneshot::Receiver<Result<(), Refusal>>) {
        let (sender, opened) = oneshot::channel();
        let mut first = self.version(self.opened.clone(), self.is_amended);
        first.later = later;
        first.opening = Mutex::new(Some(sender));
        (Arc::new(first), opened)
    }

    /// Reports to the caller that waits for the opening of a plan what became of it, once.
    pub(super) fn finish_opening(&self, end: Result<(), Refusal>) {
        if let Some(caller) = self.opening.lock().take() {
            // The proposer may have gone.
            let _ = caller.send(end);
        }
    }

    /// Whether it is decided about alone, and not the first step of a plan.
    pub fn is_single(&self) -> bool {
        self.later.is_empty()
    }

    /// The participants that are to carry out what is decided about with it.
    pub fn receivers(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for to in self.steps().flat_map(|step| &step.to) {
            if !all.contains(to) {
                all.push(to.clone());
            }
        }
        all
    }

    /// All that is decided about with it: itself, and the later steps of its plan.
    pub fn steps(&self) -> impl Iterator<Item = &OpenedProposal> {
        let later = self.later.iter().map(|step| &step.opened);
        std::iter::once(&self.opened).chain(later)
    }

    fn with_opened(&self, opened: OpenedProposal, is_amended: bool) -> Arc<Self> {
        Arc::new(self.version(opened, is_amended))
    }

    fn version(&self, opened: OpenedProposal, is_amended: bool) -> Self {
        Self {
            opened,
            is_amended,
            call: self.call,
            envelope_bytes: self.envelope_bytes,
            later: self.later.clone(),
            permits: Arc::clone(&self.permits),
            opening: Mutex::default(),
        }
    }

    /// The proposal with other params, which a reviewer has written.
    pub(super) fn amended(&self, opened: OpenedProposal) -> Arc<Self> {
        self.with_opened(opened, true)
    }

    /// The proposal with other params, which its proposer has written: a reviewer's are void.
    pub(super) fn amended_by_proposer(&self, opened: OpenedProposal) -> Arc<Self> {
        self.with_opened(opened, false)
    }

    /// A copy of the proposal as its reviewers see it from now on.
    pub(super) fn described(&self, opened: OpenedProposal) -> Arc<Self> {
        self.with_opened(opened, self.is_amended)
    }

    /// Whether another proposal is the same request of the same participant to the same addressees,
    /// however it is spelled.
    pub(crate) fn is_same_request(&self, other: &Self) -> bool {
        let own = &self.opened;
        let other = &other.opened;
        let request = |opened: &OpenedProposal| {
            call_params(opened.params.as_deref().unwrap_or("{}").as_bytes()).ok()
        };
        own.by == other.by
            && own.to == other.to
            && own.method == other.method
            && request(own) == request(other)
    }

    /// The bytes that it has in memory until the journal has its opening.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.steps().map(bytes_of).sum::<usize>() + self.envelope_bytes
    }

    /// Takes the permit for the entry about its opening.
    pub(crate) fn opening_permit(&self) -> Option<RecordPermit> {
        self.permits.opening.lock().take()
    }

    /// Takes the permit for the entry about its end.
    pub(crate) fn ending_permit(&self) -> Option<RecordPermit> {
        self.permits.ending.lock().take()
    }
}

/// The bytes of a proposal's texts.
pub(super) fn bytes_of(opened: &OpenedProposal) -> usize {
    [&opened.params, &opened.tool]
        .into_iter()
        .flatten()
        .map(String::len)
        .sum()
}

/// A rule that decides a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidingRule {
    /// The rule and its version.
    pub name: RuleName,
    /// Its charges for the call: the journal gets it together with the decision.
    pub(crate) charges: Vec<RuleRecord>,
}

/// Attachments of a decision: edited params, the envelope that fulfils, the permit of its record.
#[derive(Debug, Default)]
pub struct Ruling {
    /// The params that run, if the reviewer has edited them.
    pub params: Option<String>,
    /// The envelope that fulfils, if the decision came as one.
    pub envelope: Option<String>,
    /// The rule that decided on its author's authority, if no person did.
    pub rule: Option<DecidingRule>,
    /// The reason that the reviewer chose from the list, of a rejection.
    pub code: RejectReason,
    /// The reviewer's note for the proposer, of an approval.
    pub note: Option<String>,
    /// The digest of the proposal as it was when a rejection came, of one that names no other.
    pub(crate) rejects: Option<String>,
    /// Measures of the decision. Several proposals that are decided at once are not one batch, as
    /// each decision counts from the one before.
    pub(crate) deliberation: Deliberation,
    /// The reviewer's link and envelope in the room: an error there if the decision does not count.
    pub(crate) sender: Option<(Arc<Link>, Arc<Envelope>)>,
    permit: Mutex<Option<RecordPermit>>,
    reply: Mutex<Option<oneshot::Sender<Result<(), Refusal>>>>,
}

impl Ruling {
    /// A decision with a permit for its audit entry.
    pub(crate) fn new(params: Option<String>, permit: RecordPermit) -> Self {
        Self {
            params,
            permit: Mutex::new(Some(permit)),
            ..Self::default()
        }
    }

    /// A decision that the journal has.
    pub(crate) fn restored(
        params: Option<String>,
        rule: Option<RuleName>,
        code: RejectReason,
    ) -> Self {
        let rule = rule.map(|name| DecidingRule {
            name,
            charges: Vec::new(),
        });
        Self {
            params,
            rule,
            code,
            ..Self::default()
        }
    }

    /// The decision with the reviewer's note.
    pub(crate) fn noted(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// The decision, as that of a rule.
    pub(crate) fn by_rule(self, rule: DecidingRule) -> Self {
        Self {
            rule: Some(rule),
            deliberation: Deliberation {
                by_rule: true,
                ..Deliberation::default()
            },
            ..self
        }
    }

    /// The decision with these measures, as that of a person or of a program.
    pub(crate) fn measured(self, by_person: bool, measures: Deliberation) -> Self {
        Self {
            deliberation: Deliberation {
                by_person,
                ..measures
            },
            ..self
        }
    }

    /// The receiver of what becomes of the decision.
    pub(crate) fn reply(&mut self) -> oneshot::Receiver<Result<(), Refusal>> {
        let (sender, receiver) = oneshot::channel();
        self.reply = Mutex::new(Some(sender));
        receiver
    }

    /// Takes the permit for its audit entry.
    pub(crate) fn permit(&self) -> Option<RecordPermit> {
        self.permit.lock().take()
    }

    /// Reports what became of the decision, once.
    pub(crate) fn finish(&self, end: Result<(), Refusal>) {
        if let Some(reply) = self.reply.lock().take() {
            // The reviewer may have gone.
            let _ = reply.send(end);
        }
    }
}

/// Way in which a call that waits for a proposal is answered, other than a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The tool `wait_for_proposal`.
    Tool,
    /// `tasks/result`.
    Result,
}

/// The digest to which decisions about a proposed request are bound.
pub(super) fn digest(
    to: &[ParticipantId],
    method: &str,
    params: Option<&str>,
    tool: Option<&str>,
) -> Result<Digest, json::JsonError> {
    let to: Vec<&str> = to.iter().map(ParticipantId::as_str).collect();
    let params = params.map(str::as_bytes);
    let definition = tool.map(str::as_bytes);
    ReviewedCall {
        method,
        to: &to,
        params,
        definition,
    }
    .digest()
}
