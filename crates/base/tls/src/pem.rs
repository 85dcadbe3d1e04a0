//! PEM files, and what is read from a certificate.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;

use platform::open_regular;
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use webpki::EndEntityCert;

use crate::error::TlsError;

/// Longest file that is read, in bytes: a bundle of all public authorities has some 200 KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` prints it.
#[must_use]
pub fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// The DNS names and URIs in a certificate's subject alternative names; none of one that cannot be
/// read. A URI without a scheme is left out: it would be taken for a DNS name.
#[must_use]
pub fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(parsed) = EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let uris = parsed.valid_uri_names().filter(|uri| uri.contains(':'));
    parsed
        .valid_dns_names()
        .chain(uris)
        .map(str::to_owned)
        .collect()
}

/// The certificates of a file, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(TlsError::Absent {
            path: path.to_owned(),
            what: "certificate",
        }),
    }
}

/// The first private key of a file.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let found = PrivateKeyDer::from_pem_slice(&read(path)?);
    found.map_err(|_| TlsError::Absent {
        path: path.to_owned(),
        what: "private key",
    })
}

/// The authorities of a file.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::unusable(path, error))?;
    }
    Ok(roots)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |cause| TlsError::Unreadable(path.to_owned(), cause);
    let file = open_regular(OpenOptions::new().read(true), path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}
