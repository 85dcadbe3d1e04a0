//! Parts of all families: labels, gauges, and the viewer.

use auth::Participant;
use control::Registry;
use gateway::Dispatch;
use telemetry::{MeasuredValue, MetricLabel};

/// The participant or the operator for whom values are gathered, who may know of some of them.
#[derive(Debug, Clone, Copy)]
pub enum MetricsViewer<'p> {
    /// The operator, who knows of everything.
    Operator,
    /// A participant.
    Participant {
        /// It knows of some topics.
        participant: &'p Participant,
        /// Whether it may know the names of servers, issuers and routes.
        sees_servers: bool,
    },
}

impl MetricsViewer<'_> {
    pub(super) fn sees_servers(self) -> bool {
        match self {
            Self::Operator => true,
            Self::Participant { sees_servers, .. } => sees_servers,
        }
    }

    pub(super) fn knows(self, dispatch: &Dispatch, registry: &Registry) -> bool {
        match self {
            Self::Operator => true,
            Self::Participant { participant, .. } => {
                registry.may_know(participant, dispatch.name())
            }
        }
    }
}

/// A label of the gateway's own.
pub(super) fn label(name: &'static str, value: impl Into<String>) -> MetricLabel {
    MetricLabel::new(name, value)
}

/// A count that rises and falls.
pub(super) fn gauge(count: usize) -> MeasuredValue {
    MeasuredValue::Gauge(u64::try_from(count).unwrap_or(u64::MAX))
}
