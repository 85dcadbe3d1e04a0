//! Waiting for servers that are still starting, bounded. Must not know how they start.

use topic::Target;
use wire::mcp::{Params, method};
use wire::rpc::Shape;

use super::{Pump, target_of};
use crate::caller::Caller;

impl Pump {
    /// Waits until servers that are still starting for the first time have started, each at most for the topic's bound.
    pub async fn wait_for_servers(&self) {
        for seat in self.seats().iter() {
            let left = self.list_wait.saturating_sub(seat.upstream.age());
            // Whoever is not there by then is listed later, with list_changed.
            let _ = tokio::time::timeout(left, seat.upstream.settled()).await;
        }
    }

    /// The same, before a request that aims at what nobody has listed yet. What is refused is waited for in the same
    /// way, so that time does not tell it from what is unknown.
    pub async fn wait_for_target(&self, caller: &Caller, params: &Params<'_>) {
        let message = params.message();
        if message.shape() != Shape::Request || self.seats().iter().all(|seat| seat.upstream.has_settled()) {
            return;
        }
        let Some(known) = method::lookup(message.method()) else { return };
        let admits =
            |target: Target<'_>| self.with(|topic| topic.admits(caller.link(), known.name, Some(target)));
        if !target_of(known.target, known.name, params).is_none_or(admits) {
            self.wait_for_servers().await;
        }
    }
}
