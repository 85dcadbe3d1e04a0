//! Token requests (RFC 6749, 7009, 8628, 8693) and how a client authenticates in them.
//!
//! The crate `oauth2` (5.0) was compared and is not used, although its HTTP client can be the guarded
//! [dialer](crate::dialer). Exchanges of tokens, registrations and private keys as a client's
//! authentication are not in it, so forms, authentication and the reading of answers here would all
//! stay. For what it has, it asks for less or for more than servers do:
//! - An error that comes with status 200 is not seen; a status of 201, a content type other than
//!   JSON, a lifetime written as a text and a list of scopes are refused.
//! - `Retry-After` of a server that is busy is lost, and an error without a body has no status.
//! - Tokens and forms are not zeroed, and an answer that cannot be read stands whole in the error.
//! - The poll for a sign-in on another device is one loop until its end; here each look is a request
//!   of the person's.
//! - Introspection gives fields with types of its own. Claims are read here as the issuer wrote
//!   them, as those of a JWT are.
//! - It comes with a second source of randomness and older releases of crates that are there.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use platform::{random, unix_ms};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::dialer::{FetchRequest, Fetched, Way};
use crate::jwt::SigningKey;
use crate::metadata::{AuthorizationServer, busy, read_json, shown};
use crate::secret::Secret;
use crate::trouble::Trouble;

/// The longest token that is taken over, bytes.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// The longest answer of a token endpoint, bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest description of an error that is shown, characters.
const DESCRIPTION_CHARS_MAX: usize = 200;
/// The type of an access token in an exchange.
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The grant of a sign-in on another device.
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The type of a JWT as a client's assertion.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Authentication of a client at the token endpoint.
#[derive(Clone)]
pub enum ClientAuth {
    /// It is a public client.
    None,
    /// By its secret in the header.
    Basic(Secret),
    /// By its secret in the body.
    Post(Secret),
    /// By an assertion.
    PrivateKey(Arc<SigningKey>),
}

/// A client of an authorization server.
#[derive(Clone)]
pub struct OAuthClient {
    /// Its id.
    pub id: String,
    /// Authentication of the client.
    pub auth: ClientAuth,
}

/// Tokens that are asked for.
pub enum TokenGrant<'a> {
    /// Tokens of an authorization code.
    Code {
        /// The code.
        code: &'a str,
        /// The verifier of PKCE.
        verifier: &'a Secret,
        /// As in the authorization request.
        redirect_uri: &'a str,
    },
    /// New tokens for a refresh token.
    Refresh(&'a Secret),
    /// Tokens of the client itself.
    ClientCredentials {
        /// The scopes; empty leaves the choice to the server.
        scopes: &'a [String],
    },
    /// Tokens of a sign-in on another device.
    Device {
        /// Its code.
        code: &'a Secret,
    },
    /// Tokens that act for the bearer of another token.
    Exchange {
        /// The caller's token.
        subject: &'a Secret,
        /// The scopes.
        scopes: &'a [String],
        /// The audience.
        audience: Option<&'a str>,
    },
}

/// Tokens as they were issued.
#[derive(Clone)]
pub struct IssuedTokens {
    /// The access token.
    pub access: Secret,
    /// The refresh token.
    pub refresh: Option<Secret>,
    /// When the access token expires, Unix milliseconds; `None` if the server does not say.
    pub expires_ms: Option<u64>,
    /// Time that it was valid when it was issued, milliseconds.
    pub lifetime_ms: Option<u64>,
    /// The granted scopes, if the server names them.
    pub scopes: Option<Vec<String>>,
    /// The ID token of a sign-in by OpenID Connect, unread.
    pub id_token: Option<Secret>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Zeroizing<String>,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<Zeroizing<String>>,
    scope: Option<Value>,
    issued_token_type: Option<String>,
    id_token: Option<Value>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

/// A body of a form, zeroed except for the copy that is sent.
pub(crate) struct FormBody(Zeroizing<String>);

impl FormBody {
    pub(crate) fn new() -> Self {
        Self(Zeroizing::default())
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.add_encoded(name);
        self.0.push('=');
        self.add_encoded(value);
        self
    }

    fn add_encoded(&mut self, text: &str) {
        self.0
            .extend(form_urlencoded::byte_serialize(text.as_bytes()));
    }

    fn add_some(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }

