//! Accounts at servers: `/api/v1/accounts`, and sign-ins below `/api/v1/servers/{name}/login`.

use std::sync::Arc;

use auth::Participant;
use axum::extract::{Path, Query, State};
use axum::{Json, http::StatusCode};
use identity::{ACCOUNTS, SERVERS};
use model::{ParticipantId, Refusal, RefusalCode};
use oauth::account::{Account, AccountState, CallerKey};
use oauth::config::AuthorizationKind;
use oauth::logins::{LoginError, SignInRequest};
use oauth::registration::{CALLBACK_PATH, Use};
use serde::{Deserialize, Serialize};
use signin::ConnectCode;
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Body, Caller};

/// The accounts at servers, without tokens. Needs `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/api/v1/accounts",
    params(("server" = Option<String>, Query)),
    responses((status = 200, body = AccountList), (status = "4XX", body = Problem))
)]
pub(crate) async fn accounts(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(AccountQuery { server }): Query<AccountQuery>,
) -> ApiResult<Json<AccountList>> {
    api.authorize(&caller, SERVERS, None)?;
    let all = &api.registry.accounts;
    let servers = match &server {
        Some(name) => vec![named(&api, name)?],
        None => all.servers(),
    };
    let of = |server: &Arc<oauth::AccountServer>| {
        // The shared account is there before anything was asked of it.
        let _ = server.of(None);
        let mut found = server.all(&all.logins);
        if server.is_of_callers() {
            found.retain(|(who, _)| who.is_some());
        }
        let show = |(who, state)| AccountView::of(server, who, state);
        found.into_iter().map(show).collect::<Vec<_>>()
    };
    Ok(Json(AccountList {
        accounts: servers.iter().flat_map(of).collect(),
    }))
}

/// Where a command on the gateway's machine waits for the browser of a sign-in. Needs what `login`
/// needs.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}/login",
    params(("name" = String, Path)),
    responses((status = 200, body = LoginCallback), (status = "4XX", body = Problem))
)]
pub(crate) async fn callback(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<LoginCallback>> {
    let site = &account(&api, &caller, &name, None)?.site;
    Ok(Json(LoginCallback {
        port: site.callback_port(),
        fixed: site.config.callback_port.is_some(),
    }))
}

/// Begins to sign in at a server. Needs `portmoot/accounts`, except for one's own account at a
/// server where each caller has one.
///
/// The answer has the address to open in a browser. What the browser is sent to afterwards
/// completes the sign-in.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/login",
    params(("name" = String, Path)),
    request_body = LoginRequest,
    responses((status = 201, body = LoginBegun), (status = "4XX", body = Problem))
)]
pub(crate) async fn begin(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    body: ApiResult<Body<LoginRequest>>,
) -> ApiResult<(StatusCode, Json<LoginBegun>)> {
    let Body(request) = body?;
    let account = own_or_given(&api, &caller, &name, request.participant.as_deref())?;
    let port = request
        .port
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let wish = SignInRequest {
        redirect_uri: format!("http://127.0.0.1{port}{CALLBACK_PATH}"),
        usage: Use::Native,
        scopes: request.scopes,
        by: caller.id.to_string(),
        browser: None,
    };
    let begun = api
        .registry
        .accounts
        .logins
        .begin(&account, wish)
        .await
        .map_err(|error| error.refusal(&name))?;
    let view = LoginBegun {
        url: begun.url,
        issuer: begun.issuer,
        scopes: begun.scopes,
        expires: rfc3339(begun.until_ms),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Completes a sign-in with the whole address to which the authorization server returned. Only who
/// began it can.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/login/complete",
    params(("name" = String, Path)),
    request_body = LoginAnswer,
    responses((status = 200, body = AccountView), (status = "4XX", body = Problem))
)]
pub(crate) async fn complete(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    body: ApiResult<Body<LoginAnswer>>,
) -> ApiResult<Json<AccountView>> {
    let Body(LoginAnswer { callback }) = body?;
    let server = named(&api, &name)?;
    let logins = &api.registry.accounts.logins;
    let account = logins
        .complete(&callback, Some(caller.id.as_str()), None)
        .await;
    let account = account.map_err(|error| error.refusal(&name))?;
    api.registry.wait_for_start(&name).await;
    Ok(Json(AccountView::of(
        &server,
        account.participant.clone(),
        account.state(),
    )))
}

