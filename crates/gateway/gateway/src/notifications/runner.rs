//! The task that looks at the topics and begins errands.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use model::OperationId;
use notify::{PlannedNotification, RouteMoment, RoutePlan, RouteStep};
use platform::{millis, unix_ms};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::errand::{self, ErrandEnd};
use super::look::{AllTopics, TopicLook};
use super::routes::{NotificationRoutes, NotifyOutcome, RouteInForce};

/// Notifications of one route that are on their way. A proposer's share is one.
const ROUTE_ERRANDS_MAX: usize = 8;
/// The least time between two looks.
const LOOK_GAP: Duration = Duration::from_millis(100);
/// The most time between two looks while one is due by the wall clock.
const WALL_LOOK: Duration = Duration::from_secs(5);
/// The most time between two looks.
const LOOK_MAX: Duration = Duration::from_secs(3600);

/// Begins to notify by these routes about what waits in these topics. Must be called inside a
/// runtime.
pub fn notify_reviewers(routes: &Arc<NotificationRoutes>, topics: AllTopics) {
    let changed = Arc::clone(&routes.changed);
    tokio::spawn(run(Arc::downgrade(routes), changed, topics));
}

/// Looks whenever something has changed or is due.
async fn run(of: Weak<NotificationRoutes>, changed: Arc<Notify>, topics: AllTopics) {
    let mut runner = Runner {
        topics: Arc::new(topics),
        seats: BTreeMap::new(),
        errands: JoinSet::new(),
        flying: HashMap::new(),
    };
    loop {
        let Some(routes) = of.upgrade().map(|routes| routes.in_force()) else {
            return;
        };
        runner.take_routes(routes);
        let next_ms = runner.look();
        let looked = Instant::now();
        let wait = next_ms.map_or(LOOK_MAX, |at_ms| {
            Duration::from_millis(at_ms.saturating_sub(unix_ms())).min(WALL_LOOK)
        });
        tokio::select! {
            () = changed.notified() => {}
            () = sleep(wait) => {}
            Some(ended) = runner.errands.join_next_with_id() => runner.ended(ended),
        }
        while let Some(ended) = runner.errands.try_join_next_with_id() {
            runner.ended(ended);
        }
        sleep_until(looked + LOOK_GAP).await;
    }
}

/// Routes and their errands.
struct Runner {
    topics: Arc<AllTopics>,
    /// By the names of the routes.
    seats: BTreeMap<Arc<str>, Seat>,
    errands: JoinSet<ErrandEnd>,
    flying: HashMap<Id, Flying>,
}

/// A route with its plan. A route that is configured anew keeps its plan.
struct Seat {
    route: Arc<RouteInForce>,
    plan: RoutePlan,
    /// The waiting proposals whose notification the other side refused: they are due anew once the
    /// route is configured otherwise.
    refused: Vec<OperationId>,
}

/// A notification on its way.
struct Flying {
    route: Arc<RouteInForce>,
    accounts: BTreeSet<Box<str>>,
    about: Vec<OperationId>,
    task: AbortHandle,
}

impl Runner {
    /// Takes over the routes in force. Errands of others end, and what they were about is due again.
    fn take_routes(&mut self, routes: Vec<Arc<RouteInForce>>) {
        let is_in_force = |one: &Arc<RouteInForce>| routes.iter().any(|now| Arc::ptr_eq(now, one));
        let gone = self
            .flying
            .extract_if(|_, flying| !is_in_force(&flying.route));
        for (_, flying) in gone {
            flying.task.abort();
            if let Some(seat) = self.seats.get_mut(&flying.route.config.name) {
                seat.plan.take_back(&flying.about);
            }
        }
        let mut seats = BTreeMap::new();
        for route in routes {
            let name = Arc::clone(&route.config.name);
            let seat = match self.seats.remove(&name) {
                Some(seat) => seat.with_route(route),
                None => Seat::new(route),
            };
            seats.insert(name, seat);
        }
        self.seats = seats;
    }

