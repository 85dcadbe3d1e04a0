//! Issued tokens: `/api/v1/tokens`.

use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

use access::tokens::{Token, TokenRequest, TokenWithSecret};
use axum::extract::{Path, State};
use axum::{Json, http::StatusCode};

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Body, Caller, blocking};

const TOKENS: &str = "portmoot/tokens";

/// The issued tokens. Needs `portmoot/tokens`.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    responses((status = 200, body = TokenList), (status = "4XX", body = Problem))
)]
pub(crate) async fn tokens(State(api): State<Api>, Caller(by): Caller) -> ApiResult<Json<TokenList>> {
    api.authorize(&by, TOKENS, None)?;
    Ok(Json(TokenList { tokens: api.admin.issued_tokens() }))
}

/// Issues a token, which is valid at once. Needs `portmoot/tokens`.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    request_body = TokenRequest,
    responses((status = 201, body = TokenWithSecret), (status = "4XX", body = Problem))
)]
pub(crate) async fn issue(
    State(api): State<Api>,
    Caller(by): Caller,
    body: ApiResult<Body<TokenRequest>>,
) -> ApiResult<(StatusCode, Json<TokenWithSecret>)> {
    api.authorize(&by, TOKENS, None)?;
    let Body(request) = body?;
    let admin = Arc::clone(&api.admin);
    Ok((StatusCode::CREATED, Json(blocking(move || admin.issue_token(&by.id, request)).await?)))
}

/// Revokes the tokens that were issued to a participant. Needs `portmoot/tokens`.
///
/// Sessions, streams and sockets that were opened with them end at once.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{name}",
    params(("name" = String, Path)),
    responses((status = 204), (status = "4XX", body = Problem))
)]
pub(crate) async fn revoke(
    State(api): State<Api>,
    Caller(by): Caller,
    Path(name): Path<String>,
) -> ApiResult<StatusCode> {
    api.authorize(&by, TOKENS, None)?;
    let admin = Arc::clone(&api.admin);
    blocking(move || admin.revoke_tokens(&by.id, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Issued tokens.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenList {
    /// The tokens, without their secrets.
    pub tokens: Vec<Token>,
}
