//! Errors of the API: a refusal with its HTTP status and JSON body.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{Refusal, RefusalCode};
use serde::Serialize;
use utoipa::ToSchema;

/// The result of a request.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// A refusal as a response.
#[derive(Debug)]
pub(crate) struct ApiError(Refusal);

impl ApiError {
    fn status(&self) -> StatusCode {
        match self.0.code {
            RefusalCode::Unauthenticated
            | RefusalCode::TokenExpired
            | RefusalCode::TokenForeign
            | RefusalCode::TokenUnknownKey
            | RefusalCode::IssuerUnknown => StatusCode::UNAUTHORIZED,
            RefusalCode::Forbidden
            | RefusalCode::CapabilityViolation
            | RefusalCode::AuthViolation
            | RefusalCode::NoPlace
            | RefusalCode::InsufficientScope => StatusCode::FORBIDDEN,
            RefusalCode::UnknownTarget | RefusalCode::UnknownSession => StatusCode::NOT_FOUND,
            RefusalCode::Malformed
            | RefusalCode::Unsupported
            | RefusalCode::UnsupportedProtocol
            | RefusalCode::SchemaViolation => StatusCode::BAD_REQUEST,
            RefusalCode::Conflict
            | RefusalCode::ToolChanged
            | RefusalCode::UpstreamLoginNeeded
            | RefusalCode::UpstreamLoginLost
            | RefusalCode::UpstreamClientNeeded => StatusCode::CONFLICT,
            RefusalCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            RefusalCode::UpstreamBusy
            | RefusalCode::UpstreamDown
            | RefusalCode::Overloaded
            | RefusalCode::IssuerUnreachable
            | RefusalCode::LogUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            RefusalCode::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            RefusalCode::UpstreamFailed
            | RefusalCode::UpstreamMetadataRefused
            | RefusalCode::OutcomeUnknown
            | RefusalCode::SchemaUnresolved => StatusCode::BAD_GATEWAY,
            RefusalCode::Cancelled | RefusalCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self(Refusal::new(RefusalCode::Malformed, rejection.body_text()))
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self(Refusal::new(RefusalCode::Malformed, rejection.body_text()))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let problem = Problem {
            code: self.0.code.as_str().to_owned(),
            message: self.0.message.to_string(),
            hint: self.0.hint.as_ref().map(ToString::to_string),
        };
        let mut response = (status, Json(problem)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        // For the door, which may know more about how to authenticate.
        response.extensions_mut().insert(self.0);
        response
    }
}

/// An error.
#[derive(Serialize, ToSchema)]
pub(crate) struct Problem {
    /// A stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
