//! Sign-ins that are under way: the gateway holds verifier and state, a command or a browser brings
//! the answer back.
//!
//! Source: MCP "Authorization" (PKCE, `resource`), RFC 9207 (`iss`), RFC 8628 (another device).

use std::collections::HashMap;
use std::sync::Arc;

use client::AccountFault;
use model::{Refusal, RefusalCode};
use platform::{Mutex, random, unix_ms};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::Url;

use crate::account::{Account, saved};
use crate::authorize::CodeRequest;
use crate::config::AuthorizationKind;
use crate::dialer::parse_url;
use crate::discovery::Discovery;
use crate::metadata::{AuthorizationServer, read_json, shown};
use crate::pkce::unguessable;
use crate::registration::{CALLBACK_PATH, Use};
use crate::secret::Secret;
use crate::site::Site;
use crate::token::{self, FormBody, OAuthClient, TokenGrant, post, refusal};
use crate::trouble::Trouble;

/// Time that a sign-in may take, milliseconds.
pub const LOGIN_MS_MAX: u64 = 600_000;
/// Sign-ins under way, of all participants.
pub const LOGINS_MAX: usize = 1_000;
/// Sign-ins of one account that are under way; the oldest makes room.
pub const ACCOUNT_LOGINS_MAX: usize = 3;
/// The longest authorization response that is read, bytes.
pub const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// Why a sign-in did not begin or did not end well. The sentence is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// A step failed.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// The account does not take a sign-in, or it could not be kept.
    #[error(transparent)]
    Account(#[from] AccountFault),
    /// The server has no accounts that a person signs in to.
    #[error("{0}")]
    NoLogins(String),
    /// Too many are under way.
    #[error("too many sign-ins are under way")]
    TooMany,
    /// No sign-in with this state is under way: it is unknown, used, or too old.
    #[error(
        "no sign-in is under way for this answer: it was used already, or has taken longer than {} minutes",
        LOGIN_MS_MAX / 60_000
    )]
    Unknown,
    /// The answer has no `state`, or cannot be read.
    #[error(
        "this is not the address to which the authorization server returned: it has no `code` and `state`"
    )]
    Unreadable,
    /// The server was configured anew after the sign-in had begun.
    #[error("the server was configured anew in the meantime: this sign-in is not used")]
    Replaced,
    /// The answer comes from another authorization server than the one that was asked (RFC 9207).
    #[error("the answer is not from the authorization server that was asked: it is not used")]
    MixUp,
    /// The authorization server, or the person there, refused.
    #[error("the authorization server refused the sign-in: {0}")]
    Denied(String),
    /// The person has not answered yet on the other device.
    #[error("the sign-in is not confirmed yet")]
    NotYet {
        /// Milliseconds until the next question is allowed.
        retry_after_ms: u64,
    },
}

impl LoginError {
    /// The refusal that people read, with the next step.
    #[must_use]
    pub fn refusal(&self, server: &str) -> Refusal {
        use RefusalCode as Code;
        let code = match self {
            Self::Trouble(Trouble::NoRegistration(_)) => Code::UpstreamClientNeeded,
            Self::Trouble(trouble) if trouble.is_transient() => Code::UpstreamDown,
            Self::Trouble(Trouble::Refused { .. }) | Self::Denied(_) => Code::UpstreamFailed,
            Self::Trouble(_) | Self::MixUp => Code::UpstreamMetadataRefused,
            Self::Account(_)
            | Self::NoLogins(_)
            | Self::Unknown
            | Self::Replaced
            | Self::NotYet { .. } => Code::Conflict,
            Self::TooMany => Code::Overloaded,
            Self::Unreadable => Code::Malformed,
        };
        let refusal = Refusal::new(code, self.to_string());
        match self {
            Self::Trouble(Trouble::NoRegistration(host)) => refusal.hint(format!(
                "register a client at {host} with the redirect URI http://127.0.0.1:PORT{CALLBACK_PATH}, then set client_id, \
                 issuer and callback_port in [servers.{server}.auth]"
            )),
            Self::Unknown | Self::Replaced | Self::MixUp | Self::Denied(_) => {
                refusal.hint(format!("begin again: portmoot servers login {server}"))
            }
            Self::Unreadable => refusal.hint("paste the whole address that the browser shows at the end"),
            Self::Account(AccountFault::NotKept(_)) => {
                refusal.hint("a key outside of the data directory: openssl rand -hex 32 > FILE; chmod 600 FILE")
            }
            Self::Trouble(_) | Self::Account(_) | Self::NoLogins(_) | Self::NotYet { .. } | Self::TooMany => refusal,
        }
    }
}

