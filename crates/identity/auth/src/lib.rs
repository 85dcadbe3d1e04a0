//! Authentication and sealing: tokens, client certificates, participants, where to listen and dial,
//! and sealed states that clients hold.
//!
//! The crate does no I/O: keys, randomness and the time are arguments.

mod access_token;
mod certificate;
mod identities;
pub mod jwt;
mod listen;
mod public_url;
mod purpose;
mod seal;
mod token;

pub use access_token::{ACCESS_TOKEN_PREFIX, AccessToken, AccessTokens, FamilyId};
pub use certificate::{CertificateId, ClientCertificate, FingerprintError, Peer, Presented};
pub use identities::{
    Bearer, Credential, Identities, LOCAL_USER, Participant, TokenAudience, Wire, Wires,
};
pub use listen::{check_listen_address, check_proto_dial, check_proto_listen};
pub use public_url::{PUBLIC_URL_BYTES_MAX, PublicUrl, PublicUrlError};
pub use purpose::Purpose;
pub use seal::{Incarnations, SealError, SealKey, Sealer};
pub use token::{TOKEN_PREFIX, TokenHash, TokenHashError, encode_token};
