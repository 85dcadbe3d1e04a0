//! Checked tokens by their SHA-256, each until it ends; refused ones for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use auth::jwt::SubjectClaim;
use auth::{Participant, TokenHash};
use platform::Mutex;

/// The most checked tokens that are kept.
pub const TOKENS_MAX: usize = 10_000;
/// Parts of the cache, each with a lock of its own.
const PARTS: usize = 16;
const PART_TOKENS_MAX: usize = TOKENS_MAX / PARTS;
/// The most refused tokens of a part that are remembered.
const PART_REFUSED_MAX: usize = 64;

/// A token that was checked.
pub(super) struct Checked {
    /// Its participant, with what the token adds.
    pub(super) participant: Arc<Participant>,
    /// The claim that names its subject.
    pub(super) named_by: SubjectClaim,
    /// Its audiences.
    pub(super) audiences: Vec<String>,
    /// The place of its issuer in the configuration.
    pub(super) issuer: usize,
    /// Until when it need not be checked again, in Unix milliseconds.
    pub(super) until_ms: u64,
}

#[derive(Default)]
struct Part {
    checked: HashMap<u64, Vec<(TokenHash, Arc<Checked>)>>,
    len: usize,
    /// Until when these are refused.
    refused: HashMap<u64, u64>,
    /// Tokens that are asked about now.
    flights: HashMap<u64, Weak<tokio::sync::Mutex<()>>>,
}

/// All checked tokens.
pub(super) struct Cache {
    parts: [Mutex<Part>; PARTS],
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Cache {
    fn part(&self, hash: &TokenHash) -> Option<&Mutex<Part>> {
        let at = usize::try_from(hash.prefix() % PARTS as u64).unwrap_or_default();
        self.parts.get(at)
    }

    /// A token that was checked and has not ended.
    pub(super) fn find(&self, hash: &TokenHash, now_ms: u64) -> Option<Arc<Checked>> {
        let part = self.part(hash)?.lock();
        let mut same = part.checked.get(&hash.prefix())?.iter();
        let (_, found) = same.find(|(known, _)| known == hash)?;
        (found.until_ms > now_ms).then(|| Arc::clone(found))
    }

    /// Keeps a token. If its part is full, those that have ended go, and else the one that ends
    /// first.
    pub(super) fn insert(&self, hash: TokenHash, checked: &Arc<Checked>, now_ms: u64) {
        let Some(part) = self.part(&hash) else { return };
        let mut part = part.lock();
        let part = &mut *part;
        let same = part.checked.get_mut(&hash.prefix());
        if let Some((_, known)) =
            same.and_then(|same| same.iter_mut().find(|(known, _)| *known == hash))
        {
            *known = Arc::clone(checked);
            return;
        }
        if part.len >= PART_TOKENS_MAX {
            part.retain(|one| one.until_ms > now_ms);
        }
        if part.len >= PART_TOKENS_MAX {
            let first = part
                .checked
                .values()
                .flatten()
                .map(|(_, one)| one.until_ms)
                .min();
            part.retain(|one| Some(one.until_ms) != first);
        }
        part.checked
            .entry(hash.prefix())
            .or_default()
            .push((hash, Arc::clone(checked)));
        part.len += 1;
    }

    /// Whether a token was refused a moment ago.
    pub(super) fn is_refused(&self, hash: &TokenHash, now_ms: u64) -> bool {
        let refused = self
            .part(hash)
            .and_then(|part| part.lock().refused.get(&hash.prefix()).copied());
        refused.is_some_and(|until_ms| until_ms > now_ms)
    }

    /// Refuses a token for a while.
    pub(super) fn refuse(&self, hash: TokenHash, until_ms: u64) {
        let Some(part) = self.part(&hash) else { return };
        let mut part = part.lock();
        if part.refused.len() >= PART_REFUSED_MAX {
            part.refused.clear();
        }
        part.refused.insert(hash.prefix(), until_ms);
    }

    /// Lock that the checks of one token hold in turn, so that its issuer is asked once.
    pub(super) fn flight(&self, hash: &TokenHash) -> Arc<tokio::sync::Mutex<()>> {
        let Some(part) = self.part(hash) else {
            return Arc::default();
        };
        let mut part = part.lock();
        part.flights.retain(|_, flight| flight.strong_count() > 0);
        if let Some(flight) = part.flights.get(&hash.prefix()).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::default();
        part.flights.insert(hash.prefix(), Arc::downgrade(&flight));
        flight
    }

    /// Forgets all tokens.
    pub(super) fn clear(&self) {
        for part in &self.parts {
            let mut part = part.lock();
            (part.checked, part.len, part.refused) = <_>::default();
        }
    }

    /// Number of tokens that are kept.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().len).sum()
    }
}

impl Part {
    fn retain(&mut self, stays: impl Fn(&Checked) -> bool) {
        for same in self.checked.values_mut() {
            same.retain(|(_, one)| stays(one));
        }
        self.checked.retain(|_, same| !same.is_empty());
        self.len = self.checked.values().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use model::{ParticipantId, TopicName};

    use super::*;

    fn checked(until_ms: u64) -> Arc<Checked> {
        let topics = vec![TopicName::new("main").unwrap()];
        let participant =
            Participant::new(ParticipantId::new("a:b").unwrap(), Arc::default(), topics);
        let participant = Arc::new(participant);
        let named_by = SubjectClaim::Sub;
        let audiences = Vec::new();
        Arc::new(Checked {
            participant,
            named_by,
            audiences,
            issuer: 0,
            until_ms,
        })
    }

    #[test]
    fn a_token_is_found_until_it_ends_and_all_go_at_once() {
        let cache = Cache::default();
        let hash = TokenHash::of("a");
        cache.insert(hash, &checked(100), 0);
        cache.insert(hash, &checked(100), 0);
        assert_eq!(cache.len(), 1);
        assert!(cache.find(&hash, 99).is_some() && cache.find(&hash, 100).is_none());
        assert!(cache.find(&TokenHash::of("b"), 0).is_none());
        cache.refuse(hash, 50);
        assert!(cache.is_refused(&hash, 49) && !cache.is_refused(&hash, 50));
        cache.clear();
        assert!(cache.find(&hash, 0).is_none() && !cache.is_refused(&hash, 0) && cache.len() == 0);
    }

    #[test]
    fn the_cache_has_a_bound_and_drops_what_ends_first() {
        let cache = Cache::default();
        for number in 0..3 * TOKENS_MAX as u64 {
            cache.insert(
                TokenHash::of(&number.to_string()),
                &checked(1_000 + number),
                0,
            );
            cache.refuse(TokenHash::of(&number.to_string()), 1);
        }
        assert!(
            cache.len() <= TOKENS_MAX && cache.len() > TOKENS_MAX / 2,
            "{}",
            cache.len()
        );
        let last = TokenHash::of(&(3 * TOKENS_MAX - 1).to_string());
        assert!(cache.find(&last, 0).is_some() && cache.find(&TokenHash::of("0"), 0).is_none());
        let refused: usize = cache
            .parts
            .iter()
            .map(|part| part.lock().refused.len())
            .sum();
        assert!(refused <= PARTS * PART_REFUSED_MAX);
    }

    #[tokio::test]
    async fn one_asks_about_a_token_at_a_time() {
        let cache = Cache::default();
        let hash = TokenHash::of("a");
        let one = cache.flight(&hash).lock_owned().await;
        assert!(cache.flight(&hash).try_lock().is_err());
        assert!(cache.flight(&TokenHash::of("b")).try_lock().is_ok());
        drop(one);
        assert!(cache.flight(&hash).try_lock().is_ok());
    }
}