/// Settings of one sign-in.
pub struct SignInRequest {
    /// Address to which the answer comes back.
    pub redirect_uri: String,
    /// Registration of the client that it uses.
    pub usage: Use,
    /// Scopes in place of those that the server asks for.
    pub scopes: Vec<String>,
    /// The participant that began it, who alone may end it.
    pub by: String,
    /// The SHA-256 of the cookie of the browser that must bring the answer, if a browser does.
    pub browser: Option<[u8; 32]>,
}

/// A sign-in that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The address to open.
    pub url: String,
    /// The issuer.
    pub issuer: String,
    /// The scopes that are asked for.
    pub scopes: Vec<String>,
    /// When it is given up, Unix milliseconds.
    pub until_ms: u64,
}

/// A sign-in on another device that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceBegun {
    /// The id by which its end is asked for.
    pub id: String,
    /// The address to open on the other device.
    pub url: String,
    /// The code to type there.
    pub user_code: String,
    /// The address with the code in it, if the server has one.
    pub complete_url: Option<String>,
    /// Seconds between two questions.
    pub interval: u64,
    /// When it is given up, Unix milliseconds.
    pub until_ms: u64,
}

struct Pending {
    account: Arc<Account>,
    found: Arc<Discovery>,
    client: OAuthClient,
    usage: Use,
    verifier: Secret,
    redirect_uri: String,
    scopes: Vec<String>,
    resource: Option<String>,
    by: String,
    browser: Option<[u8; 32]>,
    begun_ms: u64,
    until_ms: u64,
}

struct Device {
    pending: Pending,
    code: Secret,
    interval_ms: u64,
    next_ms: u64,
}

/// The sign-ins under way. They are in memory alone: a restart ends them.
#[derive(Default)]
pub struct Logins {
    /// By the SHA-256 of their state.
    pending: Mutex<HashMap<[u8; 32], Pending>>,
    devices: Mutex<HashMap<String, Device>>,
}

