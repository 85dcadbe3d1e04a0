//! Documents that clients publish about themselves: what they must have, and how long each is kept.
//!
//! Source: draft-ietf-oauth-client-id-metadata-document-00, sections 3 to 5.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use identity::login::LoginConfig;
use oauth::dialer::{AllowedAddresses, Dialer, FetchRequest, Fetched};
use platform::{Mutex, millis, unix_ms};
use serde_json::Value;
use tokio::sync::Semaphore;
use url::Url;

use crate::client::{Client, ClientTrust, UnknownClient, is_trusted, safe_name};
use crate::redirect;
use crate::registration::REDIRECT_URIS_MAX;

/// The longest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 10 * 1024;
/// The most documents that are kept.
pub const DOCUMENTS_MAX: usize = 256;
/// Documents that are fetched at one time.
pub const FETCHES_MAX: usize = 4;
/// The shortest time for which a document is kept.
pub const KEPT_MIN: Duration = Duration::from_secs(300);
/// The longest time.
pub const KEPT_MAX: Duration = Duration::from_secs(86_400);

/// Documents that were fetched.
pub struct Documents {
    dialer: Dialer,
    kept: Mutex<HashMap<String, Kept>>,
    places: Semaphore,
}

struct Kept {
    client: Arc<Document>,
    until_ms: u64,
}

/// Content of a client's document.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Document {
    name: String,
    redirect_uris: Vec<String>,
}

impl Documents {
    /// None yet.
    #[must_use]
    pub fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            kept: Mutex::default(),
            places: Semaphore::new(FETCHES_MAX),
        }
    }

    /// The client whose document is at this URL, fetched unless it is kept.
    ///
    /// # Errors
    /// [`UnknownClient::Document`] and [`UnknownClient::Fetch`].
    pub async fn client(
        &self,
        url: &Url,
        login: &LoginConfig,
        reach: &AllowedAddresses,
    ) -> Result<Client, UnknownClient> {
        let document = match self.known(url.as_str(), unix_ms()) {
            Some(known) => known,
            None => {
                // The semaphore is never closed.
                let _place = self.places.acquire().await.ok();
                match self.known(url.as_str(), unix_ms()) {
                    Some(known) => known,
                    None => self.fetch(url, reach).await?,
                }
            }
        };
        let standing = if is_trusted(url, login) {
            ClientTrust::Verified
        } else {
            ClientTrust::Document
        };
        let mut redirect_uris = document.redirect_uris.clone();
        redirect_uris.retain(|uri| redirect::destination(uri, &login.private_redirects).is_ok());
        if redirect_uris.is_empty() {
            return Err(UnknownClient::Document(
                "it has no acceptable redirect URI".to_owned(),
            ));
        }
        Ok(Client {
            id: url.to_string(),
            name: document.name.clone(),
            standing,
            redirect_uris,
        })
    }

    fn known(&self, url: &str, now_ms: u64) -> Option<Arc<Document>> {
        let kept = self.kept.lock();
        kept.get(url)
            .filter(|kept| now_ms < kept.until_ms)
            .map(|kept| Arc::clone(&kept.client))
    }

    async fn fetch(
        &self,
        url: &Url,
        reach: &AllowedAddresses,
    ) -> Result<Arc<Document>, UnknownClient> {
        let fetch = FetchRequest::get(url.as_str())
            .map_err(UnknownClient::Fetch)?
            .bytes_max(DOCUMENT_BYTES_MAX);
        let fetched = self
            .dialer
            .fetch(fetch, reach)
            .await
            .map_err(UnknownClient::Fetch)?;
        let document = Arc::new(read(url.as_str(), &fetched).map_err(UnknownClient::Document)?);
        let now_ms = unix_ms();
        let until_ms = now_ms.saturating_add(millis(kept_for(&fetched.headers)));
        let mut kept = self.kept.lock();
        if kept.len() >= DOCUMENTS_MAX {
            kept.retain(|_, one| now_ms < one.until_ms);
        }
        if kept.len() >= DOCUMENTS_MAX {
            let first = kept
                .iter()
                .min_by_key(|(_, one)| one.until_ms)
                .map(|(url, _)| url.clone());
            first.map(|first| kept.remove(&first));
        }
        kept.insert(
            url.to_string(),
            Kept {
                client: Arc::clone(&document),
                until_ms,
            },
        );
        Ok(document)
    }
}

