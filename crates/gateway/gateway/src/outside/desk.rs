//! The approver in force, and the proposals that it was asked about.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use authzen::AuthzenClient;
use authzen::config::OutsideApprover;
use model::OperationId;
use platform::{Mutex, Shares};
use tokio::sync::oneshot;

use super::breaker::Breaker;
use super::kept::KeptRequest;

/// Requests of one topic to its approver that are under way.
const APPROVER_REQUESTS_MAX: usize = 64;
/// The share of one proposer.
const PROPOSER_APPROVER_REQUESTS_MAX: usize = 8;

/// The approver of a topic in force, if it has one.
#[derive(Debug, Default)]
pub struct OutsideDesk(Mutex<OutsideState>);

#[derive(Debug, Default)]
struct OutsideState {
    approver: Option<Arc<ApproverInForce>>,
    /// The undecided proposals that it was asked about.
    asked: BTreeMap<OperationId, AskedProposal>,
    /// The requests of an earlier run of the gateway that none has gone on with, by proposal.
    resumable: BTreeMap<String, KeptRequest>,
    /// The undecided proposals about which it could not be asked yet, with their proposers.
    skipped: BTreeMap<OperationId, Box<str>>,
}

/// A change of the approver in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApproverChange {
    /// There was none in this run of the gateway.
    First,
    /// It is as it was, and goes on.
    Same,
    /// All requests of the one before end.
    Replaced,
}

/// A proposal that the approver was asked about. It is not asked about the same content again.
#[derive(Debug)]
struct AskedProposal {
    digest: String,
    /// Dropped when nothing is left to decide.
    _is_open: oneshot::Sender<()>,
}

/// An approver in force.
#[derive(Debug)]
pub(crate) struct ApproverInForce {
    pub(crate) config: OutsideApprover,
    pub(crate) client: AuthzenClient,
    pub(crate) breaker: Breaker,
    pub(crate) requests: Arc<Shares>,
    /// Whether a task waits for the end of the breaker's pause.
    pub(super) waits: AtomicBool,
}

impl ApproverInForce {
    fn new(config: OutsideApprover) -> Self {
        Self {
            client: AuthzenClient::new(config.service.clone()),
            breaker: Breaker::default(),
            requests: Shares::new(APPROVER_REQUESTS_MAX, PROPOSER_APPROVER_REQUESTS_MAX),
            waits: AtomicBool::new(false),
            config,
        }
    }
}

impl OutsideDesk {
    /// Puts an approver in force, or none. One that is as it was goes on; else all requests end.
    pub(super) fn put_in_force(&self, config: Option<&OutsideApprover>) -> ApproverChange {
        let mut state = self.0.lock();
        let now = state.approver.as_ref().map(|approver| &approver.config);
        let change = match now {
            None => ApproverChange::First,
            Some(now) if Some(now) == config => return ApproverChange::Same,
            Some(_) => ApproverChange::Replaced,
        };
        *state = OutsideState {
            approver: config.map(|config| Arc::new(ApproverInForce::new(config.clone()))),
            ..OutsideState::default()
        };
        change
    }

    /// Takes requests of an earlier run of the gateway, to go on with.
    pub(super) fn offer(&self, requests: Vec<KeptRequest>) {
        let by_proposal = requests.into_iter();
        let by_proposal = by_proposal.map(|request| (request.proposal.clone(), request));
        self.0.lock().resumable = by_proposal.collect();
    }

    /// The request of an earlier run of the gateway for a proposal, which it gives once.
    pub(super) fn resume(&self, proposal: OperationId) -> Option<KeptRequest> {
        let mut state = self.0.lock();
        state.resumable.remove(&proposal.to_string())
    }

    /// The approver in force.
    pub(crate) fn approver(&self) -> Option<Arc<ApproverInForce>> {
        self.0.lock().approver.clone()
    }

    /// Whether this approver is in force.
    pub(crate) fn is_in_force(&self, approver: &Arc<ApproverInForce>) -> bool {
        let state = self.0.lock();
        state
            .approver
            .as_ref()
            .is_some_and(|now| Arc::ptr_eq(now, approver))
    }

    /// Whether it was asked about a proposal with this digest.
    pub(crate) fn was_asked(&self, proposal: OperationId, digest: &str) -> bool {
        let state = self.0.lock();
        state
            .asked
            .get(&proposal)
            .is_some_and(|asked| asked.digest == digest)
    }

