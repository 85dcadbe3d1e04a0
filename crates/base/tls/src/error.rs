//! Errors of the files of TLS, and what to do about each.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls;

/// The reason of TLS in an error of a connection, if that ended for one: an alert of the other
/// side, a certificate.
#[must_use]
pub fn reason_in(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(found) = one.downcast_ref::<rustls::Error>() {
            return Some(found.to_string());
        }
        // The source of an I/O error is the source of the error inside it.
        let inner = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = inner
            .map(|inner| inner as &(dyn Error + 'static))
            .or_else(|| one.source());
    }
    None
}

/// A file that cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It cannot be read.
    #[error("cannot read `{path}`: {cause}", path = .0.display(), cause = .1)]
    Unreadable(PathBuf, io::Error),
    /// It is no PEM file with what is looked for.
    #[error("`{path}` has no {what} in PEM format", path = .path.display())]
    Absent {
        /// The file.
        path: PathBuf,
        /// Part that the file should have.
        what: &'static str,
    },
    /// The library cannot use a certificate or key of it.
    #[error("`{path}` cannot be used: {why}", path = .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The library's reason.
        why: String,
    },
    /// The key is not the certificate's.
    #[error("the key in `{key}` does not belong to the certificate in `{cert}`", key = .key.display(), cert = .cert.display())]
    WrongKey {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The certificate has expired.
    #[error("the certificate in `{path}` has expired", path = .0.display())]
    Expired(PathBuf),
    /// The certificate is not valid yet.
    #[error("the certificate in `{path}` is not valid yet", path = .0.display())]
    Early(PathBuf),
    /// A certificate without its key, or a key without its certificate.
    #[error("a client certificate needs both its certificate and its key")]
    Half,
    /// This machine trusts no certificates.
    #[error("this machine has no trusted certificates: {0}")]
    NoRoots(String),
}

impl TlsError {
    /// The file in which it was found.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unreadable(path, _) | Self::Expired(path) | Self::Early(path) => Some(path),
            Self::Absent { path, .. }
            | Self::Unusable { path, .. }
            | Self::WrongKey { key: path, .. } => Some(path),
            Self::Half | Self::NoRoots(_) => None,
        }
    }

    /// Advice to the operator.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(..) => "name a file that the user of this process may read",
            Self::Absent { .. } => {
                "PEM begins with -----BEGIN; a DER file is converted with: openssl x509 -inform der"
            }
            Self::Unusable { .. } => {
                "keys of RSA, ECDSA (P-256, P-384) and Ed25519 are known, without a passphrase"
            }
            Self::WrongKey { .. } => "name the key that the certificate was issued for",
            Self::Expired(_) => "renew it; a new file at the same place is read at once",
            Self::Early(_) => "check the clock of this machine",
            Self::Half => "name both files",
            Self::NoRoots(_) => "name the file of an authority, or set SSL_CERT_FILE",
        }
    }

    pub(crate) fn unusable(path: &Path, why: impl ToString) -> Self {
        Self::Unusable {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}
