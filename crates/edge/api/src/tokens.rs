//! Issued tokens: `/api/v1/tokens`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use axum::extract::{Path, State};
use axum::{Json, http::StatusCode};
use identity::TOKENS;
use identity::tokens::{IssuedTokenRow, RevokedTokens, TokenRequest, TokenWithSecret};

use crate::configured::Operator;
use crate::error::{ApiResult, Problem};
use crate::state::{Api, Body, Caller, Source, blocking};

/// The issued tokens. Needs `portmoot/tokens`. Private topics that the caller may not enter are
/// left out.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    responses((status = 200, body = TokenList), (status = "4XX", body = Problem))
)]
pub(crate) async fn tokens(
    State(api): State<Api>,
    Caller(by): Caller,
) -> ApiResult<Json<TokenList>> {
    api.authorize(&by, TOKENS, None)?;
    Ok(Json(TokenList {
        tokens: api.admin.issued_tokens(&by),
    }))
}

/// Issues a token, which is valid at once. Needs `portmoot/tokens`, and all that its bearer may do,
/// for as long.
///
/// While callers need no token, it needs the operator key; from then on they need one.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    request_body = TokenRequest,
    responses((status = 201, body = TokenWithSecret), (status = "4XX", body = Problem))
)]
pub(crate) async fn issue(
    State(api): State<Api>,
    Operator {
        by,
        is_operator,
        address,
    }: Operator,
    body: ApiResult<Body<TokenRequest>>,
) -> ApiResult<(StatusCode, Json<TokenWithSecret>)> {
    api.authorize(&by, TOKENS, None)?;
    let Body(request) = body?;
    let admin = api.admin.from_address(address);
    Ok((
        StatusCode::CREATED,
        Json(blocking(move || admin.issue_token(&by, is_operator, request)).await?),
    ))
}

/// Issues another token to a participant that has one. Needs `portmoot/tokens`, and all that their
/// bearer may do, for as long.
///
/// The new token has the capabilities, topics and lifetime of the newest one, which stays valid for
/// a while.
#[utoipa::path(
    post,
    path = "/api/v1/tokens/{name}/rotate",
    params(("name" = String, Path)),
    request_body = Rotation,
    responses((status = 201, body = TokenWithSecret), (status = "4XX", body = Problem))
)]
pub(crate) async fn rotate(
    State(api): State<Api>,
    Caller(by): Caller,
    Source(source): Source,
    Path(name): Path<String>,
    body: ApiResult<Body<Rotation>>,
) -> ApiResult<(StatusCode, Json<TokenWithSecret>)> {
    api.authorize(&by, TOKENS, None)?;
    let Body(Rotation { overlap_ms }) = body?;
    let admin = api.admin.from_address(source);
    let issued = blocking(move || admin.rotate_token(&by, &name, overlap_ms)).await?;
    Ok((StatusCode::CREATED, Json(issued)))
}

/// A rotation of tokens.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rotation {
    /// How long the token before stays valid, in milliseconds; at most until its own end.
    pub overlap_ms: u64,
}

/// Revokes the tokens that were issued to a participant. Needs `portmoot/tokens`, and all that
/// their bearer may do.
///
/// Sessions, streams and sockets that were opened with them end at once. Unless the participant is
/// configured, the changes of its capabilities end too: the next participant of this name does not
/// get them.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{name}",
    params(("name" = String, Path)),
    responses((status = 200, body = RevokedTokens), (status = "4XX", body = Problem))
)]
pub(crate) async fn revoke(
    State(api): State<Api>,
    Caller(by): Caller,
    Source(source): Source,
    Path(name): Path<String>,
) -> ApiResult<Json<RevokedTokens>> {
    api.authorize(&by, TOKENS, None)?;
    let admin = api.admin.from_address(source);
    Ok(Json(
        blocking(move || admin.revoke_tokens(&by, &name)).await?,
    ))
}

/// Issued tokens.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenList {
    /// The tokens, without their secrets.
    pub tokens: Vec<IssuedTokenRow>,
}
