//! Issued tokens: `/api/v1/tokens`.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::IssuedToken;
use utoipa::ToSchema;

use access::tokens::TokenRequest;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

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

/// Issued tokens.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenList {
    /// The tokens, without their secrets.
    pub tokens: Vec<Token>,
}

/// An issued token.
#[derive(Serialize, ToSchema)]
pub(crate) struct Token {
    /// The participant as which its bearer connects.
    pub name: String,
    /// Capabilities that it was issued with, if any.
    pub capabilities: Option<Vec<String>>,
    /// Topics that it was issued with, if any.
    pub topics: Option<Vec<String>>,
    /// When it was issued, in Unix milliseconds.
    pub created_ms: u64,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: Option<u64>,
}

impl Token {
    /// An issued token as the API shows it: without its hash.
    pub(crate) fn of(token: &IssuedToken) -> Self {
        Self {
            name: token.name.clone(),
            capabilities: token.capabilities.clone(),
            topics: token.topics.clone(),
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
        }
    }
}

/// A request for a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// The participant as which its bearer connects.
    pub name: String,
    /// The participant's capabilities; absent takes the configured ones, or those of a new participant.
    pub capabilities: Option<Vec<String>>,
    /// The participant's topics; absent takes the configured ones, or `main`.
    pub topics: Option<Vec<String>>,
    /// How long the token is valid, in milliseconds; absent is until it is revoked.
    pub lifetime_ms: Option<u64>,
}

/// A new token with its secret, which no later request returns.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenWithSecret {
    /// The token without its secret.
    #[serde(flatten)]
    pub shown: Token,
    /// The secret: what the bearer sends.
    pub token: String,
}
