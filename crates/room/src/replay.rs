//! Replay for late joiners (`history`): the last envelopes, numbered, bounded, lost with the process.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::batch::{Recipient, receives};
use crate::event::Message;

/// The last envelopes of a room. Offsets count within an epoch; each process has an epoch of its own.
pub(crate) struct Replay {
    epoch: u64,
    kept_max: usize,
    next: u64,
    kept: VecDeque<Message>,
}

/// The part of a replay that one newcomer gets.
pub(crate) struct ReplayPage {
    pub(crate) epoch: u64,
    /// The offset of the next envelope.
    pub(crate) next: u64,
    /// Whether the page has every envelope since the requested offset.
    pub(crate) complete: bool,
    pub(crate) envelopes: Vec<Bytes>,
}

impl ReplayPage {
    /// Adds the page to a welcome's payload, as `history`, with the envelopes unchanged.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Self { epoch, next, complete, envelopes } = self;
        let head = format!(
            ",\"history\":{{\"epoch\":{epoch},\"offset\":{next},\"complete\":{complete},\"envelopes\":["
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&envelopes.join(b",".as_slice()));
        out.extend_from_slice(b"]}");
    }
}

impl Replay {
    pub(crate) fn new(epoch: u64, kept_max: usize) -> Self {
        Self { epoch, kept_max, next: 0, kept: VecDeque::new() }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.kept_max > 0
    }

    pub(crate) fn push(&mut self, message: &Message) {
        self.next += 1;
        if self.kept_max == 0 {
            return;
        }
        if self.kept.len() >= self.kept_max {
            self.kept.pop_front();
        }
        let Message { link, envelope, to, kind, audience } = message;
        self.kept.push_back(Message {
            link: *link,
            // A slice would keep the whole read buffer alive.
            envelope: Bytes::copy_from_slice(envelope),
            to: to.clone(),
            kind: kind.clone(),
            audience: audience.clone(),
        });
    }

    /// The envelopes that this recipient would have received since then; without `since`, all kept ones.
    pub(crate) fn page(&self, since: Option<(u64, u64)>, recipient: &Recipient<'_>) -> ReplayPage {
        let first = self.next.saturating_sub(self.kept.len() as u64);
        let wanted = match since {
            Some((epoch, offset)) if epoch == self.epoch => offset.min(self.next),
            Some(_) | None => 0,
        };
        let known = since.is_none_or(|(epoch, _)| epoch == self.epoch);
        let skip = usize::try_from(wanted.saturating_sub(first)).unwrap_or(usize::MAX);
        let envelopes = self.kept.iter().skip(skip).filter(|message| receives(recipient, message));
        ReplayPage {
            epoch: self.epoch,
            next: self.next,
            complete: known && wanted >= first,
            envelopes: envelopes.map(|message| message.envelope.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::LinkId;
    use topic::Ear;

    use super::*;
    use crate::event::Audience;

    #[test]
    fn the_read_buffer_of_an_envelope_is_freed() {
        let read = Bytes::from(vec![b'x'; 4096]);
        let (to, kind, audience) = (Box::default(), "chat".into(), Audience::Matching);
        let mut replay = Replay::new(7, 1);
        replay.push(&Message { link: None, envelope: read.slice(..2), to, kind, audience });
        assert!(read.is_unique());
        assert_eq!(replay.kept[0].envelope, "xx");
    }

    #[test]
    fn a_page_reports_whether_it_is_complete() {
        let mut replay = Replay::new(7, 3);
        for number in 0..5 {
            replay.push(&Message {
                link: None,
                envelope: format!("{number}").into(),
                to: Box::new([]),
                kind: "chat".into(),
                audience: Audience::Matching,
            });
        }
        let recipient = Recipient { link: LinkId(1), id: "a", ear: Ear::All, echo: true, from: 0 };
        let check = |since, expected: (&[&str], bool)| {
            let page = replay.page(since, &recipient);
            assert_eq!((page.epoch, page.next), (7, 5));
            let texts: Vec<_> =
                page.envelopes.iter().map(|e| String::from_utf8_lossy(e).into_owned()).collect();
            assert_eq!(
                (texts.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), page.complete),
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
