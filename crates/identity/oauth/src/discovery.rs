//! Discovery: from a server that wants a sign-in to its authorization server (MCP "Authorization",
//! 2025-11-25 and 2026-07-28).

use crate::config::{AuthConfig, AuthorizationKind};
use crate::dialer::Way;
use crate::metadata::{
    AuthorizationServer, ProtectedResource, authorization_server, is_same_issuer,
    protected_resource, shown,
};
use crate::trouble::Trouble;
use url::Url;

/// The authorization servers of one resource that are tried.
pub const ISSUERS_MAX: usize = 8;

/// Findings of a discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// The resource, if the server describes it.
    pub resource: Option<ProtectedResource>,
    /// Its authorization server.
    pub server: AuthorizationServer,
}

/// Finds the authorization server of the MCP server at `url`. `named` is where its challenge says
/// that its metadata is.
///
/// # Errors
/// [`Trouble`]; transient if only the network or the authorization server fails.
pub async fn discover(
    way: Way<'_>,
    url: &Url,
    config: &AuthConfig,
    named: Option<&str>,
) -> Result<Discovery, Trouble> {
    let resource = protected_resource(way.dialer, url, way.reach, named).await?;
    let mut issuers: Vec<String> = Vec::new();
    if let Some(resource) = &resource {
        let named = resource.authorization_servers.iter();
        issuers.extend(named.take(ISSUERS_MAX).cloned());
    }
    // A server of 2025-03-26 without metadata is its own authorization server.
    let is_legacy = resource.is_none() && config.legacy_discovery && config.issuer.is_none();
    if is_legacy {
        issuers.push(url.origin().ascii_serialization());
    }
    if let Some(pinned) = &config.issuer {
        if !issuers.is_empty() && !issuers.iter().any(|issuer| is_same_issuer(issuer, pinned)) {
            let message = format!(
                "the server names the authorization server `{}`, and its configuration accepts `{pinned}` alone",
                issuers
                    .first()
                    .map(|issuer| shown(issuer))
                    .unwrap_or_default()
            );
            return Err(Trouble::Metadata(message));
        }
        issuers = vec![pinned.clone()];
    }
    let mut failed = None;
    for issuer in &issuers {
        match authorization_server(way.dialer, issuer, way.reach).await {
            Ok(Some(server)) => {
                check(&server, config)?;
                return Ok(Discovery { resource, server });
            }
            Ok(None) if is_legacy => {
                return Ok(Discovery {
                    resource,
                    server: by_paths(issuer),
                });
            }
            Ok(None) => {}
            // Another one may answer.
            Err(error) if error.is_transient() => failed = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(failed) => Err(failed),
        None => Err(no_server(issuers.first(), resource.is_some())),
    }
}

/// The fault of a server without an authorization server that can be found. `named` is the first of
/// those that it names.
fn no_server(named: Option<&String>, has_metadata: bool) -> Trouble {
    let why = match named {
        Some(issuer) => format!(
            "there is no metadata of the authorization server `{}`",
            shown(issuer)
        ),
        None if has_metadata => {
            "the server wants a sign-in, and its metadata names no authorization server".to_owned()
        }
        None => "the server wants a sign-in, and no metadata names its authorization server: if it is its own, as in the \
                 revision 2025-03-26, set legacy_discovery = true in its auth table"
            .to_owned(),
    };
    Trouble::Metadata(why)
}

/// Refuses a server with which no safe sign-in is possible.
fn check(server: &AuthorizationServer, config: &AuthConfig) -> Result<(), Trouble> {
    match config.kind {
        AuthorizationKind::OAuth => check_for_people(server),
        AuthorizationKind::Key
        | AuthorizationKind::ClientCredentials
        | AuthorizationKind::Exchange
        | AuthorizationKind::Headers
        | AuthorizationKind::None => check_for_tokens(server),
    }
}

fn lacking(server: &AuthorizationServer, lack: &str) -> Trouble {
    Trouble::Metadata(format!("the authorization server {} {lack}", server.host()))
}

fn check_for_tokens(server: &AuthorizationServer) -> Result<(), Trouble> {
    match server.token_endpoint {
        Some(_) => Ok(()),
        None => Err(lacking(server, "has no token endpoint")),
    }
}

/// Refuses a server with which no safe sign-in of a person is possible.
pub(crate) fn check_for_people(server: &AuthorizationServer) -> Result<(), Trouble> {
    check_for_tokens(server)?;
    // A server that knows no PKCE ignores the challenge, and no code is bound to its sign-in then.
    let mut methods = server.code_challenge_methods_supported.iter();
    if !methods.any(|method| method == "S256") {
        return Err(lacking(server, "does not support PKCE with S256"));
    }
    let has_page = server.authorization_endpoint.is_some();
    if !has_page && server.device_authorization_endpoint.is_none() {
        return Err(lacking(server, "has no authorization endpoint"));
    }
    Ok(())
}

/// The authorization server that a server of 2025-03-26 without metadata is itself.
fn by_paths(issuer: &str) -> AuthorizationServer {
    AuthorizationServer {
        authorization_endpoint: Some(format!("{issuer}/authorize")),
        token_endpoint: Some(format!("{issuer}/token")),
        registration_endpoint: Some(format!("{issuer}/register")),
        code_challenge_methods_supported: vec!["S256".to_owned()],
        ..AuthorizationServer::bare(issuer)
    }
}
