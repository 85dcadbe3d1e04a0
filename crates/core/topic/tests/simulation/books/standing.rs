//! Standing of participants, present or absent: capabilities, rate limits, and judgements.

use std::{collections::BTreeMap, sync::Arc};

use model::{Capabilities, KindRef, Narrowing, ParticipantId, RateLimit};
use topic::public_name;

use super::{Books, deals::Deal};
use crate::turn::Decided;

/// Standing of a participant, present or absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    /// `None` if it is revoked.
    pub(crate) granted: Option<Arc<Capabilities>>,
    pub(crate) bucket: Option<Bucket>,
    /// The bucket with which it left.
    pub(crate) worn: Option<Bucket>,
}

/// Tokens in millionths, to be exact.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    limit: RateLimit,
    tokens: u64,
    at_ms: u64,
}

impl Bucket {
    fn full(limit: RateLimit, now_ms: u64) -> Self {
        Self {
            limit,
            tokens: u64::from(limit.burst) * 60_000,
            at_ms: now_ms,
        }
    }

    fn take(&mut self, now_ms: u64) -> bool {
        let refill = (now_ms - self.at_ms) * u64::from(self.limit.per_minute);
        self.tokens = (self.tokens + refill).min(u64::from(self.limit.burst) * 60_000);
        self.at_ms = now_ms;
        let enough = self.tokens >= 60_000;
        self.tokens -= if enough { 60_000 } else { 0 };
        enough
    }
}

impl Books {
    pub(crate) fn granted(&self, participant: &ParticipantId) -> Option<&Arc<Capabilities>> {
        self.standing.get(participant)?.granted.as_ref()
    }

    /// Capabilities of a participant for what it does with this token.
    pub(crate) fn granted_with(
        &self,
        participant: &ParticipantId,
        token: Option<&Narrowing>,
    ) -> Option<Arc<Capabilities>> {
        Some(narrowed(self.granted(participant)?, token))
    }

