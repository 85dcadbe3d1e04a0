//! Step of a topic: one event in, all its effects out.

use std::sync::Arc;

use crate::{Handles, Topic, effect::Effects, event::Event, proposals::Ruling};

/// The time of a step, on two clocks: a promise in hours and minutes ends by whichever is first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// A steady clock, in milliseconds: rate limits, proposals and parked operations depend on it.
    /// It may stand, as while the machine sleeps, or jump forward; an earlier time than that of the
    /// step before counts as that.
    pub steady_ms: u64,
    /// The wall clock, in milliseconds: proposals depend on it too. It goes on while the machine
    /// sleeps, and may jump. Any time will do while [`Topic::next_wall_deadline_ms`] is `None`.
    pub wall_ms: u64,
}

impl<H: Handles> Topic<H> {
    /// Takes one step. Pure: the same topic, time and event give the same effects, in the same
    /// order.
    pub fn step(&mut self, now: Now, event: Event<'_, H>) -> Effects<H> {
        self.now_ms = self.now_ms.max(now.steady_ms);
        self.wall_ms = now.wall_ms;
        self.departures.begin(self.now_ms);
        let at_stake = self.claims_at_stake(&event);
        match event {
            Event::Join(join) => self.join(join),
            Event::Leave { link } => self.leave(link),
            Event::Revoke { participant } => self.revoke(participant),
            Event::Disown { participant } => {
                self.ring.disown(participant.as_str());
                self.proposals.disown(participant);
                self.drop_claims_of(participant);
                self.cancel_tasks_of(participant);
            }
            Event::Regrant {
                participant,
                capabilities,
            } => {
                self.regrant(participant, capabilities, None);
            }
            Event::Brake { participant, brake } => self.brake(participant, brake),
            Event::Configure(configure) => self.configure(configure),
            Event::Available { server, runs } => self.available(server, runs),
            Event::Attach { link, server } => self.attach(link, server),
            Event::Detach {
                link,
                server,
                keeps_lists,
            } => self.detach(link, server, keeps_lists),
            Event::Listed {
                server,
                scope,
                manifest,
                changed,
            } => {
                self.listed(server, scope, manifest, changed);
            }
            Event::Request(request) => self.request(request),
            Event::Resume(resume) => self.resume(resume),
            Event::Wait {
                operation,
                proposal,
                until_ms,
            } => {
                self.wait(operation, proposal, until_ms);
            }
            Event::Say(say) => self.say(say),
            Event::Announce {
                message,
                bytes,
                audience,
            } => self.publish(message, bytes, audience),
            Event::Execute {
                proposal,
                operation,
                server,
                call,
            } => {
                self.execute(proposal, operation, server, call);
            }
            Event::Propose {
                proposal,
                terms,
                content,
                held,
                park_ms,
            } => {
                self.propose_held(proposal, *terms, content, held, park_ms);
            }
            Event::ProposePlan(plan) => self.propose_plan(plan),
            Event::RunStep(step) => self.run_step(step),
            Event::Unproposable { held, end } => self.unproposable(held, end),
            Event::Restore(restore) => self.restore(restore),
            Event::Closed { closed } => {
                for (until_ms, digest) in closed {
                    self.proposals.closed.add(until_ms, digest);
                }
            }
            Event::Decide {
                proposal,
                by,
                outside,
                narrowing,
                decision,
                fulfilment,
                amended,
                ruling,
            } => {
                let mut decided = Ruling::new(by.clone(), decision, Some(ruling));
                decided.outside = outside.cloned();
                decided.narrowing = narrowing.cloned();
                decided.fulfilment = fulfilment.map(Arc::from);
                decided.amended = amended;
                self.decide(proposal, decided);
            }
            Event::Claim(claiming) => self.claim(claiming),
            Event::Describe {
                proposal,
                digest,
                content,
                bytes,
            } => {
                self.describe(proposal, digest, content, bytes);
            }
            Event::Written { proposal, stored } => self.written(proposal, stored),
            Event::Tick => {
                self.warn_due();
                self.expire_due();
                self.end_due_claims();
                self.park_due();
                self.expire_tasks();
            }
            Event::Stop => self.stop(),
            Event::Ask(ask) => self.ask(ask),
            Event::Answer {
                link,
                operation,
                end,
            } => self.answer(link, operation, end),
            Event::Proceed { operation, work } => self.proceed(operation, work),
            Event::Cancel { link, which } => self.cancel(link, which),
            Event::Notice {
                server,
                subject,
                level,
                notice,
            } => {
                self.notice(server, subject, level, notice);
            }
            Event::MayBecomeTask { operation } => self.reserve_task_place(operation),
            Event::Task(task) => self.open_task(*task),
            Event::TaskWritten { task, stored } => self.task_written(task, stored),
            Event::TaskChanged {
                task,
                over,
                until_ms,
            } => self.task_changed(task, over, until_ms),
            Event::SessionLost { server, session } => self.lose_tasks(server, session),
        }
        self.review_claims(&at_stake);
        std::mem::take(&mut self.effects)
    }

    /// The time on the steady clock of the next [`Event::Tick`] that has effects, milliseconds.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let at_ms = |deadline: Option<u64>| deadline.unwrap_or(u64::MAX);
        let first_ms = at_ms(self.deadlines.next_ms())
            .min(at_ms(self.proposals.next_deadline_ms()))
            .min(at_ms(self.claims.next_end_ms()))
            .min(at_ms(self.tasks.next_deadline_ms()));
        (first_ms < u64::MAX).then_some(first_ms)
    }

    /// The time on the wall clock of the next [`Event::Tick`] that has effects, whatever the steady
    /// clock says then, milliseconds.
    pub fn next_wall_deadline_ms(&self) -> Option<u64> {
        self.proposals.next_wall_deadline_ms()
    }
}
