//! Grants: changes of capabilities on record, and their effect on the configured ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::{fmt, sync::Arc};

use model::{
    APPROVE, CAPABILITIES_MAX, Capabilities, Capability, ParticipantId, Refusal, RefusalCode,
    TopicName,
};

use crate::config::IdentityConfig;
use crate::record::GrantChange;
use crate::state::{AccessState, Grant};

/// The longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 1_000;
/// Text for operators about capabilities that [`Grants::not_applied`] finds.
pub const NOT_APPLIED: &str = "changes of capabilities on record do not apply: they were made before the participant was configured";
/// Changes on record for one participant.
pub const PARTICIPANT_GRANTS_MAX: usize = 1_024;

/// All changes on record, by participant. Immutable: each change makes a new value.
#[derive(Debug, Default)]
pub struct Grants {
    by_participant: HashMap<String, Vec<Grant>>,
    configured: HashSet<String>,
    not_applied: BTreeSet<String>,
}

/// A request to change the capabilities of a participant.
#[derive(Debug, Clone)]
pub struct GrantRequest {
    /// The participant.
    pub participant: ParticipantId,
    /// The topic; `None` is all topics.
    pub topic: Option<TopicName>,
    /// Capabilities to grant.
    pub add: Vec<String>,
    /// Capabilities to revoke.
    pub remove: Vec<String>,
    /// When the change expires, in Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
    /// Reason for the record.
    pub reason: Option<String>,
}

/// A capability that a change names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The capability.
    pub capability: Capability,
    /// Until when the change gives it to the participant, in Unix milliseconds; 0 if it does not.
    pub given_until_ms: u64,
}

impl Changed {
    fn new(text: &str, given_until_ms: u64) -> Option<Self> {
        Some(Self {
            capability: Capability::parse(text).ok()?,
            given_until_ms,
        })
    }
}

/// Until when the participant has a capability more if this change of it ends now.
fn given_by_its_end(change: &Grant) -> u64 {
    if change.granted {
        0
    } else {
        change.expires_ms.unwrap_or(u64::MAX)
    }
}

impl fmt::Display for GrantRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.add.join(", ");
        let removed = self.remove.join(", ");
        write!(f, "adds [{added}], removes [{removed}]")?;
        if let Some(expires_ms) = self.expires_ms {
            write!(f, ", until {}", wire::time::rfc3339(expires_ms))?;
        }
        self.reason
            .iter()
            .try_for_each(|reason| write!(f, ", because: {reason}"))
    }
}

impl Grants {
    /// The changes in the journal, as far as they are those of the participants that have their
    /// names now. One that was made for the bearer of a token does not apply to a participant that
    /// is configured under its name later, nor the other way round.
    #[must_use]
    pub fn read(state: &AccessState, config: &IdentityConfig) -> Grants {
        let mut by_participant: HashMap<String, Vec<Grant>> = HashMap::new();
        let mut not_applied = BTreeSet::new();
        let configured: HashSet<String> = config
            .participants
            .iter()
            .map(|one| one.participant.id.to_string())
            .collect();
        for grant in state.grants() {
            let is_configured = configured.contains(&grant.participant);
            if grant
                .configured
                .is_none_or(|was_configured| was_configured == is_configured)
            {
                by_participant
                    .entry(grant.participant.clone())
                    .or_default()
                    .push(grant.clone());
            } else if is_configured {
                not_applied.insert(grant.participant.clone());
            }
        }
        Grants {
            by_participant,
            configured,
            not_applied,
        }
    }

    /// Configured participants for whose names there are changes of earlier participants, which do
    /// not apply to them.
    pub fn not_applied(&self) -> impl Iterator<Item = &str> {
        self.not_applied.iter().map(String::as_str)
    }

    /// The changes of one participant that have not expired, in the order in which they are
    /// applied: those for all topics first.
    pub fn of(&self, id: &ParticipantId, now_ms: u64) -> impl Iterator<Item = &Grant> {
        self.by_participant
            .get(id.as_str())
            .into_iter()
            .flatten()
            .filter(move |grant| grant.applies(now_ms))
    }

