//! Routes of notifications in force, and the numbers of what they were sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use notify::NotifyClient;
use notify::config::NotifyRoute;
use platform::Mutex;
use tokio::sync::Notify;

use crate::outside::breaker::Breaker;

/// The routes of notifications in force, of one gateway.
#[derive(Debug, Default)]
pub struct NotificationRoutes {
    routes: Mutex<Vec<Arc<RouteInForce>>>,
    /// Whether there is a route.
    has_routes: AtomicBool,
    /// Rings when a look is due.
    pub(super) changed: Arc<Notify>,
}

/// The result of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotifyOutcome {
    /// The other side has taken it.
    Sent,
    /// It was refused, or did not arrive in time.
    Failed,
    /// Nothing that it is about waits any more.
    Over,
}

impl NotifyOutcome {
    const ALL: [Self; 3] = [Self::Sent, Self::Failed, Self::Over];

    fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Over => "over",
        }
    }
}

/// A route in force.
#[derive(Debug)]
pub(super) struct RouteInForce {
    pub(super) config: NotifyRoute,
    pub(super) client: NotifyClient,
    pub(super) breaker: Breaker,
    outcomes: [AtomicU64; NotifyOutcome::ALL.len()],
}

/// The numbers of a route's notifications by outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteCounts {
    /// The route.
    pub route: Arc<str>,
    /// The outcomes, each with its number.
    pub outcomes: Vec<(&'static str, u64)>,
}

impl RouteInForce {
    fn new(config: NotifyRoute, client: NotifyClient) -> Self {
        Self {
            client,
            breaker: Breaker::default(),
            outcomes: Default::default(),
            config,
        }
    }

    pub(super) fn count(&self, outcome: NotifyOutcome) {
        let all = NotifyOutcome::ALL.iter().zip(&self.outcomes);
        for (_, count) in all.filter(|(one, _)| **one == outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl NotificationRoutes {
    /// Puts routes in force in place of those before. One that is as it was goes on.
    pub fn put_in_force(
        &self,
        configs: &[NotifyRoute],
        client_of: impl Fn(&NotifyRoute) -> NotifyClient,
    ) {
        let mut routes = self.routes.lock();
        let before = std::mem::take(&mut *routes);
        for config in configs {
            let same = before.iter().find(|route| route.config == *config);
            let route = same.cloned();
            routes.push(
                route.unwrap_or_else(|| {
                    Arc::new(RouteInForce::new(config.clone(), client_of(config)))
                }),
            );
        }
        self.has_routes.store(!routes.is_empty(), Ordering::Relaxed);
        drop(routes);
        self.changed.notify_one();
    }

    /// Proposals, claims or rights have changed: what waits is looked at again. Waits for nothing.
    pub fn look_again(&self) {
        if self.has_routes.load(Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// The numbers of notifications, by route.
    pub fn counts(&self) -> Vec<RouteCounts> {
        let routes = self.routes.lock();
        let counts = routes.iter().map(|route| RouteCounts {
            route: Arc::clone(&route.config.name),
            outcomes: NotifyOutcome::ALL
                .iter()
                .zip(&route.outcomes)
                .map(|(one, count)| (one.as_str(), count.load(Ordering::Relaxed)))
                .collect(),
        });
        counts.collect()
    }

    pub(super) fn in_force(&self) -> Vec<Arc<RouteInForce>> {
        self.routes.lock().clone()
    }
}
