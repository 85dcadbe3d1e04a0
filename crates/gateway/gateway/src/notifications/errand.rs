//! One notification on its way: sent, and sent again while that may help.

use std::sync::Arc;

use notify::{NOTIFY_TRIES_MAX, Notification, PlannedNotification, retry_wait};
use platform::{random, unix_ms};
use tokio::time::sleep;

use super::look::{AllTopics, waiting_still};
use super::routes::{NotifyOutcome, RouteInForce};

/// The end of an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrandEnd {
    Done(NotifyOutcome),
    /// It did not arrive; as it was sent, it never will.
    Refused,
    /// It did not arrive, and may later: what it is about is due anew.
    Undelivered,
    /// Before it arrived, quiet hours have begun, or not all that it is about waits: what waits is due
    /// anew.
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
        let is_transient = fault.is_transient();
        if !is_transient || failures >= NOTIFY_TRIES_MAX {
            tracing::warn!(route = name, id, failures, %fault, "a notification did not arrive");
            return if is_transient {
                ErrandEnd::Undelivered
            } else {
                ErrandEnd::Refused
            };
        }
        tracing::info!(route = name, id, failures, %fault, "a notification is sent again");
        sleep(retry_wait(failures)).await;
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
    let waiting = waiting_still(&topics(), &planned.about);
    if waiting == 0 {
        return Some(ErrandEnd::Done(NotifyOutcome::Over));
    }
    (waiting < planned.about.len()).then_some(ErrandEnd::TakenBack)
}
