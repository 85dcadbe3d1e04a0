//! Plan of one route: what it is sent, and when. A state machine without clock, input and output.

use std::collections::{BTreeMap, BTreeSet};

use model::{OperationId, ParticipantId, TopicName};

use crate::QuietHours;

/// The least time between two notifications of a route about one proposer, in milliseconds. All
/// guests are one proposer.
pub const NOTIFY_GAP_MS: u64 = 60_000;

/// A proposal that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingProposal {
    /// Its id.
    pub id: OperationId,
    /// Its topic.
    pub topic: TopicName,
    /// The proposer.
    pub by: ParticipantId,
    /// The proposed tool, or the method if it calls none.
    pub tool: String,
    /// The server or participant that would run it, if it names one.
    pub server: Option<String>,
    /// When it was proposed, in Unix milliseconds.
    pub opened_ms: u64,
    /// When it ends without a decision, in Unix milliseconds.
    pub expires_ms: u64,
    /// Whether a participant looks at it.
    pub is_claimed: bool,
}

impl WaitingProposal {
    /// When half of its time is gone, in Unix milliseconds.
    fn half_ms(&self) -> u64 {
        let whole = self.expires_ms.saturating_sub(self.opened_ms);
        self.opened_ms.saturating_add(whole / 2)
    }
}

/// A route and its surroundings at one moment.
#[derive(Debug, Clone, Copy)]
pub struct RouteMoment<'a> {
    /// The time, in Unix milliseconds.
    pub now_ms: u64,
    /// The time that a proposal waits before it concerns the route, in milliseconds.
    pub after_ms: u64,
    /// The hours in which nothing is sent.
    pub quiet: Option<QuietHours>,
    /// The proposals that wait and concern the route once they have waited long enough, the oldest
    /// first.
    pub waiting: &'a [WaitingProposal],
    /// The notifications that may begin to be sent.
    pub places: usize,
    /// The accounts of proposers about whom one is being sent.
    pub busy: &'a BTreeSet<Box<str>>,
}

/// The occasion of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyEvent {
    /// Proposals wait that the route was not notified of.
    Waiting,
    /// Half of the time of proposals is gone.
    HalfTime,
    /// Proposals of several proposers have come in quiet hours.
    Summary,
    /// A person tries the route.
    Test,
}

impl NotifyEvent {
    /// The word in `event`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "proposal.waiting",
            Self::HalfTime => "proposal.half_time",
            Self::Summary => "proposal.summary",
            Self::Test => "test",
        }
    }
}

/// A notification that is to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedNotification {
    /// The occasion.
    pub event: NotifyEvent,
    /// The proposal that ends first of those that it is about.
    pub first: WaitingProposal,
    /// The proposals that it is about.
    pub about: Vec<OperationId>,
    /// The accounts of their proposers.
    pub accounts: BTreeSet<Box<str>>,
    /// The proposals of these proposers that concern the route now, named before or not.
    pub waiting: usize,
}

/// The result of a look at a route.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RouteStep {
    /// The notifications to send.
    pub planned: Vec<PlannedNotification>,
    /// When the next look is due, in Unix milliseconds. A place that becomes free, a change of
    /// proposals, of rights or of claims needs one at once.
    pub next_ms: Option<u64>,
}

/// The state of a route: what it was sent.
#[derive(Debug, Default)]
pub struct RoutePlan {
    /// The proposals that it was notified of, and those of them about whose half it needs nothing
    /// more.
    named: BTreeMap<OperationId, Reminder>,
    /// The time of the last notification about each proposer's proposals, by account.
    sent_ms: BTreeMap<Box<str>, u64>,
    /// Whether quiet hours have held something back.
    holds_back: bool,
}

/// The second notification about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reminder {
    Due,
    Done,
}

/// A proposal that is to be notified of now.
#[derive(Debug, Clone, Copy)]
struct DueProposal<'a> {
    proposal: &'a WaitingProposal,
    is_new: bool,
}

impl RoutePlan {
    /// Looks at a route: what is to be sent now counts as sent.
    pub fn step(&mut self, moment: &RouteMoment<'_>) -> RouteStep {
        self.forget(moment);
        let mut step = RouteStep::default();
        let due = self.due(moment, &mut step);
        let quiet = moment.quiet.filter(|quiet| quiet.has(moment.now_ms));
        if let Some(quiet) = quiet {
            self.holds_back |= !due.is_empty();
            if self.holds_back {
                step.wake(quiet.end_ms(moment.now_ms));
            }
        } else if self.holds_back {
            self.sum_up(moment, &due, &mut step);
        } else {
            self.notify(moment, &due, &mut step);
        }
        step
    }

    /// Takes back that the route was notified of proposals: they are due again.
    pub fn take_back(&mut self, about: &[OperationId]) {
        for id in about {
            self.named.remove(id);
        }
    }

    /// Forgets proposals that wait no more, and notifications that are older than the gap.
    fn forget(&mut self, moment: &RouteMoment<'_>) {
        let waiting: BTreeSet<OperationId> = moment.waiting.iter().map(|one| one.id).collect();
        self.named.retain(|id, _| waiting.contains(id));
        let now_ms = moment.now_ms;
        self.sent_ms.retain(|_, sent_ms| {
            // A clock that was set back counts from now on.
            *sent_ms = (*sent_ms).min(now_ms);
            now_ms - *sent_ms < NOTIFY_GAP_MS
        });
    }