#[derive(Deserialize)]
struct DeviceAnswer {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

impl DeviceAnswer {
    /// Asks a server for a code to type on another device.
    async fn ask(
        site: &Site,
        server: &AuthorizationServer,
        endpoint: &str,
        client: &OAuthClient,
        form: FormBody,
    ) -> Result<Self, LoginError> {
        let fetched = post(site.way(), endpoint, server, client, form).await?;
        if let Err(trouble) = refusal(server, &fetched) {
            if trouble.is_error("invalid_client") {
                site.forget_client(&server.issuer, Use::Native).await;
            }
            return Err(trouble.into());
        }
        let answer: Self = read_json(&fetched.body).map_err(|_| {
            Trouble::Metadata(format!("{} answered with something else", server.host()))
        })?;
        // People open it: it must be an address, and no more.
        parse_url(&answer.verification_uri).map_err(Trouble::from)?;
        Ok(answer)
    }
}

impl Pending {
    /// The address at which the person signs in.
    fn address(&self, endpoint: &str, state: &Secret) -> Result<Url, Trouble> {
        let request = CodeRequest {
            client: &self.client.id,
            redirect_uri: &self.redirect_uri,
            state: state.expose(),
            verifier: &self.verifier,
            scopes: &self.scopes,
            resource: self.resource.as_deref(),
        };
        request.address(endpoint, &self.account.site.config.authorize_params)
    }
}

impl Logins {
    /// Begins a sign-in: discovers, registers if need be, and returns the address to open.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn begin(
        &self,
        account: &Arc<Account>,
        wish: SignInRequest,
    ) -> Result<Begun, LoginError> {
        let site = &account.site;
        check(site)?;
        // While a sign-in is needed no request finds out whether the server has moved to another
        // one.
        let found = site.discover(None).await?;
        let server = &found.server;
        let endpoint = server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| no_endpoint(&found, "authorization endpoint"))?;
        let client = site
            .client(server, wish.usage, Some(&wish.redirect_uri))
            .await?;
        let now_ms = unix_ms();
        let pending = Pending {
            account: Arc::clone(account),
            client,
            usage: wish.usage,
            verifier: unguessable(),
            redirect_uri: wish.redirect_uri,
            scopes: scopes_of(account, &found, wish.scopes),
            resource: site.resource(Some(&found)),
            by: wish.by,
            browser: wish.browser,
            begun_ms: now_ms,
            until_ms: now_ms + LOGIN_MS_MAX,
            found: Arc::clone(&found),
        };
        let state = unguessable();
        let begun = Begun {
            url: pending.address(endpoint, &state)?.into(),
            issuer: server.issuer.clone(),
            scopes: pending.scopes.clone(),
            until_ms: pending.until_ms,
        };
        self.add(Sha256::digest(state.expose()).into(), pending)?;
        Ok(begun)
    }

    fn add(&self, key: [u8; 32], pending: Pending) -> Result<(), LoginError> {
        let mut all = self.pending.lock();
        all.retain(|_, one| unix_ms() < one.until_ms);
        let same = |one: &Pending| Arc::ptr_eq(&one.account, &pending.account);
        let own: Vec<_> = all
            .iter()
            .filter(|(_, one)| same(one))
            .map(|(key, one)| (one.begun_ms, *key))
            .collect();
        if own.len() >= ACCOUNT_LOGINS_MAX
            && let Some((_, oldest)) = own.iter().min()
        {
            all.remove(oldest);
        }
        if all.len() >= LOGINS_MAX {
            return Err(LoginError::TooMany);
        }
        all.insert(key, pending);
        Ok(())
    }

    /// Ends a sign-in with the whole address to which the authorization server returned. `by` is
    /// the participant that brings it, `browser` the SHA-256 of its browser's cookie. Returns the
    /// account, which is ready.
    ///
    /// # Errors
    /// [`LoginError`]; an answer counts once, whatever becomes of it.
    pub async fn complete(
        &self,
        callback: &str,
        by: Option<&str>,
        browser: Option<[u8; 32]>,
    ) -> Result<Arc<Account>, LoginError> {
        let response = Response::read(callback)?;
        let key: [u8; 32] = Sha256::digest(response.state.expose()).into();
        let pending = {
            let mut all = self.pending.lock();
            let is_theirs = |pending: &Pending| {
                pending.browser == browser
                    && by.is_none_or(|by| by == pending.by)
                    && unix_ms() < pending.until_ms
            };
            // What another participant or browser brings does not end it.
            if !all.get(&key).is_some_and(is_theirs) {
                return Err(LoginError::Unknown);
            }
            all.remove(&key).ok_or(LoginError::Unknown)?
        };
        response.check_issuer(&pending.found.server)?;
        is_in_force(&pending.account.site)?;
        let code = response.code()?;
        let grant = TokenGrant::Code {
            code: code.expose(),
            verifier: &pending.verifier,
            redirect_uri: &pending.redirect_uri,
        };
        let site = &pending.account.site;
        let server = &pending.found.server;
        let asked = token::request(
            site.way(),
            server,
            &pending.client,
            &grant,
            pending.resource.as_deref(),
        )
        .await;
        let tokens = match asked {
            Ok(tokens) => tokens,
            Err(trouble) => {
                if trouble.is_error("invalid_client") {
                    // The next sign-in registers anew.
                    site.forget_client(&server.issuer, pending.usage).await;
                }
                return Err(trouble.into());
            }
        };
        finish(pending, tokens).await
    }

    /// Begins a sign-in on another device.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn begin_device(
        &self,
        account: &Arc<Account>,
        scopes: Vec<String>,
        by: &str,
    ) -> Result<DeviceBegun, LoginError> {
        let site = &account.site;
        check(site)?;
        let found = site.discover(None).await?;
        let server = &found.server;
        let endpoint = server.device_authorization_endpoint.as_deref();
        let endpoint =
            endpoint.ok_or_else(|| no_endpoint(&found, "device authorization endpoint"))?;
        let client = site.client(server, Use::Native, None).await?;
        let scopes = scopes_of(account, &found, scopes);
        let resource = site.resource(Some(&found));
        let mut form = FormBody::new();
        if !scopes.is_empty() {
            form.add("scope", &scopes.join(" "));
        }
        if let Some(resource) = &resource {
            form.add("resource", resource);
        }
        let answer = DeviceAnswer::ask(site, server, endpoint, &client, form).await?;
        let now_ms = unix_ms();
        let until_ms = now_ms + LOGIN_MS_MAX.min(answer.expires_in.saturating_mul(1_000));
        let interval = answer.interval.unwrap_or(5).clamp(1, 60);
        let id = data_encoding::HEXLOWER.encode(&random::<16>());
        let pending = Pending {
            account: Arc::clone(account),
            client,
            usage: Use::Native,
            verifier: unguessable(),
            redirect_uri: String::new(),
            scopes,
            resource,
            by: by.to_owned(),
            browser: None,
            begun_ms: now_ms,
            until_ms,
            found: Arc::clone(&found),
        };
        let device = Device {
            pending,
            code: Secret::new(answer.device_code),
            interval_ms: interval * 1_000,
            next_ms: now_ms,
        };
        self.add_device(id.clone(), device, now_ms)?;
        Ok(DeviceBegun {
            id,
            url: answer.verification_uri,
            user_code: shown(&answer.user_code),
            complete_url: answer
                .verification_uri_complete
                .filter(|url| parse_url(url).is_ok()),
            interval,
            until_ms,
        })
    }

    fn add_device(&self, id: String, device: Device, now_ms: u64) -> Result<(), LoginError> {
        let mut all = self.devices.lock();
        all.retain(|_, one| now_ms < one.pending.until_ms);
        if all.len() >= LOGINS_MAX {
            return Err(LoginError::TooMany);
        }
        all.insert(id, device);
        Ok(())
    }

    /// Asks once whether a sign-in on another device has ended.
    ///
    /// # Errors
    /// [`LoginError::NotYet`] while it has not.
    pub async fn poll_device(&self, id: &str, by: &str) -> Result<Arc<Account>, LoginError> {
        let now_ms = unix_ms();
        let mut device = {
            let mut all = self.devices.lock();
            let device = all
                .get(id)
                .filter(|device| device.pending.by == by && now_ms < device.pending.until_ms);
            let next_ms = device.ok_or(LoginError::Unknown)?.next_ms;
            if now_ms < next_ms {
                return Err(LoginError::NotYet {
                    retry_after_ms: next_ms - now_ms,
                });
            }
            all.remove(id).ok_or(LoginError::Unknown)?
        };
        let site = Arc::clone(&device.pending.account.site);
        let server = Arc::clone(&device.pending.found);
        is_in_force(&site)?;
        let grant = TokenGrant::Device { code: &device.code };
        let resource = device.pending.resource.clone();
        let asked = token::request(
            site.way(),
            &server.server,
            &device.pending.client,
            &grant,
            resource.as_deref(),
        )
        .await;
        match asked {
            Ok(tokens) => finish(device.pending, tokens).await,
            Err(trouble) => {
                let is_slow = trouble.is_error("slow_down");
                if !(is_slow || trouble.is_error("authorization_pending") || trouble.is_transient())
                {
                    return Err(trouble.into());
                }
                device.interval_ms += if is_slow { 5_000 } else { 0 };
                device.next_ms = unix_ms() + device.interval_ms;
                let retry_after_ms = device.interval_ms;
                self.devices.lock().insert(id.to_owned(), device);
                Err(LoginError::NotYet { retry_after_ms })
            }
        }
    }

    /// Whether a sign-in of this account is under way.
    #[must_use]
    pub fn is_pending(&self, account: &Arc<Account>) -> bool {
        let now_ms = unix_ms();
        let is_its =
            |pending: &Pending| Arc::ptr_eq(&pending.account, account) && now_ms < pending.until_ms;
        self.pending.lock().values().any(is_its)
            || self.devices.lock().values().any(|one| is_its(&one.pending))
    }
}

