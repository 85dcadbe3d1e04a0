//! Requests to a registry: the v1 API, then the reflection API (Connect unary).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use client::{LinkError, Post, Posted};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prost::Message;
use schema::Reference;
use tls::ClientTls;

use super::error::ResolveError;
use crate::connect::{Code, Error, PROTO};
use crate::messages::{module, reflect};
use crate::serve::{GET_SET, REFLECT_SET};

/// The longest descriptor set of a registry, in bytes: what `schema` takes from a peer.
pub const SET_BYTES_MAX: usize = 1 << 20;
/// The same with what is around it in the answer.
const ANSWER_BYTES_MAX: usize = SET_BYTES_MAX + 4_096;
/// The time for one answer.
const LIMIT: Duration = Duration::from_secs(20);
const PROTOCOL: HeaderName = HeaderName::from_static("connect-protocol-version");

/// An answer on its way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Posted, LinkError>> + Send + 'a>>;

/// The way to a registry.
pub trait Fetch: Send + Sync {
    /// Sends one POST, and follows no redirect.
    fn post(&self, request: Post) -> Fetching<'_>;
}

/// HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// What is trusted.
    pub tls: ClientTls,
    /// The same for hosts whose certificate is pinned.
    pub pinned: HashMap<String, ClientTls>,
}

/// What this machine trusts.
impl Default for Http {
    fn default() -> Self {
        Self { tls: ClientTls::of_machine(), pinned: HashMap::new() }
    }
}

impl Fetch for Http {
    fn post(&self, request: Post) -> Fetching<'_> {
        let host = request.url.split('/').nth(2).unwrap_or_default();
        let tls = self.pinned.get(host).unwrap_or(&self.tls).clone();
        Box::pin(client::post(request, tls))
    }
}

/// A set as a registry answered.
pub(super) struct Fetched {
    pub(super) commit: String,
    pub(super) set: Bytes,
}

/// Fetches the set of a version; the version is a commit or a label, or empty for the default label.
pub(super) async fn fetch(
    way: &dyn Fetch,
    (url, token): (&str, Option<&str>),
    reference: &Reference,
    version: &str,
) -> Result<Fetched, ResolveError> {
    let Reference { host, owner, module, symbol, .. } = reference;
    let symbols: Vec<_> = symbol.contains('.').then(|| symbol.clone()).into_iter().collect();
    let name = module::ResourceName {
        owner: owner.clone(),
        module: module.clone(),
        reference: version.to_owned(),
        ..module::ResourceName::default()
    };
    let request = module::GetFileDescriptorSetRequest {
        resource_ref: Some(module::ResourceRef { id: String::new(), name: Some(name) }),
        include_types: symbols.clone(),
        ..module::GetFileDescriptorSetRequest::default()
    };
    match call(way, (url, token), GET_SET, &request).await {
        Err(ResolveError::Absent) => {}
        Err(error) => return Err(error),
        Ok(answer) => {
            let answer = read::<module::GetFileDescriptorSetResponse>(answer)?;
            let commit = answer.commit.unwrap_or_default().id;
            return Ok(Fetched { commit, set: answer.file_descriptor_set });
        }
    }
    let module = format!("{host}/{owner}/{module}");
    let request = reflect::GetFileDescriptorSetRequest { module, version: version.to_owned(), symbols };
    let answer = call(way, (url, token), REFLECT_SET, &request).await?;
    let answer = read::<reflect::GetFileDescriptorSetResponse>(answer)?;
    Ok(Fetched { commit: answer.version, set: answer.file_descriptor_set })
}

/// One RPC; [`ResolveError::Absent`] if the registry does not have it.
async fn call(
    way: &dyn Fetch,
    (url, token): (&str, Option<&str>),
    path: &str,
    request: &impl Message,
) -> Result<Bytes, ResolveError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTO));
    headers.insert(PROTOCOL, HeaderValue::from_static("1"));
    if let Some(token) = token {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ResolveError::Token)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    let (url, body) = (format!("{url}{path}"), request.encode_to_vec().into());
    let post = Post { url, headers, body, bytes_max: ANSWER_BYTES_MAX, limit: LIMIT };
    let Posted { status, body } = way.post(post).await?;
    if status == StatusCode::OK {
        return Ok(body);
    }
    let no_rpc = [StatusCode::NOT_FOUND, StatusCode::NOT_IMPLEMENTED, StatusCode::UNSUPPORTED_MEDIA_TYPE];
    match serde_json::from_slice::<Error>(&body) {
        Ok(error) if error.code == Code::Unimplemented => Err(ResolveError::Absent),
        Ok(error) => Err(ResolveError::Refused(error)),
        Err(_) if no_rpc.contains(&status) => Err(ResolveError::Absent),
        Err(_) => Err(ResolveError::Status(status.as_u16())),
    }
}

fn read<M: Message + Default>(answer: Bytes) -> Result<M, ResolveError> {
    M::decode(answer).map_err(|_| ResolveError::Malformed)
}