    fn due<'a>(&self, moment: &RouteMoment<'a>, step: &mut RouteStep) -> Vec<DueProposal<'a>> {
        let mut due = Vec::new();
        for proposal in moment.waiting {
            if is_held_by_claim(moment, proposal) {
                continue;
            }
            let (is_new, at_ms) = match self.named.get(&proposal.id) {
                None => (true, concerns_ms(moment, proposal)),
                Some(Reminder::Due) => (false, proposal.half_ms()),
                Some(Reminder::Done) => continue,
            };
            if at_ms <= moment.now_ms {
                due.push(DueProposal { proposal, is_new });
            } else {
                step.wake(at_ms);
            }
        }
        due
    }

    /// One notification about everything that quiet hours have held back.
    fn sum_up(&mut self, moment: &RouteMoment<'_>, due: &[DueProposal<'_>], step: &mut RouteStep) {
        let mut free = Vec::new();
        for one in due {
            let account = one.proposal.by.account();
            match self.sent_ms.get(account) {
                Some(sent_ms) => step.wake(sent_ms.saturating_add(NOTIFY_GAP_MS)),
                None if moment.busy.contains(account) => {}
                None => free.push(*one),
            }
        }
        if moment.places == 0 && !free.is_empty() {
            return;
        }
        self.holds_back = false;
        let proposers: BTreeSet<&str> = free.iter().map(|one| one.proposal.by.account()).collect();
        let event = if proposers.len() > 1 {
            NotifyEvent::Summary
        } else {
            occasion(&free)
        };
        if let Some(summary) = self.plan(moment, event, &free) {
            step.planned.push(summary);
            step.wake(moment.now_ms.saturating_add(NOTIFY_GAP_MS));
        }
    }

    /// A notification about each proposer with something that is due.
    fn notify(&mut self, moment: &RouteMoment<'_>, due: &[DueProposal<'_>], step: &mut RouteStep) {
        let mut accounts: Vec<&str> = Vec::new();
        for one in due {
            let account = one.proposal.by.account();
            if !accounts.contains(&account) {
                accounts.push(account);
            }
        }
        for account in accounts {
            if let Some(sent_ms) = self.sent_ms.get(account) {
                step.wake(sent_ms.saturating_add(NOTIFY_GAP_MS));
                continue;
            }
            if moment.busy.contains(account) || step.planned.len() >= moment.places {
                continue;
            }
            let own = due
                .iter()
                .filter(|one| one.proposal.by.account() == account);
            let own: Vec<DueProposal<'_>> = own.copied().collect();
            step.planned.extend(self.plan(moment, occasion(&own), &own));
            // A reminder of what has just become known, and what comes meanwhile.
            step.wake(moment.now_ms.saturating_add(NOTIFY_GAP_MS));
        }
    }

    /// The notification about these proposals, which counts as sent.
    fn plan(
        &mut self,
        moment: &RouteMoment<'_>,
        event: NotifyEvent,
        due: &[DueProposal<'_>],
    ) -> Option<PlannedNotification> {
        let first = due.iter().min_by_key(|one| one.proposal.expires_ms)?;
        let accounts: BTreeSet<Box<str>> = due
            .iter()
            .map(|one| one.proposal.by.account().into())
            .collect();
        for DueProposal { proposal, .. } in due {
            let reminder = if proposal.half_ms() <= moment.now_ms {
                Reminder::Done
            } else {
                Reminder::Due
            };
            self.named.insert(proposal.id, reminder);
        }
        for account in &accounts {
            self.sent_ms.insert(account.clone(), moment.now_ms);
        }
        let concerned = moment.waiting.iter().filter(|one| {
            accounts.contains(one.by.account())
                && concerns_ms(moment, one) <= moment.now_ms
                && !is_held_by_claim(moment, one)
        });
        Some(PlannedNotification {
            event,
            first: first.proposal.clone(),
            about: due.iter().map(|one| one.proposal.id).collect(),
            waiting: concerned.count(),
            accounts,
        })
    }
}

impl RouteStep {
    /// Has the next look be no later than this, in Unix milliseconds.
    pub fn wake(&mut self, at_ms: u64) {
        self.next_ms = Some(self.next_ms.map_or(at_ms, |next| next.min(at_ms)));
    }
}

/// The occasion of one proposer's proposals.
fn occasion(due: &[DueProposal<'_>]) -> NotifyEvent {
    if due.iter().any(|one| one.is_new) {
        NotifyEvent::Waiting
    } else {
        NotifyEvent::HalfTime
    }
}

/// When a proposal concerns a route, in Unix milliseconds.
fn concerns_ms(moment: &RouteMoment<'_>, proposal: &WaitingProposal) -> u64 {
    proposal.opened_ms.saturating_add(moment.after_ms)
}

/// Whether a claim holds an escalation back.
fn is_held_by_claim(moment: &RouteMoment<'_>, proposal: &WaitingProposal) -> bool {
    moment.after_ms > 0 && proposal.is_claimed
}
