//! Approvers outside as the configuration names them: `[topics.NAME.approver]`.

use std::fmt;
use std::time::Duration;

use model::{NamePattern, ParticipantId};
use oauth::Secret;
use oauth::dialer::Subnet;
use url::Url;

/// A service that is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthzenService {
    /// Its Access Evaluation endpoint.
    pub evaluation_url: Url,
    /// Its Access Request endpoint; `None` requests nothing that is denied.
    pub request_url: Option<Url>,
    /// Its bearer token.
    pub token: Option<Secret>,
    /// Private networks in which it may be.
    pub allowed: Vec<Subnet>,
}

impl fmt::Debug for AuthzenService {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthzenService")
            .field("evaluation_url", &self.evaluation_url.as_str())
            .finish_non_exhaustive()
    }
}

/// An approver outside of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideApprover {
    /// The service.
    pub service: AuthzenService,
    /// The participant on whose authority it decides.
    pub acts_as: ParticipantId,
    /// The tools whose proposed calls it is asked about, as their callers name them.
    pub tools: Vec<NamePattern>,
    /// The arguments that it is sent.
    pub arguments: SentArguments,
    /// The decisions that are taken from it.
    pub decides: TakenDecisions,
    /// The time for a whole request.
    pub window: Duration,
}

/// Arguments of a call that leave the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentArguments {
    /// Those at these JSON pointers.
    Listed(Vec<String>),
    /// All.
    All,
}

/// The decisions that are taken from an approver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TakenDecisions {
    /// Approvals and rejections.
    #[default]
    Both,
    /// Approvals alone.
    Approve,
    /// Rejections alone.
    Reject,
}

impl TakenDecisions {
    /// Whether approvals are taken.
    #[must_use]
    pub fn approves(self) -> bool {
        matches!(self, Self::Both | Self::Approve)
    }

    /// Whether rejections are taken.
    #[must_use]
    pub fn rejects(self) -> bool {
        matches!(self, Self::Both | Self::Reject)
    }
}
