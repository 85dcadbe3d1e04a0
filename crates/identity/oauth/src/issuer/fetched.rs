//! Fetch of an issuer's keys, and how long they count as fresh.

use std::time::Duration;

use auth::jwt::{JWKS_BYTES_MAX, KeySet};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::error::IssuerError;
use crate::dialer::{AllowedAddresses, Dialer, FetchRequest};

/// Time that keys count as fresh unless the issuer says otherwise (`Cache-Control: max-age`).
pub const KEYS_FRESH: Duration = Duration::from_secs(15 * 60);
/// Shortest time for which keys count as fresh.
pub const KEYS_FRESH_MIN: Duration = Duration::from_secs(60);
/// Longest time for which keys count as fresh.
pub const KEYS_FRESH_MAX: Duration = Duration::from_secs(24 * 3600);

/// Time that an answer counts as fresh, and its tag, by which the next one may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Freshness {
    pub(super) fresh: Duration,
    pub(super) tag: Option<HeaderValue>,
}

impl Freshness {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let control = headers
            .get(CACHE_CONTROL)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let age = control
            .split(',')
            .find_map(|part| part.trim().strip_prefix("max-age="));
        let age = age
            .and_then(|age| age.trim_matches('"').parse().ok())
            .map(Duration::from_secs);
        let fresh = age.map_or(KEYS_FRESH, |age| age.clamp(KEYS_FRESH_MIN, KEYS_FRESH_MAX));
        Self {
            fresh,
            tag: headers.get(ETAG).cloned(),
        }
    }
}

/// Fetches keys; `None` if they are those with the tag.
pub(super) async fn fetch_keys(
    dialer: &Dialer,
    reach: &AllowedAddresses,
    url: &str,
    tag: Option<&HeaderValue>,
) -> Result<(Option<KeySet>, Freshness), IssuerError> {
    let mut fetch = FetchRequest::get(url)?.bytes_max(JWKS_BYTES_MAX);
    if let Some(tag) = tag {
        fetch = fetch.header(IF_NONE_MATCH, tag.clone());
    }
    let fetched = dialer.fetch(fetch, reach).await?;
    let mut freshness = Freshness::of(&fetched.headers);
    match fetched.status {
        StatusCode::OK => {
            let keys = KeySet::read(&fetched.body);
            let keys =
                keys.map_err(|error| IssuerError::Answer(url.to_owned(), error.to_string()))?;
            Ok((Some(keys), freshness))
        }
        StatusCode::NOT_MODIFIED if tag.is_some() => {
            freshness.tag = freshness.tag.or_else(|| tag.cloned());
            Ok((None, freshness))
        }
        other => Err(IssuerError::Status(url.to_owned(), other.as_u16())),
    }
}
