//! Capabilities given and taken while the gateway runs: what they make of what is configured, and which change may be made.
//!
//! Must not know how they are written down, nor who is here.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use model::{CAPABILITIES_MAX, Capabilities, Capability, ParticipantId, Refusal, RefusalCode, TopicName};
use store::{Grant, GrantChange, State};

/// The longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 1_000;
/// Changes on record for one participant.
pub const PARTICIPANT_GRANTS_MAX: usize = 1_024;
/// What the gateway itself lets do begins with this.
const OWN: &str = "portmoot/";

/// Every change on record, by participant. Immutable: a change makes a new one.
#[derive(Debug, Default)]
pub struct Grants {
    by_participant: HashMap<String, Vec<Grant>>,
}

/// A wish to change what a participant may do.
#[derive(Debug, Clone)]
pub struct Change {
    /// Whose capabilities.
    pub participant: ParticipantId,
    /// In which topic; `None` is in all.
    pub topic: Option<TopicName>,
    /// Capabilities to give.
    pub add: Vec<String>,
    /// Capabilities to take.
    pub remove: Vec<String>,
    /// When the change ends, Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
    /// Why.
    pub reason: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (added, removed) = (self.add.join(", "), self.remove.join(", "));
        write!(f, "adds [{added}], removes [{removed}]")?;
        if let Some(expires_ms) = self.expires_ms {
            write!(f, ", until {}", wire::time::rfc3339(expires_ms))?;
        }
        self.reason.iter().try_for_each(|reason| write!(f, ", because: {reason}"))
    }
}

impl Grants {
    /// What the journal says.
    #[must_use]
    pub fn read(state: &State) -> Grants {
        let mut by_participant: HashMap<String, Vec<Grant>> = HashMap::new();
        for grant in state.grants() {
            by_participant.entry(grant.participant.clone()).or_default().push(grant.clone());
        }
        Grants { by_participant }
    }

    /// The changes of one participant that hold, in the order in which they are applied: those for all topics first.
    pub fn of(&self, id: &ParticipantId, now_ms: u64) -> impl Iterator<Item = &Grant> {
        self.by_participant.get(id.as_str()).into_iter().flatten().filter(move |grant| grant.applies(now_ms))
    }

    /// What is configured with the changes over it, in a topic or where there is none.
    #[must_use]
    pub fn over(
        &self,
        id: &ParticipantId,
        configured: &Arc<Capabilities>,
        topic: Option<&TopicName>,
        now_ms: u64,
    ) -> Arc<Capabilities> {
        let here = |grant: &&Grant| {
            grant.topic.as_deref().is_none_or(|of| topic.is_some_and(|topic| topic.as_str() == of))
        };
        let mut changes = self.of(id, now_ms).filter(here).peekable();
        if changes.peek().is_none() {
            return Arc::clone(configured);
        }
        let mut held: Vec<Capability> = configured.iter().cloned().collect();
        for grant in changes {
            if !grant.granted {
                held.retain(|capability| capability.as_str() != grant.capability);
            } else if let Ok(capability) = Capability::parse(&grant.capability) {
                give(&mut held, capability);
            }
        }
        Arc::new(held.into_iter().collect())
    }

    /// When the next change ends after `since_ms`, if one does.
    #[must_use]
    pub fn next_expiry(&self, since_ms: u64) -> Option<u64> {
        let ends = self.by_participant.values().flatten().filter_map(|grant| grant.expires_ms);
        ends.filter(|end| *end > since_ms).min()
    }

