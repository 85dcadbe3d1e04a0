//! Sign-ins of clients: `/api/v1/logins`, `/api/v1/clients`, `/api/v1/consents`.

use std::sync::Arc;

use auth::{LOCAL_USER, Participant};
use axum::extract::{Path, Query, State};
use axum::{Json, http::StatusCode};
use identity::{Authority, TOKENS};
use model::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use signin::{Asker, EndedSignIns, GivenConsent, OneTimeCode, SignIn, SignedInClient};
use utoipa::ToSchema;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Body, Caller, Source, blocking};

/// Runs an act on the gateway's authorization server by the right of the caller.
async fn act<T: Send + 'static>(
    api: &Api,
    by: Arc<Participant>,
    Source(from): Source,
    act: impl FnOnce(&SignIn, &Asker<'_>) -> Result<T, Refusal> + Send + 'static,
) -> ApiResult<T> {
    let sign_in = api.sign_in.clone().ok_or_else(|| {
        Refusal::new(
            RefusalCode::Unsupported,
            "signing in is not enabled at this gateway",
        )
        .hint("set `enabled = true` in [login], with `public_url` in [server], and restart it")
    })?;
    let for_others = api.holds(&by, TOKENS, None);
    let grants = api.registry.grants();
    blocking(move || {
        let authority = match by.id.as_str() {
            LOCAL_USER => Authority::Operator,
            _ => Authority::Participant(&by, &grants),
        };
        act(
            &sign_in,
            &Asker {
                by: &by,
                authority,
                for_others,
                from,
            },
        )
    })
    .await
}

/// Makes a one-time code with which a participant signs in at the page of a client. Needs
/// `portmoot/tokens`, and all that the participant may do, for as long as a sign-in lasts; a
/// participant gets codes for itself without.
#[utoipa::path(
    post,
    path = "/api/v1/logins",
    request_body = NewCode,
    responses((status = 201, body = OneTimeCode), (status = "4XX", body = Problem))
)]
pub(crate) async fn one_time_code(
    State(api): State<Api>,
    Caller(by): Caller,
    source: Source,
    body: ApiResult<Body<NewCode>>,
) -> ApiResult<(StatusCode, Json<OneTimeCode>)> {
    let Body(NewCode { name }) = body?;
    if name != by.id.as_str() {
        api.registry.refuse_paused(&by.id, None)?;
    }
    let code = act(&api, by, source, move |sign_in, asker| {
        sign_in.one_time_code(asker, &name)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(code)))
}

/// A request for a one-time code.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCode {
    /// The participant that signs in with it.
    pub name: String,
}

/// The clients that have signed in. Without `portmoot/tokens` those of the caller.
#[utoipa::path(
    get,
    path = "/api/v1/clients",
    responses((status = 200, body = ClientList), (status = "4XX", body = Problem))
)]
pub(crate) async fn clients(
    State(api): State<Api>,
    Caller(by): Caller,
) -> ApiResult<Json<ClientList>> {
    let clients = act(&api, by, Source(None), |sign_in, asker| {
        Ok(sign_in.signed_in(asker))
    })
    .await?;
    Ok(Json(ClientList { clients }))
}

/// Clients that have signed in.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientList {
    /// The clients, once for each sign-in.
    pub clients: Vec<SignedInClient>,
}

/// Ends the sign-ins of a client, named by the beginning of its digest or by its id, and forgets
/// the consents. Needs `portmoot/tokens`, and all that the participants may do; a participant ends
/// its own without.
#[utoipa::path(
    delete,
    path = "/api/v1/clients/{client}",
    params(("client" = String, Path), ("participant" = Option<String>, Query)),
    responses((status = 200, body = EndedSignIns), (status = "4XX", body = Problem))
)]
pub(crate) async fn revoke_client(
    State(api): State<Api>,
    Caller(by): Caller,
    source: Source,
    Path(client): Path<String>,
    Query(of): Query<OfParticipant>,
) -> ApiResult<Json<EndedSignIns>> {
    let act = act(&api, by, source, move |sign_in, asker| {
        sign_in.revoke_client(asker, &client, of.participant.as_deref())
    });
    Ok(Json(act.await?))
}

/// The participant whose sign-ins are meant; all that the caller may speak for without one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfParticipant {
    participant: Option<String>,
}

/// The consents that participants have given to clients. Without `portmoot/tokens` those of the
/// caller.
#[utoipa::path(
    get,
    path = "/api/v1/consents",
    responses((status = 200, body = ConsentList), (status = "4XX", body = Problem))
)]
pub(crate) async fn consents(
    State(api): State<Api>,
    Caller(by): Caller,
) -> ApiResult<Json<ConsentList>> {
    let consents = act(&api, by, Source(None), |sign_in, asker| {
        Ok(sign_in.consents(asker))
    })
    .await?;
    Ok(Json(ConsentList { consents }))
}

/// Consents.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConsentList {
    /// The consents.
    pub consents: Vec<GivenConsent>,
}

/// Forgets the consents to a client, and ends the sign-ins that they gave. Rights as for revoking
/// the client.
#[utoipa::path(
    delete,
    path = "/api/v1/consents/{client}",
    params(("client" = String, Path), ("participant" = Option<String>, Query)),
    responses((status = 200, body = EndedSignIns), (status = "4XX", body = Problem))
)]
pub(crate) async fn withdraw_consent(
    State(api): State<Api>,
    Caller(by): Caller,
    source: Source,
    Path(client): Path<String>,
    Query(of): Query<OfParticipant>,
) -> ApiResult<Json<EndedSignIns>> {
    let act = act(&api, by, source, move |sign_in, asker| {
        sign_in.withdraw_consent(asker, &client, of.participant.as_deref())
    });
    Ok(Json(act.await?))
}
