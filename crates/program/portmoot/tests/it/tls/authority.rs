//! Authority of a test: certificates for gateways, servers and clients, and their files.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::home::Home;

/// An authority whose certificate is in the file `NAME.pem` of a home.
pub(crate) struct Authority {
    pub(crate) file: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Pair {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new(home: &Home, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let file = home.write(
            &format!("{name}.pem"),
            &params.self_signed(&key).unwrap().pem(),
        );
        Self {
            file,
            issuer: Issuer::new(params, key),
        }
    }

    /// Issues a certificate for these names into the files `FILE.pem` and `FILE.key`.
    pub(crate) fn issue(&self, home: &Home, file: &str, names: &[&str]) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.issue_for(
            home,
            file,
            CertificateParams::new(names).unwrap().subject_alt_names,
        )
    }

    fn issue_for(&self, home: &Home, file: &str, names: Vec<SanType>) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
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

    /// Issues a certificate with this URI among its names.
    pub(crate) fn issue_uri(&self, home: &Home, file: &str, uri: &str) -> Pair {
        self.issue_for(home, file, vec![SanType::URI(uri.try_into().unwrap())])
    }

    /// The same for a gateway on this machine.
    pub(crate) fn issue_local(&self, home: &Home, file: &str) -> Pair {
        self.issue(home, file, &["localhost", "127.0.0.1"])
    }
}

impl Pair {
    /// The keys of `[server.tls]`.
    pub(crate) fn table(&self) -> String {
        format!(
            "[server.tls]\ncert = {:?}\nkey = {:?}\n",
            self.cert, self.key
        )
    }

    /// The options of a command that shows it.
    pub(crate) fn options(&self) -> [&str; 4] {
        [
            "--client-cert",
            self.cert.to_str().unwrap(),
            "--client-key",
            self.key.to_str().unwrap(),
        ]
    }
}
