//! TLS towards servers. Must not know what is said inside.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What makes a TLS stream of a TCP stream.
pub(crate) fn connector() -> io::Result<TlsConnector> {
    settings().map(TlsConnector::from)
}

/// The settings, made on first use: the machine's certificates, HTTP/1.1.
fn settings() -> io::Result<Arc<ClientConfig>> {
    static TLS: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = TLS.get() {
        return Ok(Arc::clone(config));
    }
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate store cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(io::Error::other("no trusted certificates found on this machine"));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::clone(TLS.get_or_init(|| Arc::new(config))))
}
