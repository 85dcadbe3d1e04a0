//! Handles of the rule tests: numbers and short texts.

use topic::Handles;

#[derive(Debug, Clone)]
pub(crate) enum Numbers {}

impl Handles for Numbers {
    /// The link's number.
    type Link = u64;
    /// The server's name.
    type Server = String;
    /// The operation's number.
    type Call = u128;
    /// The operation's number.
    type Question = u128;
    type Tag = u8;
    type Answer = u8;
    type Notice = u8;
    /// The envelope's id.
    type Message = String;
    /// The proposal's number.
    type Content = u128;
    /// The number of the task's operation.
    type Task = u128;
    type Work = u8;
    type Ruling = u8;

    fn is_same_request(one: &u128, other: &u128) -> bool {
        one == other
    }

    fn kept_bytes(_: Option<&Self::Ruling>, answer: Option<&u8>) -> usize {
        answer.map_or(0, |answer| usize::from(*answer))
    }

    fn is_success(answer: &u8) -> bool {
        *answer != 99
    }

    fn notice_bytes(notice: &u8) -> usize {
        usize::from(*notice) << 10
    }
}

pub(crate) type Topic = topic::Topic<Numbers>;
pub(crate) type Event<'a> = topic::Event<'a, Numbers>;
pub(crate) type Effect = topic::Effect<Numbers>;
pub(crate) type Effects = topic::Effects<Numbers>;
pub(crate) type Intent = topic::Intent<Numbers>;
