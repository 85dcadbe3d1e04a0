//! Handles of the simulation: numbers, each handed in once.

use topic::Handles;

#[derive(Debug, Clone)]
pub(crate) enum Numbers {}

impl Handles for Numbers {
    type Link = u64;
    type Server = u64;
    type Call = u64;
    type Question = u64;
    /// Few, so that names are used again.
    type Tag = u8;
    type Answer = u64;
    type Notice = u64;
    type Message = u64;
    type Content = u64;
    type Task = u64;
    type Work = u64;
    type Ruling = u64;

    fn is_same_request(one: &u64, other: &u64) -> bool {
        one == other
    }

    fn kept_bytes(ruling: Option<&u64>, answer: Option<&u64>) -> usize {
        usize::from(ruling.is_some()) + usize::from(answer.is_some())
    }

    /// The third part of the results say of an error.
    fn is_success(answer: &u64) -> bool {
        !answer.is_multiple_of(3)
    }

    fn notice_bytes(_: &u64) -> usize {
        1
    }
}

pub(crate) type Topic = topic::Topic<Numbers>;
pub(crate) type Event<'a> = topic::Event<'a, Numbers>;
pub(crate) type Effect = topic::Effect<Numbers>;
pub(crate) type Effects = topic::Effects<Numbers>;
pub(crate) type Amended = topic::Amended<Numbers>;
pub(crate) type CountedDecision = topic::CountedDecision<Numbers>;
pub(crate) type RefusedDecision = topic::RefusedDecision<Numbers>;
pub(crate) type RoomEffect = topic::RoomEffect<Numbers>;
pub(crate) type Record = topic::ProposalChange<Numbers>;
pub(crate) type Receiver = topic::Receiver<Numbers>;
pub(crate) type ProposalView = topic::ProposalView<Numbers>;
