//! Routes of notifications as the configuration names them: `[notifications.NAME]`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::{ParticipantId, TopicName};
use oauth::Secret;
use oauth::dialer::Subnet;
use url::Url;

use crate::{QuietHours, WebhookSecret};

/// Routes of a configuration.
pub const NOTIFY_ROUTES_MAX: usize = 64;

/// A route of notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyRoute {
    /// Its name.
    pub name: Arc<str>,
    /// The topics whose proposals concern it; all, if there is none.
    pub topics: Vec<TopicName>,
    /// The participants of whom one may decide the proposals that concern it. If there is none, all
    /// proposals that wait concern it.
    pub reviewers: Vec<ParticipantId>,
    /// The time that a proposal waits before it concerns the route.
    pub after: Duration,
    /// The hours in which nothing is sent.
    pub quiet: Option<QuietHours>,
    /// The address that a notification links to.
    pub link: Option<Url>,
    /// The way out.
    pub way: NotifyWay,
}

impl NotifyRoute {
    /// Whether proposals of a topic concern the route.
    #[must_use]
    pub fn has_topic(&self, topic: &TopicName) -> bool {
        self.topics.is_empty() || self.topics.contains(topic)
    }
}

/// The way by which a route's notifications leave the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyWay {
    /// A program and its arguments, started without a shell, with the notification on its stdin.
    Exec(Vec<String>),
    /// A request to an address.
    Request(NotifyTarget),
}

/// An address that is sent notifications.
#[derive(Clone, PartialEq, Eq)]
pub struct NotifyTarget {
    /// The address.
    pub url: Url,
    /// The form of a notification there.
    pub form: NotifyForm,
    /// Private networks in which it may be.
    pub allowed: Vec<Subnet>,
}

impl fmt::Debug for NotifyTarget {
    /// The host alone: the path of some addresses is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyTarget")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

/// The form of a notification in a request.
#[derive(Clone, PartialEq, Eq)]
pub enum NotifyForm {
    /// JSON, signed as Standard Webhooks says if there is a secret.
    Webhook(Option<WebhookSecret>),
    /// Blocks for an incoming webhook of Slack.
    Slack,
    /// JSON for a topic of ntfy.
    Ntfy {
        /// The topic there.
        topic: String,
        /// The bearer token.
        token: Option<Secret>,
    },
}