    /// Looks at all topics, and begins what is due. Returns when the next look is due by the wall
    /// clock, in Unix milliseconds.
    fn look(&mut self) -> Option<u64> {
        if self.seats.is_empty() {
            return None;
        }
        let now_ms = unix_ms();
        let topics = (self.topics)().into_iter();
        let looks: Vec<TopicLook> = topics
            .map(|dispatch| TopicLook::at(dispatch, now_ms))
            .collect();
        let mut next_ms = looks.iter().filter_map(|look| look.settles_ms).min();
        let mut begun = Vec::new();
        for seat in self.seats.values_mut() {
            let flying = self.flying.values();
            let own = flying.filter(|one| Arc::ptr_eq(&one.route, &seat.route));
            let step = seat.look(&looks, &own.collect::<Vec<_>>());
            next_ms = step.next_ms.into_iter().chain(next_ms).min();
            let planned = step.planned.into_iter();
            begun.extend(planned.map(|one| (Arc::clone(&seat.route), one)));
        }
        for (route, planned) in begun {
            self.begin(route, planned);
        }
        next_ms
    }

    fn begin(&mut self, route: Arc<RouteInForce>, planned: PlannedNotification) {
        let (accounts, about) = (planned.accounts.clone(), planned.about.clone());
        let errand = errand::run(Arc::clone(&route), planned, Arc::clone(&self.topics));
        let task = self.errands.spawn(errand);
        let flying = Flying {
            route,
            accounts,
            about,
            task: task.clone(),
        };
        self.flying.insert(task.id(), flying);
    }

    /// An errand has ended, was aborted, or has panicked.
    fn ended(&mut self, ended: Result<(Id, ErrandEnd), JoinError>) {
        let (id, end) = match ended {
            Ok((id, end)) => (id, Some(end)),
            Err(failed) => (failed.id(), None),
        };
        let Some(flying) = self.flying.remove(&id) else {
            return;
        };
        let seat = self.seats.get_mut(&flying.route.config.name);
        match end {
            Some(ErrandEnd::Done(outcome)) => flying.route.count(outcome),
            Some(ErrandEnd::Refused) => {
                flying.route.count(NotifyOutcome::Failed);
                if let Some(seat) = seat {
                    seat.refused.extend(flying.about);
                }
            }
            Some(ErrandEnd::Undelivered | ErrandEnd::TakenBack) | None => {
                if end != Some(ErrandEnd::TakenBack) {
                    flying.route.count(NotifyOutcome::Failed);
                }
                if let Some(seat) = seat {
                    seat.plan.take_back(&flying.about);
                }
            }
        }
    }
}

impl Seat {
    fn new(route: Arc<RouteInForce>) -> Self {
        Self {
            route,
            plan: RoutePlan::default(),
            refused: Vec::new(),
        }
    }

    /// The seat with the route in force now.
    fn with_route(mut self, route: Arc<RouteInForce>) -> Self {
        if !Arc::ptr_eq(&self.route, &route) {
            self.plan.take_back(&std::mem::take(&mut self.refused));
        }
        Self { route, ..self }
    }

    /// The notifications that are due now, by the proposals that wait in the topics and the
    /// notifications that are on their way.
    fn look(&mut self, looks: &[TopicLook], flying: &[&Flying]) -> RouteStep {
        let config = &self.route.config;
        let concerning = looks.iter().map(|look| look.concerning(config));
        let mut waiting = concerning.collect::<Vec<_>>().concat();
        waiting.sort_by_key(|one| one.opened_ms);
        let ids: BTreeSet<OperationId> = waiting.iter().map(|one| one.id).collect();
        self.refused.retain(|id| ids.contains(id));
        let paused = self.route.breaker.paused_until();
        let places = match paused {
            Some(_) => 0,
            None => ROUTE_ERRANDS_MAX.saturating_sub(flying.len()),
        };
        let now_ms = unix_ms();
        let mut step = self.plan.step(&RouteMoment {
            now_ms,
            after_ms: millis(config.after),
            quiet: config.quiet,
            waiting: &waiting,
            places,
            busy: &flying.iter().flat_map(|one| one.accounts.clone()).collect(),
        });
        if let Some(until) = paused {
            let left = until.saturating_duration_since(Instant::now());
            step.wake(now_ms.saturating_add(millis(left)));
        }
        step
    }
}