/// The scopes that a sign-in asks for: those that were wished for, if any were.
fn scopes_of(account: &Account, found: &Discovery, wished: Vec<String>) -> Vec<String> {
    if wished.is_empty() {
        account.scopes(found)
    } else {
        wished
    }
}

/// Whether people sign in at this server, and what they get can be kept.
fn check(site: &Site) -> Result<(), LoginError> {
    if site.is_machine() {
        let why = format!(
            "`{}` is used with the gateway's own credentials: no person signs in",
            site.name
        );
        return Err(LoginError::NoLogins(why));
    }
    if site.config.kind == AuthorizationKind::Key {
        let why = format!(
            "`{}` wants a key of each caller: portmoot servers login {} --key",
            site.name, site.name
        );
        return Err(LoginError::NoLogins(why));
    }
    is_in_force(site)?;
    let kept = site.services.vault.check();
    kept.map_err(|error| LoginError::Account(AccountFault::NotKept(error.to_string())))
}

fn is_in_force(site: &Site) -> Result<(), LoginError> {
    if site.is_replaced() {
        Err(LoginError::Replaced)
    } else {
        Ok(())
    }
}

async fn finish(pending: Pending, tokens: token::IssuedTokens) -> Result<Arc<Account>, LoginError> {
    let Pending {
        account,
        found,
        client,
        usage,
        resource,
        scopes,
        by,
        ..
    } = pending;
    let saved = saved(&found, client, usage, resource, scopes.clone(), tokens);
    account
        .sign_in(saved, &scopes, &by)
        .await
        .map_err(|fault| match fault {
            AccountFault::Replaced => LoginError::Replaced,
            fault => fault.into(),
        })?;
    Ok(account)
}

