//! An issuer at which people sign in for the gateway's own pages.

use std::fmt;
use std::sync::Arc;

use platform::{Mutex, unix_ms};

use super::id_token::{self, Expected};
use super::place::{
    Asked, AskingClient, Awaited, BegunPerson, PersonError, PersonSignIn, PersonTokens, PersonWish,
    SignInPlace,
};
use crate::dialer::{AllowedAddresses, DialError, Dialer, Subnet, Way, parse_url};
use crate::discovery::check_for_people;
use crate::metadata::{AuthorizationServer, authorization_server};
use crate::registration::with_secret;
use crate::retries::Retries;
use crate::secret::Secret;
use crate::token::{ClientAuth, IssuedTokens, OAuthClient, TokenGrant, request, revoke};
use crate::trouble::Trouble;

/// Time that an issuer's metadata is kept, in milliseconds.
pub const METADATA_MS: u64 = 3_600_000;

/// The gateway as a client of an issuer, for its own pages.
#[derive(Clone, PartialEq, Eq)]
pub struct PageClient {
    /// The id under which it is registered.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<String>,
    /// The scopes that are asked for.
    pub scopes: Vec<String>,
    /// Further parameters of the authorization request.
    pub params: Vec<(String, String)>,
    /// Whether requests name the resource that the token is for (RFC 8707).
    pub has_resource: bool,
}

impl fmt::Debug for PageClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageClient")
            .field("id", &self.id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl PageClient {
    fn asking(&self) -> AskingClient<'_> {
        AskingClient {
            id: &self.id,
            scopes: &self.scopes,
            params: &self.params,
            has_resource: self.has_resource,
        }
    }

    /// The client, as it authenticates at this server.
    fn at(&self, server: &AuthorizationServer) -> OAuthClient {
        let secret = self.secret.clone().map(Secret::new);
        OAuthClient {
            id: self.id.clone(),
            auth: secret.map_or(ClientAuth::None, |secret| with_secret(secret, server)),
        }
    }
}

/// Settings of an issuer at which people sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSpec {
    /// Its identifier.
    pub issuer: String,
    /// The gateway as its client.
    pub client: PageClient,
    /// Addresses that its names may resolve to although they are not public.
    pub allowed: Vec<Subnet>,
}

/// Metadata that was fetched.
struct Found {
    server: Arc<AuthorizationServer>,
    at_ms: u64,
}

/// The facts that are known of an issuer.
#[derive(Default)]
struct State {
    found: Option<Found>,
    /// The failure of the last fetch.
    failure: Option<Trouble>,
    retries: Retries,
}

impl State {
    /// The issuer as an authorization server, or why it cannot be used for now.
    fn known(&self) -> Option<Result<Arc<AuthorizationServer>, Trouble>> {
        if let Some(found) = &self.found
            && unix_ms() < found.at_ms.saturating_add(METADATA_MS)
        {
            return Some(Ok(Arc::clone(&found.server)));
        }
        let failure = self.failure.clone()?;
        (!self.retries.left().is_zero()).then_some(Err(failure))
    }
}

/// An issuer at which people sign in for the gateway's own pages.
pub struct PageIssuer {
    /// Its settings.
    pub spec: PageSpec,
    dialer: Dialer,
    reach: AllowedAddresses,
    state: Mutex<State>,
    /// Held by the one that fetches the metadata.
    flight: tokio::sync::Mutex<()>,
}

impl PageIssuer {
    /// An issuer of which nothing is known yet.
    ///
    /// # Errors
    /// Its identifier is no URL that may be fetched.
    pub fn new(spec: PageSpec, dialer: Dialer) -> Result<Self, DialError> {
        Ok(Self {
            reach: AllowedAddresses::of(&parse_url(&spec.issuer)?, &spec.allowed),
            spec,
            dialer,
            state: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
        })
    }

