//! Introspection: an issuer's answer about an opaque token (RFC 7662).

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::error::IssuerError;
use crate::dialer::{AllowedAddresses, Dialer, FetchRequest};

/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// As which client the gateway asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The id that the issuer gave the gateway.
    pub client_id: String,
    /// The secret that goes with it.
    pub client_secret: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Asks about a token. Returns the members of the answer, of which `active` is a boolean.
pub(super) async fn ask(
    dialer: &Dialer,
    reach: &AllowedAddresses,
    url: &str,
    credentials: &Credentials,
    token: &str,
) -> Result<Map<String, Value>, IssuerError> {
    let form = Serializer::new(String::new())
        .append_pair("token", token)
        .append_pair("token_type_hint", "access_token")
        .finish();
    // RFC 6749, section 2.3.1: both parts are form-encoded first.
    let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!(
        "{}:{}",
        part(&credentials.client_id),
        part(&credentials.client_secret)
    );
    let basic = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
    let wrong = |why: &str| IssuerError::Answer(url.to_owned(), why.to_owned());
    let mut basic = basic.map_err(|_| wrong("the credentials cannot be sent"))?;
    basic.set_sensitive(true);
    let fetch = FetchRequest::post(url, "application/x-www-form-urlencoded", Bytes::from(form))?
        .header(AUTHORIZATION, basic)
        .bytes_max(ANSWER_BYTES_MAX);
    let fetched = dialer.fetch(fetch, reach).await?;
    if fetched.status != StatusCode::OK {
        return Err(IssuerError::Status(url.to_owned(), fetched.status.as_u16()));
    }
    let answer: Map<String, Value> =
        serde_json::from_slice(&fetched.body).map_err(|_| wrong("the answer is no JSON object"))?;
    // Required (section 2.2): an answer without it is about no token, and must not have a client
    // throw its token away.
    match answer.get("active") {
        Some(Value::Bool(_)) => Ok(answer),
        Some(_) | None => Err(wrong("the answer does not say whether the token is active")),
    }
}
