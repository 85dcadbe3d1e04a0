//! One side of a channel: numbered pieces both ways, each in its place once, within a credit.
//!
//! No clock, no socket: time goes in, frames come out.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Duration;

use super::frame::{CHUNK_BYTES_MAX, Content, Piece, Purpose, Reset};
use super::limits::{ASK_EVERY, CREDIT_BYTES, PIECE_BYTES, RESEND_AFTER, RESEND_AFTER_MAX};

/// Time between two tries to fill a gap at once.
const GAP_PAUSE: Duration = Duration::from_millis(20);

/// One side of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) purpose: Purpose,
    sending: Sending,
    receiving: Receiving,
    /// The reason for which it was closed, on either side.
    closed: Option<Closed>,
    /// No one uses it any more: it lives until the other side has received all.
    is_left: bool,
    pub(super) readers: Option<Waker>,
    pub(super) writers: Option<Waker>,
    closers: Vec<Waker>,
    /// Time at which the other side was asked whether it still has the channel.
    asked_at: Duration,
}

/// The reason for which a channel was closed before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// By the other side.
    ByPeer(Reset),
    /// By this side.
    ByUs(Reset),
    /// The other side has ended.
    PeerEnded,
}

#[derive(Debug, Default)]
struct Sending {
    /// The number of the next piece.
    next: u64,
    /// Pieces that were not acknowledged, oldest first: the first has the number `next - len`.
    kept: VecDeque<Kept>,
    /// Bytes sent, and bytes that may be sent in all.
    sent: u64,
    may: u64,
    /// Bytes of pieces that were acknowledged.
    acknowledged: u64,
    has_ended: bool,
    wants_credit: bool,
    is_accepted: bool,
    resend_after: Duration,
    probe_at: Option<Duration>,
}

#[derive(Debug)]
struct Kept {
    piece: Piece,
    sent_at: Duration,
}

#[derive(Debug, Default)]
struct Receiving {
    /// The number of the next piece in order.
    next: u64,
    in_order: VecDeque<Piece>,
    early: BTreeMap<u64, Piece>,
    /// Bytes that wait to be read.
    waiting: u64,
    consumed: u64,
    /// Bytes that the other side may send in all, as it was said.
    said: u64,
    has_ended: bool,
    /// An acknowledgement goes out at once, or with the next look at the clock.
    must_acknowledge: bool,
    owes: bool,
}

/// The credit that a piece costs. An end without bytes costs none, so that a channel can end
/// without any.
fn cost(piece: &Piece) -> u64 {
    if piece.ends_stream && piece.bytes.is_empty() {
        return 0;
    }
    PIECE_BYTES + piece.bytes.len() as u64
}

