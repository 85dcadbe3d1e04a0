//! TLS from files: certificates, keys and trusted authorities, checked when they are read.
//!
//! - [`ServerTls`]: what the gateway shows on the port that it listens on; TLS 1.3 alone.
//! - [`ClientTls`]: what it trusts and shows where it dials.
//!
//! Values compare by what the files contain, so that a reload notices a new certificate in the same
//! file.

mod client;
mod error;
mod identity;
mod pem;
mod pin;
mod server;

pub use client::{ClientFiles, ClientTls, Oldest};
pub use error::{TlsError, reason_in};
pub use identity::Identity;
pub use pem::{fingerprint, names};
pub use server::{ClientCertificates, HTTP_2, PROTOCOLS, ServerFiles, ServerTls};

#[cfg(test)]
mod tests;
