//! Owns coming and going: joins, leaves, cut-offs and changed capabilities.
//! Must not know requests beyond ending those of whoever goes.

use std::sync::Arc;

use model::{Capabilities, LinkId, OperationId, Outcome, ParticipantId};

use crate::{
    admission::{Verdict, judge, proposes},
    ear::Ear,
    effect::{Cause, Effect, Effects, End},
    event::Role,
    members::{Link, Member, Seat},
    operations::Way,
    rate::RateLimit,
    refusals,
    topic::Topic,
};

/// Who comes in.
pub(crate) struct Newcomer<'a> {
    pub(crate) link: LinkId,
    pub(crate) participant: &'a ParticipantId,
    pub(crate) role: Role,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) rate: Option<RateLimit>,
    pub(crate) ear: Option<Ear>,
    pub(crate) promotes: bool,
}

impl Topic {
    pub(crate) fn join(&mut self, effects: &mut Effects, now_ms: u64, newcomer: Newcomer<'_>) {
        let Newcomer { link, participant, role, capabilities, rate, ear, promotes } = newcomer;
        if self.members.link(link).is_some() {
            return;
        }
        let hidden = role == Role::Upstream && self.serves(participant);
        let replaced = self.replaced(participant, ear);
        // Links are numbered as they were accepted, and may come in otherwise.
        let is_late = replaced.is_some_and(|there| there > link);
        let may = if is_late { Err(Cause::Replaced) } else { self.may_join(participant, role, replaced) };
        if let Err(cause) = may {
            let refusal = Box::new(refusals::plain(cause));
            return effects.push(Effect::NotJoined { link, refusal, cause });
        }
        if let Some(older) = replaced {
            effects.push(Effect::Ended { link: older, why: End::Replaced });
            self.leave(effects, older);
        }
        if let Some(seat) = self.members.seat(participant).filter(|_| !hidden) {
            self.members.connect(link, Link::new(seat, ear, promotes));
            if let Some(member) = self.members.get_mut(seat) {
                member.set_rate(rate, now_ms);
            }
            return self.regrant(effects, participant, capabilities, Some(link));
        }
        let id = participant.clone();
        let bucket = rate.map(|rate| self.members.bucket(&id, rate, now_ms));
        let links = Vec::new();
        let seat =
            self.members.sit(Member { id: id.clone(), role, hidden, capabilities, bucket, links, open: 0 });
        self.members.connect(link, Link::new(seat, ear, promotes));
        if role == Role::Upstream {
            self.set_present(&id, Some(seat));
        }
        if !hidden {
            effects.push(Effect::Joined { participant: id });
        }
    }

    /// Whether this upstream is a participant that comes and goes by itself.
    pub(crate) fn serves(&self, participant: &ParticipantId) -> bool {
        let names = self.catalog.index(participant).and_then(|index| self.catalog.names(index));
        names.is_some_and(|names| names.serves)
    }

    /// The link that a newer one with this ear takes the place of.
    fn replaced(&self, participant: &ParticipantId, ear: Option<Ear>) -> Option<LinkId> {
        ear?;
        self.members.listener(self.members.get(self.members.seat(participant)?)?)
    }

