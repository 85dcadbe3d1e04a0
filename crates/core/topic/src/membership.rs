//! Joining and leaving: links of callers, seats of servers, revocation, and changed capabilities.

use std::sync::Arc;

use model::{Capabilities, LinkId, OperationId, Outcome, ParticipantId};

use crate::{
    Handles, Topic,
    admission::proposes,
    effect::{Cause, Effect, Ended, RoomEffect, Verdict},
    event::{Join, Joining, Seating},
    interests::OwnResource,
    members::{Link, Member, Seat},
    operations::State,
    refusals,
    replay::Cursor,
};

impl<H: Handles> Topic<H> {
    /// Takes a link of a caller into the topic, and its participant with the first.
    pub(crate) fn join(&mut self, join: Join<'_, H>) {
        let Join {
            link,
            handle,
            participant,
            capabilities,
            rate,
            joining,
        } = join;
        let Joining {
            listener,
            since,
            promotes,
            notified,
            pauses,
        } = joining;
        if self.members.link(link).is_some() {
            return;
        }
        // One link of a participant listens to the room: the newest.
        let mut replaced = None;
        if listener.is_some() {
            replaced = self.listener(participant);
        }
        if let Err(cause) = self.may_join(link, participant, replaced) {
            self.effects.verdict = Some(Verdict::Refused(cause));
            self.effects.refusal = Some(refusals::plain(cause));
            return;
        }
        if let Some(older) = replaced {
            self.close_link(older, Some(Ended::Replaced));
        }
        let seated = self.members.seat(participant);
        let seat = match seated {
            Some(seat) => {
                if let Some(member) = self.members.get_mut(seat) {
                    member.set_rate(rate, self.now_ms);
                }
                seat
            }
            None => self.sit(participant, Arc::clone(&capabilities), rate),
        };
        let mut entering = Link::new(seat, Some(handle));
        entering.listener = listener;
        entering.promotes = promotes;
        entering.notified = notified;
        entering.pauses = pauses;
        // A room that keeps no messages has none to read.
        if self.ring.kept() != crate::RingLimits::default() {
            entering.holdings_mut().since = Some(self.ring.newcomer());
        }
        self.members.connect(link, entering);
        // A participant that is here may come with other capabilities than before.
        if seated.is_some() {
            self.regrant(participant, Arc::clone(&capabilities), Some(link));
        }
        if listener.is_some() {
            self.enter(link, since);
        }
        if seated.is_none() {
            if let Some(member) = self.members.get(seat) {
                self.effects
                    .publish(RoomEffect::Joined(self.members.person(member)));
            }
            // Its capabilities may be fewer than when it made its proposals.
            self.recall_of(participant, Some(&capabilities));
        }
    }

    /// Gives a participant a seat, with the bucket that it left with.
    fn sit(
        &mut self,
        participant: &ParticipantId,
        capabilities: Arc<Capabilities>,
        rate: Option<model::RateLimit>,
    ) -> Seat {
        let mut member = Member::new(participant.clone(), None, capabilities);
        if let Some(rate) = rate {
            member.bucket = Some(self.members.bucket(participant, rate, self.now_ms));
        }
        self.members.sit(member)
    }

    /// Enters a listener, which gets its welcome with the replay. The announcement of its own
    /// presence follows.
    fn enter(&mut self, link: LinkId, since: Option<Cursor>) {
        let roster = self.members.roster();
        let Some((at_link, member)) = self.members.linked(link) else {
            return;
        };
        let Some(listener) = at_link.listener else {
            return;
        };
        let Some(handle) = at_link.handle.clone() else {
            return;
        };
        let history = self.ring.kept().history;
        let mut replay = None;
        if history > 0 {
            let id = member.id.as_str();
            replay = Some(self.ring.since(id, since, history, |audience| {
                audience.includes(link, id, listener)
            }));
        }
        let person = self.members.person(member);
        self.effects.publish(RoomEffect::Enter {
            link,
            handle,
            person,
            listener,
            roster,
            replay,
        });
    }

