//! Latest requests of a room, to detect repeated envelopes and answers of participants that the
//! request did not name (MCPx v0.1, sections 3 and 4.3).

use std::collections::{HashMap, HashSet};

use model::{Latest, ParticipantId};

use crate::members::account;

/// The most envelopes, and the most requests with addressees, that the log remembers. Beyond it the
/// participant that has most loses its oldest.
pub const REQUESTS_MAX: usize = 4096;
/// The most requests that the log remembers under one id: an id is globally unique (MCPx v0.1,
/// section 3).
const ASKERS_MAX: usize = 4;

/// A request that is remembered, with the participants that it names.
#[derive(Debug)]
struct Asked {
    asker: ParticipantId,
    to: Box<[Box<str>]>,
}

/// An envelope that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sent {
    from: ParticipantId,
    id: Box<str>,
}

impl Sent {
    fn new(from: &ParticipantId, id: &str) -> Self {
        Self {
            from: from.clone(),
            id: id.into(),
        }
    }
}

/// The log.
#[derive(Debug)]
pub(crate) struct RequestLog {
    acted: HashSet<Sent>,
    acted_order: Latest<Sent>,
    asked: HashMap<Box<str>, Vec<Asked>>,
    asked_order: Latest<Sent>,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl RequestLog {
    /// An empty log. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            acted: HashSet::new(),
            acted_order: Latest::default(),
            asked: HashMap::new(),
            asked_order: Latest::default(),
            guests,
        }
    }

    /// Whether a receiver has already acted on an envelope of this sender and id; if not, the log
    /// remembers it.
    pub(crate) fn is_repeat(&mut self, from: &ParticipantId, id: &str) -> bool {
        let sent = Sent::new(from, id);
        if !self.acted.insert(sent.clone()) {
            return true;
        }
        self.acted_order.push(account(from, self.guests), 1, sent);
        for oldest in self.acted_order.shrink(REQUESTS_MAX, usize::MAX) {
            self.acted.remove(&oldest);
        }
        false
    }

    /// Remembers a request. Any participant may answer a request that names none.
    pub(crate) fn ask(&mut self, asker: &ParticipantId, id: &str, to: &[&str]) {
        if to.is_empty() {
            return;
        }
        let asked = self
            .asked
            .entry(id.into())
            .or_insert_with(|| Vec::with_capacity(1));
        // The first request of its sender counts: a repeated id changes nothing.
        if asked.len() >= ASKERS_MAX || asked.iter().any(|one| one.asker == *asker) {
            return;
        }
        let to = to.iter().map(|to| Box::from(*to)).collect();
        asked.push(Asked {
            asker: asker.clone(),
            to,
        });
        self.asked_order
            .push(account(asker, self.guests), 1, Sent::new(asker, id));
        for oldest in self.asked_order.shrink(REQUESTS_MAX, usize::MAX) {
            let Some(asked) = self.asked.get_mut(&oldest.id) else {
                continue;
            };
            asked.retain(|one| one.asker != oldest.from);
            if asked.is_empty() {
                self.asked.remove(&oldest.id);
            }
        }
    }

    /// Whether an answer to these addressees comes from a participant that the request did not
    /// name. An answer without addressees counts as one to the requester.
    pub(crate) fn is_intrusion(&self, from: &str, request: &str, to: &[&str]) -> bool {
        let Some(asked) = self.asked.get(request) else {
            return false;
        };
        let mut is_answer = false;
        for one in asked {
            if !to.is_empty() && !to.contains(&one.asker.as_str()) {
                continue;
            }
            if one.to.iter().any(|name| **name == *from) {
                return false;
            }
            is_answer = true;
        }
        // Of an answer to no requester that is remembered nothing is known.
        is_answer
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
        let mut log = RequestLog::new("");
        let [ann, bob, cid] = ["ann", "bob", "cid"].map(id);
        assert!(!log.is_repeat(&ann, "a"));
        assert!(log.is_repeat(&ann, "a"));
        assert!(!log.is_repeat(&bob, "a"));
        (0..REQUESTS_MAX).for_each(|number| assert!(!log.is_repeat(&cid, &number.to_string())));
        assert!(
            !log.is_repeat(&cid, "0") && log.is_repeat(&cid, "9"),
            "its oldest are forgotten"
        );
        assert!(
            log.is_repeat(&ann, "a") && log.is_repeat(&bob, "a"),
            "it pushed out no other's"
        );
        assert_eq!(log.acted.len(), REQUESTS_MAX);
    }

    #[test]
    fn only_a_participant_that_was_asked_answers() {
        let mut log = RequestLog::new("");
        log.ask(&id("ann"), "1", &["bob", "cid"]);
        // The request is ann's: later requests under the same id, of ann or of others, name no
        // further participants.
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
            assert_eq!(
                log.is_intrusion(from, request, to),
                expected,
                "{from} {request} {to:?}"
            );
        }
        (0..REQUESTS_MAX).for_each(|number| log.ask(&id("cid"), &format!("x{number}"), &["bob"]));
        assert!(
            log.is_intrusion("dan", "1", &["ann"]),
            "it pushed out no other's"
        );
        assert!(
            !log.is_intrusion("eve", "x0", &["cid"]),
            "its oldest are forgotten"
        );
        assert!(log.is_intrusion("eve", "x9", &["cid"]));
        assert_eq!(log.asked.len(), REQUESTS_MAX - 1, "two asked under one id");
    }

    #[test]
    fn guests_have_the_places_of_one_participant() {
        let mut log = RequestLog::new("guest-");
        assert!(!log.is_repeat(&id("ann"), "a") && !log.is_repeat(&id("ann"), "b"));
        (0..REQUESTS_MAX)
            .for_each(|number| assert!(!log.is_repeat(&id(&format!("guest-{number}")), "a")));
        assert!(log.is_repeat(&id("ann"), "a") && log.is_repeat(&id("ann"), "b"));
        assert!(!log.is_repeat(&id("guest-0"), "a"));
    }
}