    /// A participant joins with this limit.
    pub(crate) fn limit(
        &mut self,
        participant: &ParticipantId,
        rate: Option<RateLimit>,
        here: bool,
    ) {
        let now_ms = self.now_ms;
        let standing = self.standing.entry(participant.clone()).or_default();
        let same = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.limit) == rate;
        if here && same(&standing.bucket) {
            return;
        }
        let worn = if here || rate.is_none() {
            None
        } else {
            standing.worn.take()
        };
        let worn = worn.filter(|bucket| Some(bucket.limit) == rate);
        standing.bucket = worn.or_else(|| rate.map(|rate| Bucket::full(rate, now_ms)));
    }

    /// Its last link is gone.
    pub(crate) fn wear(&mut self, participant: &ParticipantId) {
        if let Some(standing) = self.standing.get_mut(participant) {
            standing.worn = standing.bucket.take().or(standing.worn.take());
        }
    }

    /// Whether the rate limit admits a participant now; takes a token.
    pub(crate) fn take_token(&mut self, participant: &ParticipantId, now_ms: u64) -> bool {
        let bucket = self
            .standing
            .get_mut(participant)
            .and_then(|standing| standing.bucket.as_mut());
        bucket.is_none_or(|bucket| bucket.take(now_ms))
    }

    /// Whether capabilities admit the proposed request as an envelope.
    fn covers_as_envelope(capabilities: &Capabilities, deal: &Deal, proposed: bool) -> bool {
        let to: Vec<&str> = deal.to.iter().map(|to| to.as_str()).collect();
        admits(capabilities, deal, proposed, deal.own.as_deref(), &to)
    }

    /// Whether capabilities admit the proposed request as a call of an MCP client at each
    /// addressee.
    fn covers_as_call(&self, capabilities: &Capabilities, deal: &Deal, proposed: bool) -> bool {
        if deal.to.is_empty() {
            return Self::covers_as_envelope(capabilities, deal, proposed);
        }
        deal.to.iter().all(|to| {
            let server = self
                .configured
                .iter()
                .find(|names| names.id == *to && !names.builtin);
            let public = match (server, &deal.public, &deal.own) {
                (_, Some(public), _) => Some(public.clone()),
                (Some(names), None, Some(own)) if deal.method != "resources/read" => {
                    Some(public_name(&names.prefix, own))
                }
                (_, None, own) => own.clone(),
            };
            admits(
                capabilities,
                deal,
                proposed,
                public.as_deref(),
                &[to.as_str()],
            )
        })
    }

    /// Whether a participant that is here could make the proposed request as an envelope.
    pub(crate) fn could_send(&self, by: &ParticipantId, deal: &Deal) -> bool {
        let granted = self.is_here(by).then(|| self.granted(by)).flatten();
        granted.is_some_and(|capabilities| Self::covers_as_envelope(capabilities, deal, false))
    }

    /// Whether a participant could make the proposed request, in the way in which it decides: an
    /// envelope is judged by its kind, any other decision by the public name.
    pub(crate) fn could(&self, decided: &Decided, deal: &Deal) -> bool {
        let inside = self
            .is_here(&decided.by)
            .then(|| self.granted(&decided.by))
            .flatten();
        let Some(whole) = inside.or(decided.outside.as_ref()) else {
            return false;
        };
        let granted = narrowed(whole, decided.token.as_ref());
        if decided.requested {
            Self::covers_as_envelope(&granted, deal, false)
        } else {
            self.covers_as_call(&granted, deal, false)
        }
    }

    /// Whether a participant with these capabilities could decide in one of the ways.
    pub(crate) fn could_decide(&self, granted: &Capabilities, deal: &Deal) -> bool {
        Self::covers_as_envelope(granted, deal, false) || self.covers_as_call(granted, deal, false)
    }

    /// Notes the capabilities by which the approvals of a participant are judged from now on.
    pub(crate) fn note_approver(&mut self, participant: &ParticipantId) {
        let granted = self.granted(participant).cloned();
        for deal in self.deals.values_mut().filter(|deal| deal.over.is_none()) {
            for one in deal.counted.iter_mut().filter(|one| one.by == *participant) {
                one.outside.clone_from(&granted);
            }
        }
    }

    /// Whether a token is good for a proposal of its bearer's own.
    pub(crate) fn is_in_scope(&self, token: Option<&Narrowing>, deal: &Deal) -> bool {
        token.is_none_or(|token| self.may_still(&token.to, deal))
    }

    /// Whether a participant with these capabilities could make a proposal.
    fn may_still(&self, capabilities: &Capabilities, deal: &Deal) -> bool {
        let held = deal.to.len() == 1 && self.covers_as_call(capabilities, deal, true);
        let requests = Self::covers_as_envelope(capabilities, deal, false)
            || self.covers_as_call(capabilities, deal, false);
        held || requests || Self::covers_as_envelope(capabilities, deal, true)
    }

    /// The capabilities of a participant have changed: proposals that it may no longer make must
    /// end.
    pub(crate) fn judge_deals(&mut self, participant: &ParticipantId) {
        let granted = self.granted(participant).cloned();
        let entitled = |deal: &Deal| {
            granted
                .as_ref()
                .is_some_and(|own| self.may_still(own, deal))
        };
        let own = self
            .deals
            .iter()
            .filter(|(_, deal)| deal.by == *participant && deal.may_be_recalled());
        let ends: Vec<_> = own
            .filter(|(_, deal)| !entitled(deal))
            .map(|(id, _)| *id)
            .collect();
        for id in ends {
            self.recall(id);
        }
    }

    pub(crate) fn standings(&self) -> BTreeMap<ParticipantId, Option<Arc<Capabilities>>> {
        self.standing
            .iter()
            .map(|(id, own)| (id.clone(), own.granted.clone()))
            .collect()
    }
}

fn narrowed(whole: &Arc<Capabilities>, token: Option<&Narrowing>) -> Arc<Capabilities> {
    match token {
        Some(token) => Arc::new(whole.within(&token.to)),
        None => Arc::clone(whole),
    }
}

fn admits(
    capabilities: &Capabilities,
    deal: &Deal,
    proposed: bool,
    context: Option<&str>,
    to: &[&str],
) -> bool {
    let kind = if proposed {
        KindRef::proposal(deal.method, context)
    } else {
        KindRef::request(deal.method, context)
    };
    kind.is_ok_and(|kind| capabilities.admits(kind, to))
}
