//! TLS of the port that the gateway listens on: what it shows, and which clients it lets finish a
//! handshake.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::error::TlsError;
use crate::identity::{Identity, provider};
use crate::pem;

/// The protocols that the HTTP door speaks, best first (ALPN, RFC 7301). A client that offers none
/// of them is refused; one that offers nothing speaks HTTP/1.1.
pub const PROTOCOLS: &[&[u8]] = &[HTTP_2, b"http/1.1"];
/// The name of HTTP/2 in ALPN (RFC 9113, section 3.2).
pub const HTTP_2: &[u8] = b"h2";

/// Whether a client must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientCertificates {
    /// Every client must.
    #[default]
    Required,
    /// A client may; others need a token.
    Optional,
}

/// The files of `[server.tls]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// The gateway's certificate, followed by those that lead to its authority.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities that issue certificates to clients; `None` asks clients for none.
    pub client_ca: Option<PathBuf>,
    /// Whether clients must show one.
    pub client_auth: ClientCertificates,
}

/// TLS of the port that the gateway listens on: TLS 1.3 alone.
#[derive(Clone)]
pub struct ServerTls {
    files: Arc<ServerFiles>,
    identity: Arc<Identity>,
    client_roots: Option<Arc<RootCertStore>>,
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the files, and checks them at `now_ms` (Unix milliseconds).
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub fn read(files: ServerFiles, now_ms: u64) -> Result<Self, TlsError> {
        let identity = Identity::read(&files.cert, &files.key, now_ms)?;
        let authorities = files
            .client_ca
            .as_deref()
            .map(|path| Ok((path, pem::authorities(path)?)));
        let authorities = authorities.transpose()?;
        let unusable = |error| TlsError::unusable(&files.cert, error);
        let provider = Arc::new(provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?;
        let mut client_roots = None;
        let mut verifier = WebPkiClientVerifier::no_client_auth();
        if let Some((path, roots)) = authorities {
            let roots = client_roots.insert(Arc::new(roots));
            let built = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider);
            let built = match files.client_auth {
                ClientCertificates::Required => built,
                ClientCertificates::Optional => built.allow_unauthenticated(),
            };
            verifier = built
                .build()
                .map_err(|error| TlsError::unusable(path, error))?;
        }
        let chain = identity.chain.clone();
        let key = identity.key.clone_key();
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        if client_roots.is_some() {
            // A resumed session would outlive the client's certificate.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        let files = Arc::new(files);
        let identity = Arc::new(identity);
        Ok(Self {
            files,
            identity,
            client_roots,
            config: Arc::new(config),
        })
    }

    /// Acceptor that performs the handshake of a connection.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Whether clients are asked for a certificate.
    #[must_use]
    pub fn asks_clients(&self) -> bool {
        self.client_roots.is_some()
    }

    /// The gateway's certificate and key.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The SHA-256 of the gateway's certificate.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        self.identity.fingerprint()
    }

    /// The files, to watch for changes.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.files.cert, &self.files.key]
            .into_iter()
            .chain(&self.files.client_ca)
    }
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &Self) -> bool {
        let roots = |one: &Self| one.client_roots.as_ref().map(|roots| roots.roots.clone());
        self.files == other.files && self.identity == other.identity && roots(self) == roots(other)
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}
