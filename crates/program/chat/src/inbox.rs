//! The inbox: proposals that wait for a decision, by number, and the one whose card is open.

use std::collections::VecDeque;

use review::ProposalDetails;

/// Decided proposals whose numbers are remembered; older ones are forgotten.
pub const NUMBERS_MAX: usize = 1024;
/// Time after a change that the person did not make in which no key decides, in milliseconds.
pub const SETTLE_MS: u64 = 400;
/// Time after other arguments or another definition came in which nothing is decided about a proposal,
/// in milliseconds: what the person types may be meant for what it was before.
pub const REREAD_MS: u64 = 2_000;

/// A pending proposal with its number in this session.
#[derive(Debug, Clone)]
pub struct InboxItem {
    /// Its number; numbers are not used again.
    pub number: usize,
    /// The proposal.
    pub proposal: ProposalDetails,
    /// When the person was shown something else before, in Unix milliseconds.
    pub changed_ms: Option<u64>,
}

impl InboxItem {
    /// Whether it has just changed.
    pub(crate) fn is_to_reread(&self, now_ms: u64) -> bool {
        self.changed_ms
            .is_some_and(|changed_ms| now_ms < changed_ms + REREAD_MS)
    }
}

#[derive(Debug)]
struct Numbered {
    id: String,
    by: String,
    envelope: String,
    number: usize,
    /// It has been decided, withdrawn or has expired, whatever an earlier look at the gateway
    /// finds.
    is_closed: bool,
}

/// The pending proposals that the person may see, oldest first.
#[derive(Debug, Default)]
pub struct Inbox {
    items: Vec<InboxItem>,
    numbers: VecDeque<Numbered>,
    last_number: usize,
    /// The id of the proposal whose card is open.
    selected: Option<String>,
    /// The first row of the card that is shown.
    pub(crate) scroll: usize,
    /// Rows of the card that were shown, from its beginning.
    pub(crate) seen_rows: usize,
    /// Until when no key decides, in Unix milliseconds.
    pub(crate) settled_ms: u64,
}

impl Inbox {
    /// All pending proposals.
    #[must_use]
    pub fn items(&self) -> &[InboxItem] {
        &self.items
    }

    /// The proposal whose card is open.
    #[must_use]
    pub fn selected(&self) -> Option<&InboxItem> {
        self.get(self.selected.as_deref()?)
    }

