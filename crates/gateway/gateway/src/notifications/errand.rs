//! One notification on its way: sent, and sent again while that may help.

use std::sync::Arc;

use notify::{NOTIFY_RETRY_MAX, Notification, PlannedNotification, retry_wait};
use platform::{random, unix_ms};
use tokio::time::{Instant, sleep};

use super::look::{AllTopics, waits_still};
use super::routes::{NotifyOutcome, RouteInForce};

/// The end of an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrandEnd {
    Done(NotifyOutcome),
    /// Quiet hours have begun before it arrived.
    TakenBack,
}

/// Sends a notification of a route until the other side takes it, or that is over.
pub(super) async fn run(
    route: Arc<RouteInForce>,
    planned: PlannedNotification,
    topics: Arc<AllTopics>,
) -> ErrandEnd {
    let name = &*route.config.name;
    let url = route.config.link.as_ref().map(AsRef::as_ref);
    let notification = Notification::of(&planned, url);
    // The same in every repetition, so that the other side knows it again.
    let id = format!("msg_{:032x}", u128::from_le_bytes(random()));
    let until = Instant::now() + NOTIFY_RETRY_MAX;
    let mut failures = 0;
    loop {
        if failures > 0
            && let Some(end) = ended(&route, &planned, &topics)
        {
            return end;
        }
        let sent = route
            .client
            .send(&notification, &id, unix_ms() / 1000)
            .await;
        route.breaker.note(sent.is_ok());
        let fault = match sent {
            Ok(answer) => {
                tracing::debug!(route = name, id, answer, "a notification was sent");
                return ErrandEnd::Done(NotifyOutcome::Sent);
            }
            Err(fault) => fault,
        };
        failures += 1;
        let wait = retry_wait(failures);
        if !fault.is_transient() || Instant::now() + wait >= until {
            tracing::warn!(route = name, id, failures, %fault, "a notification did not arrive");
            return ErrandEnd::Done(NotifyOutcome::Failed);
        }
        tracing::info!(route = name, id, failures, %fault, "a notification is sent again");
        sleep(wait).await;
    }
}

/// The end of an errand that would be repeated now, if there is one.
fn ended(
    route: &RouteInForce,
    planned: &PlannedNotification,
    topics: &AllTopics,
) -> Option<ErrandEnd> {
    if route.config.quiet.is_some_and(|quiet| quiet.has(unix_ms())) {
        return Some(ErrandEnd::TakenBack);
    }
    let waits = waits_still(&topics(), &planned.about);
    (!waits).then_some(ErrandEnd::Done(NotifyOutcome::Over))
}
