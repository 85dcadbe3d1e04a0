//! Owns the one way in: an event, and what follows from it.
//! Must not know more than which part of the topic an event concerns.

use crate::{effect::Effects, event::Event, execute::Execution, membership::Newcomer, topic::Topic};

impl Topic {
    /// Takes one step. Pure: the same topic, time and event give the same effects, in the same order.
    ///
    /// `now_ms` is a steady clock in milliseconds; only rate limits and proposals look at it.
    pub fn step(&mut self, now_ms: u64, event: Event<'_>) -> Effects {
        let mut effects = Effects::new();
        match event {
            Event::Join { link, participant, role, capabilities, rate, ear, promotes } => {
                let newcomer = Newcomer { link, participant, role, capabilities, rate, ear, promotes };
                self.join(&mut effects, now_ms, newcomer);
            }
            Event::Leave { link } => self.leave(&mut effects, link),
            Event::Revoke { participant } => self.revoke(&mut effects, participant),
            Event::Regrant { participant, capabilities } => {
                self.regrant(&mut effects, participant, capabilities, None);
            }
            Event::Configure { upstreams } => self.configure(&mut effects, upstreams),
            Event::Attach { link, upstream } => self.attach(link, upstream),
            Event::Detach { link, upstream } => self.detach(&mut effects, link, upstream),
            Event::Listed { upstream, view, manifest, told } => {
                self.listed(&mut effects, upstream, view, manifest, told);
            }
            Event::Request { link, operation, method, target } => {
                self.request(&mut effects, now_ms, link, operation, method, target);
            }
            Event::Say { link, kind, to } => self.say(&mut effects, now_ms, link, kind, to),
            Event::Execute { link, operation, upstream, method, context, proposal } => {
                let run = Execution { link, operation, upstream, method, context, proposal };
                self.execute(&mut effects, run);
            }
            Event::Release { operation } => self.release(&mut effects, operation),
            Event::Propose { proposal, terms, held } => self.propose(&mut effects, proposal, terms, held),
            Event::Restore { proposal, terms } => self.restore(proposal, terms),
            Event::Decide { proposal, by, outside, decision } => {
                self.decide(&mut effects, now_ms, proposal, by, outside, decision);
            }
            Event::Stored { proposal } => self.stored(&mut effects, proposal),
            Event::NotStored { proposal } => self.not_stored(&mut effects, proposal),
            Event::Outcome { proposal, state, reason } => {
                self.outcome(&mut effects, proposal, state, reason.map(Into::into));
            }
            Event::Tick => self.tick(&mut effects, now_ms),
            Event::Ask { upstream, operation, about, method } => {
                self.ask(&mut effects, now_ms, upstream, operation, about, method);
            }
            Event::Answer { link, operation, outcome } => self.answer(&mut effects, link, operation, outcome),
            Event::Cancel { link, operation } => self.cancel(&mut effects, link, operation),
            Event::Expire { operation } => self.expire(&mut effects, operation),
        }
        effects
    }
}
