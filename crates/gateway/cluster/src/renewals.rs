//! Renewals: a refresh token is used by one request at a time, whose intent is durable before it.
//!
//! Token endpoints that rotate refresh tokens take a second use for theft and revoke the whole
//! family (RFC 9700, section 4.14.2).

use std::sync::Arc;

use crate::effect::{HomeEffect, NotStored};
use crate::home::{Home, HomeState};
use crate::homes::Homes;
use crate::queue::Queued;
use crate::record::{CommonEntry, HomeLine, HomeRecord, StoredMessage};
use crate::renewal::{Renewal, RenewalStep, Renewals};
use crate::shard::Shard;
use crate::timing::DRIFT_PART;

impl<R: HomeLine> Homes<R> {
    /// A refresh token is to be used. Callers that ask meanwhile wait for the same request.
    pub(crate) fn renew(&mut self, account: Arc<str>, ticket: u64) {
        let (shard, now_ms) = (Shard::Common, self.now_ms());
        let why = match self.home_mut(&shard) {
            None => Some(NotStored::NotHome),
            Some(home) => home.refusal(now_ms),
        };
        if let Some(why) = why {
            return self.push(HomeEffect::NotStored { shard, ticket, why });
        }
        if let Some(home) = self.home_mut(&shard)
            && let Some(renewal) = home.renewals.open.get_mut(&account)
        {
            return renewal.tickets.push(ticket);
        }
        self.record_renewal(account, vec![ticket]);
    }

    fn record_renewal(&mut self, account: Arc<str>, tickets: Vec<u64>) {
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        let renewal = Renewal {
            flight: 0,
            step: RenewalStep::Recording { late: None },
            tickets,
        };
        home.renewals.open.insert(Arc::clone(&account), renewal);
        let entry = CommonEntry::Renewing { account };
        self.enqueue(&Shard::Common, Queued::silent(entry));
    }

    /// Ends a request that is over: its tokens are stored before the end of the intent, unless a
    /// later intent is there. Then the token of this one is not the latest any more.
    pub(crate) fn renewed(&mut self, account: Arc<str>, flight: u64, line: Option<R>) {
        let latest = self.common.flights.get(&account).copied();
        if latest.is_some_and(|latest| latest > flight) {
            return self.push(over(account, flight, false));
        }
        let takes = |home: &mut Home<R>| match home.state {
            HomeState::Serving => true,
            HomeState::Moving => home.queue.has_fence(),
            HomeState::Stopped(_) => false,
        };
        let Some(home) = self
            .home_mut(&Shard::Common)
            .and_then(|home| takes(home).then_some(home))
        else {
            return self.push(HomeEffect::NotRenewed {
                account,
                flight,
                line,
            });
        };
        if home.renewals.stored.get(&account) == Some(&flight) {
            return self.push(over(account, flight, true));
        }
        let is_latest = latest == Some(flight);
        if is_latest && home.renewals.is_late(&account, line.as_ref()) {
            return;
        }
        if home.renewals.ends(&account, flight, line.as_ref()) {
            home.end_use(account, line);
            self.send_next(&Shard::Common);
        }
    }

    /// Intents and ends that are durable now.
    pub(crate) fn renewals_stored(&mut self, stored: &StoredMessage<R>) {
        let HomeRecord::Lines(entries) = &stored.message.record else {
            return;
        };
        for entry in entries {
            match entry {
                CommonEntry::Renewing { account } => {
                    self.renewal_recorded(account, stored.message.number);
                }
                CommonEntry::Renewed { account } => self.renewal_over(account),
                _ => {}
            }
        }
    }

    fn renewal_recorded(&mut self, account: &Arc<str>, flight: u64) {
        let renewal_ms = self.config.renewal_ms;
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        // From when the intent was sent: a successor counts from its own beginning, which is later
        // than the intent, however late the acknowledgement comes.
        let before_ms = home.acked_ms.saturating_add(renewal_ms);
        let Some(renewal) = home.renewals.open.get_mut(account) else {
            return;
        };
        renewal.flight = flight;
        let account = Arc::clone(account);
        if let RenewalStep::Recording { late } = &mut renewal.step
            && let Some(late) = late.take()
        {
            renewal.step = RenewalStep::Ending {
                known: true,
                line: Some(late.clone()),
                ends: 1,
            };
            return home.end_use(account, Some(late));
        }
        renewal.step = RenewalStep::Flying {
            until_ms: before_ms,
        };
        self.push(HomeEffect::Renew {
            account,
            flight,
            before_ms,
        });
    }

