//! Authentication and sealing: tokens, participants, listen addresses, and sealed states that clients hold.
//!
//! The crate does no I/O: keys, randomness and the time are arguments.

mod identities;
mod seal;
mod token;

pub use identities::{Credential, Identities, LOCAL_USER, Participant, Wire, Wires, check_listen_address};
pub use seal::{SealError, SealKey, Sealer};
pub use token::{TOKEN_PREFIX, TokenHash, TokenHashError, encode_token};
