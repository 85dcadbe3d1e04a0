//! Addresses at which people sign in: authorization requests with PKCE (RFC 6749, 7636).

use url::Url;

use crate::dialer::parse_url;
use crate::pkce::challenge;
use crate::secret::Secret;
use crate::trouble::Trouble;

/// An authorization request for a code.
pub(crate) struct CodeRequest<'r> {
    /// The id of the client.
    pub(crate) client: &'r str,
    pub(crate) redirect_uri: &'r str,
    pub(crate) state: &'r str,
    /// The proof of who exchanges the code, of which the request has a hash.
    pub(crate) verifier: &'r Secret,
    pub(crate) scopes: &'r [String],
    pub(crate) resource: Option<&'r str>,
}

impl CodeRequest<'_> {
    /// Its address at an endpoint, with further parameters before its own.
    pub(crate) fn address<'p>(
        &self,
        endpoint: &str,
        params: impl IntoIterator<Item = &'p (String, String)>,
    ) -> Result<Url, Trouble> {
        let mut url = parse_url(endpoint)?;
        let mut query = url.query_pairs_mut();
        query
            .extend_pairs(params)
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("state", self.state)
            .append_pair("code_challenge", &challenge(self.verifier))
            .append_pair("code_challenge_method", "S256");
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.join(" "));
        }
        if let Some(resource) = self.resource {
            query.append_pair("resource", resource);
        }
        drop(query);
        Ok(url)
    }
}
