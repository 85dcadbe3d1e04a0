//! Clients: configured, by a client id metadata document, or registered on the spot (RFC 7591), in
//! this order.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::AuthConfig;
use crate::dialer::{FetchRequest, Way};
use crate::metadata::{AuthorizationServer, busy, read_json};
use crate::secret::Secret;
use crate::token::{ClientAuth, DEVICE_GRANT, OAuthClient, refusal, seconds};
use crate::trouble::Trouble;

/// The path of the callback of a command on the same machine, whose port may be any.
pub const CALLBACK_PATH: &str = "/callback";
/// The path of the gateway's own callback.
pub const GATEWAY_CALLBACK_PATH: &str = "/oauth/callback";
/// The path of the gateway's client id metadata document.
pub const DOCUMENT_PATH: &str = "/oauth/client.json";
/// Path of the documents of clients that sign: the key's name follows, and `.json`.
pub const KEY_DOCUMENTS_PATH: &str = "/oauth/client/";
/// The path of the keys that the documents name.
pub const KEYS_PATH: &str = "/oauth/jwks.json";
/// The longest answer to a registration, bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The name by which people know the gateway at an authorization server.
const NAME: &str = "Portmoot";

/// Way by which an authorization response comes back, which decides how a client is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// At the public URL.
    Web,
    /// On the loopback interface of one machine.
    Native,
}

impl Use {
    /// `application_type` (OpenID Connect registration).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Native => "native",
        }
    }
}

/// The redirect URIs of one use. Those of the loopback interface have no port: any may follow (RFC
/// 8252 section 7.3). Since not every authorization server keeps to that, a registration also has
/// those with the port that a sign-in uses.
#[must_use]
pub fn redirect_uris(how: Use, public_url: Option<&str>) -> Vec<String> {
    match (how, public_url) {
        (Use::Web, Some(public)) => vec![format!("{public}{GATEWAY_CALLBACK_PATH}")],
        (Use::Web, None) | (Use::Native, _) => [CALLBACK_PATH, GATEWAY_CALLBACK_PATH]
            .map(|path| format!("http://127.0.0.1{path}"))
            .to_vec(),
    }
}

/// The id of the client whose document the gateway serves: of the one that signs with this key, or
/// of the public one. Servers whose configuration has a key and others need clients of their own,
/// since a document names one way to authenticate.
#[must_use]
pub fn document_url(public_url: &str, kid: Option<&str>) -> String {
    match kid {
        Some(kid) => format!("{public_url}{KEY_DOCUMENTS_PATH}{kid}.json"),
        None => format!("{public_url}{DOCUMENT_PATH}"),
    }
}

/// The client id metadata document that the gateway serves at its public URL.
#[must_use]
pub fn document(public_url: &str, kid: Option<&str>) -> Value {
    let mut uris = redirect_uris(Use::Web, Some(public_url));
    uris.extend(redirect_uris(Use::Native, None));
    let mut document = json!({
        "client_id": document_url(public_url, kid),
        "client_name": NAME,
        "client_uri": public_url,
        "redirect_uris": uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": if kid.is_some() { "private_key_jwt" } else { "none" },
    });
    if kid.is_some()
        && let Some(members) = document.as_object_mut()
    {
        members.insert(
            "jwks_uri".to_owned(),
            json!(format!("{public_url}{KEYS_PATH}")),
        );
        members.insert("token_endpoint_auth_signing_alg".to_owned(), json!("ES256"));
    }
    document
}

/// The client that the configuration names, bound to this server; `None` if it names none.
///
/// # Errors
/// [`Trouble::Metadata`] if the server takes none of the ways in which the client can authenticate.
pub fn configured(
    config: &AuthConfig,
    server: &AuthorizationServer,
) -> Result<Option<OAuthClient>, Trouble> {
    let Some(id) = config.client_id.clone() else {
        return Ok(None);
    };
    let auth = match (&config.private_key, &config.client_secret) {
        (Some(key), _) => ClientAuth::PrivateKey(key.clone()),
        (None, Some(secret)) => with_secret(secret.clone(), server),
        (None, None) => ClientAuth::None,
    };
    Ok(Some(OAuthClient { id, auth }))
}

/// The client whose id is the URL of a document, if the server takes such ids and there is a
/// document.
#[must_use]
pub fn by_document(
    config: &AuthConfig,
    server: &AuthorizationServer,
    public_url: Option<&str>,
) -> Option<OAuthClient> {
    if !server.client_id_metadata_document_supported {
        return None;
    }
    // Others can fetch a document over https only.
    let kid = config.private_key.as_ref().map(|key| key.kid());
    let own = public_url
        .filter(|url| url.starts_with("https://"))
        .map(|url| document_url(url, kid));
    let id = config.client_metadata_url.clone().or(own)?;
    let auth = match &config.private_key {
        Some(key) => ClientAuth::PrivateKey(key.clone()),
        None => ClientAuth::None,
    };
    Some(OAuthClient { id, auth })
}

