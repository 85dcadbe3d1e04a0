//! An issuer of access tokens: keys of each algorithm, tokens, and the set of keys over HTTP.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaKeyPair,
};
use serde_json::{Value, json};

/// The algorithms of tokens.
pub const ALGORITHMS: [&str; 5] = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];

/// An issuer with a key of each kind.
pub struct Signers {
    random: SystemRandom,
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn curve(of: &'static EcdsaSigningAlgorithm, random: &SystemRandom) -> EcdsaKeyPair {
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(of, random).expect("a key");
    EcdsaKeyPair::from_pkcs8(of, pkcs8.as_ref(), random).expect("the same key")
}

impl Signers {
    /// Makes the keys; that of RSA has 2,048 bits and comes from `openssl`.
    ///
    /// # Panics
    /// Without `openssl`.
    #[must_use]
    pub fn new() -> Self {
        let mut openssl = Command::new("openssl");
        openssl.args([
            "genpkey",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:2048",
            "-outform",
            "DER",
        ]);
        let made = openssl.output().expect("openssl");
        let random = SystemRandom::new();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        Self {
            // Versions of openssl write one form or the other.
            rsa: RsaKeyPair::from_pkcs8(&made.stdout)
                .or_else(|_| RsaKeyPair::from_der(&made.stdout))
                .expect("an RSA key"),
            p256: curve(&ECDSA_P256_SHA256_FIXED_SIGNING, &random),
            p384: curve(&ECDSA_P384_SHA384_FIXED_SIGNING, &random),
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).expect("the same key"),
            random,
        }
    }

    /// The public keys, as an issuer publishes them.
    #[must_use]
    pub fn keys(&self) -> String {
        let rsa = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let point = |kid: &str, crv: &str, pair: &EcdsaKeyPair| {
            let bytes = pair.public_key().as_ref();
            let (x, y) = bytes[1..].split_at((bytes.len() - 1) / 2);
            json!({"kty": "EC", "kid": kid, "use": "sig", "crv": crv, "x": text(x), "y": text(y)})
        };
        let ed = text(self.ed.public_key().as_ref());
        json!({"keys": [
            {"kty": "RSA", "kid": "RS256", "use": "sig", "n": text(&rsa.n), "e": text(&rsa.e)},
            {"kty": "RSA", "kid": "PS256", "use": "sig", "n": text(&rsa.n), "e": text(&rsa.e)},
            point("ES256", "P-256", &self.p256),
            point("ES384", "P-384", &self.p384),
            {"kty": "OKP", "kid": "EdDSA", "use": "sig", "crv": "Ed25519", "x": ed},
        ]})
        .to_string()
    }

    /// An access token, as long as those of usual providers, that is good for a day.
    ///
    /// # Panics
    /// Without randomness.
    #[must_use]
    pub fn token(&self, algorithm: &str, issuer: &str, audience: &str, subject: &str) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a time after 1970")
            .as_secs();
        let header = json!({"alg": algorithm, "typ": "at+jwt", "kid": algorithm});
        let claims: Value = json!({"iss": issuer, "sub": subject, "preferred_username": subject, "aud": audience,
            "iat": now, "exp": now + 86_400, "jti": format!("{subject}-{now}"), "client_id": "an-editor",
            "scope": "mcp:read mcp:write", "groups": ["staff", "engineering", "mcp-users"]});
        let signed = format!(
            "{}.{}",
            text(header.to_string().as_bytes()),
            text(claims.to_string().as_bytes())
        );
        let signature = match algorithm {
            "RS256" | "PS256" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let padding: &'static dyn ring::signature::RsaEncoding = if algorithm == "RS256" {
                    &RSA_PKCS1_SHA256
                } else {
                    &RSA_PSS_SHA256
                };
                self.rsa
                    .sign(padding, &self.random, signed.as_bytes(), &mut signature)
                    .expect("a signature");
                signature
            }
            "ES256" => self
                .p256
                .sign(&self.random, signed.as_bytes())
                .expect("a signature")
                .as_ref()
                .to_vec(),
            "ES384" => self
                .p384
                .sign(&self.random, signed.as_bytes())
                .expect("a signature")
                .as_ref()
                .to_vec(),
            _ => self.ed.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", text(&signature))
    }
}

impl Default for Signers {
    fn default() -> Self {
        Self::new()
    }
}

/// Answers every request on this port of loopback with the keys, until the program ends. Returns
/// the address.
///
/// # Panics
/// When the port is taken.
pub fn publish(port: u16, keys: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut read = [0; 4096];
            // One request a connection.
            let _ = socket.read(&mut read);
            let length = keys.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
            );
            let _ = socket.write_all(&[head.as_bytes(), keys.as_bytes()].concat());
        }
    });
    format!("http://{address}")
}
