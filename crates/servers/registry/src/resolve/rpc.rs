//! One RPC to a registry (Connect unary).

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use client::{ApiAnswer, LinkError, Post};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prost::Message;

use super::digests::Digests;
use super::error::ResolveError;
use crate::connect::{Code, ConnectError, PROTO};

/// The time for one answer.
const LIMIT: Duration = Duration::from_secs(20);
const PROTOCOL: HeaderName = HeaderName::from_static("connect-protocol-version");

/// An answer on its way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<ApiAnswer, LinkError>> + Send + 'a>>;

/// The way to a registry.
pub trait Fetch: Send + Sync {
    /// Sends one POST, and follows no redirect.
    fn post(&self, request: Post) -> Fetching<'_>;
}

/// A set as a registry answered.
pub(super) struct Fetched {
    pub(super) commit: String,
    pub(super) set: Bytes,
}

/// A registry that is asked.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) way: &'a dyn Fetch,
    pub(super) url: &'a str,
    pub(super) token: Option<&'a str>,
    /// Digests of modules, as the configuration has them.
    pub(super) digests: &'a Digests,
}

/// One RPC; [`ResolveError::Absent`] if the registry does not have it.
pub(super) async fn call(
    at: At<'_>,
    path: &str,
    request: &impl Message,
    bytes_max: usize,
) -> Result<Bytes, ResolveError> {
    let At {
        way, url, token, ..
    } = at;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTO));
    headers.insert(PROTOCOL, HeaderValue::from_static("1"));
    if let Some(token) = token {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ResolveError::Token)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    let url = format!("{url}{path}");
    let body = request.encode_to_vec().into();
    let post = Post {
        url,
        headers,
        body,
        bytes_max,
        limit: LIMIT,
    };
    let ApiAnswer { status, body, .. } = way.post(post).await?;
    if status == StatusCode::OK {
        return Ok(body);
    }
    let no_rpc = [
        StatusCode::NOT_FOUND,
        StatusCode::NOT_IMPLEMENTED,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
    ];
    match serde_json::from_slice::<ConnectError>(&body) {
        Ok(error) if error.code == Code::Unimplemented => Err(ResolveError::Absent),
        Ok(error) => Err(ResolveError::Refused(error)),
        Err(_) if no_rpc.contains(&status) => Err(ResolveError::Absent),
        Err(_) => Err(ResolveError::Status(status.as_u16())),
    }
}

pub(super) fn read<M: Message + Default>(answer: Bytes) -> Result<M, ResolveError> {
    M::decode(answer).map_err(|_| ResolveError::Malformed)
}
