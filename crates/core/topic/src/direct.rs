//! Requests that their senders may make without an approval, as rules look at them before the topic
//! admits them.

use std::sync::Arc;

use model::{Capabilities, LinkId, Method, ParticipantId};

use crate::{
    Handles, RequestWay, Topic, admission::admits, catalog::ClientName, event::PublicTarget,
};

/// The receiver of a request and what the request names there, before it is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestDestination {
    /// The server or participant that would carry it out; never the gateway itself.
    pub to: ParticipantId,
    /// The name or URI of its target as the receiver has it.
    pub own: Option<Arc<str>>,
    /// The name by which capabilities judge it.
    named: Named,
}

/// The spelling of what a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    /// As clients do, with the context of its kind.
    ByClient(Option<Box<str>>),
    /// As the receiver does.
    InRoom,
}

impl RequestDestination {
    /// The destination of a request in the room for one of its addressees.
    pub fn in_room(to: ParticipantId, own: Option<&str>) -> Self {
        Self {
            to,
            own: own.map(Arc::from),
            named: Named::InRoom,
        }
    }

    /// The way of a caller's request with these capabilities, by themselves. `None` of one in the
    /// room.
    #[must_use]
    pub fn way(&self, capabilities: &Capabilities, method: &str) -> Option<RequestWay> {
        let Named::ByClient(context) = &self.named else {
            return None;
        };
        let to = self.to.as_str();
        Some(RequestWay::of(capabilities, method, context.as_deref(), to))
    }
}

impl<H: Handles> Topic<H> {
    /// The destination of a caller's request, whether or not it may make that. `None` if the gateway
    /// serves it, if it is about a task, or if nothing has its name.
    pub fn destination(
        &self,
        link: LinkId,
        method: &Method,
        target: Option<PublicTarget<'_>>,
    ) -> Option<RequestDestination> {
        if matches!(target, Some(PublicTarget::Task(_))) || self.serves_own(link, method, target) {
            return None;
        }
        let route = self.route_of(self.members.link(link)?, method, target)?;
        if Some(route.index) == self.catalog.builtin() {
            return None;
        }
        let asked = target.and_then(PublicTarget::context);
        Some(RequestDestination {
            to: route.upstream.clone(),
            own: (!route.own.is_empty()).then(|| Arc::from(&*route.own)),
            named: Named::ByClient(route.ruled_context(asked).map(Box::from)),
        })
    }

    /// Whether a participant with these capabilities could make this request, and so decide about
    /// it if another one proposed it.
    pub fn could_request(
        &self,
        capabilities: &Capabilities,
        method: &str,
        destination: &RequestDestination,
    ) -> bool {
        let RequestDestination { to, own, named } = destination;
        let client_name = match (named, own) {
            (Named::ByClient(context), _) => {
                return admits(capabilities, method, context.as_deref(), to.as_str());
            }
            (Named::InRoom, Some(own)) => self.catalog.client_name(to, method, own),
            (Named::InRoom, None) => ClientName::None,
        };
        client_name.is_admitted(capabilities, method, own.as_deref(), to)
    }
}