    /// Whether a link may join for a participant, in place of an older one if it replaces that.
    fn may_join(
        &self,
        link: LinkId,
        participant: &ParticipantId,
        replaced: Option<LinkId>,
    ) -> Result<(), Cause> {
        // Links have numbers in the order of acceptance, and may join in another order.
        if replaced.is_some_and(|there| there > link) {
            return Err(Cause::Replaced);
        }
        // No caller joins under a server's name or the gateway's.
        let is_server = self.catalog.index(participant).is_some() && !self.serves(participant);
        if is_server || participant.as_str() == model::GATEWAY {
            return Err(Cause::Taken);
        }
        let Some(member) = self.members.of_id(participant) else {
            return if self.members.len() >= self.limits.participants_max {
                Err(Cause::Limit)
            } else {
                Ok(())
            };
        };
        if !member.is_caller() {
            return Err(Cause::Taken);
        }
        let is_full = member.links.len() >= self.limits.links_per_participant_max;
        // One that replaces another takes its place.
        if is_full && replaced.is_none() {
            return Err(Cause::Limit);
        }
        Ok(())
    }

    /// Seats a configured server: beside its participant's own seat, if that joins and leaves by
    /// itself. A server that already has its seat gets another handle and other capabilities.
    pub(crate) fn serve(&mut self, seating: Seating<'_, H>) {
        let Seating {
            link,
            server,
            handle,
            capabilities,
        } = seating;
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        if let Some(seat) = self.members.server(server) {
            return self.serve_anew(seat, handle, capabilities);
        }
        if self.members.link(link).is_some() {
            return;
        }
        let hidden = self.serves(server);
        if !hidden {
            // A participant had the name before the server was configured.
            self.revoke(server);
        }
        let member = Member {
            hidden,
            ..Member::new(server.clone(), Some(handle), capabilities)
        };
        let person = self.members.person(&member);
        let seat = self.members.sit(member);
        self.members.connect(link, Link::new(seat, None));
        self.seat_in(index, Some(seat));
        if !hidden {
            self.effects.publish(RoomEffect::Joined(person));
        }
    }

    /// Gives a seated server another handle and other capabilities.
    fn serve_anew(&mut self, seat: Seat, handle: H::Server, capabilities: Arc<Capabilities>) {
        let Some(member) = self.members.get_mut(seat) else {
            return;
        };
        member.server = Some(handle);
        let differs = member.capabilities != capabilities;
        self.members.set_capabilities(seat, capabilities);
        if differs {
            self.announce_changed(seat);
        }
        self.withdraw_asks(seat);
    }

    /// Announces that a server runs from now on, or does not. Its seat stays.
    pub(crate) fn available(&mut self, server: &ParticipantId, runs: bool) {
        let index = self.catalog.index(server);
        let Some(seat) = index.and_then(|index| self.seat_at(index)) else {
            return;
        };
        let Some(member) = self.members.get(seat) else {
            return;
        };
        // The server side of a participant has no presence beside the participant's.
        let is_known_already = member.away != runs;
        if member.hidden || is_known_already {
            return;
        }
        let person = self.members.person(member);
        self.members.set_away(seat, !runs);
        self.effects.publish(if runs {
            RoomEffect::Joined(person)
        } else {
            RoomEffect::Left(person.id)
        });
    }

    /// Announces a participant's new capabilities, or its pause, if others see it.
    pub(crate) fn announce_changed(&mut self, seat: Seat) {
        if let Some(member) = self.members.get(seat)
            && member.is_seen()
        {
            self.effects
                .publish(RoomEffect::Changed(self.members.person(member)));
        }
    }

    /// Whether a server is a participant that joins and leaves by itself.
    pub(crate) fn serves(&self, participant: &ParticipantId) -> bool {
        let names = self.catalog.names_of(participant);
        names.is_some_and(|names| names.serves)
    }

