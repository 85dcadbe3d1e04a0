//! Authority of the author of a change: a participant gives and takes only what it holds itself,
//! and gives it for no longer.

use std::sync::Arc;

use auth::Participant;
use model::{APPROVE, Capabilities, Capability, PROPOSAL, Refusal, RefusalCode, TopicName};
use topic::section::{Access, TopicSection};
use wire::time::rfc3339;

use crate::config::IdentityConfig;
use crate::grants::{Changed, Grants};
use crate::identities::configured;

/// The capability to grant and revoke capabilities, and the kind under which that is recorded.
pub const GRANTS: &str = "portmoot/grants";
/// The capability to issue and revoke tokens, and the kind under which that is recorded.
pub const TOKENS: &str = "portmoot/tokens";
/// The capability about servers: their states and logs, and tokens of participants that serve.
pub const SERVERS: &str = "portmoot/servers";
/// The capability to restart, disable and enable servers, and the kind under which that is
/// recorded.
pub const RESTART: &str = "portmoot/restart";
/// The capability to see and approve what servers have changed, and the kind under which that is
/// recorded.
pub const PINS: &str = "portmoot/pins";
/// The capability to read the audit log over the API: in a topic what happened there, outside of
/// topics all of it.
pub const AUDIT: &str = "portmoot/audit";
/// The capability to sign in and out at servers, for all callers or for others.
pub const ACCOUNTS: &str = "portmoot/accounts";
/// The kind under which changes of the servers of the configuration file are recorded. No
/// capability is enough for them: a server may be a command, which runs as the gateway's user.
pub const CONFIGURE: &str = "portmoot/configure";

/// The longest time for which a participant that may approve calls, and may not make them, lets
/// another one make them, milliseconds.
pub const STANDING_APPROVAL_MS_MAX: u64 = 3_600_000;

const ASK: &str = "ask a participant that may do all of it, or the operator";
const SHORTER: &str = "ask for a shorter time, or a participant that holds it for longer";

/// The end of what never ends.
const NEVER: u64 = u64::MAX;

/// By which right tokens and capabilities are given and taken.
#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    /// The owner of the data directory.
    Operator,
    /// A participant, and the changes of capabilities in force.
    Participant(&'a Participant, &'a Grants),
}