/// Begins to sign in at a server on another device (RFC 8628). Needs what `login` needs.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/login/device",
    params(("name" = String, Path)),
    request_body = LoginRequest,
    responses((status = 201, body = DeviceLoginBegun), (status = "4XX", body = Problem))
)]
pub(crate) async fn begin_device(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    body: ApiResult<Body<LoginRequest>>,
) -> ApiResult<(StatusCode, Json<DeviceLoginBegun>)> {
    let Body(request) = body?;
    let account = own_or_given(&api, &caller, &name, request.participant.as_deref())?;
    let logins = &api.registry.accounts.logins;
    let begun = logins
        .begin_device(&account, request.scopes, caller.id.as_str())
        .await;
    let begun = begun.map_err(|error| error.refusal(&name))?;
    let view = DeviceLoginBegun {
        id: begun.id,
        url: begun.url,
        user_code: begun.user_code,
        complete_url: begun.complete_url,
        interval_seconds: begun.interval,
        expires: rfc3339(begun.until_ms),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Asks whether a sign-in on another device has ended: 202 with the time to wait while it has not.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/login/device/{id}",
    params(("name" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = DeviceLogin), (status = 202, body = DeviceLogin), (status = "4XX", body = Problem))
)]
pub(crate) async fn poll_device(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path((name, id)): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<DeviceLogin>)> {
    let server = named(&api, &name)?;
    match api
        .registry
        .accounts
        .logins
        .poll_device(&id, caller.id.as_str())
        .await
    {
        Ok(account) => {
            api.registry.wait_for_start(&name).await;
            let view = AccountView::of(&server, account.participant.clone(), account.state());
            Ok((
                StatusCode::OK,
                Json(DeviceLogin {
                    account: Some(view),
                    retry_after_ms: None,
                }),
            ))
        }
        Err(LoginError::NotYet { retry_after_ms }) => {
            let waits = DeviceLogin {
                account: None,
                retry_after_ms: Some(retry_after_ms),
            };
            Ok((StatusCode::ACCEPTED, Json(waits)))
        }
        Err(error) => Err(error.refusal(&name).into()),
    }
}

/// Signs out at a server: the tokens are forgotten, and revoked where the authorization server can
/// do so. Needs what `login` needs.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/logout",
    params(("name" = String, Path)),
    request_body = LogoutRequest,
    responses((status = 200, body = LoggedOut), (status = "4XX", body = Problem))
)]
pub(crate) async fn logout(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    body: ApiResult<Body<LogoutRequest>>,
) -> ApiResult<Json<LoggedOut>> {
    let Body(LogoutRequest { participant }) = body?;
    let account = account(&api, &caller, &name, participant.as_deref())?;
    let failed = account.sign_out(caller.id.as_str()).await;
    let failed = failed.map_err(|fault| LoginError::Account(fault).refusal(&name))?;
    Ok(Json(LoggedOut {
        server: name,
        not_revoked: failed.map(|trouble| trouble.to_string()),
    }))
}

/// Enters the key of a caller for a server that wants one of each, in place of the one before,
/// whose sessions end. Needs what `login` needs.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/key",
    params(("name" = String, Path)),
    request_body = KeyEntry,
    responses((status = 200, body = AccountView), (status = "4XX", body = Problem))
)]
pub(crate) async fn enter_key(
    State(api): State<Api>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    body: ApiResult<Body<KeyEntry>>,
) -> ApiResult<Json<AccountView>> {
    let Body(KeyEntry { participant, key }) = body?;
    let account = own_or_given(&api, &caller, &name, participant.as_deref())?;
    if account.site.config.kind != AuthorizationKind::Key {
        let message = format!("the server `{name}` wants no key of its callers");
        let refusal = Refusal::new(RefusalCode::Conflict, message);
        return Err(refusal
            .hint("its operator writes { caller = \"...\" } in `env` or `headers`")
            .into());
    }
    let key = CallerKey::new(&key)
        .map_err(|why| Refusal::new(RefusalCode::Malformed, why.to_string()))?;
    let entered = account.enter_key(key, caller.id.as_str()).await;
    entered.map_err(|fault| LoginError::Account(fault).refusal(&name))?;
    let server = named(&api, &name)?;
    Ok(Json(AccountView::of(
        &server,
        account.participant.clone(),
        account.state(),
    )))
}

/// Makes a one-time code with which the sender's browser is known as the sender's at connect pages.
/// Good once, for ten minutes; a new one replaces it. Needs a token that is good for all that the
/// participant may do.
#[utoipa::path(
    post,
    path = "/api/v1/connect-code",
    responses((status = 201, body = ConnectCode), (status = "4XX", body = Problem))
)]
pub(crate) async fn connect_code(
    State(api): State<Api>,
    Caller(caller): Caller,
) -> ApiResult<(StatusCode, Json<ConnectCode>)> {
    api.acts_in_full(&caller)?;
    Ok((StatusCode::CREATED, Json(api.connect.code(&caller.id)?)))
}

/// The accounts of a server.
fn named(api: &Api, name: &str) -> Result<Arc<oauth::AccountServer>, Refusal> {
    let accounts = api.registry.accounts.server(name);
    accounts.ok_or_else(|| without_accounts(api, name))
}

/// The refusal of a server without accounts, or of one that is not known.
fn without_accounts(api: &Api, name: &str) -> Refusal {
    let upstreams = api.registry.upstreams();
    if upstreams
        .iter()
        .any(|upstream| upstream.spec().name() == name)
    {
        let message = format!("the server `{name}` has no accounts");
        Refusal::new(RefusalCode::Conflict, message).hint(
            "servers over HTTP without a configured `Authorization` header have, and those with a \
             `caller` in `env` or `headers`",
        )
    } else {
        let message = format!("there is no server `{name}`");
        Refusal::new(RefusalCode::UnknownTarget, message).hint("list them: portmoot servers ls")
    }
}

