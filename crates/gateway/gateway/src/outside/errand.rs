//! One proposal before the approver outside: from the question to the decision.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use authzen::{
    AccessAnswer, AccessApproval, AccessQuestion, AccessTask, AuthzenFault, NextStep, POLL_MAX,
    POLL_MIN, RequestStatus, RequestableDenial,
};
use model::{Digest, OperationId};
use platform::{random, unix_ms};
use rules::RejectReason;
use store::audit::RecordedVerdict as Word;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};
use topic::{EXTENSION_MS, PROPOSAL_EXTENSIONS_MAX};

use super::desk::ApproverInForce;
use super::keeper::{RequestKeeper, cancel_at};
use super::kept::{KeptAccessTask, KeptRequest};
use super::later;
use super::recorded::recorded_words;
use crate::by_rule::tool_facts::sha256;
use crate::dispatch::Dispatch;
use crate::proposals::decide::{Choice, Decider};
use crate::proposals::kept::OpenedProposal;
use crate::record::Record;

/// Access requests for one proposal.
const APPROVER_SUBMISSIONS_MAX: usize = 3;
/// Looks at a task in a row that may fail.
const APPROVER_LOOKS_FAILED_MAX: u32 = 5;
/// The most time by which a proposal may be extended.
const EXTENSIONS_MS: u64 = EXTENSION_MS * PROPOSAL_EXTENSIONS_MAX as u64;
/// The note for the proposer with an approval.
const NOTE: &str = "by the approver outside";
/// The reason for the proposer of a rejection: no words of the service.
const REASON: &str = "the approver outside has rejected it";

/// A proposal that the approver is asked about.
pub(super) struct Errand {
    dispatch: Weak<Dispatch>,
    stopping: watch::Receiver<bool>,
    approver: Arc<ApproverInForce>,
    question: AccessQuestion,
    proposal: OperationId,
    digest: String,
    expires_ms: u64,
    needs_several: bool,
    keeper: RequestKeeper,
    /// The request that an earlier run of the gateway has made.
    resumed: Option<KeptRequest>,
    /// One that it has made about something else: no one needs it any more.
    stale: Option<KeptRequest>,
    /// Whether the service has answered anything.
    has_answered: bool,
    /// The key of its last request.
    key: Option<String>,
    /// The service's task under way.
    task: Option<KeptAccessTask>,
}

/// The approver's word.
#[derive(Debug, PartialEq, Eq)]
enum OutsideWord {
    /// It permits the call, until this time in Unix milliseconds, if there is one.
    Permitted {
        until_ms: Option<u64>,
        approval: Option<String>,
    },
    /// It denies the call.
    Denied { reason: Option<String> },
    /// It decides nothing.
    Nothing(&'static str),
}

impl fmt::Display for OutsideWord {
    /// As it is recorded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permitted { approval, .. } => match approval {
                Some(id) => write!(f, "permitted by its approval {}", recorded_words(id)),
                None => f.write_str("permitted"),
            },
            Self::Denied { reason } => match reason {
                Some(reason) => write!(f, "denied: {}", recorded_words(reason)),
                None => f.write_str("denied"),
            },
            Self::Nothing(why) => f.write_str(why),
        }
    }
}

/// The end of an access request.
enum RequestEnd {
    Approved(AccessApproval),
    Denied,
    Nothing(&'static str),
}

impl Errand {
    pub(super) fn new(
        dispatch: &Arc<Dispatch>,
        approver: Arc<ApproverInForce>,
        question: AccessQuestion,
        (proposal, opened): (OperationId, &OpenedProposal),
    ) -> Self {
        Self {
            dispatch: Arc::downgrade(dispatch),
            stopping: dispatch.stopping.subscribe(),
            approver,
            question,
            proposal,
            digest: opened.digest.clone(),
            expires_ms: opened.expires_ms,
            needs_several: opened.needs_several(),
            keeper: RequestKeeper::of(dispatch, proposal),
            resumed: None,
            stale: None,
            has_answered: false,
            key: None,
            task: None,
        }
    }

