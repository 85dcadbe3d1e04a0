//! Batch of frames that the writer sends at once: every frame encoded once, and the part that each
//! member receives.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use model::{DeliveryMode, LinkId};
use topic::{Audience, Listener};

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
    pub(crate) listener: Listener,
    /// Whether its envelopes have their places.
    pub(crate) places: bool,
    /// The first frame that it may receive.
    pub(crate) from: usize,
}

/// The frames of one batch.
#[derive(Default)]
pub(crate) struct Batch {
    pieces: Vec<Bytes>,
    joining: BytesMut,
    positions: Vec<Position>,
    audiences: Vec<Audience>,
    /// Frames with their places, each for the envelope of this number.
    placed: HashMap<usize, Bytes>,
    direct: HashMap<LinkId, Vec<DirectFrame>>,
    /// An envelope is not for all members.
    mixed: bool,
    /// A member that receives everything does not get one of the envelopes.
    withheld: bool,
}

impl Batch {
    /// Number of envelopes.
    pub(crate) fn len(&self) -> usize {
        self.audiences.len()
    }

    /// The links with direct frames.
    pub(crate) fn direct_links(&self) -> impl Iterator<Item = &LinkId> {
        self.direct.keys()
    }

    /// Adds an envelope for its audience.
    pub(crate) fn push(&mut self, envelope: &Bytes, audience: Audience) {
        if envelope.len() >= JOINED_BYTES_MAX {
            // The earlier frames first: pieces are in the order of the frames.
            self.seal();
            let frame = text(envelope);
            self.positions.push(Position {
                piece: self.pieces.len(),
                start: 0,
                end: frame.len(),
            });
            self.pieces.push(frame);
        } else {
            let start = self.joining.len();
            put_text(&mut self.joining, envelope);
            self.positions.push(Position {
                piece: self.pieces.len(),
                start,
                end: self.joining.len(),
            });
        }
        self.mixed |= !audience.is_broadcast();
        self.withheld |= audience.excepts_some();
        self.audiences.push(audience);
    }

    /// Adds the frame that goes in place of the next envelope to members that ask for places.
    pub(crate) fn push_placed(&mut self, frame: Bytes) {
        self.placed.insert(self.audiences.len(), frame);
    }

