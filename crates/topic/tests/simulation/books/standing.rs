//! Standing of participants, present or absent: capabilities, rate limits, and judgements.

use std::{collections::BTreeMap, sync::Arc};

use model::{Capabilities, KindRef, ParticipantId, RateLimit};
use topic::public_name;

use super::{Books, deals::Deal};

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
        Self { limit, tokens: u64::from(limit.burst) * 60_000, at_ms: now_ms }
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

    /// A participant joins with this limit.
    pub(crate) fn limit(&mut self, participant: &ParticipantId, rate: Option<RateLimit>, here: bool) {
        let now_ms = self.now_ms;
        let standing = self.standing.entry(participant.clone()).or_default();
        let same = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.limit) == rate;
        if here && same(&standing.bucket) {
            return;
        }
        let worn = if here || rate.is_none() { None } else { standing.worn.take() };
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
        let bucket = self.standing.get_mut(participant).and_then(|standing| standing.bucket.as_mut());
        bucket.is_none_or(|bucket| bucket.take(now_ms))
    }

    /// Whether capabilities admit the proposed request, as an envelope or as a call of an MCP client.
    pub(crate) fn covers(&self, capabilities: &Capabilities, deal: &Deal, proposed: bool) -> bool {
        let admits = |context: Option<&str>, to: &[&str]| {
            let kind = match proposed {
                true => KindRef::proposal(deal.method, context),
                false => KindRef::request(deal.method, context),
            };
            kind.is_ok_and(|kind| capabilities.admits(kind, to))
        };
        let to: Vec<&str> = deal.to.iter().map(|to| to.as_str()).collect();
        if admits(deal.own.as_deref(), &to) {
            return true;
        }
        let [server] = &deal.to[..] else { return false };
        let Some(names) = self.configured.iter().find(|names| names.id == *server && !names.builtin) else {
            return false;
        };
        let public = match (&deal.public, &deal.own) {
            (Some(public), _) => public.clone(),
            (None, Some(own)) if deal.method == "resources/read" => own.clone(),
            (None, Some(own)) => public_name(&names.prefix, own),
            (None, None) => return false,
        };
        admits(Some(&public), &[server.as_str()])
    }

    /// Whether a participant could make the proposed request.
    pub(crate) fn could(&self, by: &ParticipantId, outside: Option<&Arc<Capabilities>>, deal: &Deal) -> bool {
        let inside = self.is_here(by).then(|| self.granted(by)).flatten();
        inside.or(outside).is_some_and(|capabilities| self.covers(capabilities, deal, false))
    }

    /// The capabilities of a participant have changed: proposals that it may no longer make must end.
    pub(crate) fn judge_deals(&mut self, participant: &ParticipantId) {
        let granted = self.granted(participant).cloned();
        let entitled = |deal: &Deal| {
            let granted = granted.as_ref();
            granted.is_some_and(|own| self.covers(own, deal, true) || self.covers(own, deal, false))
        };
        let own = self.deals.iter().filter(|(_, deal)| deal.by == *participant && deal.may_be_recalled());
        let ends: Vec<_> = own.filter(|(_, deal)| !entitled(deal)).map(|(id, _)| *id).collect();
        for id in ends {
            self.recall(id);
        }
    }

    pub(crate) fn standings(&self) -> BTreeMap<ParticipantId, Option<Arc<Capabilities>>> {
        self.standing.iter().map(|(id, own)| (id.clone(), own.granted.clone())).collect()
    }
}
