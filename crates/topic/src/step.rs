//! Step of a topic: one event in, all its effects out.

use std::sync::Arc;

use model::ProposalState;

use crate::{
    Handles, Topic,
    asks::Asking,
    decide::Deciding,
    effect::Effects,
    event::{Decision, Event},
    proposals::Ruling,
};

impl<H: Handles> Topic<H> {
    /// Takes one step. Pure: the same topic, time and event give the same effects, in the same order.
    ///
    /// `now_ms` is a steady clock in milliseconds; rate limits, proposals and parked operations depend on it.
    pub fn step(&mut self, now_ms: u64, event: Event<'_, H>) -> Effects<H> {
        let mut effects = Effects::default();
        let out = &mut effects;
        match event {
            Event::Join(join) => self.join(out, now_ms, join),
            Event::Leave { link } => self.leave(out, now_ms, link),
            Event::Revoke { participant } => self.revoke(out, now_ms, participant),
            Event::Regrant { participant, capabilities } => {
                self.regrant(out, now_ms, participant, capabilities, None);
            }
            Event::Configure { upstreams } => self.configure(out, now_ms, upstreams),
            Event::Serve { link, server, handle, capabilities } => {
                self.serve(out, now_ms, (link, server), handle, capabilities);
            }
            Event::Attach { link, server } => self.attach(link, server),
            Event::Detach { link, server } => self.detach(out, link, server),
            Event::Listed { server, scope, manifest, changed } => {
                self.listed(out, server, scope, manifest, changed);
            }
            Event::Request(request) => self.request(out, now_ms, request),
            Event::Resume(resume) => self.resume(out, now_ms, resume),
            Event::Wait { operation, proposal, until_ms } => {
                self.wait(out, now_ms, operation, proposal, until_ms);
            }
            Event::Say(say) => self.say(out, now_ms, say),
            Event::Announce { message, bytes, audience } => self.publish(out, message, bytes, audience),
            Event::Execute { proposal, operation, server, call } => {
                self.execute(out, proposal, operation, server, call);
            }
            Event::Propose { proposal, terms, content, held, park_ms } => {
                self.propose_held(out, now_ms, proposal, terms, content, (held, park_ms));
            }
            Event::Unproposable { held, refusal } => self.unproposable(out, now_ms, held, refusal),
            Event::Restore { proposal, terms, content, held, public } => {
                self.restore(now_ms, proposal, terms, content, (held, public));
            }
            Event::RestoreEnded { proposal, terms, content, held, end } => {
                self.restore_ended(now_ms, proposal, terms, content, (held, end));
            }
            Event::Closed { closed } => {
                closed.into_iter().for_each(|(until_ms, digest)| self.proposals.closed.add(until_ms, digest));
            }
            Event::Decide { proposal, by, outside, decision, fulfilment, ruling } => {
                let (state, reason) = match decision {
                    Decision::Approve { .. } => (ProposalState::Running, None),
                    Decision::Reject { reason } => (ProposalState::Rejected, reason),
                    Decision::Withdraw { reason } => (ProposalState::Withdrawn, reason),
                };
                let ruling = Ruling {
                    by: by.clone(),
                    state,
                    reason: reason.map(Arc::from),
                    handle: Some(ruling),
                    fulfilment: fulfilment.map(Arc::from),
                    requested: None,
                };
                self.decide(out, now_ms, Deciding { proposal, by, outside, decision, ruling });
            }
            Event::Stored { proposal } => self.stored(out, now_ms, proposal),
            Event::NotStored { proposal } => self.not_stored(out, now_ms, proposal),
            Event::Tick => {
                self.expire_due(out, now_ms);
                self.park_due(out, now_ms);
            }
            Event::Stop => self.stop(out, now_ms),
            Event::Ask { server, operation, tag, about, method, question } => {
                self.ask(out, now_ms, Asking { server, operation, tag, about, method, question });
            }
            Event::Answer { link, operation, end } => self.answer(out, now_ms, link, operation, end),
            Event::Cancel { link, which } => self.cancel(out, now_ms, link, which),
            Event::Notice { server, subject, level, notice } => {
                self.notice(out, server, subject, level, notice);
            }
            Event::Keep { kept } => self.ring.keep(kept),
        }
        effects
    }

    /// The time of the next [`Event::Tick`] that has effects, milliseconds.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let operations = self.deadlines.first().map(|(until_ms, _)| *until_ms);
        let proposals = self.proposals.next_deadline().map(|(until_ms, _)| until_ms);
        operations.into_iter().chain(proposals).min()
    }
}
