//! Whose token is this. Must not know how a token travels, nor what its bearer wants.

use std::collections::HashMap;
use std::sync::Arc;

use model::{ParticipantId, Refusal, RefusalCode};

use crate::participant::Participant;
use crate::token::TokenHash;

/// The local user's name.
pub const LOCAL_USER: &str = "local";

/// One token that lets somebody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Hash of the token.
    pub hash: TokenHash,
    /// When it stops being valid, Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
}

/// All who may come in. Immutable: a reload or an issued token makes a new one.
#[derive(Debug, Clone)]
pub struct Identities {
    shelves: HashMap<u64, Vec<Entry>>,
    local: Option<Arc<Participant>>,
}

#[derive(Debug, Clone)]
struct Entry {
    credential: Credential,
    participant: Arc<Participant>,
}

impl Identities {
    /// Nobody has a token: whoever reaches the door (loopback only, see [`crate::may_listen`]) is this local user.
    #[must_use]
    pub fn local(user: Arc<Participant>) -> Identities {
        Identities { shelves: HashMap::new(), local: Some(user) }
    }

    /// Only bearers of these tokens come in, from loopback too.
    pub fn tokens(known: impl IntoIterator<Item = (Credential, Arc<Participant>)>) -> Identities {
        let mut shelves: HashMap<u64, Vec<Entry>> = HashMap::new();
        for (credential, participant) in known {
            shelves.entry(credential.hash.shelf()).or_default().push(Entry { credential, participant });
        }
        Identities { shelves, local: None }
    }

    /// Whether callers must show a token.
    #[must_use]
    pub fn ask_for_tokens(&self) -> bool {
        self.local.is_none()
    }

    /// The participant of this name, as it stands at `now_ms`: none when it is not known any more, or none of its tokens
    /// is valid.
    #[must_use]
    pub fn participant(&self, id: &ParticipantId, now_ms: u64) -> Option<Arc<Participant>> {
        let alive = |entry: &&Entry| entry.credential.expires_ms.is_none_or(|end| now_ms < end);
        let known = self.shelves.values().flatten().filter(alive).map(|entry| &entry.participant);
        known.chain(&self.local).find(|participant| participant.id == *id).cloned()
    }

    /// Everybody with a token that is valid at `now_ms`, or else the local user; by name, each once.
    #[must_use]
    pub fn everybody(&self, now_ms: u64) -> Vec<Arc<Participant>> {
        let alive = |entry: &&Entry| entry.credential.expires_ms.is_none_or(|end| now_ms < end);
        let known = self.shelves.values().flatten().filter(alive).map(|entry| &entry.participant);
        let mut all: Vec<_> = known.chain(&self.local).cloned().collect();
        all.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        all.dedup_by(|one, other| one.id == other.id);
        all
    }

    /// When the next token expires after `now_ms` (Unix milliseconds), if one does.
    #[must_use]
    pub fn next_expiry(&self, now_ms: u64) -> Option<u64> {
        let ends = self.shelves.values().flatten().filter_map(|entry| entry.credential.expires_ms);
        ends.filter(|end| *end > now_ms).min()
    }

    /// Who shows this token (without its `Bearer `), at `now_ms` (Unix milliseconds).
    ///
    /// The token is hashed, its hash finds a shelf, and what stands there is compared in constant time: the cost does not
    /// grow with the number of participants, and time tells at most how a hash begins. In the local user's mode a token
    /// that is shown all the same is not looked at.
    ///
    /// # Errors
    /// [`RefusalCode::Unauthenticated`], with the same words for every unknown token.
    pub fn identify(&self, bearer: Option<&str>, now_ms: u64) -> Result<Arc<Participant>, Refusal> {
        if let Some(user) = &self.local {
            return Ok(Arc::clone(user));
        }
        let bearer = bearer.ok_or_else(|| {
            let refusal = Refusal::new(RefusalCode::Unauthenticated, "a token is needed");
            refusal.hint(
                "send `Authorization: Bearer TOKEN`; the operator issues one with: portmoot token new NAME",
            )
        })?;
        let hash = TokenHash::of(bearer);
        let shelf = self.shelves.get(&hash.shelf()).map(Vec::as_slice).unwrap_or_default();
        let entry = shelf.iter().find(|entry| entry.credential.hash == hash);
        let alive = entry.filter(|entry| entry.credential.expires_ms.is_none_or(|end| now_ms < end));
        alive.map(|entry| Arc::clone(&entry.participant)).ok_or_else(|| {
            let refusal = Refusal::new(RefusalCode::Unauthenticated, "this token is not valid");
            refusal.hint("it may have expired or been revoked: ask the operator for a new one")
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Capabilities, TopicName};

    use super::*;

    fn participant(name: &str) -> Arc<Participant> {
        Arc::new(Participant {
            id: ParticipantId::new(name).unwrap(),
            capabilities: Arc::new(Capabilities::newcomer()),
            topics: vec![TopicName::new("main").unwrap()],
            rate: None,
        })
    }

    fn credential(token: &str, expires_ms: Option<u64>) -> Credential {
        Credential { hash: TokenHash::of(token), expires_ms }
    }

    #[test]
    fn a_token_is_its_bearers_until_it_expires() {
        let scout = participant("scout");
        let known = Identities::tokens([
            (credential("pm_a", None), Arc::clone(&scout)),
            (credential("pm_b", Some(100)), Arc::clone(&scout)),
            (credential("pm_c", None), participant("ci")),
        ]);
        assert!(known.ask_for_tokens());
        assert_eq!((known.next_expiry(99), known.next_expiry(100)), (Some(100), None));
        for (bearer, now, expect) in [
            (Some("pm_a"), 1, Some("scout")),
            (Some("pm_b"), 99, Some("scout")),
            (Some("pm_b"), 100, None),
            (Some("pm_c"), 1, Some("ci")),
            (Some("pm_d"), 1, None),
            (Some(""), 1, None),
            (None, 1, None),
        ] {
            let found = known.identify(bearer, now);
            match (found, expect) {
                (Ok(found), Some(name)) => assert_eq!(found.id.as_str(), name),
                (Err(refusal), None) => assert_eq!(refusal.code, RefusalCode::Unauthenticated),
                (found, expect) => panic!("{bearer:?}: {found:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn nobody_comes_in_when_tokens_are_asked_for_and_none_is_valid() {
        assert!(Identities::tokens([]).identify(Some("pm_a"), 0).is_err());
    }

    #[test]
    fn without_tokens_everybody_is_the_local_user() {
        let known = Identities::local(participant("local"));
        assert!(!known.ask_for_tokens());
        assert_eq!(known.identify(None, 0).unwrap().id.as_str(), "local");
        assert_eq!(known.identify(Some("x"), 0).unwrap().id.as_str(), "local");
    }
}