    /// What has to be written down for a change, by somebody with this authority; `before` is what the participant holds
    /// where the change counts. All of it is right, or nothing is done.
    ///
    /// # Errors
    /// Why the change cannot be made.
    pub fn change(
        &self,
        wish: &Change,
        before: &Capabilities,
        by: (&ParticipantId, &Capabilities),
        now_ms: u64,
    ) -> Result<Vec<GrantChange>, Refusal> {
        let add = read(&wish.add)?;
        let remove = read(&wish.remove)?;
        self.check(wish, now_ms)?;
        let own: Vec<&Grant> = self.of(&wish.participant, now_ms).collect();
        let everywhere = wish.topic.is_none();
        for capability in &remove {
            let text = capability.as_str();
            let elsewhere = own.iter().any(|grant| grant.granted && grant.capability == text);
            let held = before.iter().any(|held| held.as_str() == text) || (everywhere && elsewhere);
            if !held {
                let held: Vec<&str> = before.iter().map(Capability::as_str).collect();
                let refusal =
                    malformed(format!("`{}` does not hold the capability `{text}`", wish.participant));
                return Err(refusal.hint(format!("it holds: {}", held.join(", "))));
            }
        }
        let guarded = remove.iter().filter(|capability| capability.as_str().starts_with(OWN));
        for capability in add.iter().chain(guarded) {
            may_touch(capability, by.1)?;
        }
        // A change for all topics goes before what was said of single ones.
        let mut places = vec![wish.topic.as_ref().map(ToString::to_string)];
        let named = |text: &str| wish.add.iter().chain(&wish.remove).any(|named| named == text);
        for grant in own.iter().filter(|grant| everywhere && named(&grant.capability)) {
            if !places.contains(&grant.topic) {
                places.push(grant.topic.clone());
            }
        }
        let told = |topic: Option<String>| {
            // In a single topic only what was said there is said anew.
            let again = |text: &&String| {
                topic == wish.topic.as_ref().map(ToString::to_string)
                    || own.iter().any(|grant| grant.topic == topic && grant.capability == **text)
            };
            GrantChange {
                participant: wish.participant.to_string(),
                added: wish.add.iter().filter(again).cloned().collect(),
                removed: wish.remove.iter().filter(again).cloned().collect(),
                topic: topic.clone(),
                by: by.0.to_string(),
                reason: wish.reason.clone(),
                at_ms: now_ms,
                expires_ms: wish.expires_ms,
            }
        };
        Ok(places.into_iter().map(told).collect())
    }

    /// Whether somebody with this authority may have the changes of a participant forgotten: not if that gives or takes
    /// an act of the gateway's own that they do not hold.
    ///
    /// # Errors
    /// The refusal to give.
    pub fn may_clear(
        &self,
        id: &ParticipantId,
        topic: Option<&TopicName>,
        authority: &Capabilities,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let meant = |grant: &&Grant| topic.is_none_or(|topic| grant.topic.as_deref() == Some(topic.as_str()));
        for grant in self.of(id, now_ms).filter(meant) {
            let Ok(capability) = Capability::parse(&grant.capability) else { continue };
            let guarded = !grant.granted || grant.capability.starts_with(OWN);
            if guarded {
                may_touch(&capability, authority)?;
            }
        }
        Ok(())
    }

    fn check(&self, wish: &Change, now_ms: u64) -> Result<(), Refusal> {
        if wish.add.is_empty() && wish.remove.is_empty() {
            return Err(malformed("nothing is added and nothing removed".into()));
        }
        if let Some(both) = wish.add.iter().find(|text| wish.remove.contains(text)) {
            return Err(malformed(format!("`{both}` is both added and removed")));
        }
        if wish.expires_ms.is_some_and(|end| end <= now_ms) {
            return Err(malformed("the change would end before it begins".into()));
        }
        if wish.reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
            return Err(malformed(format!("a reason has at most {REASON_CHARS_MAX} characters")));
        }
        let known = self.by_participant.get(wish.participant.as_str()).map_or(0, Vec::len);
        let new = wish.add.len().saturating_add(wish.remove.len());
        if new > CAPABILITIES_MAX || known.saturating_add(new) > PARTICIPANT_GRANTS_MAX {
            let message = format!("a participant has at most {PARTICIPANT_GRANTS_MAX} changes on record");
            let refusal = Refusal::new(RefusalCode::TooLarge, message);
            return Err(
                refusal.hint("forget them with DELETE, and write what should last into the configuration")
            );
        }
        Ok(())
    }
}

/// Nobody gives what they do not hold.
fn may_touch(capability: &Capability, authority: &Capabilities) -> Result<(), Refusal> {
    if authority.iter().any(|held| held.includes(capability)) {
        return Ok(());
    }
    let message = format!("you do not hold `{capability}`, so you cannot give or take it");
    Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint("ask somebody who holds it"))
}

/// Adds a capability after the last of its namespace; one that is there stays where it is.
fn give(held: &mut Vec<Capability>, capability: Capability) {
    if held.contains(&capability) {
        return;
    }
    let namespace = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
    let own = namespace(capability.as_str());
    let last = held.iter().rposition(|held| namespace(held.as_str()) == own);
    held.insert(last.map_or(held.len(), |at| at.saturating_add(1)), capability);
}

fn read(texts: &[String]) -> Result<Vec<Capability>, Refusal> {
    let one = |text: &String| {
        Capability::parse(text).map_err(|error| {
            malformed(format!("`{}` is no capability: {error}", text.escape_debug()))
                .hint("nothing was changed")
        })
    };
    texts.iter().map(one).collect()
}

fn malformed(message: String) -> Refusal {
    Refusal::new(RefusalCode::Malformed, message)
}

#[cfg(test)]
mod tests;
