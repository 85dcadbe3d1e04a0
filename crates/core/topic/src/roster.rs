//! Roster of a topic: its participants as others see them, as a welcome names them.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};

/// A participant as others in the topic see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Its id.
    pub id: ParticipantId,
    /// Its capabilities.
    pub capabilities: Arc<Capabilities>,
    /// Whether it is paused ([`Brake`](crate::Brake)).
    pub paused: bool,
}

/// Participants in one piece of a roster.
const PIECE_LEN_MAX: usize = 64;

/// The participants that others see, by id. In pieces, none of them empty: rosters share those in
/// which they do not differ, so that those of a thousand newcomers that wait for their welcome take
/// little more than one.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    pieces: Vec<Arc<[Person]>>,
}

impl Roster {
    /// All participants.
    pub fn iter(&self) -> impl Iterator<Item = &Person> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Adds a participant, or what has changed of it.
    pub(crate) fn add(&mut self, person: Person) {
        let index = self.piece_of(&person.id);
        let Some(piece) = self.pieces.get_mut(index) else {
            return self.pieces.push([person].into());
        };
        // Pieces are shared with other rosters, so they are written anew.
        let at = match piece.binary_search_by(|other| other.id.cmp(&person.id)) {
            Ok(at) => {
                let mut changed = piece.to_vec();
                if let Some(place) = changed.get_mut(at) {
                    *place = person;
                }
                *piece = changed.into();
                return;
            }
            Err(at) => at,
        };
        if at == PIECE_LEN_MAX {
            // Names often come in order: the piece stays full.
            return self.pieces.insert(index + 1, [person].into());
        }
        let mut longer = piece.to_vec();
        longer.insert(at, person);
        if longer.len() > PIECE_LEN_MAX {
            let second = longer.split_off(longer.len() / 2);
            *piece = longer.into();
            self.pieces.insert(index + 1, second.into());
        } else {
            *piece = longer.into();
        }
    }

    /// Removes a participant, if it is in the roster.
    pub(crate) fn remove(&mut self, id: &ParticipantId) {
        let index = self.piece_of(id);
        let Some(piece) = self.pieces.get(index) else {
            return;
        };
        let others: Arc<[Person]> = piece
            .iter()
            .filter(|other| other.id != *id)
            .cloned()
            .collect();
        if others.is_empty() {
            self.pieces.remove(index);
        } else if let Some(piece) = self.pieces.get_mut(index) {
            *piece = others;
        }
    }

    /// The piece in which a participant is, or would be: the last one that does not begin after it.
    fn piece_of(&self, id: &ParticipantId) -> usize {
        let begun = self
            .pieces
            .partition_point(|piece| piece.first().is_some_and(|first| first.id <= *id));
        begun.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn person(number: u64, capabilities: &Arc<Capabilities>) -> Person {
        let id = ParticipantId::new(&format!("p{number:03}")).unwrap();
        Person {
            id,
            capabilities: Arc::clone(capabilities),
            paused: false,
        }
    }

    #[test]
    fn a_roster_has_everyone_once_in_order() {
        let sets = [Arc::<Capabilities>::default(), Arc::default()];
        let mut roster = Roster::default();
        let mut books = BTreeMap::new();
        let mut draw = 1_u64;
        for step in 0..20_000 {
            draw = draw
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let person = person((draw >> 33) % 500, &sets[(draw >> 60) as usize % 2]);
            // It grows, shrinks, and grows again.
            let leaves = (draw >> 50) % 10 < if (step / 4000) % 2 == 0 { 2 } else { 8 };
            if leaves {
                roster.remove(&person.id);
                books.remove(&person.id);
            } else {
                roster.add(person.clone());
                books.insert(person.id, person.capabilities);
            }
            assert!(
                roster
                    .pieces
                    .iter()
                    .all(|piece| (1..=PIECE_LEN_MAX).contains(&piece.len()))
            );
            if step % 100 == 0 {
                let same =
                    |(person, (id, all)): (&Person, (&ParticipantId, &Arc<Capabilities>))| {
                        person.id == *id && Arc::ptr_eq(&person.capabilities, all)
                    };
                assert!(
                    roster.iter().count() == books.len() && roster.iter().zip(&books).all(same)
                );
            }
        }
    }

    #[test]
    fn rosters_of_many_newcomers_share_their_pieces() {
        let capabilities = Arc::default();
        let mut roster = Roster::default();
        let all: Vec<Roster> = (0..512)
            .map(|number| {
                // In an order without a pattern.
                roster.add(person(number * 199 % 512, &capabilities));
                roster.clone()
            })
            .collect();
        let mut pieces: Vec<_> = all
            .iter()
            .flat_map(|roster| roster.pieces.iter().map(|piece| piece.as_ptr()))
            .collect();
        pieces.sort_unstable();
        pieces.dedup();
        assert!(
            pieces.len() <= 2 * all.len(),
            "each newcomer changes one piece, or makes two of it"
        );
    }
}
