//! The authorization server as a place at which people sign in to the gateway's own console.

use std::sync::Arc;

use identity::login::{CONSOLE_CLIENT, OWN_PLACE};
use oauth::Secret;
use oauth::metadata::AuthorizationServer;
use oauth::person::{
    Asked, AskingClient, Awaited, BegunPerson, PersonError, PersonSignIn, PersonTokens, PersonWish,
    SignInPlace,
};
use oauth::{LoginError, Trouble};
use platform::unix_ms;
use url::form_urlencoded::Serializer;

use crate::grants::TokenError;
use crate::params::FormParams;
use crate::service::{Now, SignIn};

/// The gateway's own authorization server as a place at which people sign in to its console.
pub struct OwnPlace(pub Arc<SignIn>);

/// The server as its own client sees it.
fn server(now: &Now) -> AuthorizationServer {
    AuthorizationServer {
        authorization_endpoint: Some(now.public_url.at("/oauth/authorize")),
        authorization_response_iss_parameter_supported: true,
        ..AuthorizationServer::bare(now.public_url.as_str())
    }
}

fn off() -> PersonError {
    LoginError::NoLogins("signing in is switched off at this gateway".to_owned()).into()
}

/// A refusal as one of a server elsewhere.
fn trouble(now: &Now, error: TokenError) -> PersonError {
    let host = server(now).host();
    let trouble = if error.status >= 500 {
        Trouble::Busy {
            host,
            status: error.status,
            retry_after: None,
        }
    } else {
        Trouble::Refused {
            host,
            error: error.code.to_owned(),
            description: Some(error.description),
        }
    };
    trouble.into()
}

/// A form as the token endpoint would get it.
fn form(pairs: &[(&str, &str)]) -> FormParams {
    let text = Serializer::new(String::new()).extend_pairs(pairs).finish();
    FormParams::parse(text.as_bytes()).unwrap_or_default()
}

impl OwnPlace {
    fn now(&self) -> Result<Now, PersonError> {
        self.0.now().ok_or_else(off)
    }

    fn begun(&self, wish: &PersonWish<'_>) -> Result<BegunPerson, PersonError> {
        let now = self.now()?;
        // The person itself comes back, for all that it may do.
        let (scopes, _) = now.scopes();
        let scopes: Vec<String> = scopes.into_iter().map(str::to_owned).collect();
        let client = AskingClient {
            id: CONSOLE_CLIENT,
            scopes: &scopes,
            params: &[],
            has_resource: true,
        };
        Ok(BegunPerson::new(&server(&now), &client, wish)?)
    }

    async fn ended(
        &self,
        sign_in: &PersonSignIn,
        answer: &str,
    ) -> Result<PersonTokens, PersonError> {
        let now = self.now()?;
        let code = sign_in.code(&server(&now), answer)?;
        let params = form(&[
            ("code", code.expose()),
            ("code_verifier", sign_in.verifier().expose()),
            ("redirect_uri", sign_in.redirect_uri()),
        ]);
        let exchange = move |me: &SignIn| {
            let exchanged = me.exchange(&now, CONSOLE_CLIENT, &params);
            exchanged.map_err(|error| trouble(&now, error))
        };
        let exchanged = self
            .0
            .blocking(exchange)
            .await
            .unwrap_or_else(|| Err(off()))?;
        let asked = Asked::At(exchanged.asked_ms);
        let tokens = exchanged.given.for_page(unix_ms(), asked);
        if let Err(error) = sign_in.check_asked(asked) {
            self.given_up(&tokens).await;
            return Err(error);
        }
        Ok(tokens)
    }

    async fn renewed(&self, refresh: &Secret) -> Result<PersonTokens, PersonError> {
        let now = self.now()?;
        let params = form(&[("refresh_token", refresh.expose())]);
        let renew = move |me: &SignIn| {
            let given = me.renew(&now, CONSOLE_CLIENT, &params);
            given.map_err(|error| trouble(&now, error))
        };
        let given = self.0.blocking(renew).await.unwrap_or_else(|| Err(off()))?;
        Ok(given.for_page(unix_ms(), Asked::Unknown))
    }

    /// Ends the family of these tokens. One that cannot be written down ends by itself.
    async fn given_up(&self, tokens: &PersonTokens) {
        let refresh = tokens.refresh.as_ref();
        let token = refresh.and_then(|refresh| self.0.refresh.open(refresh.expose()));
        let (Some(token), Ok(now)) = (token, self.now()) else {
            return;
        };
        let own = identity::client_digest(CONSOLE_CLIENT);
        let revoke = move |me: &SignIn| me.revoke_family(token.family, Some(&own), &now);
        let _ = self.0.blocking(revoke).await;
    }
}

impl SignInPlace for OwnPlace {
    fn issuer(&self) -> &str {
        OWN_PLACE
    }

    fn begin<'a>(&'a self, wish: PersonWish<'a>) -> Awaited<'a, Result<BegunPerson, PersonError>> {
        Box::pin(async move { self.begun(&wish) })
    }

    fn end<'a>(
        &'a self,
        sign_in: &'a PersonSignIn,
        answer: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>> {
        Box::pin(self.ended(sign_in, answer))
    }

    fn renew<'a>(
        &'a self,
        refresh: &'a Secret,
        _: &'a str,
    ) -> Awaited<'a, Result<PersonTokens, PersonError>> {
        Box::pin(self.renewed(refresh))
    }

    fn is_each_apart(&self) -> bool {
        true
    }

    fn give_up(&self, tokens: PersonTokens) -> Awaited<'_, ()> {
        Box::pin(async move { self.given_up(&tokens).await })
    }
}
