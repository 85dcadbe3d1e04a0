//! Files of every kind of wrongness, and what compares equal.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, CertifiedKey, KeyPair, SanType, date_time_ymd};

use super::*;

/// 2026-01-01, between the dates of the certificates below.
const NOW_MS: u64 = 1_767_225_600_000;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    }

    fn certificate(&self, name: &str) -> (PathBuf, PathBuf) {
        self.dated(name, 2025, 2030)
    }

    fn dated(&self, name: &str, from: i32, until: i32) -> (PathBuf, PathBuf) {
        let CertifiedKey { cert, signing_key } = issue(from, until);
        (
            self.write(&format!("{name}.pem"), &cert.pem()),
            self.write(&format!("{name}.key"), &signing_key.serialize_pem()),
        )
    }
}

fn issue(from: i32, until: i32) -> CertifiedKey<KeyPair> {
    let signing_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["gate.example".to_owned()]).unwrap();
    params
        .subject_alt_names
        .push(SanType::URI("spiffe://example/gate".try_into().unwrap()));
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    CertifiedKey {
        cert: params.self_signed(&signing_key).unwrap(),
        signing_key,
    }
}

fn files((cert, key): &(PathBuf, PathBuf)) -> ServerFiles {
    ServerFiles {
        cert: cert.clone(),
        key: key.clone(),
        client_ca: None,
        client_auth: ClientCertificates::Required,
    }
}

#[track_caller]
fn refused(files: ServerFiles, expected: &str) {
    let error = ServerTls::read(files, NOW_MS).expect_err(expected);
    assert!(error.to_string().contains(expected), "{error}");
    assert!(!error.hint().is_empty());
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let folder = Folder::new();
    let good = folder.certificate("good");
    let other = folder.certificate("other");
    assert!(ServerTls::read(files(&good), NOW_MS).is_ok());
    refused(
        files(&(good.0.clone(), other.1.clone())),
        "does not belong to the certificate",
    );
    refused(files(&folder.dated("old", 2020, 2025)), "has expired");
    refused(files(&folder.dated("new", 2027, 2030)), "is not valid yet");
    refused(
        files(&(good.0.clone(), good.0.clone())),
        "has no private key",
    );
    refused(
        files(&(good.1.clone(), good.1.clone())),
        "has no certificate",
    );
    refused(
        files(&(folder.0.path().join("gone"), good.1.clone())),
        "cannot read",
    );
    refused(
        files(&(folder.0.path().to_owned(), good.1.clone())),
        "cannot read",
    );
    refused(
        ServerFiles {
            client_ca: Some(good.1.clone()),
            ..files(&good)
        },
        "has no certificate",
    );
    let half = ClientFiles {
        cert: Some(good.0),
        ..ClientFiles::default()
    };
    assert!(matches!(
        ClientTls::read(half, Oldest::Tls12, NOW_MS),
        Err(TlsError::Half)
    ));
}

#[test]
fn a_key_that_every_user_may_read_is_warned_of() {
    let folder = Folder::new();
    let pair = folder.certificate("good");
    let warning = || {
        ServerTls::read(files(&pair), NOW_MS)
            .unwrap()
            .identity()
            .warning()
    };
    assert_eq!(warning(), None);
    std::fs::set_permissions(&pair.1, PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(warning(), None, "a group may be made for it");
    std::fs::set_permissions(&pair.1, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(warning().is_some_and(|text| text.contains("good.key")));
}

#[test]
fn a_new_certificate_in_the_same_file_is_a_difference() {
    let folder = Folder::new();
    let read = |pair: &(PathBuf, PathBuf)| ServerTls::read(files(pair), NOW_MS).unwrap();
    let towards = |ca: &Path| {
        let files = ClientFiles {
            ca: Some(ca.to_owned()),
            ..ClientFiles::default()
        };
        ClientTls::read(files, Oldest::Tls13, NOW_MS).unwrap()
    };
    let pair = folder.certificate("same");
    let before = read(&pair);
    let client_before = towards(&pair.0);
    assert_eq!(before, read(&pair));
    assert_eq!(client_before, towards(&pair.0));
    let pair = folder.certificate("same");
    assert_ne!(before, read(&pair));
    assert_ne!(client_before, towards(&pair.0));
    assert!(client_before.config().is_ok());
}

#[test]
fn an_identity_is_left_out_and_trust_stays() {
    let folder = Folder::new();
    let (cert, key) = folder.certificate("own");
    let own = ClientFiles {
        ca: Some(cert.clone()),
        cert: Some(cert.clone()),
        key: Some(key),
    };
    let towards = |files: ClientFiles| ClientTls::read(files, Oldest::Tls13, NOW_MS).unwrap();
    let shown = towards(own);
    let nothing = shown.without_identity();
    assert!(shown.identity().is_some() && nothing.identity().is_none());
    assert!(
        !nothing
            .config()
            .unwrap()
            .client_auth_cert_resolver
            .has_certs()
    );
    assert_eq!(
        nothing,
        towards(ClientFiles {
            ca: Some(cert),
            ..ClientFiles::default()
        })
    );
}

#[test]
fn nothing_secret_is_printed() {
    let folder = Folder::new();
    let tls = ServerTls::read(files(&folder.certificate("good")), NOW_MS).unwrap();
    assert!(format!("{tls:?}").starts_with("ServerFiles"), "{tls:?}");
    let identity = format!("{:?}", tls.identity());
    let secret = tls
        .identity()
        .key
        .secret_der()
        .first()
        .map(|byte| format!("[{byte}, "))
        .unwrap();
    assert!(
        identity.contains("key_file") && !identity.contains(&format!("key: {secret}")),
        "{identity}"
    );
}

#[test]
fn names_and_fingerprints_are_those_of_the_certificate() {
    let der = issue(2025, 2030).cert.der().clone();
    assert_eq!(names(&der), ["gate.example", "spiffe://example/gate"]);
    assert_ne!(fingerprint(&der), fingerprint(issue(2025, 2030).cert.der()));
    assert!(names(&b"no certificate".as_slice().into()).is_empty());
}
