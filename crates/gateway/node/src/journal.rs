//! Journal of a home: what it appends goes into the log that the nodes share, and counts once the
//! log has it.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, OnceLock};

use cluster::{NotStored, Shard};
use platform::Mutex;
use runner::{Runner, ShardLine};
use store::{
    Entry, Journal, JournalWriter, OnDurable, OnUncompacted, Place, Position, Replayed, Snapshot,
    StoreError, WRITER_BYTES_MAX, WRITER_PERMITS_MAX, Watcher,
};

use crate::copy::{AppliedGroup, JournalCopy, unreadable};
use crate::flight::{Flights, Lands, NoFlight, TokenFlight};
use crate::group;

/// Entries that a copy has beyond twice those in force before it is compacted.
const SLACK_ENTRIES: usize = 1_024;
/// Messages of the journal after which it is compacted in any case: not each has an entry.
const UNCOMPACTED_MESSAGES_MAX: u64 = 16_384;

/// The journal of a node while it is the home. After that its answer is
/// [`StoreError::Elsewhere`].
pub struct HomeJournal {
    copy: Arc<Mutex<JournalCopy>>,
    runner: Arc<OnceLock<Runner>>,
    time: Mutex<HomeTime>,
}

/// The node's time as the home.
#[derive(Default)]
struct HomeTime {
    is_over: bool,
    /// Appends under way, in their order.
    appends: VecDeque<Appending>,
    /// Reserved places, and the bytes of all appends.
    places: usize,
    bytes: usize,
    /// The number of the next line.
    ticket: u64,
    flights: Flights,
    watchers: Vec<Box<dyn Watcher>>,
    snapshot: Option<Arc<dyn Snapshot>>,
    /// Appends that wait until what is in force is written, while that is so.
    parked: Option<Vec<Parked>>,
    /// The number of a snapshot that is being written.
    compacting: Option<u64>,
    on_uncompacted: Option<OnUncompacted>,
    has_reported: bool,
}

/// An append that has no answer yet.
struct Appending {
    /// The numbers of its lines.
    tickets: RangeInclusive<u64>,
    bytes: usize,
    on_durable: OnDurable,
    /// Its place, once it is applied.
    at: Option<Position>,
    /// Whether it waits until it is in force at all nodes.
    is_for_all: bool,
}

/// An append that waits for its lines to be handed in.
struct Parked {
    entries: Vec<Entry>,
    bytes: usize,
    on_durable: OnDurable,
}

impl HomeJournal {
    pub(crate) fn new(copy: Arc<Mutex<JournalCopy>>, runner: Arc<OnceLock<Runner>>) -> Arc<Self> {
        Arc::new(Self {
            copy,
            runner,
            time: Mutex::new(HomeTime {
                ticket: 1,
                ..HomeTime::default()
            }),
        })
    }

    /// The journal for its users.
    ///
    /// # Errors
    /// When an entry cannot be read.
    pub fn writer(self: &Arc<Self>) -> Result<JournalWriter, StoreError> {
        let journal = Arc::new(SharedJournal(Arc::clone(self)));
        JournalWriter::over(journal, None)
    }

