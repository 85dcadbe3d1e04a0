//! Authority of a test: certificates for gateways, servers and clients, and their files.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::home::Home;

/// An authority whose certificate is in the file `NAME.pem` of a home.
pub(super) struct Authority {
    pub(super) file: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(super) struct Pair {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

impl Authority {
    pub(super) fn new(home: &Home, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let file = home.write(&format!("{name}.pem"), &params.self_signed(&key).unwrap().pem());
        Self { file, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate for these names into the files `FILE.pem` and `FILE.key`.
    pub(super) fn issue(&self, home: &Home, file: &str, names: &[&str]) -> Pair {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::CommonName, file);
        params.use_authority_key_identifier_extension = true;
        let cert = params.signed_by(&key, &self.issuer).unwrap().pem();
        let pair = Pair {
            key: home.write(&format!("{file}.key"), &key.serialize_pem()),
            cert: home.write(&format!("{file}.pem"), &cert),
        };
        std::fs::set_permissions(&pair.key, PermissionsExt::from_mode(0o600)).unwrap();
        pair
    }

    /// The same for a gateway on this machine.
    pub(super) fn issue_local(&self, home: &Home, file: &str) -> Pair {
        self.issue(home, file, &["localhost", "127.0.0.1"])
    }
}

impl Pair {
    /// The keys of `[server.tls]`.
    pub(super) fn table(&self) -> String {
        format!("[server.tls]\ncert = {:?}\nkey = {:?}\n", self.cert, self.key)
    }

    /// The options of a command that shows it.
    pub(super) fn options(&self) -> [&str; 4] {
        ["--client-cert", self.cert.to_str().unwrap(), "--client-key", self.key.to_str().unwrap()]
    }
}