    /// Ends a link of a caller that leaves. The links of servers end with the configuration.
    pub(crate) fn leave(&mut self, link: LinkId) {
        let Some(member) = self.members.of_link(link) else {
            return;
        };
        if !member.is_caller() {
            return;
        }
        let participant = member.id.clone();
        self.close_link(link, None);
        self.fail_asked(&participant);
    }

    /// Ends a link, and with the last its participant's presence.
    fn close_link(&mut self, link: LinkId, why: Option<Ended>) {
        let Some(at_link) = self.members.link(link) else {
            return;
        };
        // The last messages of the link come before its end; no effect names it afterwards.
        if at_link.listener.is_some() {
            self.effects.publish(RoomEffect::Exit { link, why });
        }
        // One that may not be here any more stops what it has begun.
        if why != Some(Ended::Revoked) {
            self.outlive(link);
        }
        // While the link is there: a mirror finds its participant by it.
        for id in self.open_of(link) {
            self.mirror_end(id, Outcome::Cancelled, None);
        }
        let Some(gone) = self.members.disconnect(link) else {
            return;
        };
        for id in self.operations.in_order(&gone.open) {
            self.end_open(id, None);
        }
        if let Some(holdings) = gone.holdings {
            for OwnResource { server, uri } in holdings.subscriptions {
                self.interests.unsubscribe(&server, &uri, link, None);
            }
        }
        if let Some(handle) = gone.handle {
            self.effects.push(Effect::Closed { handle, why });
        }
        let Some(member) = self.members.get(gone.seat) else {
            return;
        };
        if member.links.is_empty() {
            self.unseat(gone.seat);
        }
    }

    /// Has the calls of approved proposals go on without the link on which they were approved, as
    /// after an approval over the API: the approval holds, and the proposer waits for the outcome.
    fn outlive(&mut self, link: LinkId) {
        let Some(gateway) = self.gateway_link() else {
            return;
        };
        for id in self.open_of(link) {
            let Some(open) = self.operations.get_mut(id) else {
                continue;
            };
            if !open.is_approved_in_room() {
                continue;
            }
            open.link = gateway;
            // The name is one of the link's: no client cancels it by that any more.
            open.tag = None;
            self.members.finish(link, id);
            self.members.begin(gateway, id);
        }
    }

    /// Ends a participant's access to the topic.
    pub(crate) fn revoke(&mut self, participant: &ParticipantId) {
        let mut links = Vec::new();
        if let Some(member) = self.members.of_id(participant)
            && member.is_caller()
        {
            links.clone_from(&member.links);
        }
        // They are unordered, and the order of effects must follow from the state alone.
        links.sort_unstable();
        for link in links {
            self.close_link(link, Some(Ended::Revoked));
        }
        self.departures.forget(participant);
        self.fail_asked(participant);
        self.note_approver(participant, None);
        self.note_claimant(participant, None);
        self.recall_of(participant, None);
        self.cancel_tasks_of(participant);
    }

    /// Removes a server that is no longer configured. Of a participant that served, only its server
    /// side leaves.
    pub(crate) fn dismiss(&mut self, server: &ParticipantId) {
        let Some(seat) = self.members.server(server) else {
            return;
        };
        if let Some(link) = self.server_link(seat) {
            self.close_link(link, None);
        }
    }

