//! Batch of frames that the writer sends at once: every frame encoded once, and the part that each member receives.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use model::LinkId;
use smallvec::SmallVec;
use topic::Ear;

use crate::event::{Audience, Message};
use crate::frame::{put_text, text};

/// Frames of this length and more stay in a buffer of their own; shorter ones are joined.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// The position of one frame: piece, start and end.
#[derive(Debug, Clone, Copy)]
struct Position {
    piece: usize,
    start: usize,
    end: usize,
}

/// A frame for one link alone, after so many frames for all.
struct DirectFrame {
    after: usize,
    frame: Bytes,
}

/// A member as the recipient of a batch.
pub(crate) struct Recipient<'a> {
    pub(crate) link: LinkId,
    pub(crate) id: &'a str,
    pub(crate) ear: Ear,
    pub(crate) echo: bool,
    /// The first frame that it may receive.
    pub(crate) from: usize,
}

/// The frames of one batch.
#[derive(Default)]
pub(crate) struct Batch {
    pieces: Vec<Bytes>,
    joining: BytesMut,
    positions: Vec<Position>,
    messages: Vec<Message>,
    direct: HashMap<LinkId, Vec<DirectFrame>>,
    /// A message is not for all members.
    mixed: bool,
    /// A member that receives everything does not get one of the messages.
    withheld: bool,
}

impl Batch {
    /// Number of messages.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// The links with direct frames.
    pub(crate) fn direct_links(&self) -> impl Iterator<Item = &LinkId> {
        self.direct.keys()
    }

    /// Adds an envelope for its audience.
    pub(crate) fn push(&mut self, message: Message) {
        if message.envelope.len() >= JOINED_BYTES_MAX {
            self.seal();
            let frame = text(&message.envelope);
            self.positions.push(Position { piece: self.pieces.len(), start: 0, end: frame.len() });
            self.pieces.push(frame);
        } else {
            let start = self.joining.len();
            put_text(&mut self.joining, &message.envelope);
            self.positions.push(Position { piece: self.pieces.len(), start, end: self.joining.len() });
        }
        self.mixed |= !message.to.is_empty() || message.audience != Audience::Matching;
        self.withheld |=
            matches!(message.audience, Audience::Observers { except: Some(_) } | Audience::MatchingExcept(_));
        self.messages.push(message);
    }

    /// Adds a frame for one link alone.
    pub(crate) fn push_direct(&mut self, link: LinkId, frame: Bytes) {
        let direct = DirectFrame { after: self.messages.len(), frame };
        self.direct.entry(link).or_default().push(direct);
    }

    /// Ends the piece that frames are joined into, so that it can be sliced.
    pub(crate) fn seal(&mut self) {
        if !self.joining.is_empty() {
            self.pieces.push(self.joining.split().freeze());
        }
    }

    /// The bytes for one recipient, in order. Adjacent frames of one piece come as one slice.
    pub(crate) fn frames_for(&self, recipient: &Recipient<'_>, out: &mut Vec<Bytes>) {
        out.clear();
        let own = self.direct.get(&recipient.link).into_iter().flatten();
        let everything = recipient.ear == Ear::All && recipient.echo && !self.withheld;
        let mut from = recipient.from;
        for direct in own {
            self.range(from, direct.after, recipient, everything, out);
            from = from.max(direct.after);
            out.push(direct.frame.clone());
        }
        self.range(from, self.messages.len(), recipient, everything, out);
    }

    fn range(
        &self,
        from: usize,
        to: usize,
        recipient: &Recipient<'_>,
        everything: bool,
        out: &mut Vec<Bytes>,
    ) {
        let mut open: Option<Position> = None;
        let everything = everything || (!self.mixed && recipient.echo);
        for at in from..to {
            let (Some(position), Some(message)) = (self.positions.get(at), self.messages.get(at)) else {
                return;
            };
            if !everything && !receives(recipient, message) {
                continue;
            }
            match &mut open {
                Some(open) if open.piece == position.piece && open.end == position.start => {
                    open.end = position.end;
                }
                other => {
                    if let Some(done) = other.replace(*position) {
                        self.cut(done, out);
                    }
                }
            }
        }
        if let Some(done) = open {
            self.cut(done, out);
        }
    }

    fn cut(&self, position: Position, out: &mut Vec<Bytes>) {
        if let Some(piece) = self.pieces.get(position.piece) {
            out.push(piece.slice(position.start..position.end));
        }
    }
}

/// Whether a message is for this recipient.
pub(crate) fn receives(recipient: &Recipient<'_>, message: &Message) -> bool {
    if message.link == Some(recipient.link) && !recipient.echo {
        return false;
    }
    match &message.audience {
        Audience::Matching => {}
        Audience::MatchingExcept(except) if except.as_str() == recipient.id => return false,
        Audience::MatchingExcept(_) => {}
        Audience::Observers { except } => {
            let withheld = except.as_ref().is_some_and(|except| except.as_str() == recipient.id);
            return recipient.ear == Ear::All && !withheld;
        }
    }
    if recipient.ear == Ear::All {
        return true;
    }
    let to: SmallVec<[&str; 4]> = message.to.iter().map(|to| &**to).collect();
    recipient.ear.hears(recipient.id, &to, &message.kind)
}