    fn body(self) -> Bytes {
        Bytes::copy_from_slice(self.0.as_bytes())
    }
}

/// Asks for tokens.
///
/// # Errors
/// [`Trouble`]; [`Trouble::Refused`] with the code of RFC 6749.
pub async fn request(
    way: Way<'_>,
    server: &AuthorizationServer,
    client: &OAuthClient,
    grant: &TokenGrant<'_>,
    resource: Option<&str>,
) -> Result<IssuedTokens, Trouble> {
    let mut form = form_of(grant);
    form.add_some("resource", resource);
    let Some(endpoint) = server.token_endpoint.as_deref() else {
        return Err(no_endpoint(server, "token_endpoint"));
    };
    let fetched = post(way, endpoint, server, client, form).await?;
    refusal(server, &fetched)?;
    let is_exchange = matches!(grant, TokenGrant::Exchange { .. });
    read(&fetched.body, server, is_exchange)
}

/// The form of a grant, without its client and its resource.
fn form_of(grant: &TokenGrant<'_>) -> FormBody {
    let mut form = FormBody::new();
    match grant {
        TokenGrant::Code {
            code,
            verifier,
            redirect_uri,
        } => {
            form.add("grant_type", "authorization_code")
                .add("code", code);
            form.add("redirect_uri", redirect_uri)
                .add("code_verifier", verifier.expose());
        }
        TokenGrant::Refresh(token) => {
            form.add("grant_type", "refresh_token")
                .add("refresh_token", token.expose());
        }
        TokenGrant::ClientCredentials { scopes } => {
            form.add("grant_type", "client_credentials")
                .add_some("scope", scope_of(scopes).as_deref());
        }
        TokenGrant::Device { code } => {
            form.add("grant_type", DEVICE_GRANT);
            form.add("device_code", code.expose());
        }
        TokenGrant::Exchange {
            subject,
            scopes,
            audience,
        } => {
            form.add(
                "grant_type",
                "urn:ietf:params:oauth:grant-type:token-exchange",
            );
            form.add("subject_token", subject.expose())
                .add("subject_token_type", ACCESS_TOKEN_TYPE);
            form.add_some("scope", scope_of(scopes).as_deref())
                .add_some("audience", *audience);
        }
    }
    form
}

/// Revokes a token. A server that does not know it any more answers like one that revoked it.
///
/// # Errors
/// [`Trouble`].
pub async fn revoke(
    way: Way<'_>,
    server: &AuthorizationServer,
    client: &OAuthClient,
    token: &Secret,
    hint: &str,
) -> Result<(), Trouble> {
    let Some(endpoint) = server.revocation_endpoint.as_deref() else {
        return Ok(());
    };
    let mut form = FormBody::new();
    form.add("token", token.expose())
        .add("token_type_hint", hint);
    refusal(server, &post(way, endpoint, server, client, form).await?)
}

/// Posts a form to an endpoint as this client. The form has its id also where a header names it:
/// authorization servers look it up there first (RFC 6749 section 3.2.1).
///
/// # Errors
/// [`Trouble`].
pub(crate) async fn post(
    way: Way<'_>,
    endpoint: &str,
    server: &AuthorizationServer,
    client: &OAuthClient,
    mut form: FormBody,
) -> Result<Fetched, Trouble> {
    let mut header = None;
    form.add("client_id", &client.id);
    match &client.auth {
        ClientAuth::None => {}
        ClientAuth::Post(secret) => drop(form.add("client_secret", secret.expose())),
        ClientAuth::Basic(secret) => {
            // Encoded before they are joined (RFC 6749, 2.3.1).
            let mut pair = FormBody::new();
            pair.add_encoded(&client.id);
            pair.0.push(':');
            pair.add_encoded(secret.expose());
            let pair = pair.0;
            let line = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
            header = HeaderValue::from_str(&line).ok();
        }
        ClientAuth::PrivateKey(key) => {
            let id = URL_SAFE_NO_PAD.encode(random::<16>());
            let assertion = key.assertion(&client.id, &server.issuer, &id, unix_ms());
            let Some(assertion) = assertion else {
                let why = "the machine has no randomness to sign with".to_owned();
                return Err(Trouble::Metadata(why));
            };
            form.add("client_assertion_type", ASSERTION_TYPE)
                .add("client_assertion", &assertion);
        }
    }
    let mut fetch = FetchRequest::post(endpoint, "application/x-www-form-urlencoded", form.body())?;
    if let Some(mut header) = header {
        header.set_sensitive(true);
        fetch = fetch.header(AUTHORIZATION, header);
    }
    let fetched = way
        .dialer
        .fetch(fetch.bytes_max(ANSWER_BYTES_MAX), way.reach)
        .await?;
    if fetched.status.as_u16() == 429 || fetched.status.is_server_error() {
        return Err(busy(endpoint, &fetched));
    }
    Ok(fetched)
}

/// Refuses an answer that is no success, or a success with an error in it: some servers answer
/// every request with 200.
///
/// # Errors
/// [`Trouble::Refused`].
pub(crate) fn refusal(server: &AuthorizationServer, fetched: &Fetched) -> Result<(), Trouble> {
    let refusal = match read_json::<Refusal>(&fetched.body) {
        Ok(refusal) => refusal,
        Err(_) if fetched.status.is_success() => return Ok(()),
        Err(_) => Refusal {
            error: format!("HTTP status {}", fetched.status.as_u16()),
            error_description: None,
        },
    };
    let description = refusal.error_description;
    Err(Trouble::Refused {
        host: server.host(),
        error: shown(&refusal.error),
        description: description
            .map(|text| shown(&text).chars().take(DESCRIPTION_CHARS_MAX).collect()),
    })
}

fn no_endpoint(server: &AuthorizationServer, name: &str) -> Trouble {
    Trouble::Metadata(format!("the metadata of {} has no `{name}`", server.host()))
}

/// The parameter for these scopes; none leaves the choice to the server.
fn scope_of(scopes: &[String]) -> Option<String> {
    if scopes.is_empty() {
        return None;
    }
    Some(scopes.join(" "))
}

/// A number of seconds, which some servers write as a text.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().map(|seconds| seconds as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn read(
    body: &[u8],
    server: &AuthorizationServer,
    is_exchange: bool,
) -> Result<IssuedTokens, Trouble> {
    let answer = check(body, is_exchange)
        .map_err(|what| Trouble::Metadata(format!("{} {what}", server.host())))?;
    let lifetime_ms = answer.expires_in.as_ref().and_then(seconds).map(|seconds| {
        Duration::from_secs(seconds)
            .as_millis()
            .min(u128::from(u64::MAX / 2)) as u64
    });
    Ok(IssuedTokens {
        access: Secret::new(std::mem::take(&mut *{ answer.access_token })),
        refresh: answer
            .refresh_token
            .map(|mut token| Secret::new(std::mem::take(&mut *token))),
        expires_ms: lifetime_ms.map(|lifetime| unix_ms().saturating_add(lifetime)),
        lifetime_ms,
        scopes: answer.scope.as_ref().and_then(scopes),
        id_token: answer.id_token.as_ref().and_then(id_token),
    })
}

