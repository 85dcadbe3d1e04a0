//! Joining and leaving: links of callers, seats of servers, revocation, and changed capabilities.

use std::sync::Arc;

use model::{Capabilities, LinkId, OperationId, Outcome, ParticipantId};

use crate::{
    Handles, Topic,
    admission::proposes,
    effect::{Cause, Effect, Ended, RoomEffect, Verdict},
    event::{Join, Joining, Seating},
    members::{Link, Member, Seat},
    operations::State,
    refusals,
    replay::Cursor,
};

impl<H: Handles> Topic<H> {
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
        let replaced = listener.and(self.listener(participant));
        // Links have numbers in the order of acceptance, and may join in another order.
        let is_late = replaced.is_some_and(|there| there > link);
        let may = if is_late {
            Err(Cause::Replaced)
        } else {
            self.may_join(participant, replaced)
        };
        if let Err(cause) = may {
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
        (entering.listener, entering.promotes, entering.notified) = (listener, promotes, notified);
        entering.pauses = pauses;
        if self.ring.kept() != crate::RingLimits::default() {
            entering.own_mut().since = Some(self.ring.newcomer());
        }
        self.members.connect(link, entering);
        if seated.is_some() {
            self.regrant(participant, Arc::clone(&capabilities), Some(link));
        }
        if listener.is_some() {
            self.enter(link, since);
        }
        if seated.is_none() {
            if let Some(member) = self.members.get(seat) {
                self.effects.publish(RoomEffect::Joined(member.person()));
            }
            // Its capabilities may be fewer than when it made its proposals.
            self.recall_of(participant, Some(&capabilities));
        }
    }

    fn sit(
        &mut self,
        participant: &ParticipantId,
        capabilities: Arc<Capabilities>,
        rate: Option<model::RateLimit>,
    ) -> Seat {
        let bucket = rate.map(|rate| self.members.bucket(participant, rate, self.now_ms));
        let member = Member::new(participant.clone(), None, capabilities);
        self.members.sit(Member { bucket, ..member })
    }

    /// Enters a listener, which gets its welcome with the replay. The announcement of its own
    /// presence follows.
    fn enter(&mut self, link: LinkId, since: Option<Cursor>) {
        let roster = self.members.roster();
        let Some((own, member)) = self.members.linked(link) else {
            return;
        };
        let (Some(listener), Some(handle)) = (own.listener, own.handle.clone()) else {
            return;
        };
        let history = self.ring.kept().history;
        let id = member.id.as_str();
        let replay = (history > 0).then(|| {
            self.ring.since(id, since, history, |audience| {
                audience.includes(link, id, listener)
            })
        });
        let person = member.person();
        self.effects.publish(RoomEffect::Enter {
            link,
            handle,
            person,
            listener,
            roster,
            replay,
        });
    }

    fn may_join(&self, participant: &ParticipantId, replaced: Option<LinkId>) -> Result<(), Cause> {
        // No caller joins under a server's name or the gateway's.
        let is_server = self.catalog.index(participant).is_some() && !self.serves(participant);
        if is_server || participant.as_str() == model::GATEWAY {
            return Err(Cause::Taken);
        }
        let member = self.members.of_id(participant);
        match member {
            Some(member) if !member.is_caller() => Err(Cause::Taken),
            Some(member)
                if replaced.is_none()
                    && member.links.len() >= self.limits.links_per_participant_max =>
            {
                Err(Cause::Limit)
            }
            None if self.members.len() >= self.limits.participants_max => Err(Cause::Limit),
            Some(_) | None => Ok(()),
        }
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
            let differs = self
                .members
                .get(seat)
                .is_some_and(|member| member.capabilities != capabilities);
            if let Some(member) = self.members.get_mut(seat) {
                member.server = Some(handle);
            }
            self.members.set_capabilities(seat, capabilities);
            if differs {
                self.announce_changed(seat);
            }
            return self.withdraw_asks(seat);
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
        let person = member.person();
        let seat = self.members.sit(member);
        self.members.connect(link, Link::new(seat, None));
        self.seat_in(index, Some(seat));
        if !hidden {
            self.effects.publish(RoomEffect::Joined(person));
        }
    }

    /// Takes that a server runs, or does not. Its seat stays.
    pub(crate) fn available(&mut self, server: &ParticipantId, runs: bool) {
        let Some(seat) = self
            .catalog
            .index(server)
            .and_then(|index| self.seat_at(index))
        else {
            return;
        };
        let Some(member) = self.members.get(seat).filter(|member| !member.hidden) else {
            return;
        };
        if member.away != runs {
            return;
        }
        let person = member.person();
        self.members.set_away(seat, !runs);
        self.effects.publish(if runs {
            RoomEffect::Joined(person)
        } else {
            RoomEffect::Left(person.id)
        });
    }

    /// Announces a participant's new capabilities, if others see it.
    fn announce_changed(&mut self, seat: Seat) {
        if let Some(member) = self.members.get(seat).filter(|member| member.is_seen()) {
            self.effects.publish(RoomEffect::Changed(member.person()));
        }
    }

    /// Whether a server is a participant that joins and leaves by itself.
    pub(crate) fn serves(&self, participant: &ParticipantId) -> bool {
        let names = self.catalog.names_of(participant);
        names.is_some_and(|names| names.serves)
    }

    pub(crate) fn leave(&mut self, link: LinkId) {
        let caller = self
            .members
            .of_link(link)
            .filter(|member| member.is_caller());
        if let Some(participant) = caller.map(|member| member.id.clone()) {
            self.close_link(link, None);
            self.fail_asked(&participant);
        }
    }

