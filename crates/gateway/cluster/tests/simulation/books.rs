//! Books: independent, much simpler accounts of what must hold, each with a name.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{AppendId, HomeRecord, JournalHead, NodeLife, Shard, ShardSubject};

use crate::line::Meaning;
use crate::log::Stored;

/// One epoch of a shard in the log.
#[derive(Debug, Default)]
struct EpochBook {
    home: Option<NodeLife>,
    is_over: bool,
    /// Whether all of its messages were removed.
    is_emptied: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    epochs: BTreeMap<ShardSubject, EpochBook>,
    /// The sequence to which the log was set back.
    pub(crate) kept: Option<u64>,
    /// Messages that the log has lost, and does not have again.
    pub(crate) lost: Vec<Stored>,
    /// Shards of which a loss was reported.
    pub(crate) reported: BTreeSet<Shard>,
    /// Shards of which a person has accepted a loss.
    pub(crate) accepted: BTreeSet<Shard>,
    /// Times that the server got the request of each proposal.
    runs: BTreeMap<u64, u32>,
    /// Lines of which the topic has learned that they are durable.
    pub(crate) acknowledged: BTreeSet<Meaning>,
    /// Changes whose callers were answered.
    pub(crate) answered: BTreeSet<u64>,
    /// Changes that were answered and must be in force everywhere.
    pub(crate) confirmed: BTreeSet<u64>,
    /// Times that each request was answered.
    settled: BTreeMap<u64, u32>,
    /// Requests whose door is gone.
    gone: BTreeSet<u64>,
    /// Requests of all doors.
    asked: BTreeSet<u64>,
    /// Refresh tokens that are in use, by account.
    flights: BTreeMap<&'static str, u64>,
    pub(crate) tally: BTreeMap<&'static str, u64>,
}

impl Books {
    pub(crate) fn count(&mut self, name: &'static str) {
        *self.tally.entry(name).or_default() += 1;
    }

    /// One epoch can append: after its beginning only its home does, until one message ends it; the
    /// next one follows its end.
    pub(crate) fn appended(&mut self, stored: &Stored, author: AppendId) {
        self.count("appends");
        let head = stored.head();
        self.lost
            .retain(|lost| lost.subject != stored.subject || lost.head() != head);
        if self.kept.is_some() {
            return;
        }
        let subject = &stored.subject;
        if self
            .epochs
            .get(subject)
            .is_some_and(|epoch| epoch.is_emptied)
        {
            // Nothing but a beginning expects no message, and its node finds those of later epochs.
            let is_begun = matches!(stored.message.record, HomeRecord::Begun { .. });
            assert!(is_begun, "book epochs: {stored:?} is far too late");
            return self.count("late beginnings");
        }
        let is_first = !self.epochs.contains_key(subject);
        if let HomeRecord::Begun { .. } = stored.message.record {
            let before = ShardSubject {
                shard: subject.shard.clone(),
                epoch: subject.epoch - 1,
            };
            let follows_end = self.epochs.get(&before).is_some_and(|epoch| epoch.is_over);
            assert!(
                is_first && (subject.epoch == 1 || follows_end),
                "book epochs: {stored:?} begins"
            );
            self.count("epochs");
        }
        let epoch = self.epochs.entry(subject.clone()).or_default();
        if is_first {
            epoch.home = Some(author.incarnation);
        }
        let ends = matches!(stored.message.record, HomeRecord::Fenced { .. });
        assert!(!epoch.is_over, "book epochs: {stored:?} follows the end");
        assert!(
            ends || epoch.home == Some(author.incarnation),
            "book epochs: {stored:?} by {author:?}"
        );
        epoch.is_over = ends;
    }

    /// Whether an epoch of this process's began before the log lost messages. Its beginning may be
    /// stored anew after that, if the append is repeated.
    pub(crate) fn began_before_loss(&self, subject: &ShardSubject, process: NodeLife) -> bool {
        let epoch = self.epochs.get(subject);
        epoch.is_some_and(|epoch| epoch.home == Some(process))
    }

    /// These subjects have no message any more.
    pub(crate) fn emptied(&mut self, subjects: &[ShardSubject]) {
        for subject in subjects {
            self.epochs.entry(subject.clone()).or_default().is_emptied = true;
        }
    }

    /// A shard has stopped, because messages are lost.
    pub(crate) fn stopped(&mut self, shard: Shard) {
        self.count("stopped");
        assert!(
            self.kept.is_some(),
            "book losses: {shard:?} stops, and nothing is lost"
        );
        self.reported.insert(shard);
    }

    /// The log has lost messages: all behind this sequence.
    pub(crate) fn lose(&mut self, kept: u64, lost: Vec<Stored>) {
        self.kept = Some(kept);
        self.lost.extend(lost);
        self.count("losses");
    }

    pub(crate) fn has_lost(&self, shard: &Shard) -> bool {
        self.lost.iter().any(|one| one.subject.shard == *shard)
    }

    /// Whether one of these places is lost: who knows it can know of the loss.
    pub(crate) fn knows_of_loss(&self, shard: &Shard, heads: &[JournalHead]) -> bool {
        let mut lost = self.lost.iter().filter(|one| one.subject.shard == *shard);
        lost.any(|one| heads.contains(&one.head()))
    }

    /// A proposal runs at most once.
    pub(crate) fn run(&mut self, proposal: u64, may_be_excused: bool) {
        self.count("runs");
        let runs = self.runs.entry(proposal).or_default();
        *runs += 1;
        let is_again = *runs > 1;
        assert!(
            !is_again || may_be_excused,
            "book runs: {proposal} runs again"
        );
        if is_again {
            self.count("runs again, excused");
        }
    }

    pub(crate) fn asks(&mut self, request: u64) {
        self.asked.insert(request);
    }

    pub(crate) fn leaves(&mut self, request: u64) {
        self.gone.insert(request);
    }

    /// Each request settles once.
    pub(crate) fn settles(&mut self, request: u64) {
        self.count("settled");
        let settled = self.settled.entry(request).or_default();
        *settled += 1;
        assert!(
            *settled == 1,
            "book settles: request {request} settles again"
        );
    }

    pub(crate) fn all_settled(&self) {
        for request in &self.asked {
            let is_settled = self.settled.contains_key(request);
            assert!(
                is_settled || self.gone.contains(request),
                "book settles: {request} never settles"
            );
        }
    }

    /// A refresh token is used by one request at a time.
    pub(crate) fn flies(&mut self, account: &'static str, flight: u64) {
        self.count("flights");
        let other = self.flights.insert(account, flight);
        // The intent of the other one may be among what is lost.
        let may_be_excused = self.has_lost(&Shard::Common);
        assert!(
            other.is_none() || may_be_excused,
            "book flights: {flight} of {account} beside {other:?}"
        );
    }

    pub(crate) fn lands(&mut self, account: &'static str, flight: u64) {
        if self.flights.get(account) == Some(&flight) {
            self.flights.remove(account);
        }
    }

    /// A node admits a request while a change is confirmed that it has not applied.
    pub(crate) fn admits(&self, node: &str, applied: &BTreeSet<u64>, is_excused: bool) {
        let missing = self.confirmed.difference(applied).next();
        assert!(
            missing.is_none() || is_excused,
            "book admission: {node} admits without {missing:?}"
        );
    }
}
