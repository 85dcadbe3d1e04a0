//! Receivers of a room's message: delivery modes of listeners and audiences of messages.

use model::{DeliveryMode, KindRef, LinkId, PROPOSAL, ParticipantId};
use smallvec::{SmallVec, smallvec};

/// The way in which a link listens to its topic's room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listener {
    /// The messages that it gets.
    pub mode: DeliveryMode,
    /// Whether it gets its own messages.
    pub echo: bool,
}

/// The listeners that a message reaches, besides its addressees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Every listener whose mode admits it.
    Listeners,
    /// Every listener whose mode admits it, except one participant, which is asked in another way.
    Except(ParticipantId),
    /// Only listeners in [`DeliveryMode::All`], which see a copy of a message to another
    /// participant; not the one participant that got the original.
    Watchers {
        /// That participant.
        except: Option<ParticipantId>,
    },
}

/// The audience of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audience {
    /// The link that sent it, if one did.
    pub from: Option<LinkId>,
    /// The addressees; a message without addressees is for all participants.
    pub to: SmallVec<[Box<str>; 1]>,
    /// Whether it is a proposal.
    pub proposes: bool,
    /// The listeners that it reaches.
    pub reach: Reach,
}

impl Audience {
    /// All listeners.
    pub fn broadcast() -> Self {
        Self {
            from: None,
            to: SmallVec::new(),
            proposes: false,
            reach: Reach::Listeners,
        }
    }

    /// The audience of a copy of a message that `to` got in another way; `except` got the original.
    pub fn mirror(to: &ParticipantId, except: Option<&ParticipantId>) -> Self {
        let reach = Reach::Watchers {
            except: except.cloned(),
        };
        Self {
            from: None,
            to: smallvec![to.as_str().into()],
            proposes: false,
            reach,
        }
    }

    /// The audience of a message of this kind to these addressees.
    pub fn new(from: Option<LinkId>, to: &[&str], kind: &str, reach: Reach) -> Self {
        let proposes = KindRef::parse(kind).is_ok_and(|kind| kind.head() == PROPOSAL);
        Self {
            from,
            to: to.iter().map(|to| Box::from(*to)).collect(),
            proposes,
            reach,
        }
    }

    /// Whether every listener gets it, whatever its mode, unless it sent the message itself and
    /// wants no echo.
    pub fn is_broadcast(&self) -> bool {
        self.to.is_empty() && self.reach == Reach::Listeners
    }

    /// Whether some listener in [`DeliveryMode::All`] does not get it.
    pub fn excepts_some(&self) -> bool {
        match &self.reach {
            Reach::Listeners | Reach::Watchers { except: None } => false,
            Reach::Except(_) | Reach::Watchers { except: Some(_) } => true,
        }
    }

    /// Whether the listener on this link of this participant gets the message. Allocates nothing.
    pub fn includes(&self, link: LinkId, participant: &str, listener: Listener) -> bool {
        if self.from == Some(link) && !listener.echo {
            return false;
        }
        let is_excepted = match &self.reach {
            Reach::Listeners => false,
            Reach::Except(one) => one.as_str() == participant,
            Reach::Watchers { .. } if listener.mode != DeliveryMode::All => true,
            Reach::Watchers { except } => except
                .as_ref()
                .is_some_and(|one| one.as_str() == participant),
        };
        if is_excepted {
            return false;
        }
        match listener.mode {
            DeliveryMode::All => true,
            DeliveryMode::Directed => self.names(participant),
            DeliveryMode::DirectedAndProposals => self.proposes || self.names(participant),
        }
    }

    /// Whether a participant is among the addressees.
    fn names(&self, participant: &str) -> bool {
        self.to.is_empty() || self.to.iter().any(|to| **to == *participant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [DeliveryMode; 3] = [
        DeliveryMode::All,
        DeliveryMode::Directed,
        DeliveryMode::DirectedAndProposals,
    ];

    fn check(audience: &Audience, link: u64, echo: bool, expected: [bool; 3]) {
        let got = MODES.map(|mode| audience.includes(LinkId(link), "ann", Listener { mode, echo }));
        assert_eq!(got, expected, "{audience:?} link {link} echo {echo}");
    }

    #[test]
    fn modes_and_addressees() {
        let listeners =
            |to: &[&str], kind: &str| Audience::new(Some(LinkId(9)), to, kind, Reach::Listeners);
        check(&listeners(&[], "chat"), 1, true, [true, true, true]);
        check(&listeners(&["ann"], "chat"), 1, true, [true, true, true]);
        check(
            &listeners(&["bob", "ann"], "mcp/request:tools/list"),
            1,
            true,
            [true, true, true],
        );
        check(&listeners(&["bob"], "chat"), 1, true, [true, false, false]);
        check(
            &listeners(&["bob"], "mcp/request:tools/call:mcp/proposal"),
            1,
            true,
            [true, false, false],
        );
        check(
            &listeners(&["bob"], "mcp/proposal:tools/call:x"),
            1,
            true,
            [true, false, true],
        );
        check(
            &listeners(&["bob"], "mcp/proposals:x"),
            1,
            true,
            [true, false, false],
        );
        check(&listeners(&[], "chat"), 9, false, [false, false, false]);
        check(&listeners(&[], "chat"), 9, true, [true, true, true]);
    }

    #[test]
    fn excepted_participants_and_watchers() {
        let id = |name: &str| ParticipantId::new(name).unwrap();
        let with = |reach| Audience::new(None, &["ann"], "mcp/request:tools/call:x", reach);
        check(
            &with(Reach::Except(id("ann"))),
            1,
            true,
            [false, false, false],
        );
        check(&with(Reach::Except(id("bob"))), 1, true, [true, true, true]);
        check(
            &with(Reach::Watchers { except: None }),
            1,
            true,
            [true, false, false],
        );
        check(
            &with(Reach::Watchers {
                except: Some(id("bob")),
            }),
            1,
            true,
            [true, false, false],
        );
        check(
            &with(Reach::Watchers {
                except: Some(id("ann")),
            }),
            1,
            true,
            [false, false, false],
        );
    }
}