fn no_endpoint(found: &Discovery, what: &str) -> Trouble {
    Trouble::Metadata(format!(
        "the authorization server {} has no {what}",
        found.server.host()
    ))
}

/// An authorization response.
pub(crate) struct Response {
    pub(crate) state: Secret,
    code: Option<Secret>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl Response {
    pub(crate) fn read(callback: &str) -> Result<Self, LoginError> {
        let callback = callback.trim();
        if callback.len() > RESPONSE_BYTES_MAX {
            return Err(LoginError::Unreadable);
        }
        let url = Url::parse(callback).map_err(|_| LoginError::Unreadable)?;
        let mut state = None;
        let mut code = None;
        let mut issuer = None;
        let mut error = None;
        let mut description = None;
        for (name, value) in url.query_pairs() {
            let slot = match &*name {
                "state" => &mut state,
                "code" => &mut code,
                "iss" => &mut issuer,
                "error" => &mut error,
                "error_description" => &mut description,
                _ => continue,
            };
            // A parameter that comes twice could mean either.
            if slot.replace(value.into_owned()).is_some() {
                return Err(LoginError::Unreadable);
            }
        }
        let state = state.map(Secret::new).ok_or(LoginError::Unreadable)?;
        let code = code.map(Secret::new);
        let (error, description) = (
            error.map(|text| shown(&text)),
            description.map(|text| shown(&text)),
        );
        Ok(Self {
            state,
            code,
            issuer,
            error,
            description,
        })
    }

    /// Refuses an answer from another authorization server (RFC 9207 section 2.4), whatever it
    /// says.
    pub(crate) fn check_issuer(&self, server: &AuthorizationServer) -> Result<(), LoginError> {
        let promised = server.authorization_response_iss_parameter_supported;
        match &self.issuer {
            Some(issuer) if *issuer == server.issuer => Ok(()),
            None if !promised => Ok(()),
            Some(_) | None => Err(LoginError::MixUp),
        }
    }

    /// The code, or the refusal in its place.
    pub(crate) fn code(self) -> Result<Secret, LoginError> {
        match (self.code, self.error) {
            (Some(code), None) => Ok(code),
            (_, Some(error)) => {
                // Its words follow its code, and could be anything.
                let words = self.description.map(|text| format!(" ({text})"));
                Err(LoginError::Denied(error + &words.unwrap_or_default()))
            }
            (None, None) => Err(LoginError::Unreadable),
        }
    }
}