    /// The configured capabilities of a participant with its changes applied, in a topic or outside
    /// of topics.
    #[must_use]
    pub fn over(
        &self,
        id: &ParticipantId,
        configured: &Arc<Capabilities>,
        topic: Option<&TopicName>,
        now_ms: u64,
    ) -> Arc<Capabilities> {
        let here = |grant: &&Grant| {
            grant
                .topic
                .as_deref()
                .is_none_or(|of| topic.is_some_and(|topic| topic.as_str() == of))
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
                insert(&mut held, capability);
            }
        }
        Arc::new(held.into_iter().collect())
    }

    /// When the next change after `since_ms` expires, if one does.
    #[must_use]
    pub fn next_expiry(&self, since_ms: u64) -> Option<u64> {
        let ends = self
            .by_participant
            .values()
            .flatten()
            .filter_map(|grant| grant.expires_ms);
        ends.filter(|end| *end > since_ms).min()
    }

    /// When changes of these participants expire, later than `now_ms` and before `until_ms`.
    pub(crate) fn ends<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a ParticipantId>,
        now_ms: u64,
        until_ms: u64,
    ) -> Vec<u64> {
        let all = ids
            .into_iter()
            .flat_map(|id| self.of(id, now_ms))
            .filter_map(|grant| grant.expires_ms);
        let mut ends: Vec<u64> = all.filter(|end| *end < until_ms).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// The records of a change, made by a participant with these capabilities. `before` are the
    /// capabilities of the participant whose are changed, in the topic of the change or outside of
    /// topics. For how long an author may give what it could only approve, is for
    /// [`Authority::may_change`](crate::Authority::may_change) to say.
    ///
    /// # Errors
    /// Why no part of the change is made.
    pub fn change(
        &self,
        request: &GrantRequest,
        before: &Capabilities,
        by: (&ParticipantId, &Capabilities),
        now_ms: u64,
    ) -> Result<Vec<GrantChange>, Refusal> {
        let add = read(&request.add)?;
        let remove = read(&request.remove)?;
        self.check(request, now_ms)?;
        let own: Vec<&Grant> = self.of(&request.participant, now_ms).collect();
        let everywhere = request.topic.is_none();
        for capability in &remove {
            let text = capability.as_str();
            let elsewhere = own
                .iter()
                .any(|grant| grant.granted && grant.capability == text);
            let held = before.iter().any(|held| held.as_str() == text) || (everywhere && elsewhere);
            if !held {
                let held: Vec<&str> = before.iter().map(Capability::as_str).collect();
                let refusal = malformed(format!(
                    "`{}` does not hold the capability `{text}`",
                    request.participant
                ));
                return Err(refusal.hint(format!("it holds: {}", held.join(", "))));
            }
        }
        for capability in &remove {
            may_change(capability, by.1)?;
        }
        for capability in add.iter().filter(|one| !may_approve(one, by.1)) {
            may_change(capability, by.1)?;
        }
        // A change for all topics retopics earlier changes for single ones.
        let mut topics = vec![request.topic.as_ref().map(ToString::to_string)];
        let named = |text: &str| {
            request
                .add
                .iter()
                .chain(&request.remove)
                .any(|named| named == text)
        };
        for grant in own
            .iter()
            .filter(|grant| everywhere && named(&grant.capability))
        {
            if !topics.contains(&grant.topic) {
                topics.push(grant.topic.clone());
            }
        }
        let record = |topic: Option<String>| {
            // For another topic than the requested one, only capabilities that were changed there.
            let changes_here = |text: &&String| {
                topic == request.topic.as_ref().map(ToString::to_string)
                    || own
                        .iter()
                        .any(|grant| grant.topic == topic && grant.capability == **text)
            };
            GrantChange {
                participant: request.participant.to_string(),
                added: request.add.iter().filter(changes_here).cloned().collect(),
                removed: request
                    .remove
                    .iter()
                    .filter(changes_here)
                    .cloned()
                    .collect(),
                topic: topic.clone(),
                by: by.0.to_string(),
                reason: request.reason.clone(),
                at_ms: now_ms,
                expires_ms: request.expires_ms,
                configured: Some(self.configured.contains(request.participant.as_str())),
            }
        };
        Ok(topics.into_iter().map(record).collect())
    }

    /// The capabilities that a request changes, and until when it gives each: to its own end, or to
    /// that of a revocation which it replaces, whichever is later.
    #[must_use]
    pub fn changed(&self, request: &GrantRequest, now_ms: u64) -> Vec<Changed> {
        let replaced = |grant: &&Grant, text: &String| {
            let here = request.topic.as_ref().map(TopicName::as_str);
            let is_replaced = grant.expires_ms.is_some() || request.expires_ms.is_none();
            grant.capability == *text
                && is_replaced
                && (here.is_none() || grant.topic.as_deref() == here)
        };
        let lifted = |text: &String| {
            let own = self
                .of(&request.participant, now_ms)
                .filter(|grant| replaced(grant, text));
            own.map(given_by_its_end).max().unwrap_or_default()
        };
        let end = request.expires_ms.unwrap_or(u64::MAX);
        let added = request.add.iter().map(|text| (text, end.max(lifted(text))));
        let removed = request.remove.iter().map(|text| {
            // A revocation gives something if it replaces a longer one.
            (
                text,
                if request.expires_ms.is_some() {
                    lifted(text)
                } else {
                    0
                },
            )
        });
        added
            .chain(removed)
            .filter_map(|(text, until_ms)| Changed::new(text, until_ms))
            .collect()
    }

    /// The capabilities that change if the changes of a participant are cleared, in one topic or
    /// all.
    #[must_use]
    pub fn cleared(
        &self,
        id: &ParticipantId,
        topic: Option<&TopicName>,
        now_ms: u64,
    ) -> Vec<Changed> {
        let cleared = |grant: &&Grant| {
            topic.is_none_or(|topic| grant.topic.as_deref() == Some(topic.as_str()))
        };
        let changes = self.of(id, now_ms).filter(cleared);
        changes
            .filter_map(|grant| Changed::new(&grant.capability, given_by_its_end(grant)))
            .collect()
    }

    fn check(&self, request: &GrantRequest, now_ms: u64) -> Result<(), Refusal> {
        if request.add.is_empty() && request.remove.is_empty() {
            return Err(malformed("nothing is added and nothing removed".into()));
        }
        if let Some(both) = request
            .add
            .iter()
            .find(|text| request.remove.contains(text))
        {
            return Err(malformed(format!("`{both}` is both added and removed")));
        }
        if request.expires_ms.is_some_and(|end| end <= now_ms) {
            return Err(malformed("the change would end before it begins".into()));
        }
        if request
            .reason
            .as_ref()
            .is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX)
        {
            return Err(malformed(format!(
                "a reason has at most {REASON_CHARS_MAX} characters"
            )));
        }
        let known = self
            .by_participant
            .get(request.participant.as_str())
            .map_or(0, Vec::len);
        let new = request.add.len().saturating_add(request.remove.len());
        if new > CAPABILITIES_MAX || known.saturating_add(new) > PARTICIPANT_GRANTS_MAX {
            let message =
                format!("a participant has at most {PARTICIPANT_GRANTS_MAX} changes on record");
            let refusal = Refusal::new(RefusalCode::TooLarge, message);
            return Err(refusal.hint("clear them with DELETE, and configure lasting changes"));
        }
        Ok(())
    }
}

