//! What is said within one turn: every frame once, and which part of it each member hears.
//!
//! Must not know sockets.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use model::LinkId;
use smallvec::SmallVec;
use topic::Ear;

use super::frame::{put_text, text};
use super::item::{Reach, Said};

/// Frames from this length on are written where they lie instead of being joined with others.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// Where one frame lies: in which piece, from where to where.
#[derive(Debug, Clone, Copy)]
struct Place {
    piece: usize,
    start: usize,
    end: usize,
}

/// What is said to one socket alone, after so many frames.
struct Whisper {
    after: usize,
    frame: Bytes,
}

/// Who listens to a run.
pub(super) struct Listener<'a> {
    pub(super) link: LinkId,
    pub(super) id: &'a str,
    pub(super) ear: Ear,
    pub(super) echo: bool,
    /// The first frame that it may hear.
    pub(super) from: usize,
}

/// The frames of one turn.
#[derive(Default)]
pub(super) struct Run {
    pieces: Vec<Bytes>,
    joining: BytesMut,
    places: Vec<Place>,
    said: Vec<Said>,
    whispers: HashMap<LinkId, Vec<Whisper>>,
    /// Somebody does not hear what it says itself, or something is for some only.
    mixed: bool,
    /// Something is kept from somebody who hears everything.
    kept: bool,
}

impl Run {
    /// How many frames there are.
    pub(super) fn len(&self) -> usize {
        self.said.len()
    }

    /// Those to whom something is said alone.
    pub(super) fn whispered(&self) -> impl Iterator<Item = &LinkId> {
        self.whispers.keys()
    }

    /// Adds an envelope for all.
    pub(super) fn say(&mut self, said: Said) {
        if said.envelope.len() >= JOINED_BYTES_MAX {
            self.seal();
            let frame = text(&said.envelope);
            self.places.push(Place { piece: self.pieces.len(), start: 0, end: frame.len() });
            self.pieces.push(frame);
        } else {
            let start = self.joining.len();
            put_text(&mut self.joining, &said.envelope);
            self.places.push(Place { piece: self.pieces.len(), start, end: self.joining.len() });
        }
        self.mixed |= !said.to.is_empty() || said.reach != Reach::Ears;
        self.kept |= matches!(said.reach, Reach::Watchers { but: Some(_) } | Reach::But(_));
        self.said.push(said);
    }

    /// Adds bytes for one socket alone.
    pub(super) fn whisper(&mut self, link: LinkId, frame: Bytes) {
        let whisper = Whisper { after: self.said.len(), frame };
        self.whispers.entry(link).or_default().push(whisper);
    }

    /// Nothing is added after this.
    pub(super) fn seal(&mut self) {
        if !self.joining.is_empty() {
            self.pieces.push(self.joining.split().freeze());
        }
    }

    /// What one listener hears, in order. Neighbours in one piece come as one.
    pub(super) fn heard_by(&self, listener: &Listener<'_>, out: &mut Vec<Bytes>) {
        out.clear();
        let own = self.whispers.get(&listener.link).into_iter().flatten();
        let everything = listener.ear == Ear::All && listener.echo && !self.kept;
        let mut from = listener.from;
        for whisper in own {
            self.range(from, whisper.after, listener, everything, out);
            from = from.max(whisper.after);
            out.push(whisper.frame.clone());
        }
        self.range(from, self.said.len(), listener, everything, out);
    }

    fn range(&self, from: usize, to: usize, listener: &Listener<'_>, everything: bool, out: &mut Vec<Bytes>) {
        let mut open: Option<Place> = None;
        let everything = everything || (!self.mixed && listener.echo);
        for at in from..to {
            let (Some(place), Some(said)) = (self.places.get(at), self.said.get(at)) else { return };
            if !everything && !hears(listener, said) {
                continue;
            }
            match &mut open {
                Some(open) if open.piece == place.piece && open.end == place.start => open.end = place.end,
                other => {
                    if let Some(done) = other.replace(*place) {
                        self.cut(done, out);
                    }
                }
            }
        }
        if let Some(done) = open {
            self.cut(done, out);
        }
    }

    fn cut(&self, place: Place, out: &mut Vec<Bytes>) {
        if let Some(piece) = self.pieces.get(place.piece) {
            out.push(piece.slice(place.start..place.end));
        }
    }
}

/// Whether an envelope is for this listener.
pub(super) fn hears(listener: &Listener<'_>, said: &Said) -> bool {
    if said.link == Some(listener.link) && !listener.echo {
        return false;
    }
    match &said.reach {
        Reach::Ears => {}
        Reach::But(but) if but.as_str() == listener.id => return false,
        Reach::But(_) => {}
        Reach::Watchers { but } => {
            let kept = but.as_ref().is_some_and(|but| but.as_str() == listener.id);
            return listener.ear == Ear::All && !kept;
        }
    }
    if listener.ear == Ear::All {
        return true;
    }
    let to: SmallVec<[&str; 4]> = said.to.iter().map(|to| &**to).collect();
    listener.ear.hears(listener.id, &to, &said.kind)
}