    /// The errand, which goes on with a request of an earlier run if it is the same one: of this
    /// content to this service, with the same body.
    pub(super) fn resuming(mut self, kept: Option<KeptRequest>) -> Self {
        let url = self.approver.config.service.evaluation_url.as_str();
        let is_same = kept.as_ref().is_some_and(|kept| {
            kept.digest == self.digest
                && kept.evaluation_url == url
                && self.approver.client.takes_requests()
                && kept.body == self.body_digest(&kept.denial)
        });
        if is_same {
            self.resumed = kept;
        } else {
            self.stale = kept;
        }
        self
    }

    /// Digest of what is sent to request access after a denial.
    fn body_digest(&self, denial: &RequestableDenial) -> String {
        sha256(&self.question.access_request(denial)).to_string()
    }

    /// Asks, and decides by the answer. `over` ends when nothing is left to decide.
    pub(super) async fn run(mut self, over: oneshot::Receiver<()>) {
        let until = Instant::now() + self.approver.config.window;
        let mut stopping = self.stopping.clone();
        let answered = tokio::select! {
            biased;
            _ = over => None,
            // After a restart it goes on.
            _ = stopping.wait_for(|stopping| *stopping) => return,
            answered = timeout_at(until, self.ask()) => Some(answered),
        };
        match answered {
            None => {}
            Some(Err(_)) => {
                if !self.has_answered {
                    self.approver.breaker.note(false);
                }
                self.said(Word::Failed, "no decision within its time");
            }
            Some(Ok(Ok(word))) => {
                self.approver.breaker.note(true);
                self.decide(word).await;
            }
            Some(Ok(Err(fault))) => {
                self.approver.breaker.note(!fault.is_outage());
                self.said(Word::Failed, &fault.to_string());
            }
        }
        // Unless it has ended, no one needs it any more.
        self.cancel().await;
        // After the decision: one that is lost in a crash is asked for by the same request.
        if let Some(key) = &self.key {
            self.keeper.forget(key);
        }
        if let Some(stale) = self.stale.take() {
            self.keeper.forget(&stale.key);
            let cancel = stale.task.and_then(|task| task.cancel);
            cancel_at(&self.approver, &stale.proposal, cancel).await;
        }
    }

    async fn ask(&mut self) -> Result<OutsideWord, AuthzenFault> {
        let mut approval: Option<AccessApproval> = None;
        let mut submissions = 0;
        let mut wait = POLL_MIN;
        let mut request = self.resumed.take();
        loop {
            if let Some(request) = request.take() {
                submissions = request.submissions;
                match self.request(request).await? {
                    RequestEnd::Approved(one) => approval = Some(one),
                    RequestEnd::Denied => return Ok(OutsideWord::Denied { reason: None }),
                    RequestEnd::Nothing(why) => return Ok(OutsideWord::Nothing(why)),
                }
            }
            let used = approval.as_ref();
            if used.is_some_and(|one| one.until_ms <= unix_ms()) {
                return Ok(OutsideWord::Nothing("its approval has expired"));
            }
            let answer = self.approver.client.evaluate(&self.question, used).await;
            let denial = match self.with_breaker(answer)? {
                AccessAnswer::Permitted(until) => return Ok(permitted(until, approval)),
                AccessAnswer::Denied(denial) => denial,
            };
            match denial.next {
                NextStep::None => {
                    let reason = denial.reason;
                    return Ok(OutsideWord::Denied { reason });
                }
                NextStep::Form => return Ok(OutsideWord::Nothing("its request needs a form")),
                NextStep::Retry(after) => {
                    let after = after.map(|seconds| Duration::from_secs(seconds).max(POLL_MIN));
                    sleep(after.unwrap_or_else(|| jittered(wait))).await;
                    wait = (wait * 2).min(POLL_MAX);
                }
                NextStep::Request(_) if !self.approver.client.takes_requests() => {
                    return Ok(OutsideWord::Nothing(
                        "it offers a request, and none is configured",
                    ));
                }
                NextStep::Request(_) if submissions >= APPROVER_SUBMISSIONS_MAX => {
                    return Ok(OutsideWord::Nothing("it wants more requests than are made"));
                }
                NextStep::Request(denial) => request = Some(self.wanted(denial, submissions + 1)),
            }
        }
    }