/// Reads a document that was fetched from this URL.
fn read(url: &str, fetched: &Fetched) -> Result<Document, String> {
    if fetched.status != StatusCode::OK {
        return Err(format!(
            "its host answered with {}",
            fetched.status.as_u16()
        ));
    }
    let Ok(Value::Object(document)) = serde_json::from_slice(&fetched.body) else {
        return Err("it is no JSON object".to_owned());
    };
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if text("client_id") != Some(url) {
        return Err("its `client_id` is another one".to_owned());
    }
    let has_secret = text("token_endpoint_auth_method")
        .is_some_and(|method| method.starts_with("client_secret"));
    if has_secret
        || ["client_secret", "client_secret_expires_at"]
            .iter()
            .any(|key| document.contains_key(*key))
    {
        return Err("a client with a document has no secret".to_owned());
    }
    let uris = document.get("redirect_uris").and_then(Value::as_array);
    let uris = uris
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(REDIRECT_URIS_MAX);
    let redirect_uris: Vec<String> = uris.map(str::to_owned).collect();
    Ok(Document {
        name: safe_name(text("client_name").unwrap_or_default()),
        redirect_uris,
    })
}

/// For how long an answer may be kept: as its `Cache-Control` says, within bounds.
fn kept_for(headers: &HeaderMap) -> Duration {
    let values = headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let directives = values.flat_map(|value| value.split(','));
    let age = directives
        .filter_map(|one| {
            one.trim()
                .to_ascii_lowercase()
                .strip_prefix("max-age=")?
                .parse()
                .ok()
        })
        .next();
    age.map_or(KEPT_MIN, Duration::from_secs)
        .clamp(KEPT_MIN, KEPT_MAX)
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::http::HeaderValue;

    use super::*;

    const URL: &str = "https://app.example/client.json";

    #[test]
    fn a_document_names_itself_and_has_no_secret() {
        let read = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let body = Bytes::copy_from_slice(body.as_bytes());
            read(
                URL,
                &Fetched {
                    status,
                    headers: HeaderMap::new(),
                    body,
                },
            )
            .map(|read| read.redirect_uris.len())
        };
        let with = |more: &str| {
            format!(
                r#"{{"client_id":"{URL}","client_name":"App","redirect_uris":["https://app.example/cb"]{more}}}"#
            )
        };
        assert_eq!(read(200, &with("")), Ok(1));
        assert_eq!(
            read(200, &with(r#","token_endpoint_auth_method":"none""#)),
            Ok(1)
        );
        for (status, body) in [
            (404, with("")),
            (
                200,
                with(r#","token_endpoint_auth_method":"client_secret_post""#),
            ),
            (200, with(r#","client_secret":"x""#)),
            (200, with("").replace("client.json", "client.json/")),
            (200, with("").replace("\"client_id\"", "\"id\"")),
            (200, "[]".to_owned()),
            (200, String::new()),
        ] {
            assert!(read(status, &body).is_err(), "{status} {body}");
        }
    }

    #[test]
    fn documents_are_kept_within_bounds() {
        for (value, expect) in [
            (None, KEPT_MIN),
            (Some("no-store"), KEPT_MIN),
            (Some("max-age=0"), KEPT_MIN),
            (Some("public, max-age=3600"), Duration::from_secs(3600)),
            (Some("Max-Age=99999999"), KEPT_MAX),
            (Some("max-age=x"), KEPT_MIN),
        ] {
            let mut headers = HeaderMap::new();
            value.map(|value| {
                headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(value))
            });
            assert_eq!(kept_for(&headers), expect, "{value:?}");
        }
    }
}
