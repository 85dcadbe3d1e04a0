//! State of a runner that its tasks have in common: the rules, and the effects that wait.

use std::sync::Arc;

use cluster::{Admission, HomeEffect, HomeEvent, Homes, NoAdmission, Shard};
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
    /// The latest word about admission that was carried out.
    admission: Mutex<Admission>,
}

struct Steps {
    homes: Homes<ShardLine>,
    effects: Vec<HomeEffect<ShardLine>>,
}

impl Shared {
    pub(crate) fn new(homes: Homes<ShardLine>, clock: Arc<dyn NodeClock>) -> Self {
        Self {
            clock,
            steps: Mutex::new(Steps {
                homes,
                effects: Vec::new(),
            }),
            came: Notify::new(),
            admission: Mutex::new(Admission::No(NoAdmission::NotMember)),
        }
    }

    /// Takes a step. Its effects wait behind those of the steps before.
    pub(crate) fn step(&self, event: HomeEvent<ShardLine>) {
        let mut steps = self.steps.lock();
        // Under the lock, so that times come in the order of the steps.
        let now = self.clock.now();
        let effects = steps.homes.step(now, event);
        let is_idle = effects.is_empty();
        steps.effects.extend(effects);
        drop(steps);
        if !is_idle {
            self.came.notify_one();
        }
    }

    /// Takes a step that may be left out, unless too many effects wait.
    pub(crate) fn step_if_free(&self, event: HomeEvent<ShardLine>) {
        if self.steps.lock().effects.len() < EFFECTS_WAITING_MAX {
            self.step(event);
        }
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
        *self.admission.lock() = admission;
    }

    /// Whether requests are admitted now: by the latest step, and by what was carried out, so that
    /// none is admitted before what goes with that step counts.
    pub(crate) fn admits(&self) -> bool {
        let steps = self.steps.lock();
        let now_ms = self.clock.now().steady_ms;
        let carried_out = *self.admission.lock();
        steps.homes.admission().admits(now_ms) && carried_out.admits(now_ms)
    }

    /// Whether this node is the home of a shard now.
    pub(crate) fn leads(&self, shard: &Shard) -> bool {
        let steps = self.steps.lock();
        steps.homes.leads(shard, self.clock.now().steady_ms)
    }

    /// Looks at the rules' state.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&Homes<ShardLine>) -> T) -> T {
        look(&self.steps.lock().homes)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = self.steps.lock();
        let (node, waiting) = (steps.homes.node(), steps.effects.len());
        write!(f, "Shared({}, {waiting} effects wait)", node.name)
    }
}