    /// Notes that the service answers, if it does. One that has failed is asked about more at once.
    fn with_breaker<T>(&mut self, answer: Result<T, AuthzenFault>) -> Result<T, AuthzenFault> {
        if answer.as_ref().is_err_and(AuthzenFault::is_outage) {
            return answer;
        }
        self.has_answered = true;
        if self.approver.breaker.is_on_trial() {
            self.approver.breaker.note(true);
            if let Some(dispatch) = self.dispatch.upgrade() {
                later::look(&dispatch, &self.approver);
            }
        }
        answer
    }

    /// A request that is to be made.
    fn wanted(&self, denial: RequestableDenial, submissions: usize) -> KeptRequest {
        KeptRequest {
            proposal: self.proposal.to_string(),
            topic: self.keeper.topic.clone(),
            digest: self.digest.clone(),
            evaluation_url: self.approver.config.service.evaluation_url.to_string(),
            submissions,
            key: format!("{:032x}", u128::from_le_bytes(random())),
            body: self.body_digest(&denial),
            denial,
            task: None,
        }
    }

    /// Requests access, unless an earlier run did, and looks at the request until it has ended. It is
    /// on disk before it is sent.
    async fn request(&mut self, request: KeptRequest) -> Result<RequestEnd, AuthzenFault> {
        let approver = Arc::clone(&self.approver);
        let mut looked = None;
        self.key = Some(request.key.clone());
        self.task.clone_from(&request.task);
        if request.task.is_none() {
            if !self.keeper.keep(&request).await {
                return Ok(RequestEnd::Nothing("its request could not be written down"));
            }
            let KeptRequest { denial, key, .. } = &request;
            let polled = approver.client.request(&self.question, denial, key).await;
            let polled = self.with_breaker(polled)?;
            self.begin(key, &polled.task);
            looked = Some(polled);
        }
        let mut wait = POLL_MIN;
        let mut failed = 0;
        loop {
            if let Some(polled) = &looked {
                if let Some(end) = self.ended(&polled.task) {
                    return Ok(end);
                }
                sleep(polled.again_after.unwrap_or_else(|| jittered(wait))).await;
                wait = (wait * 2).min(POLL_MAX);
            }
            let Some(task) = &self.task else {
                return Ok(RequestEnd::Nothing("its request has no address"));
            };
            let polled = approver.client.status(&task.status_endpoint).await;
            match self.with_breaker(polled) {
                Ok(polled) => {
                    failed = 0;
                    looked = Some(polled);
                }
                Err(fault) if failed < APPROVER_LOOKS_FAILED_MAX && fault.is_transient() => {
                    failed += 1;
                    looked = None;
                    sleep(jittered(wait)).await;
                    wait = (wait * 2).min(POLL_MAX);
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Notes the task of a request that is not decided at once.
    fn begin(&mut self, key: &str, task: &AccessTask) {
        if let (RequestStatus::Pending, Some(endpoint)) = (&task.status, &task.status_endpoint) {
            let task = KeptAccessTask {
                status_endpoint: endpoint.clone(),
                cancel: task.cancel.clone(),
            };
            self.keeper.begin(key, &task);
            self.task = Some(task);
        }
    }

    /// The end of a request, if it has ended.
    fn ended(&mut self, task: &AccessTask) -> Option<RequestEnd> {
        let end = match &task.status {
            RequestStatus::Approved(approval) => RequestEnd::Approved(approval.clone()),
            RequestStatus::Denied => RequestEnd::Denied,
            RequestStatus::Over => RequestEnd::Nothing("its request ended undecided"),
            RequestStatus::Pending if task.expires_ms.is_some_and(|at| at <= unix_ms()) => {
                RequestEnd::Nothing("its request has expired")
            }
            RequestStatus::Pending => return None,
        };
        self.task = None;
        Some(end)
    }

    /// Cancels a request that no one needs any more.
    async fn cancel(&mut self) {
        let cancel = self.task.take().and_then(|task| task.cancel);
        cancel_at(&self.approver, &self.proposal.to_string(), cancel).await;
    }

    /// Decides as the approver's participant, if its word is one of the decisions that are taken.
    async fn decide(&self, word: OutsideWord) {
        let decides = self.approver.config.decides;
        self.said(Word::Admitted, &word.to_string());
        let choice = match word {
            OutsideWord::Permitted { until_ms, .. } => {
                let digest = self.digest.parse::<Digest>().ok();
                let counts = decides.approves() && self.holds(until_ms);
                digest.filter(|_| counts).map(|digest| Choice::Approve {
                    digest,
                    arguments: None,
                    note: Some(NOTE.to_owned()),
                })
            }
            OutsideWord::Denied { .. } => decides.rejects().then(|| Choice::Reject {
                reason: Some(REASON.to_owned()),
                code: RejectReason::Unsaid,
            }),
            OutsideWord::Nothing(_) => None,
        };
        if let Some(choice) = choice {
            self.carry_out(choice).await;
        }
    }

    /// Whether a permission until this time lasts until the call runs. One that needs the approvals
    /// of others may run as late as it expires, however often it is extended.
    fn holds(&self, until_ms: Option<u64>) -> bool {
        let runs_ms = if self.needs_several {
            self.expires_ms + EXTENSIONS_MS
        } else {
            unix_ms()
        };
        until_ms.is_none_or(|until| until > runs_ms)
    }

    /// Takes the decision to the topic, which judges it as a person's. One that does not count is on
    /// record there.
    async fn carry_out(&self, choice: Choice) {
        let Some(dispatch) = self.dispatch.upgrade() else {
            return;
        };
        let by = &self.approver.config.acts_as;
        let Some(standing) = (dispatch.standing)(by) else {
            return self.said(Word::Failed, "its participant is gone");
        };
        // A rejection names no digest of its own. An approval does, and may wait for more time or
        // another approval that is being written.
        let names_digest = matches!(choice, Choice::Approve { .. });
        let is_as_asked = names_digest
            || dispatch.with(|topic| {
                topic.is_undecided(self.proposal, |now| now.opened.digest == self.digest)
            });
        if !is_as_asked || !dispatch.outside.is_in_force(&self.approver) {
            return self.said(Word::Failed, "it is not the proposal that was asked about");
        }
        let decider = Decider {
            id: by,
            outside: Some(&standing),
            narrowing: None,
            address: None,
            by_person: false,
        };
        if let Err(refusal) = dispatch.decide(self.proposal, decider, choice).await {
            tracing::debug!(proposal = %self.proposal, %refusal, "the approver's decision does not count");
        }
    }

    fn said(&self, verdict: Word, why: &str) {
        if let Some(dispatch) = self.dispatch.upgrade() {
            let host = self.approver.client.host();
            let why = format!("{host}: {why}");
            let by = &self.approver.config.acts_as;
            Record(&dispatch).approver_said(by, self.proposal, verdict, &why);
        }
    }
}

/// A permission, with the earlier of its ends.
fn permitted(until_ms: Option<u64>, approval: Option<AccessApproval>) -> OutsideWord {
    let of_approval = approval.as_ref().map(|one| one.until_ms);
    OutsideWord::Permitted {
        until_ms: until_ms.into_iter().chain(of_approval).min(),
        approval: approval.map(|one| one.id),
    }
}

/// A time that is up to a half shorter, so that many requests do not come at once.
fn jittered(wait: Duration) -> Duration {
    let [byte] = random::<1>();
    wait - wait * u32::from(byte) / 512
}
