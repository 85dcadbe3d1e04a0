//! A sign-in of a person: an authorization code with PKCE (RFC 6749, 7636), whose answer names its issuer
//! (RFC 9207), and tokens that a browser never has.

use std::pin::Pin;

use platform::unix_ms;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::authorize::CodeRequest;
use crate::logins::{LOGIN_MS_MAX, LoginError, Response};
use crate::metadata::AuthorizationServer;
use crate::pkce::unguessable;
use crate::secret::Secret;
use crate::trouble::Trouble;

/// Time that the clocks of issuer and gateway may differ, in milliseconds.
pub(super) const SKEW_MS: u64 = 60_000;

/// An answer that is waited for.
pub type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A sign-in that failed, in a sentence for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersonError {
    /// A step of the sign-in failed.
    #[error(transparent)]
    Step(#[from] LoginError),
    /// The issuer's ID token is missing, or is not for this sign-in.
    #[error("the issuer's ID token {0}")]
    IdToken(&'static str),
    /// The issuer signed the person in without asking who it is, although that was asked for.
    #[error("the issuer did not ask again who you are")]
    NotAsked,
    /// The issuer does not say when it asked, so it is not known whether it did.
    #[error("it does not say when it asked who you are, so this does not count as a proof")]
    NoTime,
}

impl From<Trouble> for PersonError {
    fn from(trouble: Trouble) -> Self {
        Self::Step(trouble.into())
    }
}

impl PersonError {
    /// Whether the authorization server has refused in so many words.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Step(LoginError::Trouble(trouble)) if trouble.is_refusal())
    }
}

/// Settings of a sign-in of a person.
#[derive(Debug, Clone, Copy)]
pub struct PersonWish<'w> {
    /// The address to which the answer comes back.
    pub redirect_uri: &'w str,
    /// The resource that the token is for.
    pub resource: &'w str,
    /// Seconds since which the place may have asked who the person is; 0 has it asked now.
    pub max_age_secs: u64,
}

/// A sign-in of a person that has begun. Its text is for the browser that began it alone, sealed.
#[derive(Serialize, Deserialize)]
pub struct PersonSignIn {
    state: String,
    verifier: String,
    /// Set where the issuer is asked for an ID token, which must have it.
    pub(super) nonce: Option<String>,
    redirect_uri: String,
    /// Set where the issuer gets the resource by name (RFC 8707).
    resource: Option<String>,
    max_age_secs: u64,
    begun_ms: u64,
}

/// The beginning of a sign-in.
pub struct BegunPerson {
    /// The address that the browser opens.
    pub address: String,
    /// The sign-in, without which no answer counts.
    pub sign_in: PersonSignIn,
}

impl BegunPerson {
    /// Begins a sign-in of a client at a server.
    ///
    /// # Errors
    /// The server has no page at which people sign in.
    pub fn new(
        server: &AuthorizationServer,
        client: &AskingClient<'_>,
        wish: &PersonWish<'_>,
    ) -> Result<Self, Trouble> {
        let sign_in = PersonSignIn::new(client, wish);
        let address = sign_in.address(server, client)?;
        Ok(Self { address, sign_in })
    }
}

/// The time at which a person was last asked who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A time in Unix milliseconds.
    At(u64),
    /// A time that the place does not say.
    Unknown,
}

/// Tokens of a person, which no page shows.
#[derive(Clone)]
pub struct PersonTokens {
    /// The access token.
    pub access: Secret,
    /// The token with which it is renewed.
    pub refresh: Option<Secret>,
    /// When the access token expires, in Unix milliseconds, if that is known.
    pub expires_ms: Option<u64>,
    /// Time that it was valid when it was issued, in milliseconds, if that is known.
    pub lifetime_ms: Option<u64>,
    /// When the person was asked who it is.
    pub asked: Asked,
}

/// A place at which people sign in for the gateway's own pages.
pub trait SignInPlace: Send + Sync {
    /// The issuer of its tokens: another one must not get them.
    fn issuer(&self) -> &str;

    /// Begins a sign-in.
    fn begin<'a>(&'a self, wish: PersonWish<'a>) -> Awaited<'a, Result<BegunPerson, PersonError>>;

    /// Ends a sign-in with the whole address to which the place returned.
    fn end<'a>(
        &'a self,
        sign_in: &'a PersonSignIn,
        answer: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>>;

    /// New tokens for a resource, in place of those that end.
    fn renew<'a>(
        &'a self,
        refresh: &'a Secret,
        resource: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>>;