/// The account of [`account`], into which the caller signs in. One that others use too is something
/// given to them: a paused caller is refused.
fn own_or_given(
    api: &Api,
    caller: &Participant,
    name: &str,
    participant: Option<&str>,
) -> Result<Arc<Account>, Refusal> {
    let account = account(api, caller, name, participant)?;
    if account.participant.as_deref() != Some(caller.id.as_str()) {
        api.registry.refuse_paused(&caller.id, None)?;
    }
    Ok(account)
}

/// The account that a caller may sign in to.
fn account(
    api: &Api,
    caller: &Participant,
    name: &str,
    participant: Option<&str>,
) -> Result<Arc<Account>, Refusal> {
    let is_own = participant.is_none_or(|participant| participant == caller.id.as_str());
    let server = named(api, name);
    let is_of_callers = server.as_ref().is_ok_and(|server| server.is_of_callers());
    if !(is_own && is_of_callers) {
        // Before anything is said about the server.
        api.authorize(caller, ACCOUNTS, None)?;
    } else {
        api.acts_in_full(caller)?;
    }
    let server = server?;
    if !is_of_callers && participant.is_some() {
        let message = format!("all callers share one account at the server `{name}`");
        return Err(Refusal::new(RefusalCode::Conflict, message)
            .hint("leave out --as, or configure account = \"caller\""));
    }
    let participant = participant.unwrap_or(caller.id.as_str());
    ParticipantId::new(participant).map_err(|error| {
        Refusal::new(RefusalCode::Malformed, format!("`{participant}`: {error}"))
    })?;
    Ok(server.of(Some(participant)))
}

/// The query of the accounts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountQuery {
    server: Option<String>,
}

/// All accounts.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountList {
    /// By server, the shared one first, then by participant.
    pub accounts: Vec<AccountView>,
}

/// An account at a server.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountView {
    /// The server.
    pub server: String,
    /// The participant; absent for the account that all callers share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// `open` (no token was asked for), `wants_client`, `needs_login`, `pending`, `ready`,
    /// `refreshing` or `waiting`.
    pub state: String,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The issuer of its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The client to which they were issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Their scopes.
    pub scopes: Vec<String>,
    /// Scopes that the server asked for beyond them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wanted: Vec<String>,
    /// When the access token expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Whether it is renewed without a person.
    pub renews: bool,
    /// When the tokens were issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl AccountView {
    fn of(server: &oauth::AccountServer, participant: Option<String>, state: AccountState) -> Self {
        Self {
            server: server.site.name.clone(),
            participant,
            state: state.state.to_owned(),
            reason: state.reason,
            issuer: state.issuer,
            client_id: state.client_id,
            scopes: state.scopes,
            wanted: state.wanted,
            expires: state.expires_ms.map(rfc3339),
            renews: state.renews,
            since: state.since_ms.map(rfc3339),
        }
    }
}

/// Where a sign-in's browser comes back.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoginCallback {
    /// The port on 127.0.0.1 that the gateway's client is registered with; absent before the first
    /// registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether it is configured (`callback_port`): no other port is registered in its place.
    pub fixed: bool,
}

/// A sign-in to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginRequest {
    /// Whose account, where each caller has one; the sender's without it.
    #[serde(default)]
    pub participant: Option<String>,
    /// The port on 127.0.0.1 at which the sender waits for the browser; without one the address is
    /// pasted.
    #[serde(default)]
    pub port: Option<u16>,
    /// Scopes in place of those that the server asks for.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// A sign-in that has begun.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoginBegun {
    /// The address to open in a browser.
    pub url: String,
    /// The issuer where the person signs in.
    pub issuer: String,
    /// The scopes that are asked for; empty leaves the choice to the issuer.
    pub scopes: Vec<String>,
    /// When it is given up.
    pub expires: String,
}

/// A key of a caller.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyEntry {
    /// Whose; the sender's without it.
    #[serde(default)]
    pub participant: Option<String>,
    /// The key: up to 8 KiB of printable ASCII.
    pub key: String,
}

/// What the browser brought back.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginAnswer {
    /// The whole address to which the authorization server returned.
    pub callback: String,
}

/// A sign-in on another device that has begun.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeviceLoginBegun {
    /// The id by which its end is asked for.
    pub id: String,
    /// The address to open on the other device.
    pub url: String,
    /// The code to type there.
    pub user_code: String,
    /// The address with the code in it, if the issuer has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_url: Option<String>,
    /// Seconds between two questions.
    pub interval_seconds: u64,
    /// When it is given up.
    pub expires: String,
}

/// The state of a sign-in on another device.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeviceLogin {
    /// The account, once it is signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountView>,
    /// Milliseconds until the next question, until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// A sign-out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogoutRequest {
    /// Whose account, where each caller has one; the sender's without it.
    #[serde(default)]
    pub participant: Option<String>,
}

/// A sign-out that was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoggedOut {
    /// The server.
    pub server: String,
    /// Why the authorization server did not revoke the tokens, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_revoked: Option<String>,
}