#[cfg(test)]
mod tests {
    use model::ParticipantId;

    use super::*;

    fn message(link: u64, to: &[&str], kind: &str, envelope: &str) -> Message {
        let to = to.iter().map(|to| Box::from(*to)).collect();
        Message {
            link: Some(LinkId(link)),
            envelope: envelope.to_owned().into(),
            to,
            kind: kind.into(),
            audience: Audience::Matching,
        }
    }

    fn received(batch: &Batch, id: &str, link: u64, ear: Ear, echo: bool, from: usize) -> (usize, String) {
        let mut out = Vec::new();
        batch.frames_for(&Recipient { link: LinkId(link), id, ear, echo, from }, &mut out);
        let text: Vec<u8> =
            out.iter().flat_map(|part| part.iter().copied()).filter(u8::is_ascii_graphic).collect();
        (out.len(), String::from_utf8(text).unwrap())
    }

    #[test]
    fn each_member_receives_its_part_in_order() {
        let mut batch = Batch::default();
        batch.push(message(1, &[], "chat", "A"));
        batch.push(message(1, &["b"], "chat", "B"));
        batch.push_direct(LinkId(2), Bytes::from_static(b"w"));
        batch.push(message(2, &["c"], "mcp/proposal:tools/call:x", "C"));
        batch.push(message(2, &[], "chat", "D"));
        batch.seal();
        assert_eq!(received(&batch, "a", 1, Ear::All, true, 0), (1, "ABCD".into()));
        assert_eq!(received(&batch, "a", 1, Ear::All, true, 2), (1, "CD".into()));
        assert_eq!(received(&batch, "a", 1, Ear::All, false, 0), (1, "CD".into()));
        assert_eq!(received(&batch, "b", 2, Ear::All, true, 0), (3, "ABwCD".into()));
        assert_eq!(received(&batch, "b", 2, Ear::Directed, true, 0), (3, "ABwD".into()));
        assert_eq!(received(&batch, "d", 4, Ear::Directed, true, 0), (2, "AD".into()));
        assert_eq!(received(&batch, "d", 4, Ear::DirectedAndProposals, true, 0), (2, "ACD".into()));
    }

    #[test]
    fn mirrored_calls_reach_only_members_that_receive_everything() {
        let mut batch = Batch::default();
        let except = |id: &str| Audience::Observers { except: ParticipantId::new(id).ok() };
        batch.push(Message { audience: except("b"), ..message(1, &["b"], "mcp/request:tools/call:x", "A") });
        batch.push(message(1, &[], "chat", "B"));
        batch.push(Message {
            audience: Audience::Observers { except: None },
            ..message(9, &["a"], "mcp/response:tools/call:x", "C")
        });
        batch.seal();
        let all = |id: &str, ear, echo| received(&batch, id, 2, ear, echo, 0).1;
        assert_eq!(all("a", Ear::All, true), "ABC");
        assert_eq!(all("a", Ear::All, false), "ABC");
        assert_eq!(all("a", Ear::Directed, true), "B");
        assert_eq!(all("b", Ear::All, true), "BC");
        assert_eq!(all("b", Ear::DirectedAndProposals, true), "B");
    }

    #[test]
    fn an_excepted_participant_does_not_receive_the_message() {
        let mut batch = Batch::default();
        batch.push(message(1, &[], "chat", "A"));
        let audience = Audience::matching_except(ParticipantId::new("b").ok());
        batch.push(Message { audience, ..message(1, &["b", "c"], "mcp/request:tools/call:x", "B") });
        batch.seal();
        assert_eq!(received(&batch, "a", 1, Ear::All, true, 0), (1, "AB".into()));
        assert_eq!(received(&batch, "b", 2, Ear::All, true, 0), (1, "A".into()));
        assert_eq!(received(&batch, "b", 2, Ear::Directed, true, 0), (1, "A".into()));
        assert_eq!(received(&batch, "c", 3, Ear::Directed, true, 0), (1, "AB".into()));
    }

    #[test]
    fn long_frames_are_not_joined() {
        let mut batch = Batch::default();
        let long = "L".repeat(JOINED_BYTES_MAX);
        batch.push(message(1, &[], "chat", "A"));
        batch.push(message(1, &[], "chat", &long));
        batch.push(message(1, &[], "chat", "B"));
        batch.seal();
        assert_eq!(received(&batch, "a", 1, Ear::All, true, 0), (3, format!("A~@{long}B")));
    }
}