    fn renewal_over(&mut self, account: &Arc<str>) {
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        let Some(renewal) = home.renewals.open.get_mut(account) else {
            return;
        };
        let RenewalStep::Ending { known, ends, .. } = &mut renewal.step else {
            return;
        };
        *ends = ends.saturating_sub(1);
        if *ends > 0 {
            return;
        }
        let known = *known;
        let flight = renewal.flight;
        let tickets = std::mem::take(&mut renewal.tickets);
        home.renewals.open.remove(account);
        let account = Arc::clone(account);
        if known {
            home.renewals.stored.insert(Arc::clone(&account), flight);
        } else if !tickets.is_empty() {
            return self.record_renewal(account, tickets);
        }
        self.push(HomeEffect::RenewalOver {
            account,
            flight,
            tickets,
            known,
        });
    }

    /// Requests of the former home may be under way still.
    pub(crate) fn inherit_renewals(&mut self) {
        let renewal_ms = self.config.renewal_ms;
        let waits_ms = renewal_ms.saturating_add(renewal_ms / DRIFT_PART);
        let until_ms = self.now_ms().saturating_add(waits_ms);
        let renewing = self.common.renewing.iter();
        let open: Vec<_> = renewing
            .filter_map(|account| Some((Arc::clone(account), *self.common.flights.get(account)?)))
            .collect();
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        for (account, flight) in open {
            let renewal = Renewal {
                flight,
                step: RenewalStep::Flying { until_ms },
                tickets: Vec::new(),
            };
            home.renewals.open.insert(account, renewal);
        }
    }

    /// Ends the renewals of which nothing more can come in time. A result that comes later is
    /// stored if no other request was begun meanwhile.
    pub(crate) fn end_renewals(&mut self) {
        let now_ms = self.now_ms();
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        let mut over = Vec::new();
        for (account, renewal) in &mut home.renewals.open {
            if matches!(renewal.step, RenewalStep::Flying { until_ms } if until_ms <= now_ms) {
                renewal.step = RenewalStep::Ending {
                    known: false,
                    line: None,
                    ends: 1,
                };
                over.push(Arc::clone(account));
            }
        }
        for account in over {
            let entry = CommonEntry::Renewed { account };
            self.enqueue(&Shard::Common, Queued::silent(entry));
        }
    }

    /// Gives results that may not be stored back to the runner, as the home takes nothing more.
    pub(crate) fn give_results_back(&mut self, shard: &Shard) {
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        let open = std::mem::take(&mut home.renewals.open);
        for (account, renewal) in open {
            let line = match renewal.step {
                RenewalStep::Ending {
                    known: true, line, ..
                } => line,
                RenewalStep::Recording { late: Some(late) } => Some(late),
                _ => continue,
            };
            self.push(HomeEffect::NotRenewed {
                account,
                flight: renewal.flight,
                line,
            });
        }
    }
}

impl<R: HomeLine> Home<R> {
    /// Has the end of a use of a refresh token stored, with the new tokens before it.
    fn end_use(&mut self, account: Arc<str>, line: Option<R>) {
        let line = line.map(CommonEntry::Line);
        for entry in line.into_iter().chain([CommonEntry::Renewed { account }]) {
            self.queue.push_before_fence(Queued::silent(entry));
        }
    }
}

/// The answer to a result that is handed in.
fn over<R>(account: Arc<str>, flight: u64, known: bool) -> HomeEffect<R> {
    HomeEffect::RenewalOver {
        account,
        flight,
        tickets: Vec::new(),
        known,
    }
}

impl<R: Clone> Renewals<R> {
    /// Notes the late tokens of the use before one that is not recorded yet; returns whether they
    /// are such.
    fn is_late(&mut self, account: &Arc<str>, result: Option<&R>) -> bool {
        let renewal = self.open.get_mut(account);
        let Some(RenewalStep::Recording { late }) = renewal.map(|one| &mut one.step) else {
            return false;
        };
        *late = late.take().or(result.cloned());
        true
    }

    /// Notes the result of a flight; returns whether it is to be stored.
    fn ends(&mut self, account: &Arc<str>, flight: u64, result: Option<&R>) -> bool {
        let ending = |ends| RenewalStep::Ending {
            known: true,
            line: result.cloned(),
            ends,
        };
        let Some(renewal) = self.open.get_mut(account) else {
            let renewal = Renewal {
                flight,
                step: ending(1),
                tickets: Vec::new(),
            };
            self.open.insert(Arc::clone(account), renewal);
            return true;
        };
        let ends = match renewal.step {
            _ if renewal.flight != flight => return false,
            // A later intent, or the same result again.
            RenewalStep::Recording { .. } | RenewalStep::Ending { known: true, .. } => {
                return false;
            }
            RenewalStep::Flying { .. } => 1,
            RenewalStep::Ending { ends, .. } => ends + 1,
        };
        renewal.step = ending(ends);
        true
    }
}
