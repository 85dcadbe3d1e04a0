//! Client certificates, and what a client presents to be known.

use std::net::IpAddr;
use std::str::FromStr;

use model::Digest;

/// The certificate that a client showed in its TLS handshake. An authority of the configuration has
/// issued it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// SHA-256 of the certificate.
    pub sha256: [u8; 32],
    /// DNS names and URIs among its subject alternative names.
    pub names: Vec<String>,
}

impl ClientCertificate {
    /// Each way in which the configuration may name it, the most exact one first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CertificateId> {
        let names = self
            .names
            .iter()
            .map(|name| CertificateId::Name(name.as_str().into()));
        std::iter::once(CertificateId::Sha256(self.sha256)).chain(names)
    }
}

/// Name of a participant's certificate in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CertificateId {
    /// By its SHA-256: this one certificate.
    Sha256([u8; 32]),
    /// By one of its subject alternative names, a DNS name or a URI: also the certificates that
    /// follow it.
    Name(Box<str>),
}

/// A text that is not the SHA-256 of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 has 64 hexadecimal digits, with or without colons")]
pub struct FingerprintError;

impl FromStr for CertificateId {
    type Err = FingerprintError;

    /// Reads a SHA-256, as `openssl x509 -fingerprint -sha256` prints it, or without its colons.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digits: String = text.chars().filter(|c| *c != ':').collect();
        digits
            .parse()
            .map(|Digest(hash)| Self::Sha256(hash))
            .map_err(|_| FingerprintError)
    }
}

/// Credentials of a client. A token counts before a certificate: it is the more specific of the two
/// where a proxy sends for others.
#[derive(Clone, Copy, Default)]
pub struct Presented<'c> {
    /// The token, without `Bearer `.
    pub bearer: Option<&'c str>,
    /// The certificate of its connection.
    pub certificate: Option<&'c ClientCertificate>,
    /// The address of the other end, for records.
    pub address: Option<IpAddr>,
}

/// The address that a request came from, as an extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl<'c> From<Option<&'c str>> for Presented<'c> {
    fn from(bearer: Option<&'c str>) -> Self {
        Self {
            bearer,
            certificate: None,
            address: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_printed() {
        let expected = Ok(CertificateId::Sha256([0xAB; 32]));
        assert_eq!(vec!["AB"; 32].join(":").parse(), expected);
        assert_eq!("ab".repeat(32).parse(), expected);
        for wrong in ["", "ab", &"ag".repeat(32), &"ab:".repeat(33)] {
            assert_eq!(
                wrong.parse::<CertificateId>(),
                Err(FingerprintError),
                "{wrong}"
            );
        }
    }
}
