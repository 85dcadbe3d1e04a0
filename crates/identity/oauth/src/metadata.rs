//! Metadata documents: protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID
//! Connect Discovery).

use serde::Deserialize;
use serde_json::{Map, Value};
use url::{Host, Url};

use crate::dialer::{
    AllowedAddresses, DialError, Dialer, FetchRequest, Fetched, Redirects, parse_url,
};
use crate::trouble::Trouble;

/// The metadata of a protected resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProtectedResource {
    /// The resource that the document describes.
    pub resource: String,
    /// The issuers of its authorization servers, in the order of preference.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// The scopes to ask for.
    pub scopes_supported: Option<Vec<String>>,
}

/// The metadata of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuthorizationServer {
    /// Its issuer identifier.
    pub issuer: String,
    /// Endpoint at which a person signs in.
    pub authorization_endpoint: Option<String>,
    /// Endpoint at which tokens are asked for.
    pub token_endpoint: Option<String>,
    /// Endpoint at which clients register (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// Endpoint at which tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// Endpoint at which a sign-in on another device begins (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// Its scopes.
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    /// The methods of PKCE.
    #[serde(default)]
    pub code_challenge_methods_supported: Vec<String>,
    /// Methods by which clients may authenticate; without the member `client_secret_basic`.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether its authorization responses have `iss` (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a URL of a client id metadata document is a client id.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
}

