//! All channels with one other incarnation.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::channel::{Channel, Closed};
use super::frame::{ChannelId, Content, Frame, Piece, Purpose, Reset};
use super::limits::{
    CHANNELS_MAX, ENDED_CHANNELS_MAX, NODE_WAITING_BYTES_MAX, RESEND_AFTER, RESEND_AFTER_MAX,
};
use crate::window::Window;

/// Channels with one other incarnation.
#[derive(Debug, Default)]
pub(super) struct Peer {
    next: u64,
    own: usize,
    channels: HashMap<ChannelId, Channel>,
    /// Bytes of all channels that wait to be read.
    waiting: u64,
    /// Channels of the other side that were taken up: none is twice.
    taken: Window,
    ended: HashMap<ChannelId, Ended>,
    ended_in_order: VecDeque<ChannelId>,
    /// Frames to be sent.
    pub(super) out: VecDeque<Frame>,
}

/// A channel that has ended.
#[derive(Debug)]
enum Ended {
    /// Both sides had said all: pieces that come again were received up to this number.
    Done(u64),
    /// It was closed before its end, and the other side may not know.
    Closed(Again),
    /// It was closed before its end, and the other side knows.
    Known(Reset),
}

#[derive(Debug)]
struct Again {
    why: Reset,
    at: Duration,
    after: Duration,
}

impl Peer {
    /// Opens a channel; `None` when there are [`CHANNELS_MAX`].
    pub(super) fn open(&mut self, purpose: Purpose) -> Option<ChannelId> {
        if self.own >= CHANNELS_MAX {
            return None;
        }
        let channel = ChannelId {
            is_own: true,
            number: self.next,
        };
        self.next += 1;
        self.own += 1;
        self.channels.insert(channel, Channel::new(purpose));
        Some(channel)
    }

    pub(super) fn get(&mut self, channel: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(&channel)
    }

    /// Puts a piece into a channel; whether there was room.
    pub(super) fn put(&mut self, now: Duration, channel: ChannelId, piece: Piece) -> bool {
        let content = self.get(channel).and_then(|one| one.put(now, piece));
        let has_room = content.is_some();
        self.send(channel, content);
        has_room
    }

    /// The next piece of a channel.
    pub(super) fn take(&mut self, channel: ChannelId) -> Option<Piece> {
        let piece = self.counted(channel, Channel::take)?;
        self.answer(channel);
        piece
    }

    /// Acts on a channel, and counts what waits in it afterwards.
    fn counted<T>(&mut self, channel: ChannelId, act: impl FnOnce(&mut Channel) -> T) -> Option<T> {
        let one = self.channels.get_mut(&channel)?;
        let before = one.waiting();
        let result = act(one);
        self.waiting = self.waiting + one.waiting() - before;
        Some(result)
    }

    /// Closes a channel before its end, unless it has ended.
    pub(super) fn reset(&mut self, now: Duration, channel: ChannelId, why: Reset) {
        let closes = self.counted(channel, |closing| {
            let was_open = closing.closed().is_none();
            closing.close(Closed::ByUs(why));
            was_open
        });
        if closes == Some(true) {
            self.send(channel, Some(Content::Reset(why)));
            let again = Again {
                why,
                at: now + RESEND_AFTER,
                after: RESEND_AFTER,
            };
            self.note_end(channel, Ended::Closed(again));
        }
    }

    /// Leaves a channel which no one uses any more: it ends when the other side has received all,
    /// or is closed at once if not all was said.
    pub(super) fn leave(&mut self, now: Duration, channel: ChannelId) {
        let Some(one) = self.get(channel) else {
            return;
        };
        if one.closed().is_none() && one.may_be_left() {
            self.counted(channel, Channel::leave);
            self.answer(channel);
            return self.remove_if_done(channel);
        }
        self.reset(now, channel, Reset::Cancelled);
        self.remove(channel);
    }

    fn remove(&mut self, channel: ChannelId) -> Option<Channel> {
        let gone = self.channels.remove(&channel)?;
        self.own -= usize::from(channel.is_own);
        self.waiting -= gone.waiting();
        Some(gone)
    }

    fn remove_if_done(&mut self, channel: ChannelId) {
        let is_done = self
            .get(channel)
            .is_some_and(|one| one.is_left() && one.is_done());
        if is_done && let Some(gone) = self.remove(channel) {
            self.note_end(channel, Ended::Done(gone.received()));
        }
    }

    /// Ends all channels: the other incarnation has ended.
    pub(super) fn end(&mut self) {
        for channel in self.channels.values_mut() {
            channel.close(Closed::PeerEnded);
        }
    }

    /// Ends all channels, and says nothing more of them: the other incarnation does not answer. If it
    /// does later, it learns that they have ended, and none is taken up again.
    pub(super) fn lose(&mut self) {
        let open: Vec<ChannelId> = self.channels.keys().copied().collect();
        for channel in open {
            self.counted(channel, |one| one.close(Closed::PeerEnded));
            self.note_end(channel, Ended::Known(Reset::Cancelled));
        }
        for ended in self.ended.values_mut() {
            if let Ended::Closed(again) = ended {
                *ended = Ended::Known(again.why);
            }
        }
        self.out.clear();
    }

    /// Takes a frame in; returns a channel that the other side has opened with it.
    pub(super) fn receive(&mut self, now: Duration, frame: Frame) -> Option<ChannelId> {
        let channel = frame.channel;
        let mut opened = None;
        if let (Content::Data { purpose, .. }, false) = (&frame.content, self.knows(channel)) {
            opened = self.take_up(channel, *purpose);
        }
        let is_open = self
            .channels
            .get(&channel)
            .is_some_and(|one| one.closed().is_none());
        if is_open {
            self.give_channel(now, channel, frame.content);
        } else {
            self.answer_for_ended(channel, &frame.content);
        }
        opened
    }