    /// Ends a link, and with the last its participant's presence.
    fn close_link(&mut self, link: LinkId, why: Option<Ended>) {
        let Some(own) = self.members.link(link) else {
            return;
        };
        // The last messages of the link come before its end; no effect names it afterwards.
        if own.listener.is_some() {
            self.effects.publish(RoomEffect::Exit { link, why });
        }
        if why != Some(Ended::Revoked) {
            self.outlive(link);
        }
        for id in self.open_of(link) {
            self.mirror_end(id, Outcome::Cancelled, None);
        }
        let Some(mut gone) = self.members.disconnect(link) else {
            return;
        };
        for id in self.operations.in_order(&gone.open) {
            self.end_open(id, None);
        }
        if let Some(own) = gone.own.take() {
            for (server, uri) in own.subscriptions {
                self.interests.unsubscribe(&server, &uri, link, None);
            }
        }
        if let Some(handle) = gone.handle {
            self.effects.push(Effect::Closed { handle, why });
        }
        if self
            .members
            .get(gone.seat)
            .is_some_and(|member| member.links.is_empty())
        {
            self.unseat(gone.seat);
        }
    }

    /// Has the calls of approved proposals go on without the link on which they were approved, as
    /// after an approval over the API: the approval holds, and the proposer waits for the outcome.
    fn outlive(&mut self, link: LinkId) {
        let Some(own) = self.gateway_seat().and_then(|seat| self.server_link(seat)) else {
            return;
        };
        for id in self.open_of(link) {
            let Some(open) = self
                .operations
                .get_mut(id)
                .filter(|open| open.is_approved_in_room())
            else {
                continue;
            };
            // The name is one of the link's: no client cancels it by that any more.
            (open.link, open.tag) = (own, None);
            self.members.finish(link, id);
            self.members.begin(own, id);
        }
    }

    pub(crate) fn revoke(&mut self, participant: &ParticipantId) {
        let own = self
            .members
            .of_id(participant)
            .filter(|member| member.is_caller());
        let mut links = own.map(|member| member.links.clone()).unwrap_or_default();
        // They are unordered, and the order of effects must follow from the state alone.
        links.sort_unstable();
        for link in links {
            self.close_link(link, Some(Ended::Revoked));
        }
        self.departures.forget(participant);
        self.fail_asked(participant);
        self.recall_of(participant, None);
        self.end_tasks_of(participant);
    }

    /// Removes a server that is no longer configured. Of a participant that served, only its server
    /// side leaves.
    pub(crate) fn dismiss(&mut self, server: &ParticipantId) {
        let member = self
            .members
            .server(server)
            .and_then(|seat| self.members.get(seat));
        for link in member
            .map(|member| member.links.clone())
            .unwrap_or_default()
        {
            self.close_link(link, None);
        }
    }

    /// Ends an operation whose link or server is gone: refuses a question, and refuses a call for
    /// this cause, or cancels it.
    fn end_open(&mut self, id: OperationId, cause: Option<Cause>) {
        match (self.operations.get(id).map(|open| open.state), cause) {
            (None, _) => {}
            (Some(State::Asked { .. }), _) => self.refuse_ask(id, Cause::Moot),
            (Some(_), Some(cause)) => self.refuse_call(id, cause),
            (Some(_), None) => self.cancel_call(id),
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
        let seen = member.is_seen();
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
            self.end_tasks_of_guest(&id);
        } else {
            self.forget_subscriptions(&id);
            self.forget_views(&id);
            self.set_tasks_aside(&id);
        }
        if seen {
            self.effects.publish(RoomEffect::Left(id));
        }
    }

    pub(crate) fn regrant(
        &mut self,
        participant: &ParticipantId,
        capabilities: Arc<Capabilities>,
        newest: Option<LinkId>,
    ) {
        let seat = self.members.seat(participant);
        let Some((seat, member)) = seat.and_then(|seat| Some((seat, self.members.get(seat)?)))
        else {
            // The participant is absent, but may have proposals.
            return self.recall_of(participant, Some(&capabilities));
        };
        if Arc::ptr_eq(&member.capabilities, &capabilities) || member.capabilities == capabilities {
            return;
        }
        let is_caller = member.is_caller();
        let mut links = member.links.clone();
        let listener = member.listener;
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
        if let Some(link) = listener.filter(|_| listener != newest) {
            let roster = self.members.roster();
            if let Some(member) = self.members.get(seat) {
                self.effects.publish(RoomEffect::Renew {
                    link,
                    person: member.person(),
                    roster,
                });
            }
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

    fn is_withdrawn_call(&self, link: LinkId, id: OperationId) -> bool {
        let (Some(member), Some(open)) = (self.members.of_link(link), self.operations.get(id))
        else {
            return false;
        };
        let server = self
            .members
            .get(open.server)
            .map(|server| server.id.as_str());
        let granted = &member.capabilities;
        let method = open.method.as_str();
        let context = open.context.as_deref();
        let admitted = |at: &str| open.is_admitted(granted, at);
        server.is_some_and(|at| match open.state {
            State::Delivered { proposal: None }
            | State::Paused { proposal: None }
            | State::Kept => !admitted(at),
            State::Held { .. } => !admitted(at) && !proposes(granted, method, context, at),
            // A call of an approved proposal runs on the approver's authority, and the approval
            // holds. The others are about the caller's own proposals, or are a server's.
            State::Delivered { proposal: Some(_) }
            | State::Paused { proposal: Some(_) }
            | State::Parked { .. }
            | State::Waiting { .. }
            | State::Asked { .. } => false,
        })
    }
}
