//! Configuration of the accounts at one server: `[servers.NAME.auth]`, checked.

use std::fmt;
use std::sync::Arc;

use crate::dialer::Subnet;
use crate::jwt::SigningKey;
use crate::secret::Secret;

/// Authorization of the gateway's requests to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthorizationKind {
    /// Not at all, also where the server asks for it.
    None,
    /// By the configured headers.
    Headers,
    /// By a sign-in, once the server asks for it: authorization code with PKCE.
    #[default]
    OAuth,
    /// As itself: client credentials.
    ClientCredentials,
    /// By a key that each caller enters, in the places that the configuration has for it.
    Key,
    /// With a token that the authorization server exchanges for the caller's (RFC 8693).
    Exchange,
}

/// Owner of the accounts that are used at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccountOwner {
    /// One for all callers: the operator signs in.
    #[default]
    Shared,
    /// One for each caller, who signs in.
    Caller,
}

/// Lists of a server to a caller without an account, where every caller has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallerList {
    /// One tool, by which it begins to sign in.
    #[default]
    Caller,
    /// The lists that the server sent last to any caller.
    Any,
}

/// The `resource` parameter of authorization and token requests (RFC 8707).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Resource {
    /// The resource that the server's metadata names, or its URL.
    #[default]
    Own,
    /// None: the authorization server rejects it.
    Omitted,
    /// This one.
    Uri(String),
}

/// The keys of `[servers.NAME.auth]`.
#[derive(Clone, PartialEq, Default)]
pub struct AuthConfig {
    /// `kind`.
    pub kind: AuthorizationKind,
    /// `account`.
    pub account: AccountOwner,
    /// `list`.
    pub list: CallerList,
    /// Label of the key of each caller (`caller`), for people.
    pub key_label: String,
    /// The only issuer that is accepted.
    pub issuer: Option<String>,
    /// The client that is registered by hand.
    pub client_id: Option<String>,
    /// The value of the variable that `client_secret_env` names.
    pub client_secret: Option<Secret>,
    /// `private_key_file`: signs assertions of the client (RFC 7523).
    pub private_key: Option<Arc<SigningKey>>,
    /// `callback_port`: the port on 127.0.0.1 to which a browser comes back, registered with the
    /// client by hand.
    pub callback_port: Option<u16>,
    /// A client id metadata document that is hosted elsewhere.
    pub client_metadata_url: Option<String>,
    /// Scopes to ask for, in place of those that the server names.
    pub scopes: Vec<String>,
    /// More parameters of the authorization request.
    pub authorize_params: Vec<(String, String)>,
    /// `resource`.
    pub resource: Resource,
    /// `audience` of a token exchange.
    pub audience: Option<String>,
    /// Ranges of addresses beyond public ones that the server's metadata may name.
    pub allow_private: Vec<Subnet>,
    /// Whether a server without metadata is its own authorization server (2025-03-26).
    pub legacy_discovery: bool,
}

/// Without the secrets.
impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthConfig")
            .field("kind", &self.kind)
            .field("account", &self.account)
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
