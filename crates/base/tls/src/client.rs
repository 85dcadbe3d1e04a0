//! TLS towards servers: what the gateway, and each command, trusts and shows where it dials.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::TlsError;
use crate::identity::{Identity, provider};
use crate::pem;
use crate::pin::Pin;

/// The oldest revision of TLS that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Oldest {
    /// 1.2: MCP servers on the web may have nothing newer.
    #[default]
    Tls12,
    /// 1.3: protobuf wires.
    Tls13,
}

/// The files for one server: `ca`, `client_cert`, `client_key`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// The authorities to trust, in place of those that this machine trusts.
    pub ca: Option<PathBuf>,
    /// The certificate to show, followed by those that lead to its authority.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// TLS towards servers.
#[derive(Clone)]
pub struct ClientTls {
    oldest: Oldest,
    files: Arc<ClientFiles>,
    identity: Option<Arc<Identity>>,
    trust: Trust,
    /// Made on first use: it may read the certificates that this machine trusts.
    config: Arc<OnceLock<Arc<ClientConfig>>>,
}

#[derive(Clone)]
enum Trust {
    Machine,
    Authorities(Arc<RootCertStore>),
    Pinned([u8; 32]),
}

impl ClientTls {
    /// Trusts what this machine trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` where they are set), and
    /// shows nothing.
    #[must_use]
    pub fn of_machine() -> Self {
        static MACHINE: OnceLock<ClientTls> = OnceLock::new();
        MACHINE
            .get_or_init(|| {
                Self::new(
                    Oldest::default(),
                    ClientFiles::default(),
                    None,
                    Trust::Machine,
                )
            })
            .clone()
    }

    /// Trusts the one certificate with this SHA-256, and shows nothing.
    #[must_use]
    pub fn pinned(sha256: [u8; 32]) -> Self {
        Self::new(
            Oldest::Tls13,
            ClientFiles::default(),
            None,
            Trust::Pinned(sha256),
        )
    }

    /// Reads the files, and checks them at `now_ms` (Unix milliseconds).
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub fn read(files: ClientFiles, oldest: Oldest, now_ms: u64) -> Result<Self, TlsError> {
        let identity = match (&files.cert, &files.key) {
            (Some(cert), Some(key)) => Some(Arc::new(Identity::read(cert, key, now_ms)?)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(TlsError::Half),
        };
        let trust = match &files.ca {
            Some(ca) => Trust::Authorities(Arc::new(pem::authorities(ca)?)),
            None => Trust::Machine,
        };
        Ok(Self::new(oldest, files, identity, trust))
    }

    /// Settings that show the same certificate, and trust the one certificate with this SHA-256.
    #[must_use]
    pub fn pinning(&self, sha256: [u8; 32]) -> Self {
        let files = ClientFiles::clone(&self.files);
        Self::new(
            self.oldest,
            files,
            self.identity.clone(),
            Trust::Pinned(sha256),
        )
    }

    /// This side of TLS without a certificate of its own.
    #[must_use]
    pub fn without_identity(&self) -> Self {
        let files = ClientFiles {
            ca: self.files.ca.clone(),
            ..ClientFiles::default()
        };
        Self::new(self.oldest, files, None, self.trust.clone())
    }

    fn new(
        oldest: Oldest,
        files: ClientFiles,
        identity: Option<Arc<Identity>>,
        trust: Trust,
    ) -> Self {
        Self {
            oldest,
            files: Arc::new(files),
            identity,
            trust,
            config: Arc::default(),
        }
    }

    /// Configuration with which rustls performs handshakes. Offers no protocol (ALPN): who dials
    /// sets it.
    ///
    /// # Errors
    /// [`TlsError::NoRoots`] where this machine is to be trusted and trusts nothing.
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        // Outside the lock, as it may fail: of two callers at once one builds it for nothing.
        let config = Arc::new(self.build()?);
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }

    /// Performs the handshake with the server of this name, or address, on an open connection.
    ///
    /// # Errors
    /// Why the server is not trusted, or the handshake fails. A server that refuses the certificate
    /// says so with its first bytes.
    pub async fn connect<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: T,
    ) -> io::Result<TlsStream<T>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = self.config().map_err(io::Error::other)?;
        TlsConnector::from(config).connect(name, stream).await
    }

    fn build(&self) -> Result<ClientConfig, TlsError> {
        let unusable = |error: &dyn fmt::Display| {
            TlsError::unusable(
                self.files.cert.as_deref().unwrap_or_else(|| "TLS".as_ref()),
                error,
            )
        };
        let provider = Arc::new(provider());
        let versions: &[_] = match self.oldest {
            Oldest::Tls12 => &[&TLS13, &TLS12],
            Oldest::Tls13 => &[&TLS13],
        };
        let by_roots = |roots| -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
            let built =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            Ok(built.map_err(|error| TlsError::NoRoots(error.to_string()))?)
        };
        let verifier = match &self.trust {
            Trust::Pinned(sha256) => Arc::new(Pin {
                sha256: *sha256,
                provider: Arc::clone(&provider),
            }),
            Trust::Authorities(roots) => by_roots(Arc::clone(roots))?,
            Trust::Machine => by_roots(machine_roots()?)?,
        };
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder
            .with_protocol_versions(versions)
            .map_err(|error| unusable(&error))?;
        // The verifier is the library's own, or compares the whole certificate.
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(own) => builder
                .with_client_auth_cert(own.chain.clone(), own.key.clone_key())
                .map_err(|error| unusable(&error)),
        }
    }

    /// The certificate and key that it shows, if any.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }

    /// The files, to watch for changes.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.files.ca, &self.files.cert, &self.files.key]
            .into_iter()
            .flatten()
    }
}

/// The certificates that this machine trusts. One that cannot be read leaves the others.
fn machine_roots() -> Result<Arc<RootCertStore>, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found
            .errors
            .first()
            .map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots(why));
    }
    Ok(Arc::new(roots))
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.oldest == other.oldest
            && self.files == other.files
            && self.identity == other.identity
            && self.trust == other.trust
    }
}

impl Eq for ClientTls {}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Machine, Self::Machine) => true,
            (Self::Pinned(one), Self::Pinned(other)) => one == other,
            (Self::Authorities(one), Self::Authorities(other)) => one.roots == other.roots,
            (Self::Machine | Self::Pinned(_) | Self::Authorities(_), _) => false,
        }
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}
