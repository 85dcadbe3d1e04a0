//! The identity provider of these tests.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use harness::{Running, deps, repository};
use serde_json::{Value, json};

use super::resource;
use crate::http::{Connection, Reply};

/// `oidc-provider` on a free port.
pub(crate) struct Provider(Running);

impl Provider {
    /// A provider that knows the endpoints of the gateway as resources; its tokens are valid for
    /// `ttl` seconds.
    pub(super) fn start(ttl: u64) -> Self {
        Self::of(&["/mcp", "/mcp/ops", "/sse"].map(resource), ttl)
    }

    /// A provider that knows these resources.
    pub(crate) fn of(resources: &[String], ttl: u64) -> Self {
        Self::with(resources, ttl, |_| {})
    }

    /// The same, which takes clients by a document on the web, from servers whose certificates this
    /// authority has signed.
    pub(super) fn of_documents(resources: &[String], authority: &Path) -> Self {
        Self::with(resources, 600, |command| {
            command
                .env("IDP_DOCUMENTS", "1")
                .env("NODE_EXTRA_CA_CERTS", authority);
        })
    }

    fn with(resources: &[String], ttl: u64, more: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(deps().node());
        command
            .arg(repository().join("tests/third-party/idp.mjs"))
            .env("IDP_MODULES", deps().npm(""))
            .env("IDP_RESOURCES", json!(resources).to_string())
            .env("IDP_TTL", ttl.to_string())
            .stderr(std::process::Stdio::null());
        more(&mut command);
        Self(Running::start(command, "listening on http://"))
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.0.address()
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.0.address())
    }

    pub(crate) fn control(&self, order: &Value) -> Value {
        let headers = [("content-type", "application/json")];
        Connection::open(self.0.address())
            .exchange("POST", "/control", &headers, &order.to_string())
            .json()
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> u64 {
        self.control(&json!({"op": "asked"}))[path]
            .as_u64()
            .unwrap_or(0)
    }

    /// The token of a machine for a resource, with these scopes.
    #[track_caller]
    pub(super) fn machine(&self, client: &str, resource: &str, scope: &str) -> String {
        let resource = resource
            .replace(':', "%3A")
            .replace('/', "%2F")
            .replace('?', "%3F");
        let scope = scope.replace(' ', "+").replace(':', "%3A");
        self.given(client, &format!("resource={resource}&scope={scope}"))
    }

    /// The opaque token of a machine for no resource.
    pub(super) fn without_audience(&self, client: &str) -> String {
        self.given(client, "scope=")
    }

    #[track_caller]
    fn given(&self, client: &str, form: &str) -> String {
        let answer = self
            .form(
                client,
                "/token",
                &format!("grant_type=client_credentials&{form}"),
            )
            .json();
        answer["access_token"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// Ends a token of a machine.
    #[track_caller]
    pub(super) fn revoke(&self, client: &str, token: &str) {
        assert_eq!(
            self.form(client, "/token/revocation", &format!("token={token}"))
                .status,
            200
        );
    }

    /// What the provider answers a machine that authenticates itself.
    fn form(&self, client: &str, path: &str, form: &str) -> Reply {
        let basic = format!(
            "Basic {}",
            STANDARD.encode(format!("{client}:{client}-secret"))
        );
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("authorization", basic.as_str()),
        ];
        Connection::open(self.0.address()).exchange("POST", path, &headers, form)
    }

    /// A token with these claims changed from those of a good one; null removes.
    pub(crate) fn forged(&self, header: Value, changes: Value, key: &str) -> String {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let mut claims = json!({"iss": self.issuer(), "sub": "ann", "preferred_username": "ann", "groups": ["ops"],
            "aud": resource("/mcp"), "iat": now, "exp": now + 300, "jti": "x"});
        let mut head = json!({"alg": "RS256", "typ": "at+jwt", "kid": "a"});
        for (object, changes) in [(&mut head, header), (&mut claims, changes)] {
            for (name, value) in changes.as_object().unwrap() {
                match value {
                    Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
                    value => object[name] = value.clone(),
                }
            }
        }
        let order = json!({"op": "forge", "header": head, "claims": claims, "key": key});
        self.control(&order)["token"].as_str().unwrap().to_owned()
    }
}

/// The claims of a token.
pub(super) fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// A token of an issuer with a made-up signature: good until it is looked at closely.
pub(super) fn unsigned(issuer: &str, kid: &str) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let header = json!({"alg": "RS256", "typ": "at+jwt", "kid": kid});
    let claims =
        json!({"iss": issuer, "sub": "ann", "aud": resource("/mcp"), "iat": now, "exp": now + 300});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!(
        "{}.{}.{}",
        part(&header),
        part(&claims),
        URL_SAFE_NO_PAD.encode([7; 256])
    )
}
