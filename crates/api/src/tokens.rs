//! Issued tokens: `/api/v1/tokens`.

use std::sync::Arc;

use access::tokens::TokenRequest;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use crate::error::ApiResult;
use crate::schema::{NewToken, Problem, Token, TokenList, TokenWithSecret};
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
    let tokens = api.admin.issued_tokens().iter().map(Token::of).collect();
    Ok(Json(TokenList { tokens }))
}

/// Issues a token, which is valid at once. Needs `portmoot/tokens`.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    request_body = NewToken,
    responses((status = 201, body = TokenWithSecret), (status = "4XX", body = Problem))
)]
pub(crate) async fn issue(
    State(api): State<Api>,
    Caller(by): Caller,
    body: ApiResult<Body<NewToken>>,
) -> ApiResult<(StatusCode, Json<TokenWithSecret>)> {
    api.authorize(&by, TOKENS, None)?;
    let Body(NewToken { name, capabilities, topics, lifetime_ms }) = body?;
    let request = TokenRequest { name, capabilities, topics, lifetime_ms };
    let admin = Arc::clone(&api.admin);
    let (secret, token) = blocking(move || admin.issue_token(&by.id, request)).await?;
    Ok((StatusCode::CREATED, Json(TokenWithSecret { shown: Token::of(&token), token: secret })))
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