    fn knows(&self, channel: ChannelId) -> bool {
        let is_taken = !channel.is_own && !self.taken.is_new(channel.number);
        channel.is_own || is_taken
    }

    /// Takes a channel of the other side up, or refuses it, for good.
    fn take_up(&mut self, channel: ChannelId, purpose: Purpose) -> Option<ChannelId> {
        self.taken.note(channel.number);
        if self.channels.len() - self.own >= CHANNELS_MAX {
            self.note_end(channel, Ended::Known(Reset::Busy));
            return None;
        }
        self.channels.insert(channel, Channel::new(purpose));
        Some(channel)
    }

    fn give_channel(&mut self, now: Duration, channel: ChannelId, content: Content) {
        let mut again = Ok(None);
        match content {
            Content::Data { number, piece, .. } => {
                let keeps_rules = self.counted(channel, |one| one.receive(number, piece));
                if keeps_rules == Some(false) {
                    again = Err(Reset::Overrun);
                }
            }
            Content::Acknowledge { next, may, has_gap } => {
                if let Some(one) = self.get(channel) {
                    again = one.acknowledged(now, next, may, has_gap);
                }
            }
            Content::Probe => {
                self.get(channel).map(Channel::must_acknowledge);
            }
            Content::Reset(why) => return self.closed_by_peer(channel, why),
            Content::ResetSeen => {}
        }
        match again {
            Ok(again) => self.send(channel, again),
            Err(why) => return self.reset(now, channel, why),
        }
        self.keep_share(now);
        self.answer(channel);
        self.remove_if_done(channel);
    }

    fn closed_by_peer(&mut self, channel: ChannelId, why: Reset) {
        self.counted(channel, |one| one.close(Closed::ByPeer(why)));
        self.send(channel, Some(Content::ResetSeen));
        self.note_end(channel, Ended::Known(why));
        if self.get(channel).is_some_and(|one| one.is_left()) {
            self.remove(channel);
        }
    }

    /// The greediest channel pays if too much waits to be read.
    fn keep_share(&mut self, now: Duration) {
        if self.waiting <= NODE_WAITING_BYTES_MAX {
            return;
        }
        let open = self
            .channels
            .iter()
            .filter(|(_, one)| one.closed().is_none());
        let most = open.max_by_key(|(_, one)| one.waiting());
        if let Some(channel) = most.map(|(channel, _)| *channel) {
            self.reset(now, channel, Reset::Overrun);
        }
    }

    /// Answers a frame of a channel that is gone.
    fn answer_for_ended(&mut self, channel: ChannelId, content: &Content) {
        match content {
            Content::ResetSeen => {
                if let Some(ended) = self.ended.get_mut(&channel)
                    && let Ended::Closed(again) = ended
                {
                    *ended = Ended::Known(again.why);
                }
            }
            Content::Reset(why) => {
                // It may have come before the first piece, which then opens nothing.
                if !channel.is_own {
                    self.taken.note(channel.number);
                }
                self.send(channel, Some(Content::ResetSeen));
                if !matches!(self.ended.get(&channel), Some(Ended::Done(_))) {
                    self.note_end(channel, Ended::Known(*why));
                }
            }
            // Its first piece is still under way, or comes again.
            Content::Probe if !self.knows(channel) => {}
            Content::Data { .. } | Content::Probe => {
                let answer = match self.ended.get(&channel) {
                    Some(Ended::Done(next)) => Content::Acknowledge {
                        next: *next,
                        may: 0,
                        has_gap: false,
                    },
                    Some(Ended::Closed(Again { why, .. }) | Ended::Known(why)) => {
                        Content::Reset(*why)
                    }
                    None => Content::Reset(Reset::Unknown),
                };
                self.send(channel, Some(answer));
            }
            Content::Acknowledge { .. } => {}
        }
    }

    fn note_end(&mut self, channel: ChannelId, ended: Ended) {
        if self.ended.insert(channel, ended).is_none() {
            self.ended_in_order.push_back(channel);
        }
        if self.ended_in_order.len() > ENDED_CHANNELS_MAX
            && let Some(oldest) = self.ended_in_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    fn answer(&mut self, channel: ChannelId) {
        let answer = self.get(channel).and_then(Channel::acknowledgement);
        self.send(channel, answer);
    }

    fn send(&mut self, channel: ChannelId, content: Option<Content>) {
        self.out
            .extend(content.map(|content| Frame { channel, content }));
    }

    /// Bytes of all channels that wait to be read.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether nothing is to be sent again or acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        let closing = |ended: &Ended| matches!(ended, Ended::Closed(_));
        self.channels.is_empty() && !self.ended.values().any(closing)
    }

    /// Sends what is owed, and again what has had no answer.
    pub(super) fn again(&mut self, now: Duration) {
        for (channel, one) in &mut self.channels {
            one.pay();
            let contents = [one.acknowledgement(), one.again(now), one.ask(now)];
            let channel = *channel;
            let frames = contents.into_iter().flatten();
            self.out
                .extend(frames.map(|content| Frame { channel, content }));
        }
        for (channel, ended) in &mut self.ended {
            if let Ended::Closed(again) = ended
                && again.at <= now
            {
                again.after = (again.after * 2).min(RESEND_AFTER_MAX);
                again.at = now + again.after;
                self.out.push_back(Frame {
                    channel: *channel,
                    content: Content::Reset(again.why),
                });
            }
        }
    }
}