#[cfg(test)]
mod tests {
    use model::ParticipantId;

    use super::*;

    fn said(link: u64, to: &[&str], kind: &str, envelope: &str) -> Said {
        let to = to.iter().map(|to| Box::from(*to)).collect();
        Said {
            link: Some(LinkId(link)),
            envelope: envelope.to_owned().into(),
            to,
            kind: kind.into(),
            reach: Reach::Ears,
        }
    }

    fn heard(run: &Run, id: &str, link: u64, ear: Ear, echo: bool, from: usize) -> (usize, String) {
        let mut out = Vec::new();
        run.heard_by(&Listener { link: LinkId(link), id, ear, echo, from }, &mut out);
        let text: Vec<u8> =
            out.iter().flat_map(|part| part.iter().copied()).filter(u8::is_ascii_graphic).collect();
        (out.len(), String::from_utf8(text).unwrap())
    }

    #[test]
    fn everybody_hears_its_part_in_order() {
        let mut run = Run::default();
        run.say(said(1, &[], "chat", "A"));
        run.say(said(1, &["b"], "chat", "B"));
        run.whisper(LinkId(2), Bytes::from_static(b"w"));
        run.say(said(2, &["c"], "mcp/proposal:tools/call:x", "C"));
        run.say(said(2, &[], "chat", "D"));
        run.seal();
        assert_eq!(heard(&run, "a", 1, Ear::All, true, 0), (1, "ABCD".into()));
        assert_eq!(heard(&run, "a", 1, Ear::All, true, 2), (1, "CD".into()));
        assert_eq!(heard(&run, "a", 1, Ear::All, false, 0), (1, "CD".into()));
        assert_eq!(heard(&run, "b", 2, Ear::All, true, 0), (3, "ABwCD".into()));
        assert_eq!(heard(&run, "b", 2, Ear::Directed, true, 0), (3, "ABwD".into()));
        assert_eq!(heard(&run, "d", 4, Ear::Directed, true, 0), (2, "AD".into()));
        assert_eq!(heard(&run, "d", 4, Ear::DirectedAndProposals, true, 0), (2, "ACD".into()));
    }

    #[test]
    fn what_is_only_to_be_seen_is_for_those_who_hear_everything() {
        let mut run = Run::default();
        let but = |id: &str| Reach::Watchers { but: ParticipantId::new(id).ok() };
        run.say(Said { reach: but("b"), ..said(1, &["b"], "mcp/request:tools/call:x", "A") });
        run.say(said(1, &[], "chat", "B"));
        run.say(Said {
            reach: Reach::Watchers { but: None },
            ..said(9, &["a"], "mcp/response:tools/call:x", "C")
        });
        run.seal();
        let all = |id: &str, ear, echo| heard(&run, id, 2, ear, echo, 0).1;
        assert_eq!(all("a", Ear::All, true), "ABC");
        assert_eq!(all("a", Ear::All, false), "ABC");
        assert_eq!(all("a", Ear::Directed, true), "B");
        assert_eq!(all("b", Ear::All, true), "BC");
        assert_eq!(all("b", Ear::DirectedAndProposals, true), "B");
    }

    #[test]
    fn whoever_is_asked_another_way_does_not_hear_it() {
        let mut run = Run::default();
        run.say(said(1, &[], "chat", "A"));
        let reach = Reach::all_but(ParticipantId::new("b").ok());
        run.say(Said { reach, ..said(1, &["b", "c"], "mcp/request:tools/call:x", "B") });
        run.seal();
        assert_eq!(heard(&run, "a", 1, Ear::All, true, 0), (1, "AB".into()));
        assert_eq!(heard(&run, "b", 2, Ear::All, true, 0), (1, "A".into()));
        assert_eq!(heard(&run, "b", 2, Ear::Directed, true, 0), (1, "A".into()));
        assert_eq!(heard(&run, "c", 3, Ear::Directed, true, 0), (1, "AB".into()));
    }

    #[test]
    fn long_frames_are_not_joined() {
        let mut run = Run::default();
        let long = "L".repeat(JOINED_BYTES_MAX);
        run.say(said(1, &[], "chat", "A"));
        run.say(said(1, &[], "chat", &long));
        run.say(said(1, &[], "chat", "B"));
        run.seal();
        assert_eq!(heard(&run, "a", 1, Ear::All, true, 0), (3, format!("A~@{long}B")));
    }
}