    /// Whether the node is the home no more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.time.lock().is_over
    }

    /// Hands groups that count to those who watch. They are this journal's own, in its order. The
    /// caller has the copy's lock, so that none begins to watch meanwhile.
    pub(crate) fn applied(&self, groups: &[AppliedGroup]) {
        let mut watchers = {
            let mut time = self.time.lock();
            let unplaced = time.appends.iter_mut().filter(|one| one.at.is_none());
            for (append, group) in unplaced.zip(groups) {
                append.at = Some(group.last);
            }
            std::mem::take(&mut time.watchers)
        };
        for group in groups {
            // Those who watch have made what a snapshot says.
            if group.group.is_snapshot {
                continue;
            }
            let watches = |watcher: &mut Box<dyn Watcher>| {
                watcher.take(group.last, &group.group.entries) == ControlFlow::Continue(())
            };
            watchers.retain_mut(watches);
        }
        let mut time = self.time.lock();
        if !time.is_over {
            time.watchers = watchers;
        }
    }

    /// The line of this number is in the log.
    pub(crate) fn stored(&self, ticket: u64) {
        self.report_if(ticket, |append| !append.is_for_all);
        self.time.lock().compacting.take_if(|one| *one == ticket);
        self.compact_if_due();
    }

    /// The line of this number is in force at all nodes.
    pub(crate) fn confirmed(&self, ticket: u64) {
        self.report_if(ticket, |_| true);
    }

    /// Reports the append whose last line has this number, if it waits for no more.
    fn report_if(&self, ticket: u64, is_due: impl FnOnce(&Appending) -> bool) {
        let append = {
            let mut time = self.time.lock();
            let place = time
                .appends
                .iter()
                .position(|one| *one.tickets.end() == ticket);
            let due = place.filter(|place| time.appends.get(*place).is_some_and(is_due));
            due.and_then(|place| time.remove(place))
        };
        if let Some(append) = append {
            let at = append.at.unwrap_or_default();
            (append.on_durable)(Ok(at));
        }
    }

    /// Reports an append of which a line is not stored.
    pub(crate) fn not_stored(&self, ticket: u64, why: NotStored) {
        // A line of a group that is not the last one: the group never ends, and never was.
        let append = {
            let mut time = self.time.lock();
            time.compacting.take_if(|one| *one == ticket);
            let has = |one: &Appending| one.tickets.contains(&ticket);
            let place = time.appends.iter().position(has);
            place.and_then(|place| time.remove(place))
        };
        match append {
            Some(append) => (append.on_durable)(Err(refused(why))),
            None => self.time.lock().flights.end(&[ticket], NoFlight::Elsewhere),
        }
        // Others may wait for this one.
        let waits = self.time.lock().parked.is_some();
        if waits {
            self.compact_if_due();
        }
    }

    /// Waits until this node may use the refresh token of an account.
    ///
    /// # Errors
    /// [`NoFlight`]: then it must not.
    pub async fn fly(self: &Arc<Self>, account: &str) -> Result<TokenFlight, NoFlight> {
        let account = Arc::<str>::from(account);
        let landing = {
            let mut time = self.time.lock();
            let (false, Some(runner)) = (time.is_over, self.runner.get()) else {
                return Err(NoFlight::Elsewhere);
            };
            let ticket = time.ticket;
            time.ticket += 1;
            let landing = time.flights.wait(&account, ticket);
            runner.renew(account, ticket);
            landing
        };
        landing.await.unwrap_or(Err(NoFlight::Elsewhere))
    }

    /// A refresh token is to be used, before this time on the machine's steady clock.
    pub(crate) fn flies(self: &Arc<Self>, account: &Arc<str>, number: u64, before_ms: u64) {
        let me: Arc<dyn Lands> = Arc::<Self>::clone(self);
        let flight = TokenFlight::new(me, Arc::clone(account), number, before_ms);
        let waiter = self.time.lock().flights.next(account);
        // Without one it lands at once.
        if let Some(waiter) = waiter {
            let _ = waiter.send(Ok(flight));
        }
    }

    /// The uses that these callers waited for are over.
    pub(crate) fn flown(&self, tickets: &[u64]) {
        self.time.lock().flights.end(tickets, NoFlight::Over);
    }

    /// The node is the home no more: what is under way is stored or not.
    pub(crate) fn end(&self) {
        let (appends, parked) = {
            let mut time = self.time.lock();
            time.is_over = true;
            time.watchers.clear();
            time.snapshot = None;
            // Those who wait learn it from its end.
            time.flights = Flights::default();
            time.bytes = 0;
            (std::mem::take(&mut time.appends), time.parked.take())
        };
        let parked = parked.into_iter().flatten().map(|one| one.on_durable);
        for on_durable in appends.into_iter().map(|one| one.on_durable).chain(parked) {
            on_durable(Err(StoreError::Elsewhere));
        }
    }

    fn submit(&self, entries: Vec<Entry>, on_durable: OnDurable) {
        let mut time = self.time.lock();
        if time.is_over {
            drop(time);
            return on_durable(Err(StoreError::Elsewhere));
        }
        let append = Parked {
            bytes: entries.iter().map(Entry::bytes).sum(),
            entries,
            on_durable,
        };
        let HomeTime { parked, bytes, .. } = &mut *time;
        match parked {
            Some(parked) => {
                *bytes += append.bytes;
                parked.push(append);
            }
            None => self.hand_in(&mut time, append),
        }
    }

    /// Hands the lines of an append in, under the lock, so that those of two groups never mix.
    fn hand_in(&self, time: &mut HomeTime, append: Parked) {
        let is_for_all = append.entries.iter().any(Entry::is_for_all);
        let lines = group::lines(&append.entries);
        let first = time.ticket;
        let after = first + lines.len() as u64;
        time.begin(first..=after - 1, &lines, append.on_durable, is_for_all);
        // It is there: this node has become the home by it.
        let Some(runner) = self.runner.get() else {
            return;
        };
        for (ticket, line) in (first..).zip(lines) {
            if let Err(too_long) = runner.store(Shard::Common, ticket, line) {
                tracing::error!(%too_long, "a line of the journal");
            }
        }
    }

    /// Hands a snapshot in, under the lock. All lines before are applied, but for those that say
    /// that a use of a refresh token is over: these have no entries.
    fn hand_in_snapshot(&self, time: &mut HomeTime, entries: &[Entry]) {
        let lines = group::snapshot_lines(entries);
        let ticket = time.ticket;
        time.begin(ticket..=ticket, &lines, Box::new(drop), false);
        time.compacting = Some(ticket);
        let compacted = self.runner.get();
        let compacted = compacted.map(|runner| runner.compact(Shard::Common, ticket, lines));
        if let Some(Err(too_long)) = compacted {
            tracing::error!(%too_long, "a line of the journal");
        }
    }

    /// Has what is in force written, in place of all before it, once it is a small part of that.
    /// Appends wait meanwhile: what is under way must count before the snapshot is made.
    fn compact_if_due(&self) {
        let Some(snapshot) = self.due_snapshot() else {
            return;
        };
        let entries = snapshot.entries();
        let mut time = self.time.lock();
        let parked = time.parked.take().unwrap_or_default();
        let uncompacted = match entries {
            Ok(entries) => {
                self.hand_in_snapshot(&mut time, &entries);
                None
            }
            Err(why) => Some(why),
        };
        for append in parked {
            time.bytes -= append.bytes;
            self.hand_in(&mut time, append);
        }
        drop(time);
        if let Some(why) = uncompacted {
            self.report(&why.to_string());
        }
    }

    /// The source of what is in force, if that is to be written now: appends wait from then on.
    fn due_snapshot(&self) -> Option<Arc<dyn Snapshot>> {
        let snapshot = self.time.lock().snapshot.clone()?;
        let all = self.copy.lock().entries().len();
        let is_due = all > 2 * snapshot.live() + SLACK_ENTRIES
            || self.uncompacted() > UNCOMPACTED_MESSAGES_MAX;
        let mut time = self.time.lock();
        if time.compacting.is_some() {
            return None;
        }
        // Once appends wait for it, it is made in any case.
        let is_begun = time.parked.is_some();
        if time.is_over || !is_begun && (!is_due || time.has_reported) {
            return None;
        }
        time.parked.get_or_insert_default();
        let is_quiet = time.appends.iter().all(|append| append.at.is_some());
        is_quiet.then_some(snapshot)
    }

    /// The number of messages since the latest snapshot.
    fn uncompacted(&self) -> u64 {
        let runner = self.runner.get();
        runner.map_or(0, |runner| runner.view(|homes| homes.uncompacted()))
    }

    fn report(&self, why: &str) {
        let report = {
            let mut time = self.time.lock();
            if std::mem::replace(&mut time.has_reported, true) {
                return;
            }
            time.on_uncompacted.take()
        };
        if let Some(report) = report {
            report(why);
        }
    }
}