/// An ID token, if it is a text of a length that is read.
fn id_token(value: &Value) -> Option<Secret> {
    let text = value.as_str()?;
    (text.len() <= TOKEN_BYTES_MAX).then(|| Secret::new(text.to_owned()))
}

/// Reads an answer with tokens that can be used; or what the server did instead.
fn check(body: &[u8], is_exchange: bool) -> Result<Answer, &'static str> {
    let answer: Answer =
        read_json(body).map_err(|_| "answered a token request with something else")?;
    if !answer.token_type.eq_ignore_ascii_case("bearer") {
        return Err("issued a token that is no bearer token");
    }
    if is_exchange
        && let Some(kind) = &answer.issued_token_type
        && kind != ACCESS_TOKEN_TYPE
    {
        return Err("exchanged the token for something that is no access token");
    }
    let can_refresh = match &answer.refresh_token {
        Some(token) => can_be_sent(token),
        None => true,
    };
    if !can_be_sent(&answer.access_token) || !can_refresh {
        return Err("issued a token that cannot be sent");
    }
    Ok(answer)
}

/// Whether a token is one that a header can have.
fn can_be_sent(token: &str) -> bool {
    (1..=TOKEN_BYTES_MAX).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Scopes with blanks between them, or, as some servers write them, a list of scopes; `None` of
/// anything else, which names none.
fn scopes(value: &Value) -> Option<Vec<String>> {
    let mut scopes = Vec::new();
    match value {
        Value::String(text) => scopes.extend(text.split_ascii_whitespace().map(str::to_owned)),
        Value::Array(all) => {
            for one in all {
                let text = one.as_str()?;
                scopes.extend(text.split_ascii_whitespace().map(str::to_owned));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    }
    Some(scopes)
}
