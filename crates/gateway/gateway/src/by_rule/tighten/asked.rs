//! Request before rules, as a call or as an envelope: where it goes, and what it says.

use model::{LinkId, Method, OperationId, ParticipantId};
use platform::unix_ms;
use rules::{ArgumentsError, RuleSet, RuledCall, Spent};
use topic::{PublicTarget, RequestDestination};

use super::params::{ParamsAt, kind_of, params_of};
use super::readings::ReadRequest;
use super::sent::Sent;
use crate::by_rule::facts::parts_of;
use crate::by_rule::tool_facts::upstream_of;
use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::live::Topic;

/// A request whose sender may make it without an approval.
pub(super) enum Asked<'c> {
    /// A client's request.
    Call {
        call: &'c Call,
        link: LinkId,
        method: &'c Method,
        target: Option<PublicTarget<'c>>,
    },
    /// A request in the room.
    Envelope(&'c Sent<'c>),
}

impl Asked<'_> {
    pub(super) fn by(&self) -> &ParticipantId {
        match self {
            Self::Call { call, .. } => &call.link.participant.id,
            Self::Envelope(sent) => sent.by,
        }
    }

    pub(super) fn method(&self) -> &Method {
        match self {
            Self::Call { method, .. } => method,
            Self::Envelope(sent) => &sent.method,
        }
    }

    /// Whether any participant may carry it out.
    pub(super) fn is_for_all(&self) -> bool {
        match self {
            Self::Call { .. } => false,
            Self::Envelope(sent) => sent.to.is_empty(),
        }
    }

    /// Whether it cannot be said what it names.
    pub(super) fn is_of_unknown_target(&self) -> bool {
        match self {
            Self::Call { .. } => false,
            Self::Envelope(sent) => sent.is_of_unknown_target(),
        }
    }

    /// Whether its sender may make it without an approval, as far as its capabilities say.
    pub(super) fn needs_no_approval(&self, topic: &Topic) -> bool {
        match self {
            Self::Call {
                call,
                link,
                method,
                target,
            } => topic.admits(*link, call.narrowing(), method.as_str(), *target),
            // In a room nothing is held: what needs an approval is refused.
            Self::Envelope(_) => true,
        }
    }

    /// Its destinations, as far as rules of these sets can be about them.
    pub(super) fn destinations(&self, topic: &Topic, sets: &[&RuleSet]) -> Vec<RequestDestination> {
        match self {
            Self::Call {
                link,
                method,
                target,
                ..
            } => topic
                .destination(*link, method, *target)
                .into_iter()
                .collect(),
            Self::Envelope(sent) => sent.destinations(topic, sets),
        }
    }

    /// Reads it for its destinations, while nothing is locked.
    pub(super) fn read(
        &self,
        dispatch: &Dispatch,
        destinations: Vec<RequestDestination>,
    ) -> Vec<ReadRequest> {
        // Most receivers get what was written.
        let mut written = None;
        let method = self.method().as_str();
        let read = |destination: RequestDestination| {
            let upstream = dispatch.with(|topic| upstream_of(topic, &destination.to));
            let parts = match self.params_at(dispatch, &destination) {
                Ok(ParamsAt::Completed(params)) => parts_of(method, params.as_deref()),
                Ok(ParamsAt::AsWritten(params)) => written
                    .get_or_insert_with(|| parts_of(method, params.as_deref()))
                    .clone(),
                Err(error) => (Err(error), Vec::new()),
            };
            ReadRequest::new(self.operation(dispatch), destination, upstream, parts)
        };
        destinations.into_iter().map(read).collect()
    }

    /// The params with which it would run at a destination.
    fn params_at(
        &self,
        dispatch: &Dispatch,
        destination: &RequestDestination,
    ) -> Result<ParamsAt, ArgumentsError> {
        match self {
            Self::Envelope(sent) => sent.params_at(dispatch, &destination.to),
            Self::Call { call, .. } => {
                let server = dispatch.with(|topic| topic.server(&destination.to));
                let server = server.map(|server| server.handle);
                params_of(call, server.as_ref(), destination.own.as_deref())
            }
        }
    }

    /// It as rules see it; `None` if it has no kind. `beside` are [`ReadRequest::beside_names`].
    pub(super) fn ruled<'a>(
        &'a self,
        request: &'a ReadRequest,
        beside: &'a [&'a str],
        spent: &Spent,
    ) -> Option<RuledCall<'a>> {
        let destination = &request.destination;
        Some(RuledCall {
            operation: request.operation,
            proposer: self.by(),
            to: &destination.to,
            kind: kind_of(self.method(), destination.own.as_deref())?,
            arguments: request.arguments.as_ref(),
            beside,
            // Rules that reject or ask do not look at these.
            definition: None,
            server: None,
            at_ms: spent.not_before(unix_ms()),
        })
    }

    /// The operation of it at one destination.
    fn operation(&self, dispatch: &Dispatch) -> OperationId {
        match self {
            Self::Call { call, .. } => call.id,
            Self::Envelope(_) => dispatch.context.operation(),
        }
    }
}