impl Lands for HomeJournal {
    /// An empty line says that the result is known.
    fn landed(&self, account: &Arc<str>, number: u64, is_known: bool) {
        let line = is_known.then(|| group::lines(&[])).into_iter().flatten();
        if let Some(runner) = self.runner.get() {
            // It is short.
            let _ = runner.renewed(Arc::clone(account), number, line.last());
        }
    }
}

impl HomeTime {
    /// Notes an append whose lines have these numbers.
    fn begin(
        &mut self,
        tickets: RangeInclusive<u64>,
        lines: &[ShardLine],
        on_durable: OnDurable,
        is_for_all: bool,
    ) {
        let bytes = lines.iter().map(|line| line.0.len()).sum();
        self.ticket = tickets.end() + 1;
        self.bytes += bytes;
        self.appends.push_back(Appending {
            tickets,
            bytes,
            on_durable,
            at: None,
            is_for_all,
        });
    }

    fn remove(&mut self, place: usize) -> Option<Appending> {
        let append = self.appends.remove(place)?;
        self.bytes -= append.bytes;
        Some(append)
    }
}

/// The error about a line that is not stored.
fn refused(why: NotStored) -> StoreError {
    match why {
        NotStored::NotHome | NotStored::Moving => StoreError::Elsewhere,
        NotStored::Lost => StoreError::Untaken("it has lost what it acknowledged"),
        NotStored::Busy => StoreError::Busy,
        NotStored::Unavailable => StoreError::Untaken("it is full, or does not answer"),
    }
}