impl Channel {
    pub(super) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            sending: Sending {
                may: CREDIT_BYTES,
                resend_after: RESEND_AFTER,
                ..Sending::default()
            },
            receiving: Receiving {
                said: CREDIT_BYTES,
                ..Receiving::default()
            },
            closed: None,
            is_left: false,
            readers: None,
            writers: None,
            closers: Vec::new(),
            asked_at: Duration::ZERO,
        }
    }

    /// Bytes that may be put in now.
    pub(super) fn room(&self) -> usize {
        let left = self.sending.may.saturating_sub(self.sending.sent);
        let left = left.saturating_sub(PIECE_BYTES);
        usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(CHUNK_BYTES_MAX)
    }

    /// Puts a piece in, and returns its frame; `None` without room, or after the end. An end
    /// without bytes needs no room.
    pub(super) fn put(&mut self, now: Duration, piece: Piece) -> Option<Content> {
        let cost = cost(&piece);
        if self.sending.has_ended || self.closed.is_some() {
            return None;
        }
        let room = self.room();
        if cost > 0 && (room == 0 || piece.bytes.len() > room) {
            return None;
        }
        let sending = &mut self.sending;
        sending.sent += cost;
        sending.has_ended = piece.ends_stream;
        let number = sending.next;
        sending.next += 1;
        sending.kept.push_back(Kept {
            piece: piece.clone(),
            sent_at: now,
        });
        Some(self.data(number, piece))
    }

    /// Asks for an acknowledgement if none comes: one that gave room may have been lost.
    pub(super) fn want_room(&mut self, now: Duration) {
        self.sending.wants_credit = true;
        let after = self.sending.resend_after;
        self.sending.probe_at.get_or_insert(now + after);
    }

    fn data(&self, number: u64, piece: Piece) -> Content {
        Content::Data {
            purpose: self.purpose,
            number,
            piece,
        }
    }

    /// The next piece in order, if one is there.
    pub(super) fn take(&mut self) -> Option<Piece> {
        let receiving = &mut self.receiving;
        let piece = receiving.in_order.pop_front()?;
        let cost = cost(&piece);
        receiving.waiting = receiving.waiting.saturating_sub(cost);
        receiving.consumed += cost;
        // A quarter of the credit is worth a frame.
        if receiving.consumed + CREDIT_BYTES >= receiving.said + CREDIT_BYTES / 4 {
            receiving.must_acknowledge = true;
        }
        Some(piece)
    }

    /// Takes a piece in; whether the other side kept the rules.
    pub(super) fn receive(&mut self, number: u64, piece: Piece) -> bool {
        let receiving = &mut self.receiving;
        if self.closed.is_some() {
            return true;
        }
        // One that was received already: its acknowledgement was lost.
        if number < receiving.next || receiving.early.contains_key(&number) {
            receiving.must_acknowledge = true;
            return true;
        }
        let cost = cost(&piece);
        let is_beyond = receiving.consumed + receiving.waiting + cost > receiving.said;
        if is_beyond || receiving.has_ended || number - receiving.next > CREDIT_BYTES / PIECE_BYTES
        {
            return false;
        }
        receiving.waiting += cost;
        receiving.early.insert(number, piece);
        receiving.owes = true;
        receiving.must_acknowledge |= number > receiving.next || receiving.next == 0;
        while !receiving.has_ended
            && let Some(piece) = receiving.early.remove(&receiving.next)
        {
            receiving.next += 1;
            receiving.has_ended = piece.ends_stream;
            receiving.must_acknowledge |= piece.ends_stream;
            receiving.in_order.push_back(piece);
        }
        // Nothing follows an end.
        if receiving.has_ended && !receiving.early.is_empty() {
            return false;
        }
        if let Some(reader) = self.readers.take() {
            reader.wake();
        }
        true
    }

    /// Takes an acknowledgement in. The oldest piece is sent again at once if the other side sees a
    /// gap; `Err` when it acknowledges what was not sent, or gives more credit than there is.
    pub(super) fn acknowledged(
        &mut self,
        now: Duration,
        next: u64,
        may: u64,
        has_gap: bool,
    ) -> Result<Option<Content>, Reset> {
        let sending = &mut self.sending;
        if next > sending.next {
            return Err(Reset::Overrun);
        }
        // Without its first piece it may be taken up, but there is nothing to act on.
        sending.is_accepted |= next > 0;
        let first = sending.next - sending.kept.len() as u64;
        for _ in first..next {
            let kept = sending.kept.pop_front();
            sending.acknowledged += kept.map_or(0, |kept| cost(&kept.piece));
            sending.resend_after = RESEND_AFTER;
        }
        // It has read no more than it has received.
        if may > sending.acknowledged + CREDIT_BYTES {
            return Err(Reset::Overrun);
        }
        if may > sending.may {
            sending.may = may;
            sending.wants_credit = false;
            sending.probe_at = None;
        }
        if let Some(writer) = self.writers.take() {
            writer.wake();
        }
        let first = self.sending.next - self.sending.kept.len() as u64;
        let oldest = self.sending.kept.front_mut();
        let oldest = oldest.filter(|oldest| has_gap && oldest.sent_at + GAP_PAUSE <= now);
        let again = oldest.map(|oldest| {
            oldest.sent_at = now;
            oldest.piece.clone()
        });
        Ok(again.map(|piece| self.data(first, piece)))
    }

    /// An acknowledgement is sent with the next frames.
    pub(super) fn must_acknowledge(&mut self) {
        self.receiving.must_acknowledge = true;
    }

    /// The acknowledgement that is to be sent, if one is.
    pub(super) fn acknowledgement(&mut self) -> Option<Content> {
        let receiving = &mut self.receiving;
        if !std::mem::take(&mut receiving.must_acknowledge) {
            return None;
        }
        receiving.owes = false;
        receiving.said = receiving.said.max(receiving.consumed + CREDIT_BYTES);
        let has_gap = !receiving.early.is_empty();
        Some(Content::Acknowledge {
            next: receiving.next,
            may: receiving.said,
            has_gap,
        })
    }

    /// Whether all that this side has to say was put in, and all of the other side came.
    pub(super) fn may_be_left(&self) -> bool {
        self.sending.has_ended && self.receiving.has_ended
    }

    /// Leaves the channel, of which nothing will be read any more.
    pub(super) fn leave(&mut self) {
        self.is_left = true;
        self.receiving.in_order.clear();
        self.receiving.waiting = 0;
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left
    }

    /// Has the next acknowledgement carry the bytes that this side owes the sender.
    pub(super) fn pay(&mut self) {
        self.receiving.must_acknowledge |= self.receiving.owes;
    }

    /// Time at which something is sent again.
    fn due(&self) -> Option<Duration> {
        if self.closed.is_some() {
            return None;
        }
        let sending = &self.sending;
        let oldest = sending.kept.front();
        let again = oldest.map(|oldest| oldest.sent_at + sending.resend_after);
        again.into_iter().chain(sending.probe_at).min()
    }

    /// The frame that is sent again, if it is time.
    pub(super) fn again(&mut self, now: Duration) -> Option<Content> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        let sending = &mut self.sending;
        let after = sending.resend_after;
        sending.resend_after = (after * 2).min(RESEND_AFTER_MAX);
        let first = sending.next - sending.kept.len() as u64;
        let wants_credit = sending.wants_credit;
        sending.probe_at = wants_credit.then_some(now + sending.resend_after);
        match sending.kept.front_mut() {
            Some(oldest) if oldest.sent_at + after <= now => {
                oldest.sent_at = now;
                let piece = oldest.piece.clone();
                Some(self.data(first, piece))
            }
            _ => wants_credit.then_some(Content::Probe),
        }
    }

    /// The question whether the other side still has the channel, if someone waits for its end.
    pub(super) fn ask(&mut self, now: Duration) -> Option<Content> {
        if self.closers.is_empty() || self.asked_at + ASK_EVERY > now {
            return None;
        }
        self.asked_at = now;
        Some(Content::Probe)
    }

    /// Closes the channel before its end.
    pub(super) fn close(&mut self, why: Closed) {
        self.closed.get_or_insert(why);
        self.sending.kept.clear();
        self.receiving.early.clear();
        if matches!(why, Closed::ByUs(_)) {
            self.receiving.in_order.clear();
        }
        self.receiving.waiting = self.receiving.in_order.iter().map(cost).sum();
        let users = [self.writers.take(), self.readers.take()];
        let wakers = users.into_iter().flatten().chain(self.closers.drain(..));
        wakers.for_each(Waker::wake);
    }

    /// Wakes a task when the channel is closed, beside all others that wait for it.
    pub(super) fn wake_when_closed(&mut self, waker: &Waker) {
        if !self.closers.iter().any(|one| one.will_wake(waker)) {
            self.closers.push(waker.clone());
        }
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// Whether the other side has the first piece, and so has taken the channel up.
    pub(super) fn is_accepted(&self) -> bool {
        self.sending.is_accepted || self.receiving.next > 0
    }

    /// Whether both sides have said all, and everything was received and read.
    pub(super) fn is_done(&self) -> bool {
        let is_sent = self.sending.has_ended && self.sending.kept.is_empty();
        is_sent && self.receiving.has_ended && self.receiving.in_order.is_empty()
    }

    /// The number after the last piece of the other side.
    pub(super) fn received(&self) -> u64 {
        self.receiving.next
    }

    /// Bytes that wait to be read.
    pub(super) fn waiting(&self) -> u64 {
        self.receiving.waiting
    }

    /// Bytes that wait for their acknowledgement.
    #[cfg(test)]
    pub(super) fn unacknowledged(&self) -> u64 {
        self.sending.kept.iter().map(|kept| cost(&kept.piece)).sum()
    }

    /// Whether all that was put in was acknowledged.
    pub(super) fn is_flushed(&self) -> bool {
        self.sending.kept.is_empty()
    }
}