    /// Adds a frame for one link alone.
    pub(crate) fn push_direct(&mut self, link: LinkId, frame: Bytes) {
        let direct = DirectFrame {
            after: self.audiences.len(),
            frame,
        };
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
        let listener = recipient.listener;
        let everything = listener.mode == DeliveryMode::All && listener.echo && !self.withheld;
        let mut from = recipient.from;
        for direct in own {
            self.range(from, direct.after, recipient, everything, out);
            from = from.max(direct.after);
            out.push(direct.frame.clone());
        }
        self.range(from, self.audiences.len(), recipient, everything, out);
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
        // Most batches are for all members: then no audience need be compared.
        let everything = everything || (!self.mixed && recipient.listener.echo);
        for at in from..to {
            let (Some(position), Some(audience)) = (self.positions.get(at), self.audiences.get(at))
            else {
                return;
            };
            if !everything && !audience.includes(recipient.link, recipient.id, recipient.listener) {
                continue;
            }
            if recipient.places
                && let Some(placed) = self.placed.get(&at)
            {
                if let Some(done) = open.take() {
                    self.cut(done, out);
                }
                out.push(placed.clone());
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

#[cfg(test)]
mod tests {
    use model::ParticipantId;
    use topic::Reach;

    use super::*;

    const ALL: DeliveryMode = DeliveryMode::All;
    const DIRECTED: DeliveryMode = DeliveryMode::Directed;
    const REVIEWER: DeliveryMode = DeliveryMode::DirectedAndProposals;

    fn push(batch: &mut Batch, link: u64, to: &[&str], kind: &str, envelope: &str) {
        push_to(batch, link, to, kind, envelope, Reach::Listeners);
    }

    fn push_to(
        batch: &mut Batch,
        link: u64,
        to: &[&str],
        kind: &str,
        envelope: &str,
        reach: Reach,
    ) {
        let audience = Audience::new(Some(LinkId(link)), to, kind, reach);
        batch.push(&envelope.to_owned().into(), audience);
    }

    fn received(
        batch: &Batch,
        id: &str,
        link: u64,
        mode: DeliveryMode,
        echo: bool,
        from: usize,
    ) -> (usize, String) {
        read(batch, id, link, (mode, echo), false, from)
    }

    fn read(
        batch: &Batch,
        id: &str,
        link: u64,
        (mode, echo): (DeliveryMode, bool),
        places: bool,
        from: usize,
    ) -> (usize, String) {
        let mut out = Vec::new();
        let listener = Listener { mode, echo };
        batch.frames_for(
            &Recipient {
                link: LinkId(link),
                id,
                listener,
                places,
                from,
            },
            &mut out,
        );
        let text: Vec<u8> = out
            .iter()
            .flat_map(|part| part.iter().copied())
            .filter(u8::is_ascii_graphic)
            .collect();
        (out.len(), String::from_utf8(text).unwrap())
    }

    #[test]
    fn each_member_receives_its_part_in_order() {
        let mut batch = Batch::default();
        push(&mut batch, 1, &[], "chat", "A");
        push(&mut batch, 1, &["b"], "chat", "B");
        batch.push_direct(LinkId(2), Bytes::from_static(b"w"));
        push(&mut batch, 2, &["c"], "mcp/proposal:tools/call:x", "C");
        push(&mut batch, 2, &[], "chat", "D");
        batch.seal();
        assert_eq!(received(&batch, "a", 1, ALL, true, 0), (1, "ABCD".into()));
        assert_eq!(received(&batch, "a", 1, ALL, true, 2), (1, "CD".into()));
        assert_eq!(received(&batch, "a", 1, ALL, false, 0), (1, "CD".into()));
        assert_eq!(received(&batch, "b", 2, ALL, true, 0), (3, "ABwCD".into()));
        assert_eq!(
            received(&batch, "b", 2, DIRECTED, true, 0),
            (3, "ABwD".into())
        );
        assert_eq!(
            received(&batch, "d", 4, DIRECTED, true, 0),
            (2, "AD".into())
        );
        assert_eq!(
            received(&batch, "d", 4, REVIEWER, true, 0),
            (2, "ACD".into())
        );
    }

    #[test]
    fn members_that_ask_receive_frames_with_places_in_the_same_order() {
        let mut batch = Batch::default();
        push(&mut batch, 1, &[], "presence", "A");
        batch.push_placed(Bytes::from_static(b"b"));
        push(&mut batch, 1, &[], "chat", "B");
        batch.push_placed(Bytes::from_static(b"c"));
        push(&mut batch, 1, &["d"], "chat", "C");
        push(&mut batch, 1, &[], "presence", "D");
        batch.seal();
        let read = |places, mode| read(&batch, "a", 9, (mode, true), places, 0);
        assert_eq!(read(false, ALL), (1, "ABCD".into()));
        assert_eq!(read(true, ALL), (4, "AbcD".into()));
        assert_eq!(read(true, DIRECTED), (3, "AbD".into()));
    }

    #[test]
    fn mirrored_calls_reach_only_members_that_receive_everything() {
        let mut batch = Batch::default();
        let except = |id: &str| Reach::Watchers {
            except: ParticipantId::new(id).ok(),
        };
        push_to(
            &mut batch,
            1,
            &["b"],
            "mcp/request:tools/call:x",
            "A",
            except("b"),
        );
        push(&mut batch, 1, &[], "chat", "B");
        push_to(
            &mut batch,
            9,
            &["a"],
            "mcp/response:tools/call:x",
            "C",
            Reach::Watchers { except: None },
        );
        batch.seal();
        let all = |id: &str, mode, echo| received(&batch, id, 2, mode, echo, 0).1;
        assert_eq!(all("a", ALL, true), "ABC");
        assert_eq!(all("a", ALL, false), "ABC");
        assert_eq!(all("a", DIRECTED, true), "B");
        assert_eq!(all("b", ALL, true), "BC");
        assert_eq!(all("b", REVIEWER, true), "B");
    }

    #[test]
    fn an_excepted_participant_does_not_receive_the_message() {
        let mut batch = Batch::default();
        push(&mut batch, 1, &[], "chat", "A");
        let reach = Reach::Except(ParticipantId::new("b").unwrap());
        push_to(
            &mut batch,
            1,
            &["b", "c"],
            "mcp/request:tools/call:x",
            "B",
            reach,
        );
        batch.seal();
        assert_eq!(received(&batch, "a", 1, ALL, true, 0), (1, "AB".into()));
        assert_eq!(received(&batch, "b", 2, ALL, true, 0), (1, "A".into()));
        assert_eq!(received(&batch, "b", 2, DIRECTED, true, 0), (1, "A".into()));
        assert_eq!(
            received(&batch, "c", 3, DIRECTED, true, 0),
            (1, "AB".into())
        );
    }

    #[test]
    fn long_frames_are_not_joined() {
        let mut batch = Batch::default();
        let long = "L".repeat(JOINED_BYTES_MAX);
        push(&mut batch, 1, &[], "chat", "A");
        push(&mut batch, 1, &[], "chat", &long);
        push(&mut batch, 1, &[], "chat", "B");
        batch.seal();
        assert_eq!(
            received(&batch, "a", 1, ALL, true, 0),
            (3, format!("A~@{long}B"))
        );
    }
}
