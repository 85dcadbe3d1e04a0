//! Authentication and sealing: tokens, participants, listen addresses, and sealed states that clients hold.
//!
//! The crate does no I/O: keys, randomness and the time are arguments.

mod identities;
mod listen;
mod participant;
mod seal;
mod token;

pub use identities::{Credential, Identities, LOCAL_USER};
pub use listen::check_listen_address;
pub use participant::Participant;
pub use seal::{SealError, SealKey, Sealer};
pub use token::{TOKEN_PREFIX, TokenHash, TokenHashError, encode_token};
