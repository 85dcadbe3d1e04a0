//! Requests to a registry: sources by the v1 API, else a descriptor set by it or by the reflection
//! API (Connect unary).

use std::collections::HashMap;

use client::Post;
use schema::Reference;
use tls::ClientTls;

use super::error::ResolveError;
use super::rpc::{At, Fetch, Fetched, Fetching, call, read};
use super::sources;
use crate::messages::{module, reflect};
use crate::serve::{GET_SET, REFLECT_SET};

/// The longest descriptor set of a registry, in bytes: what `schema` takes from a peer.
pub const SET_BYTES_MAX: usize = 1 << 20;
/// The longest answer with a descriptor set, in bytes.
const ANSWER_BYTES_MAX: usize = SET_BYTES_MAX + 4_096;
/// HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Authorities that are trusted, and the certificate that is shown.
    pub tls: ClientTls,
    /// Settings for hosts whose certificate is pinned, by host.
    pub pinned: HashMap<String, ClientTls>,
}

/// Trust in the authorities of this machine.
impl Default for Http {
    fn default() -> Self {
        Self {
            tls: ClientTls::of_machine(),
            pinned: HashMap::new(),
        }
    }
}

impl Fetch for Http {
    fn post(&self, request: Post) -> Fetching<'_> {
        let host = request.url.split('/').nth(2).unwrap_or_default();
        let tls = self.pinned.get(host).unwrap_or(&self.tls).clone();
        Box::pin(client::post(request, tls))
    }
}

/// Fetches the set of a version; the version is a commit or a label, or empty for the default
/// label. It is compiled from the sources if the registry gives them: only these can be compared
/// with a digest.
pub(super) async fn fetch(
    at: At<'_>,
    reference: &Reference,
    version: &str,
) -> Result<Fetched, ResolveError> {
    let Reference {
        host,
        owner,
        module,
        symbol,
        ..
    } = reference;
    // Without a dot it is the name of a tool, which no registry knows: then all files are needed.
    let symbols = if symbol.contains('.') {
        vec![symbol.clone()]
    } else {
        Vec::new()
    };
    let name = module::ResourceName {
        owner: owner.clone(),
        module: module.clone(),
        reference: version.to_owned(),
        ..module::ResourceName::default()
    };
    let resource = module::ResourceRef {
        id: String::new(),
        name: Some(name),
    };
    let full_name = format!("{host}/{owner}/{module}");
    match sources::fetch(at, &full_name, resource.clone(), version, &symbols).await {
        Err(ResolveError::Absent) => {}
        other => return other,
    }
    let fetched = match set(at, resource, symbols.clone()).await {
        Err(ResolveError::Absent) => reflected(at, full_name.clone(), version, symbols).await?,
        other => other?,
    };
    // A set cannot be compared with the digest that the operator has configured.
    match at.digests.of(&full_name, &fetched.commit) {
        Some(_) => Err(ResolveError::NoSources),
        None => Ok(fetched),
    }
}

/// The set by the v1 API.
async fn set(
    at: At<'_>,
    resource: module::ResourceRef,
    include_types: Vec<String>,
) -> Result<Fetched, ResolveError> {
    let request = module::GetFileDescriptorSetRequest {
        resource_ref: Some(resource),
        include_types,
        ..module::GetFileDescriptorSetRequest::default()
    };
    let answer = call(at, GET_SET, &request, ANSWER_BYTES_MAX).await?;
    let answer = read::<module::GetFileDescriptorSetResponse>(answer)?;
    let commit = answer.commit.unwrap_or_default().id;
    Ok(Fetched {
        commit,
        set: answer.file_descriptor_set,
    })
}

/// The set by the reflection API.
async fn reflected(
    at: At<'_>,
    module: String,
    version: &str,
    symbols: Vec<String>,
) -> Result<Fetched, ResolveError> {
    let request = reflect::GetFileDescriptorSetRequest {
        module,
        version: version.to_owned(),
        symbols,
    };
    let answer = call(at, REFLECT_SET, &request, ANSWER_BYTES_MAX).await?;
    let answer = read::<reflect::GetFileDescriptorSetResponse>(answer)?;
    Ok(Fetched {
        commit: answer.version,
        set: answer.file_descriptor_set,
    })
}
