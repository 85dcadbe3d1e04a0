//! Handles of the simulated topics: numbers.

use topic::Handles;

#[derive(Debug, Clone)]
pub(crate) enum Numbers {}

impl Handles for Numbers {
    type Link = u64;
    type Server = u64;
    /// The request of a door, or the proposal that the gateway carries out.
    type Call = u64;
    type Question = u64;
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

    fn kept_bytes(_: Option<&u64>, _: Option<&u64>) -> usize {
        1
    }

    fn is_success(_: &u64) -> bool {
        true
    }

    fn notice_bytes(_: &u64) -> usize {
        1
    }
}

pub(crate) type Topic = topic::Topic<Numbers>;
pub(crate) type Event<'a> = topic::Event<'a, Numbers>;
pub(crate) type Effect = topic::Effect<Numbers>;
pub(crate) type Change = topic::ProposalChange<Numbers>;
