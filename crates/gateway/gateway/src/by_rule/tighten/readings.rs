//! All that is read of a request, and of the rules that may take something of it, while nothing is
//! locked.

use std::sync::Arc;

use model::OperationId;
use rules::{Arguments, ArgumentsError};
use topic::RequestDestination;
use upstream::Upstream;

use super::params::Parts;
use crate::by_rule::locked_case::RuleAuthor;
use crate::by_rule::tool_facts::upstream_of;
use crate::live::Topic;

/// A request for one destination, as it was read.
pub(super) struct ReadRequest {
    /// The operation that rules count. An envelope for several receivers is one at each.
    pub(super) operation: OperationId,
    pub(super) destination: RequestDestination,
    /// The server of which it was read.
    upstream: Option<Arc<Upstream>>,
    pub(super) arguments: Result<Arguments, ArgumentsError>,
    beside: Vec<String>,
}

impl ReadRequest {
    pub(super) fn new(
        operation: OperationId,
        destination: RequestDestination,
        upstream: Option<Arc<Upstream>>,
        (arguments, beside): Parts,
    ) -> Self {
        Self {
            operation,
            destination,
            upstream,
            arguments,
            beside,
        }
    }

    /// Names of members that it has beside target and arguments.
    pub(super) fn beside_names(&self) -> Vec<&str> {
        self.beside.iter().map(String::as_str).collect()
    }
}

/// All that was read.
#[derive(Default)]
pub(super) struct Readings {
    pub(super) requests: Vec<ReadRequest>,
    pub(super) authors: Vec<RuleAuthor>,
}

impl Readings {
    /// The request for a destination as it was read, if its server is still the one of then.
    pub(super) fn of(
        &self,
        topic: &Topic,
        destination: &RequestDestination,
    ) -> Option<&ReadRequest> {
        let mut requests = self.requests.iter();
        let read = requests.find(|one| one.destination == *destination)?;
        let now = upstream_of(topic, &destination.to);
        let is_same = now.as_ref().map(Arc::as_ptr) == read.upstream.as_ref().map(Arc::as_ptr);
        is_same.then_some(read)
    }
}
