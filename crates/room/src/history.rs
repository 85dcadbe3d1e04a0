//! What was said lately, for whoever comes late: numbered, bounded, gone with the process (design, section 6, `history`).

use std::collections::VecDeque;

use bytes::Bytes;

use super::item::Said;
use super::run::{Listener, hears};

/// The last envelopes of a room. Offsets count within an epoch; another process is another epoch.
pub(super) struct History {
    epoch: u64,
    kept_max: usize,
    next: u64,
    kept: VecDeque<Said>,
}

/// What a newcomer gets.
pub(super) struct Missed {
    pub(super) epoch: u64,
    /// The offset of the next envelope that will be said.
    pub(super) next: u64,
    /// Whether this is everything since the offset that was asked for.
    pub(super) complete: bool,
    pub(super) envelopes: Vec<Bytes>,
}

impl Missed {
    /// Adds it to a welcome's payload: `history`, with the envelopes as they were said.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { epoch, next, complete, envelopes } = self;
        let head = format!(
            ",\"history\":{{\"epoch\":{epoch},\"offset\":{next},\"complete\":{complete},\"envelopes\":["
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&envelopes.join(b",".as_slice()));
        out.extend_from_slice(b"]}");
    }
}

impl History {
    pub(super) fn new(epoch: u64, kept_max: usize) -> Self {
        Self { epoch, kept_max, next: 0, kept: VecDeque::new() }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.kept_max > 0
    }

    pub(super) fn keep(&mut self, said: &Said) {
        self.next += 1;
        if self.kept_max == 0 {
            return;
        }
        if self.kept.len() >= self.kept_max {
            self.kept.pop_front();
        }
        let Said { link, envelope, to, kind, reach } = said;
        self.kept.push_back(Said {
            link: *link,
            // A slice would hold all that was read with it.
            envelope: Bytes::copy_from_slice(envelope),
            to: to.clone(),
            kind: kind.clone(),
            reach: reach.clone(),
        });
    }

    /// What this listener would have heard since then; without a `since`, all that is kept.
    pub(super) fn missed(&self, since: Option<(u64, u64)>, listener: &Listener<'_>) -> Missed {
        let first = self.next.saturating_sub(self.kept.len() as u64);
        let wanted = match since {
            Some((epoch, offset)) if epoch == self.epoch => offset.min(self.next),
            Some(_) | None => 0,
        };
        let known = since.is_none_or(|(epoch, _)| epoch == self.epoch);
        let skip = usize::try_from(wanted.saturating_sub(first)).unwrap_or(usize::MAX);
        let envelopes = self.kept.iter().skip(skip).filter(|said| hears(listener, said));
        Missed {
            epoch: self.epoch,
            next: self.next,
            complete: known && wanted >= first,
            envelopes: envelopes.map(|said| said.envelope.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::LinkId;
    use topic::Ear;

    use super::super::item::Reach;
    use super::*;

    #[test]
    fn what_was_read_with_an_envelope_is_not_held() {
        let read = Bytes::from(vec![b'x'; 4096]);
        let (to, kind, reach) = (Box::default(), "chat".into(), Reach::Ears);
        let mut history = History::new(7, 1);
        history.keep(&Said { link: None, envelope: read.slice(..2), to, kind, reach });
        assert!(read.is_unique());
        assert_eq!(history.kept[0].envelope, "xx");
    }

    #[test]
    fn a_latecomer_knows_whether_it_missed_something() {
        let mut history = History::new(7, 3);
        for number in 0..5 {
            history.keep(&Said {
                link: None,
                envelope: format!("{number}").into(),
                to: Box::new([]),
                kind: "chat".into(),
                reach: Reach::Ears,
            });
        }
        let listener = Listener { link: LinkId(1), id: "a", ear: Ear::All, echo: true, from: 0 };
        let check = |since, expected: (&[&str], bool)| {
            let missed = history.missed(since, &listener);
            assert_eq!((missed.epoch, missed.next), (7, 5));
            let texts: Vec<_> =
                missed.envelopes.iter().map(|e| String::from_utf8_lossy(e).into_owned()).collect();
            assert_eq!(
                (texts.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), missed.complete),
                expected
            );
        };
        check(None, (&["2", "3", "4"], false));
        check(Some((7, 2)), (&["2", "3", "4"], true));
        check(Some((7, 4)), (&["4"], true));
        check(Some((7, 5)), (&[], true));
        check(Some((7, 9)), (&[], true));
        check(Some((7, 1)), (&["2", "3", "4"], false));
        check(Some((6, 5)), (&["2", "3", "4"], false));
    }
}
