//! From a token to a participant, and states that are sealed before they leave the house.
//!
//! Pure: keys, randomness and the time are arguments. Must not know topics, sockets, files or how a token travels.

mod bind;
mod identities;
mod participant;
mod seal;
mod token;

pub use bind::may_listen;
pub use identities::{Credential, Identities, LOCAL_USER};
pub use participant::{Participant, Rate};
pub use seal::{SealError, SealKey, Sealer};
pub use token::{TOKEN_PREFIX, TokenHash, TokenHashError, token};