    /// Notes that this approver is asked about a proposal. `None` if it is not in force any more, or
    /// was asked meanwhile. What comes back ends when nothing is left to decide.
    pub(crate) fn ask(
        &self,
        approver: &Arc<ApproverInForce>,
        proposal: OperationId,
        digest: &str,
    ) -> Option<oneshot::Receiver<()>> {
        let mut state = self.0.lock();
        let now = state.approver.as_ref()?;
        let before = state.asked.get(&proposal);
        if !Arc::ptr_eq(now, approver) || before.is_some_and(|asked| asked.digest == digest) {
            return None;
        }
        let (is_open, over) = oneshot::channel();
        let asked = AskedProposal {
            digest: digest.to_owned(),
            _is_open: is_open,
        };
        state.asked.insert(proposal, asked);
        Some(over)
    }

    /// Notes that this approver could not be asked about a proposal yet.
    pub(super) fn skip(&self, approver: &Arc<ApproverInForce>, proposal: OperationId, by: &str) {
        let mut state = self.0.lock();
        let now = state.approver.as_ref();
        if now.is_some_and(|now| Arc::ptr_eq(now, approver)) {
            state.skipped.insert(proposal, by.into());
        }
    }

    /// The proposals about which this approver could not be asked yet, the oldest first.
    pub(super) fn skipped(&self, approver: &Arc<ApproverInForce>) -> Vec<(OperationId, Box<str>)> {
        let state = self.0.lock();
        let now = state.approver.as_ref();
        if !now.is_some_and(|now| Arc::ptr_eq(now, approver)) {
            return Vec::new();
        }
        let skipped = state.skipped.iter();
        skipped.map(|(id, by)| (*id, by.clone())).collect()
    }

    /// Whether a proposal was skipped until now: it is judged again.
    pub(super) fn take_skipped(&self, proposal: OperationId) -> bool {
        self.0.lock().skipped.remove(&proposal).is_some()
    }

    /// Ends what is asked about a proposal.
    pub(crate) fn forget(&self, proposal: OperationId) {
        let mut state = self.0.lock();
        state.asked.remove(&proposal);
        state.skipped.remove(&proposal);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use authzen::config::{AuthzenService, SentArguments, TakenDecisions};
    use model::ParticipantId;

    use super::*;

    fn config(url: &str) -> OutsideApprover {
        OutsideApprover {
            service: AuthzenService {
                evaluation_url: url.parse().unwrap(),
                request_url: None,
                token: None,
                allowed: Vec::new(),
            },
            acts_as: ParticipantId::new("desk").unwrap(),
            tools: Vec::new(),
            arguments: SentArguments::All,
            decides: TakenDecisions::Both,
            window: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_proposer_has_a_share_of_the_requests_to_an_approver() {
        let approver = ApproverInForce::new(config("https://pdp.example"));
        let take = |who: &str| approver.requests.of(who).take(1).ok();
        let mut taken: Vec<_> = std::iter::from_fn(|| take("greedy")).collect();
        assert_eq!(taken.len(), PROPOSER_APPROVER_REQUESTS_MAX);
        let others = (0..).map(|who| format!("other-{who}"));
        taken.extend(others.map_while(|who| take(&who)));
        assert_eq!(taken.len(), APPROVER_REQUESTS_MAX);
        taken.truncate(1);
        assert!(take("greedy").is_some());
    }

    #[test]
    fn a_proposal_is_asked_about_once_as_the_same_call_under_the_same_approver() {
        let desk = OutsideDesk::default();
        let one = OperationId(1);
        assert!(desk.approver().is_none());
        desk.put_in_force(Some(&config("https://pdp.example")));
        let first = desk.approver().unwrap();
        let mut over = desk.ask(&first, one, "a").unwrap();
        assert!(desk.was_asked(one, "a") && desk.ask(&first, one, "a").is_none());
        // What is as it was goes on.
        desk.put_in_force(Some(&config("https://pdp.example")));
        assert!(
            desk.is_in_force(&first) && over.try_recv() == Err(oneshot::error::TryRecvError::Empty)
        );
        // Another content is another question, and ends the one before.
        let mut again = desk.ask(&first, one, "b").unwrap();
        assert_eq!(over.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        // So does another approver.
        desk.put_in_force(Some(&config("https://other.example")));
        assert_eq!(again.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(!desk.is_in_force(&first) && desk.ask(&first, one, "c").is_none());
        let second = desk.approver().unwrap();
        let mut last = desk.ask(&second, one, "b").unwrap();
        desk.forget(one);
        assert_eq!(last.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
