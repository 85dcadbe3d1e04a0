//! Shared context of a gateway: clock, ids, seal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{sync::Arc, time::Instant};

use auth::Sealer;
use model::{LinkId, OperationId};
use oauth::ServerAccounts;
use platform::{millis, random, unix_ms};
use tokio::sync::Notify;
use topic::Now;
use upstream::{FieldNumbers, RequestNumbers};

use crate::slotted::SlottedNumber;

use crate::hold_times::HoldTimes;
use crate::notifications::routes::NotificationRoutes;
use crate::overhead::OverheadTimes;
use crate::span::Traces;

/// Clock, ids and seal of one gateway, and its accounts at servers.
pub struct Context {
    began: Instant,
    /// The seal of session ids, cursors and states.
    pub sealer: Sealer,
    /// The random id of the running gateway, which its handshakes name.
    pub instance: Arc<str>,
    /// Accounts at servers.
    pub(crate) accounts: Arc<ServerAccounts>,
    /// The routes of notifications about the proposals of all topics.
    pub notifications: Arc<NotificationRoutes>,
    /// Durations for which the proposals of all topics waited.
    pub holds: HoldTimes,
    /// The gateway's own share of the durations of calls.
    pub overhead: OverheadTimes,
    /// The traces of calls and proposals.
    pub traces: Traces,
    /// Notified when other nodes of a cluster need to know something else than before: which topics
    /// have listeners, which servers are disabled.
    pub home_news: Notify,
    /// The numbers of fields that tools' messages had.
    pub fields: Arc<FieldNumbers>,
    links: AtomicU64,
    /// The numbers of requests to servers, which operations share.
    pub numbers: Arc<RequestNumbers>,
    /// The slot of this node in what clients get of its calls; 0 for the home, or a gateway alone.
    pub slot: u16,
    /// Upper half of every operation id, so that ids of two runs differ.
    run: u64,
    /// Upper half of the ids of envelopes that go to one participant alone.
    pub(crate) direct: u64,
}

impl Context {
    /// A context whose handles are sealed with these keys.
    pub fn new(sealer: Sealer, fields: Arc<FieldNumbers>, accounts: Arc<ServerAccounts>) -> Self {
        let run = u64::from_le_bytes(random());
        let direct = u64::from_le_bytes(random());
        let links = AtomicU64::new(1);
        let numbers = Arc::default();
        let instance = format!("{:032x}", u128::from_le_bytes(random())).into();
        Self {
            began: Instant::now(),
            sealer,
            instance,
            accounts,
            notifications: Arc::default(),
            holds: HoldTimes::default(),
            overhead: OverheadTimes::default(),
            traces: Traces::default(),
            home_news: Notify::new(),
            fields,
            links,
            numbers,
            slot: 0,
            run,
            direct,
        }
    }

    /// The context of a branch, which has this slot.
    #[must_use]
    pub fn of_branch(self, slot: u16) -> Self {
        Self { slot, ..self }
    }

    /// The number by which a client answers the question of an operation.
    pub(crate) fn question_number(&self, operation: OperationId) -> u64 {
        SlottedNumber {
            slot: self.slot,
            number: operation.number(),
        }
        .whole()
    }

    /// The operation of a question that a client answers by this number; `None` if another node has
    /// asked it.
    pub(crate) fn questioned(&self, number: u64) -> Option<OperationId> {
        let SlottedNumber { slot, number } = SlottedNumber::of(number);
        (slot == self.slot).then(|| self.numbered(number))
    }

    /// The time of a step, at this moment, of a topic with this deadline on the wall clock. Without
    /// one that clock is not read.
    pub(crate) fn time_of_step(&self, at: Instant, wall_deadline_ms: Option<u64>) -> Now {
        Now {
            steady_ms: millis(at.saturating_duration_since(self.began)),
            wall_ms: wall_deadline_ms.map_or(0, |_| unix_ms()),
        }
    }

    /// Milliseconds since the gateway started, without those that the machine slept; never goes
    /// back.
    pub fn now_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    /// A new link.
    pub fn link(&self) -> LinkId {
        LinkId(self.links.fetch_add(1, Ordering::Relaxed))
    }

    /// A new operation. Not secret: handles that leave the gateway are sealed or random.
    pub fn operation(&self) -> OperationId {
        OperationId::of_run(self.run, self.numbers.next())
    }

    /// The operation of this number.
    pub fn numbered(&self, number: u64) -> OperationId {
        OperationId::of_run(self.run, number)
    }

    /// A new id for an envelope to one participant alone.
    pub(crate) fn direct_envelope(&self) -> OperationId {
        OperationId::of_run(self.direct, self.numbers.next())
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl room::Stamps for Context {
    fn now_ms(&self) -> u64 {
        self.now_ms()
    }

    fn envelope_id(&self) -> String {
        self.operation().to_string()
    }
}