impl AuthorizationServer {
    /// A server of which only the issuer is known.
    #[must_use]
    pub fn bare(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: None,
            token_endpoint: None,
            registration_endpoint: None,
            revocation_endpoint: None,
            device_authorization_endpoint: None,
            scopes_supported: Vec::new(),
            code_challenge_methods_supported: Vec::new(),
            token_endpoint_auth_methods_supported: None,
            authorization_response_iss_parameter_supported: false,
            client_id_metadata_document_supported: false,
        }
    }

    /// Whether clients may authenticate by this method.
    #[must_use]
    pub fn takes(&self, method: &str) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|known| known == method),
            None => method == "client_secret_basic",
        }
    }

    /// Its host, for messages.
    #[must_use]
    pub fn host(&self) -> String {
        Url::parse(&self.issuer)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// Fetches the metadata of the resource at `server`: from the URL of its challenge, else from the
/// well-known places, the one with the path first. `None` when there is none.
///
/// # Errors
/// [`Trouble`]; [`Trouble::Metadata`] for a document of another resource.
pub async fn protected_resource(
    dialer: &Dialer,
    server: &Url,
    reach: &AllowedAddresses,
    named: Option<&str>,
) -> Result<Option<ProtectedResource>, Trouble> {
    let places = named
        .map(str::to_owned)
        .into_iter()
        .chain(resource_places(server));
    for place in places {
        let Some(document) =
            document::<ProtectedResource>(dialer, &place, reach, "resource").await?
        else {
            continue;
        };
        if !is_resource_of(&document.resource, server) {
            let message = format!(
                "the server's metadata is of another resource, `{}`: it is not followed",
                shown(&document.resource)
            );
            return Err(Trouble::Metadata(message));
        }
        return Ok(Some(document));
    }
    Ok(None)
}

/// Fetches the metadata of the authorization server with this issuer. `None` when there is none at
/// any of its places.
///
/// # Errors
/// [`Trouble`]; [`Trouble::Metadata`] for a document of another issuer, or with addresses that are
/// not acceptable.
pub async fn authorization_server(
    dialer: &Dialer,
    issuer: &str,
    reach: &AllowedAddresses,
) -> Result<Option<AuthorizationServer>, Trouble> {
    let url = parse_url(issuer)?;
    if url.query().is_some() {
        return Err(Trouble::Metadata(format!(
            "the issuer `{}` has a query",
            shown(issuer)
        )));
    }
    for place in issuer_places(&url) {
        let Some(document) =
            document::<AuthorizationServer>(dialer, &place, reach, "issuer").await?
        else {
            continue;
        };
        if !is_same_issuer(&document.issuer, issuer) {
            let message = format!(
                "the metadata of the issuer `{}` names another one, `{}`: it is not followed",
                shown(issuer),
                shown(&document.issuer)
            );
            return Err(Trouble::Metadata(message));
        }
        check_endpoints(&document, reach)?;
        return Ok(Some(document));
    }
    Ok(None)
}

/// Whether two issuer identifiers are one: the same text, except that an empty path and `/` are the
/// same resource (RFC 3986 section 6.2.3), and servers mix them.
pub(crate) fn is_same_issuer(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}

/// An issuer without the slash that is its whole path.
fn bare(issuer: &str) -> &str {
    const SLASHES_OF_SCHEME: usize = 2;
    let bare = issuer
        .strip_suffix('/')
        .filter(|bare| bare.matches('/').count() == SLASHES_OF_SCHEME);
    bare.unwrap_or(issuer)
}

/// Reads a JSON object from outside. A member that is null is absent: servers write those that they
/// have no value for as null.
///
/// # Errors
/// A member of the metadata that does not fit.
pub(crate) fn read_json<T: for<'d> Deserialize<'d>>(body: &[u8]) -> Result<T, serde_json::Error> {
    let mut members: Map<String, Value> = serde_json::from_slice(body)?;
    members.retain(|_, value| !value.is_null());
    T::deserialize(Value::Object(members))
}

/// A JSON document with this member, without which it is none; `None` for an answer that says that
/// there is none.
async fn document<T: for<'d> Deserialize<'d>>(
    dialer: &Dialer,
    place: &str,
    reach: &AllowedAddresses,
    member: &str,
) -> Result<Option<T>, Trouble> {
    let fetch = FetchRequest::get(place)?.redirects(Redirects::SameOrigin);
    let fetched = dialer.fetch(fetch, reach).await;
    let fetched = match fetched {
        // A redirect to a sign-in page, from a server that has no such document.
        Err(DialError::Redirected { .. }) => return Ok(None),
        fetched => fetched?,
    };
    if fetched.status.as_u16() == 429 || fetched.status.is_server_error() {
        return Err(busy(place, &fetched));
    }
    // A page for people at this place is no document, nor is an error with the status 200.
    let is_document =
        |members: &Map<String, Value>| members.get(member).is_some_and(Value::is_string);
    if !fetched.status.is_success()
        || !read_json(&fetched.body).is_ok_and(|members| is_document(&members))
    {
        return Ok(None);
    }
    let wrong = |error: serde_json::Error| {
        Trouble::Metadata(format!(
            "the metadata at {} cannot be used: {}",
            shown(place),
            shown(&error.to_string())
        ))
    };
    read_json(&fetched.body).map(Some).map_err(wrong)
}

/// The trouble of an answer by a server that fails or wants fewer requests.
pub(crate) fn busy(place: &str, fetched: &Fetched) -> Trouble {
    let host = Url::parse(place)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    let seconds = fetched
        .headers
        .get("retry-after")
        .and_then(|value| value.to_str().ok()?.parse().ok());
    Trouble::Busy {
        host: host.unwrap_or_default(),
        status: fetched.status.as_u16(),
        retry_after: seconds.map(std::time::Duration::from_secs),
    }
}

/// The well-known places of a resource's metadata (RFC 9728 section 3.1).
fn resource_places(server: &Url) -> Vec<String> {
    let origin = server.origin().ascii_serialization();
    let root = format!("{origin}/.well-known/oauth-protected-resource");
    match server.path().trim_end_matches('/') {
        "" => vec![root],
        path => vec![format!("{root}{path}"), root],
    }
}

/// The places of an issuer's metadata, in the order of the MCP specification ("Authorization Server
/// Metadata Discovery").
fn issuer_places(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin().ascii_serialization();
    let oauth = format!("{origin}/.well-known/oauth-authorization-server");
    let openid = format!("{origin}/.well-known/openid-configuration");
    match issuer.path().trim_end_matches('/') {
        "" => vec![oauth, openid],
        path => vec![
            format!("{oauth}{path}"),
            format!("{openid}{path}"),
            format!("{origin}{path}/.well-known/openid-configuration"),
        ],
    }
}

/// Whether a document about `resource` is one about this server: its URL, or a parent path on the
/// same origin.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = parse_url(resource) else {
        return false;
    };
    if resource.origin() != server.origin() {
        return false;
    }
    if resource.path() == server.path() && resource.query() == server.query() {
        return true;
    }
    let parent = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(parent);
    resource.query().is_none() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Refuses a server whose endpoints are not `https`, except on loopback and where the operator's