    fn may_join(
        &self,
        participant: &ParticipantId,
        role: Role,
        replaced: Option<LinkId>,
    ) -> Result<(), Cause> {
        let (configured, serves) = (self.catalog.index(participant).is_some(), self.serves(participant));
        match role {
            Role::Upstream if !configured => return Err(Cause::Unknown),
            Role::Upstream if serves && self.members.server(participant).is_some() => {
                return Err(Cause::Taken);
            }
            Role::Upstream if serves => return Ok(()),
            // Nobody comes in under a server's name or the gateway's.
            Role::Caller if (configured && !serves) || participant.as_str() == model::GATEWAY => {
                return Err(Cause::Taken);
            }
            Role::Upstream | Role::Caller => {}
        }
        let member = self.members.seat(participant).and_then(|seat| self.members.get(seat));
        let links_max = self.limits.links_per_participant_max;
        match member {
            Some(member) if member.role != role => Err(Cause::Taken),
            Some(member) if replaced.is_none() && member.links.len() >= links_max => Err(Cause::Limit),
            None if self.members.len() >= self.limits.participants_max => Err(Cause::Limit),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn leave(&mut self, effects: &mut Effects, link: LinkId) {
        let Some(gone) = self.members.disconnect(link) else { return };
        self.end_open(effects, &gone.open);
        if self.members.get(gone.seat).is_some_and(|member| member.links.is_empty()) {
            self.unseat(effects, gone.seat);
        }
    }

    pub(crate) fn revoke(&mut self, effects: &mut Effects, participant: &ParticipantId) {
        let links = self.links(participant).to_vec();
        for link in links {
            // Its last words come before its end; after it, nothing names the link.
            effects.push(Effect::Ended { link, why: End::Revoked });
            self.leave(effects, link);
        }
        self.recall_of(effects, participant, true);
    }

    /// An upstream is not configured any more. Of a participant that served, only what it served goes.
    pub(crate) fn dismiss(&mut self, effects: &mut Effects, upstream: &ParticipantId) {
        if !self.serves(upstream) {
            return self.revoke(effects, upstream);
        }
        let member = self.members.server(upstream).and_then(|seat| self.members.get(seat));
        for link in member.map(|member| member.links.clone()).unwrap_or_default() {
            self.leave(effects, link);
        }
    }

    /// Ends what a link that is gone had open: its requests stop at their upstreams, the asks that waited for
    /// it are refused.
    fn end_open(&mut self, effects: &mut Effects, open: &[OperationId]) {
        for operation in self.operations.in_order(open) {
            match self.operations.get(operation).map(|open| open.way) {
                None => {}
                Some(Way::Ask { .. }) => self.refuse_ask(effects, operation, Cause::Moot),
                Some(way) => {
                    if let Some(open) = self.operations.remove(operation).filter(|open| open.way.is_call()) {
                        let stop = |upstream| Effect::CancelAt { operation, upstream };
                        self.to_upstream(effects, open.upstream, stop);
                    }
                    self.call_is_over(effects, way, Outcome::Cancelled);
                }
            }
        }
    }

    /// A participant without links goes. An upstream takes its names with it, and what it had open is ended.
    fn unseat(&mut self, effects: &mut Effects, seat: Seat) {
        let Some(member) = self.members.stand(seat) else { return };
        if member.role == Role::Upstream {
            self.set_present(&member.id, None);
            for operation in self.operations.which(|open| open.upstream == seat) {
                match self.operations.get(operation).map(|open| open.way) {
                    None => {}
                    Some(Way::Ask { .. }) => self.refuse_ask(effects, operation, Cause::Moot),
                    Some(_) => self.refuse_call(effects, operation, Cause::UpstreamDown),
                }
            }
            self.forget_views(effects, &member.id);
        }
        if !member.hidden {
            effects.push(Effect::Left { participant: member.id });
        }
    }

    fn set_present(&mut self, upstream: &ParticipantId, seat: Option<Seat>) {
        let index = self.catalog.index(upstream);
        if let Some(place) = index.and_then(|index| self.present.get_mut(usize::from(index.0))) {
            *place = seat;
        }
    }

    pub(crate) fn regrant(
        &mut self,
        effects: &mut Effects,
        participant: &ParticipantId,
        capabilities: Arc<Capabilities>,
        newest: Option<LinkId>,
    ) {
        let Some(seat) = self.members.seat(participant) else { return };
        let Some(member) = self.members.get(seat) else { return };
        if Arc::ptr_eq(&member.capabilities, &capabilities) || member.capabilities == capabilities {
            return;
        }
        let (role, links, listener) = (member.role, member.links.clone(), self.members.listener(member));
        let before = self.sights(&links);
        if let Some(member) = self.members.get_mut(seat) {
            member.capabilities = capabilities;
        }
        match role {
            Role::Caller => self.withdraw_calls(effects, &links),
            Role::Upstream => self.withdraw_asks(effects, seat),
        }
        self.recall_of(effects, participant, false);
        // Whoever comes in is welcomed anyway.
        effects.extend(listener.filter(|_| listener != newest).map(|link| Effect::Regranted { link }));
        self.tell_changes(effects, &before);
    }

    /// Ends the calls of these links that are no longer admitted.
    fn withdraw_calls(&mut self, effects: &mut Effects, links: &[LinkId]) {
        for link in links {
            let Some(own) = self.members.link(*link) else { continue };
            for operation in self.operations.in_order(&own.open) {
                if self.is_withdrawn_call(*link, operation) {
                    self.refuse_call(effects, operation, Cause::Withdrawn);
                }
            }
        }
    }

    fn is_withdrawn_call(&self, link: LinkId, operation: OperationId) -> bool {
        let (Some(member), Some(open)) = (self.members.of_link(link), self.operations.get(operation)) else {
            return false;
        };
        let upstream = self.members.get(open.upstream).map(|upstream| upstream.id.as_str());
        let (granted, method, context) =
            (&member.capabilities, open.method.as_str(), open.context.as_deref());
        let admitted = |at: &str| judge(granted, method, context, at) == Verdict::Admit;
        upstream.is_some_and(|at| match open.way {
            Way::Call => !admitted(at),
            Way::Held { .. } => !admitted(at) && !proposes(granted, method, context, at),
            // It runs on the approver's authority, and what was approved in time stays approved.
            Way::Run { .. } | Way::Ask { .. } => false,
        })
    }

    /// Ends the asks of an upstream that are no longer admitted.
    fn withdraw_asks(&mut self, effects: &mut Effects, seat: Seat) {
        for operation in self.operations.which(|open| open.upstream == seat && open.way.is_ask()) {
            let withdrawn = self.operations.get(operation).is_some_and(|open| {
                let asker = self.members.get(seat);
                let caller = self.members.of_link(open.link);
                let admitted = asker.zip(caller).zip(open.kind()).is_some_and(|((asker, caller), kind)| {
                    asker.capabilities.admits(kind, &[caller.id.as_str()])
                });
                !admitted
            });
            if withdrawn {
                self.refuse_ask(effects, operation, Cause::Withdrawn);
            }
        }
    }
}