    /// Ends an operation whose link or server is gone: refuses a question, and refuses a call for
    /// this cause, or cancels it.
    fn end_open(&mut self, id: OperationId, cause: Option<Cause>) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        if open.state.is_ask() {
            return self.refuse_ask(id, Cause::Moot);
        }
        match cause {
            Some(cause) => self.refuse_call(id, cause),
            None => self.cancel_call(id),
        }
    }

    /// Removes a participant without links. The names of a server go with it, and its open
    /// operations end.
    fn unseat(&mut self, seat: Seat) {
        let Some(member) = self.members.get(seat) else {
            return;
        };
        let id = member.id.clone();
        let is_caller = member.is_caller();
        let was_seen = member.is_seen();
        if !is_caller {
            if let Some(index) = self.catalog.index(&id) {
                self.seat_in(index, None);
            }
            for operation in self.operations.which(|open| open.server == seat) {
                self.end_open(operation, Some(Cause::UpstreamDown));
            }
        }
        self.members.free(seat);
        if is_caller {
            self.departures.note(&id, self.now_ms);
            self.cancel_tasks_of_guest(&id);
        } else {
            self.forget_subscriptions(&id);
            self.forget_views(&id);
            self.set_tasks_aside(&id);
        }
        if was_seen {
            self.effects.publish(RoomEffect::Left(id));
        }
    }

    /// Gives a participant other capabilities, and ends what they do not admit any more. `newest` is
    /// the link that is joining with them, if one is.
    pub(crate) fn regrant(
        &mut self,
        participant: &ParticipantId,
        capabilities: Arc<Capabilities>,
        newest: Option<LinkId>,
    ) {
        self.note_approver(participant, Some(&capabilities));
        self.note_claimant(participant, Some(&capabilities));
        let Some(seat) = self.members.seat(participant) else {
            // The participant is absent, but may have proposals.
            return self.recall_of(participant, Some(&capabilities));
        };
        let Some(member) = self.members.get(seat) else {
            return;
        };
        if Arc::ptr_eq(&member.capabilities, &capabilities) || member.capabilities == capabilities {
            return;
        }
        let is_caller = member.is_caller();
        let listener = member.listener;
        let mut links = member.links.clone();
        // They are unordered, and the order of effects must follow from the state alone.
        links.sort_unstable();
        let before = self.seen_by(&links);
        self.members
            .set_capabilities(seat, Arc::clone(&capabilities));
        if is_caller {
            self.withdraw_calls(&links);
        } else {
            self.withdraw_asks(seat);
        }
        self.recall_of(participant, Some(&capabilities));
        // A link that is joining gets its welcome later.
        if listener != newest
            && let Some(link) = listener
            && let Some(member) = self.members.get(seat)
        {
            self.effects.publish(RoomEffect::Renew {
                link,
                person: self.members.person(member),
                roster: self.members.roster(),
            });
        }
        self.announce_changed(seat);
        self.notify_changes(before, &[]);
    }

    /// Ends the calls of these links that are no longer admitted.
    fn withdraw_calls(&mut self, links: &[LinkId]) {
        for link in links {
            for id in self.open_of(*link) {
                if self.is_withdrawn_call(*link, id) {
                    self.refuse_call(id, Cause::Withdrawn);
                } else if self.is_about_withdrawn(*link, id) {
                    self.refuse_about_task(id);
                }
            }
        }
    }

    /// Ends a request about a task that its caller may not have any more, as if there were none.
    fn refuse_about_task(&mut self, id: OperationId) {
        if let Some(call) = self.stop_call(id, Outcome::Refused) {
            self.refuse(call, refusals::of_task(), Cause::Withdrawn);
        }
    }

    /// Whether the capabilities of a link's participant do not admit an open call any more.
    fn is_withdrawn_call(&self, link: LinkId, id: OperationId) -> bool {
        let Some(member) = self.members.of_link(link) else {
            return false;
        };
        let Some(open) = self.operations.get(id) else {
            return false;
        };
        let Some(server) = self.members.get(open.server) else {
            return false;
        };
        let granted = &member.capabilities;
        let method = open.method.as_str();
        let context = open.context.as_deref();
        let server = server.id.as_str();
        match open.state {
            State::Delivered { proposal: None }
            | State::Paused { proposal: None }
            | State::Kept => !open.is_admitted(granted, server),
            State::Held { .. } => {
                !open.is_admitted(granted, server) && !proposes(granted, method, context, server)
            }
            // A call of an approved proposal runs on the approver's authority, and the approval
            // holds. The others are about the caller's own proposals, or are a server's.
            State::Delivered { proposal: Some(_) }
            | State::Paused { proposal: Some(_) }
            | State::Parked { .. }
            | State::Waiting { .. }
            | State::Asked { .. } => false,
        }
    }
}