    /// Whether a person that signs in twice has two grants. With one, giving up the tokens of the first
    /// sign-in can take those of the second one with them.
    fn is_each_apart(&self) -> bool {
        false
    }

    /// Gives tokens up. A failure changes nothing: they end by themselves.
    fn give_up(&self, tokens: PersonTokens) -> Awaited<'_, ()>;
}

/// The client of a place, as an authorization request names it.
#[derive(Debug, Clone, Copy)]
pub struct AskingClient<'c> {
    /// Its id.
    pub id: &'c str,
    /// The scopes that it asks for; `openid` among them asks for an ID token.
    pub scopes: &'c [String],
    /// Further parameters.
    pub params: &'c [(String, String)],
    /// Whether the resource is named.
    pub has_resource: bool,
}

impl PersonSignIn {
    fn new(client: &AskingClient<'_>, wish: &PersonWish<'_>) -> Self {
        let fresh = || unguessable().expose().to_owned();
        Self {
            state: fresh(),
            verifier: fresh(),
            nonce: is_openid(client.scopes).then(fresh),
            redirect_uri: wish.redirect_uri.to_owned(),
            resource: client.has_resource.then(|| wish.resource.to_owned()),
            max_age_secs: wish.max_age_secs,
            begun_ms: unix_ms(),
        }
    }

    /// The unguessable text that its answer brings back.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Whether an answer with this state is about it.
    #[must_use]
    pub fn has_state(&self, state: &str) -> bool {
        self.state.as_bytes().ct_eq(state.as_bytes()).into()
    }

    /// The proof that its code is exchanged by who began it.
    #[must_use]
    pub fn verifier(&self) -> Secret {
        Secret::new(self.verifier.clone())
    }

    /// The address to which its answer comes back.
    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The resource that its token is for, where it is named.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// The address at which the person signs in.
    fn address(
        &self,
        server: &AuthorizationServer,
        client: &AskingClient<'_>,
    ) -> Result<String, Trouble> {
        let endpoint = server.authorization_endpoint.as_deref();
        let lacks =
            || Trouble::Metadata(format!("{} has no authorization endpoint", server.host()));
        let request = CodeRequest {
            client: client.id,
            redirect_uri: &self.redirect_uri,
            state: &self.state,
            verifier: &self.verifier(),
            scopes: client.scopes,
            resource: self.resource(),
        };
        let is_anew = self.max_age_secs == 0;
        let params = client.params.iter();
        let params = params.filter(|(name, _)| !(is_anew && name == "prompt"));
        let mut url = request.address(endpoint.ok_or_else(lacks)?, params)?;
        let mut query = url.query_pairs_mut();
        if let Some(nonce) = &self.nonce {
            query
                .append_pair("nonce", nonce)
                .append_pair("max_age", &self.max_age_secs.to_string());
        }
        if is_anew {
            query.append_pair("prompt", "login");
        }
        drop(query);
        Ok(url.into())
    }

    /// The code that an answer of this server has for this sign-in.
    ///
    /// # Errors
    /// It is an answer to another sign-in, of another server, or a refusal.
    pub fn code(&self, server: &AuthorizationServer, answer: &str) -> Result<Secret, PersonError> {
        let response = Response::read(answer)?;
        let is_own = self.has_state(response.state.expose());
        if !is_own || unix_ms() >= self.begun_ms.saturating_add(LOGIN_MS_MAX) {
            return Err(LoginError::Unknown.into());
        }
        response.check_issuer(server)?;
        Ok(response.code()?)
    }

    /// Checks when the person was asked who it is against what was wished for.
    ///
    /// # Errors
    /// It was longer ago, or is not known.
    pub fn check_asked(&self, asked: Asked) -> Result<(), PersonError> {
        match asked {
            Asked::Unknown if self.max_age_secs == 0 => Err(PersonError::NoTime),
            Asked::Unknown => Ok(()),
            Asked::At(at_ms) => {
                let oldest_ms = self
                    .begun_ms
                    .saturating_sub(self.max_age_secs.saturating_mul(1_000))
                    .saturating_sub(SKEW_MS);
                if at_ms < oldest_ms {
                    return Err(PersonError::NotAsked);
                }
                Ok(())
            }
        }
    }
}

/// Whether these scopes ask for OpenID Connect.
fn is_openid(scopes: &[String]) -> bool {
    scopes.iter().any(|scope| scope == "openid")
}

#[cfg(test)]
mod tests;