    fn way(&self) -> Way<'_> {
        Way {
            dialer: &self.dialer,
            reach: &self.reach,
        }
    }

    fn known(&self) -> Option<Result<Arc<AuthorizationServer>, Trouble>> {
        self.state.lock().known()
    }

    /// The issuer as an authorization server. Its metadata is fetched by one for all that wait, and not at
    /// once again after a failure.
    async fn server(&self) -> Result<Arc<AuthorizationServer>, Trouble> {
        if let Some(known) = self.known() {
            return known;
        }
        let _flight = self.flight.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let fetched = self.fetched().await;
        let mut state = self.state.lock();
        state.retries.note(fetched.is_ok());
        state.failure = fetched.as_ref().err().cloned();
        state.found = fetched.as_ref().ok().map(|server| Found {
            server: Arc::clone(server),
            at_ms: unix_ms(),
        });
        drop(state);
        fetched.inspect_err(|trouble| self.log(trouble))
    }

    /// Writes for operators why the issuer cannot be used.
    fn log(&self, trouble: &Trouble) {
        tracing::warn!(target: "portmoot::issuers", issuer = %self.spec.issuer, %trouble, "no person can sign in at the issuer");
    }

    /// Fetches the metadata.
    async fn fetched(&self) -> Result<Arc<AuthorizationServer>, Trouble> {
        let issuer = &self.spec.issuer;
        let found = authorization_server(&self.dialer, issuer, &self.reach).await?;
        let none = || Trouble::Metadata(format!("the issuer `{issuer}` has no metadata"));
        let found = found.ok_or_else(none)?;
        check_for_people(&found)?;
        Ok(Arc::new(found))
    }

    async fn ask(
        &self,
        server: &AuthorizationServer,
        grant: &TokenGrant<'_>,
        resource: Option<&str>,
    ) -> Result<IssuedTokens, Trouble> {
        let client = self.spec.client.at(server);
        let asked = request(self.way(), server, &client, grant, resource).await;
        asked.inspect_err(|trouble| {
            // A refusal is about the person alone.
            if !trouble.is_refusal() {
                self.log(trouble);
                // It may have moved its endpoints.
                self.state.lock().found = None;
            }
        })
    }

    async fn exchange(
        &self,
        sign_in: &PersonSignIn,
        answer: &str,
    ) -> Result<PersonTokens, PersonError> {
        let server = self.server().await?;
        let code = sign_in.code(&server, answer)?;
        let grant = TokenGrant::Code {
            code: code.expose(),
            verifier: &sign_in.verifier(),
            redirect_uri: sign_in.redirect_uri(),
        };
        let issued = self.ask(&server, &grant, sign_in.resource()).await?;
        match self.asked(&server, sign_in, &issued) {
            Ok(asked) => Ok(tokens(issued, asked)),
            Err(error) => {
                self.given_up(&tokens(issued, Asked::Unknown)).await;
                Err(error)
            }
        }
    }

    /// The time at which the person was asked who it is, which must fit its sign-in.
    fn asked(
        &self,
        server: &AuthorizationServer,
        sign_in: &PersonSignIn,
        issued: &IssuedTokens,
    ) -> Result<Asked, PersonError> {
        let asked = match &sign_in.nonce {
            None => Asked::Unknown,
            Some(nonce) => {
                let expected = Expected {
                    issuer: &server.issuer,
                    client: &self.spec.client.id,
                    nonce,
                    now_ms: unix_ms(),
                };
                let token = issued.id_token.as_ref().map(Secret::expose);
                id_token::check(token, &expected)?
            }
        };
        sign_in.check_asked(asked)?;
        Ok(asked)
    }

    async fn refreshed(
        &self,
        refresh: &Secret,
        resource: &str,
    ) -> Result<PersonTokens, PersonError> {
        let server = self.server().await?;
        let grant = TokenGrant::Refresh(refresh);
        let resource = self.spec.client.has_resource.then_some(resource);
        let issued = self.ask(&server, &grant, resource).await?;
        let mut renewed = tokens(issued, Asked::Unknown);
        // A server that returns none leaves the one before in force.
        renewed.refresh.get_or_insert_with(|| refresh.clone());
        Ok(renewed)
    }

    async fn given_up(&self, tokens: &PersonTokens) {
        match &tokens.refresh {
            Some(refresh) => self.revoked(refresh, "refresh_token").await,
            None => self.revoked(&tokens.access, "access_token").await,
        }
    }

    async fn revoked(&self, token: &Secret, hint: &str) {
        let Ok(server) = self.server().await else {
            return;
        };
        let client = self.spec.client.at(&server);
        if let Err(error) = revoke(self.way(), &server, &client, token, hint).await {
            tracing::debug!(target: "portmoot::issuers", issuer = %self.spec.issuer, %error, "a token of a person is not revoked");
        }
    }
}

fn tokens(issued: IssuedTokens, asked: Asked) -> PersonTokens {
    PersonTokens {
        access: issued.access,
        refresh: issued.refresh,
        expires_ms: issued.expires_ms,
        lifetime_ms: issued.lifetime_ms,
        asked,
    }
}

impl SignInPlace for PageIssuer {
    fn issuer(&self) -> &str {
        &self.spec.issuer
    }

    fn begin<'a>(&'a self, wish: PersonWish<'a>) -> Awaited<'a, Result<BegunPerson, PersonError>> {
        Box::pin(async move {
            let server = self.server().await?;
            let client = self.spec.client.asking();
            Ok(BegunPerson::new(&server, &client, &wish)?)
        })
    }

    fn end<'a>(
        &'a self,
        sign_in: &'a PersonSignIn,
        answer: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>> {
        Box::pin(self.exchange(sign_in, answer))
    }

    fn renew<'a>(
        &'a self,
        refresh: &'a Secret,
        resource: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>> {
        Box::pin(self.refreshed(refresh, resource))
    }

    fn give_up(&self, tokens: PersonTokens) -> Awaited<'_, ()> {
        Box::pin(async move { self.given_up(&tokens).await })
    }
}
