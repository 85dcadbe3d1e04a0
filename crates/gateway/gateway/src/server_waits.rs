//! The wait for servers that are starting.

use std::time::Duration;

use model::Request;
use tokio::time::{Instant, timeout_at};
use upstream::ClientProfile;

use crate::dispatch::Dispatch;
use crate::incoming::named;
use crate::link::Requester;
use crate::live::ConfiguredServer;

impl Dispatch {
    /// While the gateway itself starts: waits until its servers have started, at most for the
    /// topic's bound. A server that is not ready by then, or that is added later, is listed later,
    /// with a notification.
    pub async fn wait_for_servers(&self) {
        if self.starts.have_ended() {
            return;
        }
        // That clock began with the gateway, and so did its first servers.
        let age = Duration::from_millis(self.context.now_ms());
        self.wait_for_starts(|_| age).await;
    }

    /// Waits as [`Self::wait_for_servers`] does, before a handshake of this client, unless it is a
    /// gateway, as its name shows: two that are servers of each other would wait for one another. It
    /// is notified of what is listed later.
    pub async fn wait_for_servers_before(&self, client: &ClientProfile) {
        let identity = lists::handshake::identity();
        let info = client.client_info.as_deref();
        let name = info.and_then(|info| json::at(info, &["name"]));
        let is_gateway = name.is_some() && name == json::at(&identity, &["name"]);
        if !is_gateway {
            self.wait_for_servers().await;
        }
    }

    /// Waits for the servers that have just been started, before a request for something that none
    /// has listed yet. A request that will be refused waits as long, so that its caller cannot tell
    /// what exists by the time.
    pub async fn wait_for_target(&self, by: Requester<'_>, request: &Request) {
        if self.starts.have_ended() {
            return;
        }
        let Some(target) = named(request) else { return };
        let method = request.method.as_str();
        let link = by.link.id;
        let narrowing = by.narrowing();
        if !self.with(|topic| topic.admits(link, narrowing, method, Some(target))) {
            self.wait_for_starts(|server| server.upstream.age()).await;
        }
    }

    /// Waits until every server has started, at most until it has this age.
    async fn wait_for_starts(&self, age: impl Fn(&ConfiguredServer) -> Duration) {
        let present = self.starts.present();
        let servers = self.servers();
        let list_wait = self.settings().topic.list_wait;
        let now = Instant::now();
        let starts = servers.iter().map(|server| AwaitedStart {
            ended: server.upstream.settled(),
            until: now + list_wait.saturating_sub(age(server)),
        });
        await_each(starts.collect()).await;
        if servers.iter().all(|server| server.upstream.has_settled()) {
            self.starts.note_ended(present);
        }
    }
}

/// The start of a server, which is awaited until then.
struct AwaitedStart<F> {
    ended: F,
    until: Instant,
}

/// Waits for starts, each until its own time: several that never end are awaited no longer than one.
async fn await_each<F: Future>(starts: Vec<AwaitedStart<F>>) {
    for AwaitedStart { ended, until } in starts {
        let _ = timeout_at(until, ended).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn starts_that_do_not_end_are_awaited_together() {
        let longest = Duration::from_millis(600);
        let began = Instant::now();
        let never = |wait: Duration| AwaitedStart {
            ended: std::future::pending::<()>(),
            until: began + wait,
        };
        await_each(vec![never(longest), never(longest / 2), never(longest)]).await;
        assert_eq!(began.elapsed(), longest);
    }
}
