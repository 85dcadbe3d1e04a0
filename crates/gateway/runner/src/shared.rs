//! State of a runner that its tasks have in common: the rules, and the effects that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cluster::{Admission, HomeEffect, HomeEvent, Homes, Shard};
use platform::Mutex;
use tokio::sync::Notify;

use crate::clock::NodeClock;
use crate::line::ShardLine;

/// The most effects that wait to be carried out before the node takes no ticks and heartbeats: its
/// disk stands still, and its homes end by the clock.
pub const EFFECTS_WAITING_MAX: usize = 65_536;

/// The state.
pub(crate) struct Shared {
    clock: Arc<dyn NodeClock>,
    steps: Mutex<Steps>,
    /// An effect waits.
    came: Notify,
    /// The time until which requests are admitted: by the latest step, and by what was carried out,
    /// so that none is admitted before what goes with that step counts. Written under the lock of
    /// the steps.
    admits_until_ms: AtomicU64,
    /// The time until which this node is the home of the common shard, by the latest step. Written
    /// under the lock of the steps, and read without it: each request asks.
    leads_until_ms: AtomicU64,
}

struct Steps {
    homes: Homes<ShardLine>,
    effects: Vec<HomeEffect<ShardLine>>,
    /// The end of the admission that was carried out last, milliseconds.
    carried_out_ms: u64,
    /// Whether the node is over: it takes no more steps.
    is_over: bool,
}

impl Shared {
    pub(crate) fn new(homes: Homes<ShardLine>, clock: Arc<dyn NodeClock>) -> Self {
        Self {
            clock,
            steps: Mutex::new(Steps {
                homes,
                effects: Vec::new(),
                carried_out_ms: 0,
                is_over: false,
            }),
            came: Notify::new(),
            admits_until_ms: AtomicU64::new(0),
            leads_until_ms: AtomicU64::new(0),
        }
    }

    /// Takes a step. Its effects wait behind those of the steps before.
    pub(crate) fn step(&self, event: HomeEvent<ShardLine>) {
        self.step_below(event, usize::MAX);
    }

    /// Takes a step that may be left out, unless too many effects wait.
    pub(crate) fn step_if_free(&self, event: HomeEvent<ShardLine>) {
        self.step_below(event, EFFECTS_WAITING_MAX);
    }

    fn step_below(&self, event: HomeEvent<ShardLine>, waiting_max: usize) {
        let mut steps = self.steps.lock();
        if steps.is_over || steps.effects.len() >= waiting_max {
            return;
        }
        // Under the lock, so that times come in the order of the steps.
        let now = self.clock.now();
        let effects = steps.homes.step(now, event);
        let is_idle = effects.is_empty();
        steps.effects.extend(effects);
        self.note_times(&steps);
        drop(steps);
        if !is_idle {
            self.came.notify_one();
        }
    }

    fn note_times(&self, steps: &Steps) {
        let stepped_ms = until_ms(steps.homes.admission());
        let (admits_ms, leads_ms) = if steps.is_over {
            (0, 0)
        } else {
            let last_ms = steps.homes.leads_until_ms(&Shard::Common);
            let leads_ms = last_ms.map_or(0, |last_ms| last_ms + 1);
            (stepped_ms.min(steps.carried_out_ms), leads_ms)
        };
        self.admits_until_ms.store(admits_ms, Ordering::Release);
        self.leads_until_ms.store(leads_ms, Ordering::Release);
    }

    /// All effects that wait, in order.
    pub(crate) async fn effects(&self) -> Vec<HomeEffect<ShardLine>> {
        loop {
            let waiting = std::mem::take(&mut self.steps.lock().effects);
            if !waiting.is_empty() {
                return waiting;
            }
            self.came.notified().await;
        }
    }

    /// Notes that a word about admission is carried out.
    pub(crate) fn admit(&self, admission: Admission) {
        let mut steps = self.steps.lock();
        steps.carried_out_ms = until_ms(admission);
        self.note_times(&steps);
    }

    /// Whether requests are admitted now.
    pub(crate) fn admits(&self) -> bool {
        self.clock.steady_ms() < self.admits_until_ms.load(Ordering::Acquire)
    }

    /// The node is over: it admits nothing, and takes no more steps.
    pub(crate) fn end(&self) {
        let mut steps = self.steps.lock();
        steps.is_over = true;
        steps.effects.clear();
        self.note_times(&steps);
    }

    /// Whether this node is the home of the common shard now, and admits requests.
    pub(crate) fn leads(&self) -> bool {
        let now_ms = self.clock.steady_ms();
        now_ms < self.leads_until_ms.load(Ordering::Acquire)
            && now_ms < self.admits_until_ms.load(Ordering::Acquire)
    }

    /// Looks at the rules' state.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&Homes<ShardLine>) -> T) -> T {
        look(&self.steps.lock().homes)
    }

    #[cfg(test)]
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.steady_ms()
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.steps.lock().effects.len()
    }
}

/// The end of an admission, milliseconds.
fn until_ms(admission: Admission) -> u64 {
    match admission {
        Admission::Until(until_ms) => until_ms,
        Admission::No(_) => 0,
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = self.steps.lock();
        let (node, waiting) = (steps.homes.node(), steps.effects.len());
        write!(f, "Shared({}, {waiting} effects wait)", node.name)
    }
}