/// A client that was registered on the spot.
#[derive(Clone)]
pub struct RegisteredClient {
    /// The client.
    pub client: OAuthClient,
    /// When its secret expires, Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
    /// The redirect URIs with which it was registered.
    pub redirect_uris: Vec<String>,
}

impl RegisteredClient {
    /// Whether it can be used now with this redirect URI.
    #[must_use]
    pub fn serves(&self, redirect_uri: Option<&str>, now_ms: u64) -> bool {
        let comes_back = match redirect_uri {
            Some(uri) => self.redirect_uris.iter().any(|one| one == uri),
            None => true,
        };
        comes_back && self.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
    }

    /// The port on the loopback interface to which a browser comes back at this path, if the client
    /// was registered with one.
    #[must_use]
    pub fn port_of(&self, path: &str) -> Option<u16> {
        self.redirect_uris
            .iter()
            .find_map(|uri| loopback_port(uri, path))
    }
}

/// The port of a redirect URI on the loopback interface with this path.
#[must_use]
pub fn loopback_port(uri: &str, path: &str) -> Option<u16> {
    uri.strip_prefix("http://127.0.0.1:")?
        .strip_suffix(path)?
        .parse()
        .ok()
}

#[derive(Deserialize)]
struct Answer {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<Value>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers a client. No scopes are named: they would bound what can be asked for later.
///
/// # Errors
/// [`Trouble::NoRegistration`] if the server registers none.
pub async fn register(
    way: Way<'_>,
    server: &AuthorizationServer,
    how: Use,
    redirect_uris: Vec<String>,
) -> Result<RegisteredClient, Trouble> {
    let Some(endpoint) = server.registration_endpoint.as_deref() else {
        return Err(Trouble::NoRegistration(server.host()));
    };
    let methods = ["client_secret_basic", "client_secret_post", "none"];
    let method = methods
        .into_iter()
        .find(|method| server.takes(method))
        .unwrap_or("none");
    let mut grants = vec!["authorization_code", "refresh_token"];
    if server.device_authorization_endpoint.is_some() && how == Use::Native {
        grants.push(DEVICE_GRANT);
    }
    let wish = json!({
        "client_name": NAME,
        "application_type": how.as_str(),
        "redirect_uris": redirect_uris,
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    let fetch = FetchRequest::post(endpoint, "application/json", Bytes::from(wish.to_string()))?;
    let fetched = way
        .dialer
        .fetch(fetch.bytes_max(ANSWER_BYTES_MAX), way.reach)
        .await?;
    if fetched.status.as_u16() == 429 || fetched.status.is_server_error() {
        return Err(busy(endpoint, &fetched));
    }
    if matches!(fetched.status.as_u16(), 401 | 403 | 404 | 405) {
        return Err(Trouble::NoRegistration(server.host()));
    }
    refusal(server, &fetched)?;
    let answer = match read_json::<Answer>(&fetched.body) {
        Ok(answer) if is_client_id(&answer.client_id) => answer,
        _ => {
            return Err(Trouble::Metadata(format!(
                "{} answered a registration with something else",
                server.host()
            )));
        }
    };
    let auth = match (
        answer.client_secret.map(Secret::new),
        answer.token_endpoint_auth_method.as_deref(),
    ) {
        (None, _) | (Some(_), Some("none")) => ClientAuth::None,
        (Some(secret), Some("client_secret_basic")) => ClientAuth::Basic(secret),
        (Some(secret), Some("client_secret_post")) => ClientAuth::Post(secret),
        (Some(secret), _) => with_secret(secret, server),
    };
    let expires_ms = answer
        .client_secret_expires_at
        .as_ref()
        .and_then(seconds)
        .unwrap_or(0)
        .saturating_mul(1_000);
    Ok(RegisteredClient {
        client: OAuthClient {
            id: answer.client_id,
            auth,
        },
        expires_ms: (expires_ms > 0).then_some(expires_ms),
        redirect_uris,
    })
}

/// Whether a text can be the id of a client: printable ASCII (RFC 6749, A.1).
fn is_client_id(text: &str) -> bool {
    (1..=2_048).contains(&text.len()) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// By a secret, in the way that the server takes; in the header, where it says nothing.
pub(crate) fn with_secret(secret: Secret, server: &AuthorizationServer) -> ClientAuth {
    if !server.takes("client_secret_basic") && server.takes("client_secret_post") {
        ClientAuth::Post(secret)
    } else if !server.takes("client_secret_basic") && server.takes("none") {
        ClientAuth::None
    } else {
        ClientAuth::Basic(secret)
    }
}
