//! A certificate with its key: what one side shows to the other.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys};
use webpki::{EndEntityCert, KeyUsage};

use crate::error::TlsError;
use crate::pem;

/// Permissions of other users than the owner and the group of a file.
const OTHERS: u32 = 0o007;

/// A certificate, those that lead to its authority, and its key.
#[derive(Debug)]
pub struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    key_file: PathBuf,
    exposed: bool,
}

impl Identity {
    /// Reads a certificate and its key, and checks that they belong together and are valid at
    /// `now_ms` (Unix milliseconds).
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub(crate) fn read(cert: &Path, key_file: &Path, now_ms: u64) -> Result<Self, TlsError> {
        let chain = pem::certificates(cert)?;
        let key = pem::key(key_file)?;
        if let Some(own) = chain.first() {
            check_valid(own, cert, now_ms)?;
        }
        match CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider()) {
            Ok(_) => {}
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(TlsError::WrongKey {
                    cert: cert.to_owned(),
                    key: key_file.to_owned(),
                });
            }
            Err(error) => return Err(TlsError::unusable(key_file, error)),
        }
        let mode = std::fs::metadata(key_file)
            .map(|data| data.permissions().mode())
            .unwrap_or_default();
        Ok(Self {
            chain,
            key,
            key_file: key_file.to_owned(),
            exposed: mode & OTHERS != 0,
        })
    }

    /// A warning if every user of this machine may read the key.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let file = self.key_file.display();
        self.exposed.then(|| {
            format!("every user of this machine may read the key `{file}`: chmod 600 {file}")
        })
    }

    /// The SHA-256 of the certificate.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        self.chain.first().map(pem::fingerprint).unwrap_or_default()
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.chain.clone(), one.key.secret_der().to_vec());
        parts(self) == parts(other)
    }
}

impl Eq for Identity {}

/// The cryptography of every connection.
pub(crate) fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Checks the validity of a certificate, and nothing else of it: it is looked for among no
/// authorities.
fn check_valid(certificate: &CertificateDer<'_>, path: &Path, now_ms: u64) -> Result<(), TlsError> {
    let parsed =
        EndEntityCert::try_from(certificate).map_err(|error| TlsError::unusable(path, error))?;
    let now = UnixTime::since_unix_epoch(Duration::from_millis(now_ms));
    let known = provider();
    let algorithms = known.signature_verification_algorithms.all;
    match parsed.verify_for_usage(
        algorithms,
        &[],
        &[],
        now,
        KeyUsage::server_auth(),
        None,
        None,
    ) {
        Err(webpki::Error::CertExpired { .. }) => Err(TlsError::Expired(path.to_owned())),
        Err(webpki::Error::CertNotValidYet { .. }) => Err(TlsError::Early(path.to_owned())),
        // Any other error is there because no authority was given.
        Ok(_) | Err(_) => Ok(()),
    }
}
