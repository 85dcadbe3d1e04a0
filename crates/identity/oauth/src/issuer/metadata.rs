//! Metadata of an issuer (RFC 8414, OpenID Connect Discovery 1.0), as far as a resource server
//! needs it.

use http::StatusCode;
use serde::Deserialize;
use url::{Position, Url};

use super::error::IssuerError;
use crate::dialer::{AllowedAddresses, Dialer, FetchRequest, Redirects};
use crate::metadata::read_json;

/// Metadata that an issuer publishes about itself.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
    introspection_endpoint: Option<String>,
}

/// Addresses of an issuer's metadata, in the order in which clients look (MCP "Authorization",
/// "Authorization Server Metadata Discovery"): for a path `/a` at
/// `/.well-known/oauth-authorization-server/a`, `/.well-known/openid-configuration/a` and
/// `/a/.well-known/openid-configuration`.
#[must_use]
pub fn well_known_urls(issuer: &Url) -> Vec<String> {
    let origin = &issuer[..Position::BeforePath];
    let path = issuer.path().trim_end_matches('/');
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

impl Metadata {
    /// Looks in each place, and takes the first document in which the issuer names itself, byte for
    /// byte.
    ///
    /// # Errors
    /// The last failure, or the first document of another issuer.
    pub(super) async fn discover(
        dialer: &Dialer,
        reach: &AllowedAddresses,
        issuer: &str,
    ) -> Result<Self, IssuerError> {
        let mut foreign = None;
        let mut last = None;
        for url in well_known_urls(&crate::dialer::parse_url(issuer)?) {
            match Self::fetch(dialer, reach, &url).await {
                Ok(found) if found.issuer == issuer => return Ok(found),
                Ok(_) => {
                    let why = format!("the document is not of the issuer `{issuer}`");
                    foreign.get_or_insert(IssuerError::Answer(url, why));
                }
                // The next place is on the same host.
                Err(error @ IssuerError::Dial(_)) => return Err(foreign.unwrap_or(error)),
                Err(error) => last = Some(error),
            }
        }
        let none = || IssuerError::Answer(issuer.to_owned(), "it has no metadata".into());
        Err(foreign.or(last).unwrap_or_else(none))
    }

    async fn fetch(
        dialer: &Dialer,
        reach: &AllowedAddresses,
        url: &str,
    ) -> Result<Self, IssuerError> {
        let fetched = dialer
            .fetch(
                FetchRequest::get(url)?.redirects(Redirects::SameOrigin),
                reach,
            )
            .await?;
        if fetched.status != StatusCode::OK {
            return Err(IssuerError::Status(url.to_owned(), fetched.status.as_u16()));
        }
        let wrong = |_| {
            IssuerError::Answer(
                url.to_owned(),
                "the answer is no metadata of an issuer".into(),
            )
        };
        read_json(&fetched.body).map_err(wrong)
    }

    pub(super) fn jwks_url(&self) -> Result<&str, IssuerError> {
        self.jwks_uri
            .as_deref()
            .ok_or_else(|| self.lacks("jwks_uri"))
    }

    pub(super) fn introspection_url(&self) -> Result<&str, IssuerError> {
        self.introspection_endpoint
            .as_deref()
            .ok_or_else(|| self.lacks("introspection_endpoint"))
    }

    fn lacks(&self, member: &str) -> IssuerError {
        IssuerError::Answer(
            self.issuer.clone(),
            format!("its metadata has no `{member}`"),
        )
    }
}
