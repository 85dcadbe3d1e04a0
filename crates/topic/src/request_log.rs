//! Latest requests of a room, to detect repeated envelopes and answers of participants that the request did not name (MCPx v0.1,
//! sections 3 and 4.3).

use std::collections::{HashMap, HashSet, VecDeque};

use model::ParticipantId;

/// The most envelopes, and the most requests with addressees, that the log remembers.
pub const REQUESTS_MAX: usize = 4096;
/// The most requests that the log remembers under one id: an id is globally unique (MCPx v0.1, section 3).
const ASKERS_MAX: usize = 4;

#[derive(Debug)]
struct Asked {
    asker: ParticipantId,
    to: Box<[Box<str>]>,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    acted: HashSet<(ParticipantId, Box<str>)>,
    acted_order: VecDeque<(ParticipantId, Box<str>)>,
    asked: HashMap<Box<str>, Vec<Asked>>,
    asked_order: VecDeque<Box<str>>,
}

impl RequestLog {
    /// Whether a receiver has already acted on an envelope of this sender and id; if not, the log remembers it.
    pub(crate) fn is_repeat(&mut self, from: &ParticipantId, id: &str) -> bool {
        let key = (from.clone(), Box::from(id));
        if !self.acted.insert(key.clone()) {
            return true;
        }
        self.acted_order.push_back(key);
        if self.acted_order.len() > REQUESTS_MAX
            && let Some(oldest) = self.acted_order.pop_front()
        {
            self.acted.remove(&oldest);
        }
        false
    }

    /// Remembers a request. Any participant may answer a request that names none.
    pub(crate) fn ask(&mut self, asker: &ParticipantId, id: &str, to: &[&str]) {
        if to.is_empty() {
            return;
        }
        let asked = self.asked.entry(id.into()).or_insert_with(|| {
            self.asked_order.push_back(id.into());
            Vec::with_capacity(1)
        });
        // The first request of its sender counts: a repeated id changes nothing.
        if asked.len() < ASKERS_MAX && asked.iter().all(|one| one.asker != *asker) {
            let to = to.iter().map(|to| Box::from(*to)).collect();
            asked.push(Asked { asker: asker.clone(), to });
        }
        if self.asked_order.len() > REQUESTS_MAX
            && let Some(oldest) = self.asked_order.pop_front()
        {
            self.asked.remove(&oldest);
        }
    }

    /// Whether an answer to these addressees comes from a participant that the request did not name. An answer without addressees
    /// counts as one to the requester.
    pub(crate) fn is_intrusion(&self, from: &str, request: &str, to: &[&str]) -> bool {
        let Some(asked) = self.asked.get(request) else { return false };
        let is_meant = |one: &&Asked| to.is_empty() || to.contains(&one.asker.as_str());
        let mut meant = asked.iter().filter(is_meant).peekable();
        meant.peek().is_some() && !meant.any(|one| one.to.iter().any(|to| **to == *from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ParticipantId {
        ParticipantId::new(name).unwrap()
    }

    #[test]
    fn the_same_id_of_the_same_sender_counts_once() {
        let mut log = RequestLog::default();
        let [ann, bob, cid] = ["ann", "bob", "cid"].map(id);
        assert!(!log.is_repeat(&ann, "a"));
        assert!(log.is_repeat(&ann, "a"));
        assert!(!log.is_repeat(&bob, "a"));
        (0..REQUESTS_MAX).for_each(|number| assert!(!log.is_repeat(&cid, &number.to_string())));
        assert!(!log.is_repeat(&ann, "a"), "the oldest are forgotten");
        assert_eq!(log.acted.len(), REQUESTS_MAX);
    }

    #[test]
    fn only_a_participant_that_was_asked_answers() {
        let mut log = RequestLog::default();
        log.ask(&id("ann"), "1", &["bob", "cid"]);
        // The request is ann's: later requests under the same id, of ann or of others, name no further participants.
        log.ask(&id("eve"), "1", &["eve"]);
        log.ask(&id("ann"), "1", &["eve"]);
        log.ask(&id("ann"), "all", &[]);
        for (from, request, to, expected) in [
            ("bob", "1", &["ann"][..], false),
            ("cid", "1", &["ann", "zoe"], false),
            ("bob", "1", &[], false),
            ("eve", "1", &["ann"], true),
            ("dan", "1", &["ann"], true),
            ("dan", "1", &[], true),
            ("eve", "1", &["eve"], false),
            ("dan", "1", &["zoe"], false),
            ("dan", "all", &["ann"], false),
            ("dan", "other", &["ann"], false),
        ] {
            assert_eq!(log.is_intrusion(from, request, to), expected, "{from} {request} {to:?}");
        }
        (0..REQUESTS_MAX).for_each(|number| log.ask(&id("ann"), &format!("x{number}"), &["bob"]));
        assert!(!log.is_intrusion("eve", "1", &["ann"]), "the oldest are forgotten");
        assert!(log.is_intrusion("eve", "x1", &["ann"]));
    }
}