/// Refuses a change of a capability that its author does not hold.
fn may_change(capability: &Capability, authority: &Capabilities) -> Result<(), Refusal> {
    if authority.covers(capability) {
        return Ok(());
    }
    let message = format!("you do not hold `{capability}`, so you cannot grant or revoke it");
    Err(Refusal::new(RefusalCode::CapabilityViolation, message)
        .hint("ask a participant that holds it"))
}

/// Whether its author may approve the requests that a capability admits.
fn may_approve(capability: &Capability, authority: &Capabilities) -> bool {
    let approval = capability.of_requests_under(APPROVE);
    approval.is_some_and(|approval| authority.covers(&approval))
}

/// Adds a capability after the last one of its namespace. One that is held already keeps its place.
fn insert(held: &mut Vec<Capability>, capability: Capability) {
    if held.contains(&capability) {
        return;
    }
    let namespace = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
    let own = namespace(capability.as_str());
    let last = held
        .iter()
        .rposition(|held| namespace(held.as_str()) == own);
    held.insert(
        last.map_or(held.len(), |at| at.saturating_add(1)),
        capability,
    );
}

fn read(texts: &[String]) -> Result<Vec<Capability>, Refusal> {
    let one = |text: &String| {
        Capability::parse(text).map_err(|error| {
            malformed(format!(
                "`{}` is not a capability: {error}",
                text.escape_debug()
            ))
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