impl Authority<'_> {
    /// Refuses a token that the participant may not revoke: its bearer may do something, outside of
    /// topics or in one of them, that the participant may not do.
    ///
    /// # Errors
    /// The refusal, which names the capability, but no topic: one that the participant may not
    /// enter may be private.
    pub fn may_take(
        &self,
        config: &IdentityConfig,
        bearer: &Participant,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        self.covers(config, bearer, now_ms, now_ms)
    }

    /// Refuses a token that the participant may not issue: at some time until it expires, by what
    /// is on record now, its bearer may do something that the participant may not do then.
    ///
    /// # Errors
    /// As [`Authority::may_take`].
    pub fn may_give(
        &self,
        config: &IdentityConfig,
        bearer: &Participant,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let until_ms = bearer.expires_ms.unwrap_or(NEVER);
        self.lasts(until_ms, &token_of(bearer))?;
        self.covers(config, bearer, until_ms, now_ms)
    }

    fn covers(
        &self,
        config: &IdentityConfig,
        bearer: &Participant,
        until_ms: u64,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let Self::Participant(author, grants) = *self else {
            return Ok(());
        };
        let serves = configured(config, bearer.id.as_str()).is_some_and(|one| one.serves);
        if serves && author.id != bearer.id {
            let servers = Capability::parse(SERVERS)
                .map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
            self.holds(
                &servers,
                None,
                until_ms,
                now_ms,
                "a token of a participant that serves",
            )?;
        }
        if !author.wires.includes(bearer.wires) {
            let message = format!(
                "`{}` may come in over protocols over which you may not",
                bearer.id
            );
            let refusal = Refusal::new(RefusalCode::CapabilityViolation, message);
            return Err(refusal.hint("the operator configures `wires` of the participant first"));
        }
        let what = token_of(bearer);
        let mut compared = false;
        let mut moments = vec![now_ms];
        moments.extend(grants.ends([&author.id, &bearer.id], now_ms, until_ms));
        for topic in self.places(config, bearer, None, &what)? {
            for at_ms in moments.iter().copied() {
                let theirs = grants.over(&bearer.id, &bearer.capabilities, topic, at_ms);
                let own = self.in_force(topic, at_ms);
                // Without a grant, the sets are the same in all topics and at all times.
                let is_plain = Arc::ptr_eq(&theirs, &bearer.capabilities)
                    && Arc::ptr_eq(&own, &author.capabilities);
                if !(is_plain && compared) {
                    theirs
                        .iter()
                        .try_for_each(|capability| held(capability, &own, &what, at_ms, now_ms))?;
                    compared |= is_plain;
                }
            }
        }
        Ok(())
    }

    /// Refuses a change of a participant's capabilities, in one topic or in all that it may enter,
    /// of which the author of the change does not hold one everywhere, for as long as the change
    /// gives it.
    ///
    /// # Errors
    /// The refusal that names the first capability which is not held.
    pub fn may_change(
        &self,
        config: &IdentityConfig,
        whose: &Participant,
        topic: Option<&TopicName>,
        changed: &[Changed],
        now_ms: u64,
    ) -> Result<(), Refusal> {
        const WHAT: &str = "this change";
        changed
            .iter()
            .try_for_each(|one| self.lasts(one.given_until_ms, WHAT))?;
        for topic in self.places(config, whose, topic, WHAT)? {
            for one in changed {
                if self.is_standing_approval(whose, topic, one, now_ms) {
                    continue;
                }
                self.holds(&one.capability, topic, one.given_until_ms, now_ms, WHAT)?;
            }
        }
        Ok(())
    }

    /// Whether a change lets another participant make calls for an hour at most
    /// ([`STANDING_APPROVAL_MS_MAX`]) that it may propose anyway, and that the author may approve
    /// then: it approves in advance what it could approve one by one.
    fn is_standing_approval(
        &self,
        whose: &Participant,
        topic: Option<&TopicName>,
        changed: &Changed,
        now_ms: u64,
    ) -> bool {
        let Self::Participant(author, grants) = *self else {
            return false;
        };
        let until_ms = changed.given_until_ms;
        let is_short = now_ms < until_ms && until_ms - now_ms <= STANDING_APPROVAL_MS_MAX;
        let under = |head| changed.capability.of_requests_under(head);
        let (Some(approval), Some(proposal)) = (under(APPROVE), under(PROPOSAL)) else {
            return false;
        };
        let theirs = grants.over(&whose.id, &whose.capabilities, topic, now_ms);
        is_short
            && author.id != whose.id
            && theirs.covers(&proposal)
            && self
                .holds(&approval, topic, until_ms, now_ms, "this change")
                .is_ok()
    }

    /// Whether the author of the change may know that a topic exists.
    pub(crate) fn may_know(&self, topic: &TopicSection) -> bool {
        match self {
            Self::Operator => true,
            Self::Participant(author, _) => {
                author.is_for(&topic.name)
                    && (topic.access != Access::Private || author.may_enter(&topic.name))
            }
        }
    }

    /// Places where a participant may act: this topic, or outside of topics and each that it may
    /// enter.
    fn places<'c>(
        &self,
        config: &'c IdentityConfig,
        whose: &Participant,
        topic: Option<&'c TopicName>,
        what: &str,
    ) -> Result<Vec<Option<&'c TopicName>>, Refusal> {
        let Self::Participant(author, _) = *self else {
            return Ok(Vec::new());
        };
        if topic.is_some() {
            return Ok(vec![topic]);
        }
        let mut places = vec![None];
        for topic in config.topics.iter().filter(|topic| enters(whose, topic)) {
            if !enters(author, topic) {
                let message = format!("{what} reaches into topics that you may not enter");
                return Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint(ASK));
            }
            places.push(Some(&topic.name));
        }
        Ok(places)
    }

    /// Refuses what lasts longer than the author's own token.
    fn lasts(&self, until_ms: u64, what: &str) -> Result<(), Refusal> {
        let Self::Participant(author, _) = self else {
            return Ok(());
        };
        match author.expires_ms.filter(|end| *end < until_ms) {
            None => Ok(()),
            Some(end) => {
                let message = format!(
                    "your token expires at {}, and {what} would last longer",
                    rfc3339(end)
                );
                Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint(SHORTER))
            }
        }
    }

    /// Refuses a capability that the author does not hold now, or will not hold until then.
    fn holds(
        &self,
        capability: &Capability,
        topic: Option<&TopicName>,
        until_ms: u64,
        now_ms: u64,
        what: &str,
    ) -> Result<(), Refusal> {
        let Self::Participant(author, grants) = *self else {
            return Ok(());
        };
        let ends = grants.ends([&author.id], now_ms, until_ms);
        for at_ms in std::iter::once(now_ms).chain(ends) {
            held(
                capability,
                &self.in_force(topic, at_ms),
                what,
                at_ms,
                now_ms,
            )?;
        }
        Ok(())
    }

    fn in_force(&self, topic: Option<&TopicName>, now_ms: u64) -> Arc<Capabilities> {
        match self {
            Self::Operator => Arc::new(Capabilities::full()),
            // A token for other topics is good for nothing there.
            Self::Participant(author, _) if topic.is_some_and(|topic| !author.is_for(topic)) => {
                Arc::default()
            }
            Self::Participant(author, grants) => {
                // A token gives no more than it is good for itself.
                author.narrow(grants.over(&author.id, &author.capabilities, topic, now_ms))
            }
        }
    }
}

fn enters(participant: &Participant, topic: &TopicSection) -> bool {
    participant.may_enter(&topic.name)
        || (topic.access == Access::Public && participant.is_for(&topic.name))
}

fn token_of(bearer: &Participant) -> String {
    format!("a token of `{}`", bearer.id)
}

/// Refuses a capability that the author of a change does not hold among its `own`, which are those
/// of this time.
fn held(
    capability: &Capability,
    own: &Capabilities,
    what: &str,
    at_ms: u64,
    now_ms: u64,
) -> Result<(), Refusal> {
    if own.covers(capability) {
        return Ok(());
    }
    if at_ms == now_ms {
        let message = format!("you do not hold `{capability}`, which {what} needs");
        return Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint(ASK));
    }
    let message = format!(
        "you do not hold `{capability}` from {} on, and {what} would last longer",
        rfc3339(at_ms)
    );
    Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint(SHORTER))
}