/// own address is plain.
fn check_endpoints(server: &AuthorizationServer, reach: &AllowedAddresses) -> Result<(), Trouble> {
    let all = [
        ("authorization_endpoint", &server.authorization_endpoint),
        ("token_endpoint", &server.token_endpoint),
        ("registration_endpoint", &server.registration_endpoint),
        ("revocation_endpoint", &server.revocation_endpoint),
        (
            "device_authorization_endpoint",
            &server.device_authorization_endpoint,
        ),
    ];
    for (name, endpoint) in all {
        let Some(endpoint) = endpoint else { continue };
        let url = parse_url(endpoint)?;
        if url.scheme() != "https" && !may_be_plain(&url, reach) {
            let message = format!(
                "`{name}` of {} is not an https URL: `{}`",
                server.host(),
                shown(endpoint)
            );
            return Err(Trouble::Metadata(message));
        }
    }
    Ok(())
}

/// Whether a URL may do without TLS: one on this machine, or a private address where the operator's
/// own is.
fn may_be_plain(url: &Url, reach: &AllowedAddresses) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => reach.plain_for(address.into()),
        Some(Host::Ipv6(address)) => reach.plain_for(address.into()),
        Some(Host::Domain(name)) => reach.plain_for_name(name),
        None => false,
    }
}

/// The beginning of a text from outside, in characters that people can see.
pub(crate) fn shown(text: &str) -> String {
    json::visible::line(text).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_places_come_in_the_order_of_the_specification() {
        let resource = |url: &str| resource_places(&Url::parse(url).unwrap()).join(" ");
        assert_eq!(
            resource("https://a.example"),
            "https://a.example/.well-known/oauth-protected-resource"
        );
        assert_eq!(
            resource("https://a.example:8443/mcp/x/?y=z"),
            "https://a.example:8443/.well-known/oauth-protected-resource/mcp/x \
             https://a.example:8443/.well-known/oauth-protected-resource"
        );
        let issuer = |url: &str| issuer_places(&Url::parse(url).unwrap()).join(" ");
        assert_eq!(
            issuer("https://a.example/"),
            "https://a.example/.well-known/oauth-authorization-server https://a.example/.well-known/openid-configuration"
        );
        assert_eq!(
            issuer("https://a.example/t/1"),
            "https://a.example/.well-known/oauth-authorization-server/t/1 \
             https://a.example/.well-known/openid-configuration/t/1 https://a.example/t/1/.well-known/openid-configuration"
        );
    }

    #[test]
    fn a_document_is_followed_for_its_own_resource_only() {
        for (resource, server, expect) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example/", "https://a.example/mcp", true),
            ("https://A.EXAMPLE:443/mcp", "https://a.example/mcp", true),
            ("https://a.example/m", "https://a.example/mcp", false),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://a.example/mcp/x", "https://a.example/mcp", false),
            ("https://b.example/mcp", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
            ("https://a.example:8443/mcp", "https://a.example/mcp", false),
            (
                "https://a.example.evil.example/mcp",
                "https://a.example/mcp",
                false,
            ),
            (
                "https://a.example@evil.example/mcp",
                "https://a.example/mcp",
                false,
            ),
            (
                "https://a.example/mcp?tenant=1",
                "https://a.example/mcp",
                false,
            ),
            ("https://a.example/mcp#x", "https://a.example/mcp", false),
            ("mcp", "https://a.example/mcp", false),
        ] {
            assert_eq!(
                is_resource_of(resource, &Url::parse(server).unwrap()),
                expect,
                "{resource} {server}"
            );
        }
    }

    #[test]
    fn endpoints_are_https_except_where_the_operators_address_is_plain() {
        let server = |endpoint: &str| AuthorizationServer {
            token_endpoint: Some(endpoint.to_owned()),
            ..AuthorizationServer::bare("https://idp.example")
        };
        let local = AllowedAddresses::of(&Url::parse("http://127.0.0.1:1/mcp").unwrap(), &[]);
        for (endpoint, public, loopback) in [
            ("https://idp.example/token", true, true),
            ("http://idp.example/token", false, false),
            ("http://127.0.0.1:9/token", false, true),
            ("http://localhost:9/token", false, true),
            ("http://10.0.0.1/token", false, false),
            ("javascript:alert(1)", false, false),
            ("https://a:b@idp.example/", false, false),
        ] {
            assert_eq!(
                check_endpoints(&server(endpoint), &AllowedAddresses::public()).is_ok(),
                public,
                "{endpoint}"
            );
            assert_eq!(
                check_endpoints(&server(endpoint), &local).is_ok(),
                loopback,
                "{endpoint}"
            );
        }
    }
}
