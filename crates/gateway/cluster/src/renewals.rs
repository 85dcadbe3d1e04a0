//! Renewals: a refresh token is used by one request at a time, whose intent is durable before it.
//!
//! Token endpoints that rotate refresh tokens take a second use for theft and revoke the whole
//! family (RFC 9700, section 4.14.2).

use std::sync::Arc;

use crate::effect::{HomeEffect, NotStored};
use crate::home::{Queued, Renewal};
use crate::homes::Homes;
use crate::record::{CommonEntry, HomeLine, HomeRecord, StoredMessage};
use crate::shard::Shard;
use crate::timing::DRIFT_PART;

impl<R: HomeLine> Homes<R> {
    /// A refresh token is to be used. Callers that ask meanwhile wait for the same request.
    pub(crate) fn renew(&mut self, account: Arc<str>, ticket: u64) {
        let shard = Shard::Common;
        let Some(home) = self.home_mut(&shard).filter(|home| home.is_serving()) else {
            let why = NotStored::NotHome;
            return self.push(HomeEffect::NotStored { shard, ticket, why });
        };
        if let Some((_, tickets)) = home.renewals.get_mut(&account) {
            return tickets.push(ticket);
        }
        self.record_renewal(account, vec![ticket]);
    }

    fn record_renewal(&mut self, account: Arc<str>, tickets: Vec<u64>) {
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        home.renewals
            .insert(Arc::clone(&account), (Renewal::Recording, tickets));
        let entry = CommonEntry::Renewing { account };
        self.enqueue(
            &Shard::Common,
            Queued::Entry {
                entry,
                ticket: None,
            },
        );
    }

    /// A request is over; its tokens are stored before the end of the intent.
    pub(crate) fn renewed(&mut self, account: Arc<str>, line: Option<R>) {
        let Some(home) = self
            .home_mut(&Shard::Common)
            .filter(|home| home.is_serving())
        else {
            return;
        };
        if let Some(line) = line {
            let entry = CommonEntry::Line(line);
            home.queue.push_back(Queued::Entry {
                entry,
                ticket: None,
            });
        }
        match home.renewals.get_mut(&account) {
            Some((renewal @ Renewal::Flying { .. }, _)) => {
                *renewal = Renewal::Ending { known: true }
            }
            _ => return self.send_next(&Shard::Common),
        }
        let entry = CommonEntry::Renewed { account };
        self.enqueue(
            &Shard::Common,
            Queued::Entry {
                entry,
                ticket: None,
            },
        );
    }

    /// Intents and ends that are durable now.
    pub(crate) fn renewals_stored(&mut self, stored: &StoredMessage<R>) {
        let HomeRecord::Lines(entries) = &stored.message.record else {
            return;
        };
        for entry in entries {
            match entry {
                CommonEntry::Renewing { account } => self.renewal_recorded(account),
                CommonEntry::Renewed { account } => self.renewal_over(account),
                _ => {}
            }
        }
    }

    fn renewal_recorded(&mut self, account: &Arc<str>) {
        let renewal_ms = self.config.renewal_ms;
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        // From when the intent was sent: a successor counts from its own beginning, which is later
        // than the intent, however late the acknowledgement comes.
        let before_ms = home.acked_ms + renewal_ms;
        let Some((renewal, _)) = home.renewals.get_mut(account) else {
            return;
        };
        *renewal = Renewal::Flying {
            until_ms: before_ms,
        };
        let account = Arc::clone(account);
        self.push(HomeEffect::Renew { account, before_ms });
    }

    fn renewal_over(&mut self, account: &Arc<str>) {
        let over = self
            .home_mut(&Shard::Common)
            .and_then(|home| home.renewals.remove(account));
        let Some((renewal, tickets)) = over else {
            return;
        };
        let account = Arc::clone(account);
        match renewal {
            Renewal::Ending { known: false } if !tickets.is_empty() => {
                self.record_renewal(account, tickets);
            }
            Renewal::Ending { known } => {
                self.push(HomeEffect::RenewalOver {
                    account,
                    tickets,
                    known,
                });
            }
            Renewal::Recording | Renewal::Flying { .. } => {}
        }
    }

    /// Requests of the former home may be under way still.
    pub(crate) fn inherit_renewals(&mut self) {
        let renewal_ms = self.config.renewal_ms;
        let until_ms = self.now_ms() + renewal_ms + renewal_ms / DRIFT_PART;
        let open: Vec<_> = self.common.renewing.iter().cloned().collect();
        if let Some(home) = self.home_mut(&Shard::Common) {
            for account in open {
                let flying = Renewal::Flying { until_ms };
                home.renewals.insert(account, (flying, Vec::new()));
            }
        }
    }

    /// Ends the renewals of which nothing more can come.
    pub(crate) fn end_renewals(&mut self) {
        let now_ms = self.now_ms();
        let Some(home) = self.home_mut(&Shard::Common) else {
            return;
        };
        let mut over = Vec::new();
        for (account, (renewal, _)) in &mut home.renewals {
            if matches!(renewal, Renewal::Flying { until_ms, .. } if *until_ms <= now_ms) {
                *renewal = Renewal::Ending { known: false };
                over.push(Arc::clone(account));
            }
        }
        for account in over {
            let entry = CommonEntry::Renewed { account };
            self.enqueue(
                &Shard::Common,
                Queued::Entry {
                    entry,
                    ticket: None,
                },
            );
        }
    }
}