/// A place in the queue.
struct HomePlace(Option<Arc<HomeJournal>>);

impl Debug for HomePlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("HomePlace")
    }
}

impl Place for HomePlace {
    fn append(mut self: Box<Self>, entries: Vec<Entry>, on_durable: OnDurable) {
        if let Some(journal) = self.0.take() {
            journal.time.lock().places -= 1;
            journal.submit(entries, on_durable);
        }
    }
}

impl Drop for HomePlace {
    fn drop(&mut self) {
        if let Some(journal) = &self.0 {
            journal.time.lock().places -= 1;
        }
    }
}

/// The journal as its users have it; clones share one.
#[derive(Clone)]
pub(crate) struct SharedJournal(pub(crate) Arc<HomeJournal>);

impl Debug for SharedJournal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl Journal for SharedJournal {
    fn reserve(&self) -> Result<Box<dyn Place>, StoreError> {
        let mut time = self.0.time.lock();
        if time.is_over {
            return Err(StoreError::Elsewhere);
        }
        let parked = time.parked.as_ref().map_or(0, Vec::len);
        let is_full = time.places + time.appends.len() + parked >= WRITER_PERMITS_MAX;
        if is_full || time.bytes >= WRITER_BYTES_MAX {
            return Err(StoreError::Busy);
        }
        time.places += 1;
        Ok(Box::new(HomePlace(Some(Arc::clone(&self.0)))))
    }

    fn append(&self, entries: Vec<Entry>, on_durable: OnDurable) {
        self.0.submit(entries, on_durable);
    }

    fn replay(&self, take: &mut dyn FnMut(Replayed)) -> Result<Position, StoreError> {
        Ok(self.0.copy.lock().replay(take))
    }

    fn watch(&self, after: Position, watcher: Box<dyn Watcher>) -> Result<(), StoreError> {
        // The copy changes under its lock, and is handed to watchers afterwards.
        let copy = self.0.copy.lock();
        if copy.last() != after {
            return Err(StoreError::Compacted);
        }
        self.0.time.lock().watchers.push(watcher);
        Ok(())
    }

    fn compact_by(&self, snapshot: Arc<dyn Snapshot>) {
        self.0.time.lock().snapshot = Some(snapshot);
    }

    fn on_uncompacted(&self, report: OnUncompacted) {
        self.0.time.lock().on_uncompacted.get_or_insert(report);
    }

    fn failure(&self) -> Option<String> {
        let fault = self.0.copy.lock().fault();
        let over = self.0.is_over().then(|| StoreError::Elsewhere.to_string());
        fault.map(|fault| fault.to_string()).or(over)
    }

    fn unreadable(&self, number: Option<usize>, cause: &str) -> StoreError {
        unreadable(number, cause)
    }
}

impl Debug for HomeJournal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let time = self.time.lock();
        f.debug_struct("HomeJournal")
            .field("is_over", &time.is_over)
            .field("appends", &time.appends.len())
            .finish_non_exhaustive()
    }
}