    /// The place of the selected one.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.items
            .iter()
            .position(|item| Some(item.proposal.id.as_str()) == self.selected.as_deref())
    }

    pub(crate) fn get(&self, id: &str) -> Option<&InboxItem> {
        self.items.iter().find(|item| item.proposal.id == id)
    }

    /// The number of a proposal, decided or not.
    pub(crate) fn number(&self, by: &str, envelope: &str) -> Option<usize> {
        let mut numbered = self.numbers.iter().rev();
        numbered
            .find(|one| one.by == by && one.envelope == envelope)
            .map(|one| one.number)
    }

    /// The number of a proposal by the gateway's id.
    pub(crate) fn number_of(&self, id: &str) -> usize {
        self.numbers
            .iter()
            .rev()
            .find(|one| one.id == id)
            .map_or(0, |one| one.number)
    }

    /// The pending proposal with this number, or whose id begins with this text.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn find(&self, which: &str) -> Result<&InboxItem, &'static str> {
        let number: Option<usize> = which.trim_start_matches('#').parse().ok();
        if let Some(item) = self.items.iter().find(|item| Some(item.number) == number) {
            return Ok(item);
        }
        let mut meant = self.items.iter().filter(|item| {
            // Every id begins with an empty text, which means none.
            !which.is_empty()
                && (item.proposal.id.starts_with(which) || item.proposal.envelope == which)
        });
        match (meant.next(), meant.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => {
                Err("The ids of several open proposals begin so; write more of it.")
            }
            (None, _) => Err("There is no such open proposal; /proposals lists the open ones."),
        }
    }

    /// Takes the proposals that are pending now. Returns those that have come, and those that are
    /// other ones than they were.
    pub(crate) fn set(&mut self, pending: Vec<ProposalDetails>, now_ms: u64) -> Vec<InboxItem> {
        let position = self.position();
        let mut come = Vec::new();
        let mut items = Vec::with_capacity(pending.len());
        let closed = |id: &str| self.numbers.iter().any(|one| one.is_closed && one.id == id);
        let pending: Vec<ProposalDetails> =
            pending.into_iter().filter(|one| !closed(&one.id)).collect();
        for proposal in pending {
            let known = self.get(&proposal.id);
            let is_other = known.is_some_and(|item| item.proposal.digest != proposal.digest);
            let changed_ms = match known {
                Some(_) if is_other => Some(now_ms),
                Some(item) => item.changed_ms,
                None => None,
            };
            let is_new = known.is_none();
            let number = known.map(|item| item.number);
            let number = number.unwrap_or_else(|| self.give_number(&proposal));
            let item = InboxItem {
                number,
                proposal,
                changed_ms,
            };
            if is_new || is_other {
                come.push(item.clone());
            }
            items.push(item);
        }
        self.items = items;
        if self
            .selected()
            .is_some_and(|item| item.changed_ms == Some(now_ms))
        {
            // It is another request than the one that was read.
            self.open(self.selected.clone());
        }
        if self.selected().is_none() {
            // The card that was open is gone: the one in its place opens, and no key meant for the
            // other decides it.
            let place = position
                .unwrap_or_default()
                .min(self.items.len().saturating_sub(1));
            let next = self.items.get(place).map(|item| item.proposal.id.clone());
            self.open(next);
            self.settled_ms = now_ms + SETTLE_MS;
        }
        come
    }

    /// Removes a proposal that does not wait any more, before the gateway is asked again.
    pub(crate) fn close(&mut self, by: &str, envelope: &str, now_ms: u64) {
        for one in self
            .numbers
            .iter_mut()
            .filter(|one| one.by == by && one.envelope == envelope)
        {
            one.is_closed = true;
        }
        self.set(
            self.items
                .iter()
                .map(|item| item.proposal.clone())
                .collect(),
            now_ms,
        );
    }

    fn give_number(&mut self, proposal: &ProposalDetails) -> usize {
        if let Some(numbered) = self.numbers.iter().find(|one| one.id == proposal.id) {
            return numbered.number;
        }
        self.last_number += 1;
        let number = self.last_number;
        let ProposalDetails {
            id, by, envelope, ..
        } = proposal.clone();
        self.numbers.push_back(Numbered {
            id,
            by,
            envelope,
            number,
            is_closed: false,
        });
        if self.numbers.len() > NUMBERS_MAX {
            self.numbers.pop_front();
        }
        number
    }

    /// Opens the card of this proposal.
    pub(crate) fn select(&mut self, id: &str) {
        if self.selected.as_deref() != Some(id) && self.get(id).is_some() {
            self.open(Some(id.to_owned()));
        }
    }

    fn open(&mut self, id: Option<String>) {
        self.selected = id;
        (self.scroll, self.seen_rows) = (0, 0);
    }

    /// Opens the card `by` places further down.
    pub(crate) fn step(&mut self, by: isize) {
        let Some(at) = self.position() else { return };
        let next = at
            .saturating_add_signed(by)
            .min(self.items.len().saturating_sub(1));
        if let Some(id) = self.items.get(next).map(|item| item.proposal.id.clone()) {
            self.select(&id);
        }
    }

    /// Notes that rows of the open card are on the screen, `height` from the scroll on.
    pub(crate) fn note_shown(&mut self, height: usize) {
        if self.scroll <= self.seen_rows {
            self.seen_rows = self.seen_rows.max(self.scroll + height);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests_support::proposal;

    fn all(ids: &[&str]) -> Vec<ProposalDetails> {
        ids.iter().map(|id| proposal(id, &json!({}))).collect()
    }

    fn numbers(inbox: &Inbox) -> Vec<usize> {
        inbox.items().iter().map(|item| item.number).collect()
    }

    #[test]
    fn numbers_stay_and_are_not_used_again() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.set(all(&["a", "b"]), 0).len(), 2);
        assert_eq!(
            inbox
                .set(all(&["b", "c"]), 0)
                .iter()
                .map(|item| item.number)
                .collect::<Vec<_>>(),
            [3]
        );
        assert_eq!(numbers(&inbox), [2, 3]);
        // One that was away keeps its number.
        inbox.set(all(&["a", "c"]), 0);
        assert_eq!(numbers(&inbox), [1, 3]);
        assert_eq!(
            (inbox.number("scout", "e-b"), inbox.number("boss", "e-b")),
            (Some(2), None)
        );
        assert_eq!((inbox.number_of("b"), inbox.number_of("x")), (2, 0));
    }

    #[test]
    fn remembered_numbers_have_a_limit() {
        let mut inbox = Inbox::default();
        for number in 0..=NUMBERS_MAX {
            inbox.set(all(&[&format!("p{number}")]), 0);
        }
        assert_eq!(inbox.numbers.len(), NUMBERS_MAX);
        assert_eq!((inbox.number_of("p0"), inbox.number_of("p1")), (0, 2));
    }

    #[test]
    fn a_proposal_is_found_by_its_number_and_the_beginning_of_its_id() {
        let mut inbox = Inbox::default();
        inbox.set(all(&["ab1", "ab2", "2c"]), 0);
        for (which, expect) in [
            ("1", Ok("ab1")),
            ("#1", Ok("ab1")),
            ("ab2", Ok("ab2")),
            // A number goes before the beginning of an id.
            ("2", Ok("ab2")),
            ("2c", Ok("2c")),
            ("e-2c", Ok("2c")),
            ("ab", Err("The ids of several")),
            ("x", Err("There is no such")),
            ("", Err("There is no such")),
            ("7", Err("There is no such")),
        ] {
            match (inbox.find(which), expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found.proposal.id, expect, "{which}"),
                (Err(why), Err(expect)) => assert!(why.starts_with(expect), "{which}: {why}"),
                (found, _) => panic!("{which}: {found:?}"),
            }
        }
    }

    #[test]
    fn no_key_decides_a_card_that_opened_by_itself() {
        let mut inbox = Inbox::default();
        inbox.set(all(&["a", "b", "c"]), 0);
        inbox.step(1);
        (inbox.settled_ms, inbox.scroll, inbox.seen_rows) = (0, 3, 9);
        // An arrival leaves the open card as it is.
        inbox.set(all(&["a", "b", "c", "d"]), 1_000);
        assert_eq!(
            (
                inbox.selected().unwrap().number,
                inbox.settled_ms,
                inbox.scroll
            ),
            (2, 0, 3)
        );
        // The open one is decided: the one in its place opens, unread.
        inbox.set(all(&["a", "c", "d"]), 2_000);
        let opened = (
            inbox.selected().unwrap().number,
            inbox.settled_ms,
            inbox.scroll,
            inbox.seen_rows,
        );
        assert_eq!(opened, (3, 2_000 + SETTLE_MS, 0, 0));
        inbox.set(all(&[]), 3_000);
        assert!(inbox.selected().is_none() && inbox.position().is_none());
        inbox.step(1);
    }

    #[test]
    fn a_card_whose_request_changes_is_unread_again() {
        let request = |id: &str, digest: &str| proposal(id, &json!({ "digest": digest }));
        let mut inbox = Inbox::default();
        inbox.set(vec![request("a", "1"), request("b", "1")], 0);
        (inbox.scroll, inbox.seen_rows) = (3, 9);
        let come = inbox.set(vec![request("a", "1"), request("b", "2")], 1_000);
        assert_eq!(come.len(), 1);
        assert_eq!((&*come[0].proposal.id, inbox.seen_rows), ("b", 9));
        let come = inbox.set(vec![request("a", "2"), request("b", "2")], 2_000);
        assert_eq!((come.len(), inbox.scroll, inbox.seen_rows), (1, 0, 0));
        inbox.seen_rows = 9;
        // It stays the same one, and can be decided a little later.
        assert!(inbox.set(vec![request("a", "2")], 3_000).is_empty());
        assert_eq!(inbox.seen_rows, 9);
        let item = inbox.get("a").unwrap();
        assert!(item.is_to_reread(2_000 + REREAD_MS - 1));
        assert!(!item.is_to_reread(2_000 + REREAD_MS));
    }

    #[test]
    fn what_is_closed_does_not_come_back_with_an_earlier_look() {
        let mut inbox = Inbox::default();
        inbox.set(all(&["a", "b"]), 0);
        inbox.close("scout", "e-a", 0);
        assert_eq!(numbers(&inbox), [2]);
        assert!(inbox.set(all(&["a", "b"]), 0).is_empty());
        assert_eq!(
            (numbers(&inbox), inbox.number("scout", "e-a")),
            (vec![2], Some(1))
        );
        // The same envelope id of another proposer is another proposal.
        inbox.close("mallory", "e-b", 0);
        assert_eq!(numbers(&inbox), [2]);
    }

    #[test]
    fn only_rows_without_a_gap_before_them_count_as_seen() {
        let mut inbox = Inbox::default();
        inbox.set(all(&["a"]), 0);
        inbox.note_shown(10);
        inbox.scroll = 20;
        inbox.note_shown(10);
        assert_eq!(inbox.seen_rows, 10);
        inbox.scroll = 10;
        inbox.note_shown(10);
        assert_eq!(inbox.seen_rows, 20);
    }
}
