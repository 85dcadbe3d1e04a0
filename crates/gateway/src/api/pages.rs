//! What every page of the API needs: who asks, and how a refusal is a page. Must not know any page.

use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{KindRef, Refusal, RefusalCode};

use super::schema::Problem;
use crate::caller::Caller;
use crate::door::bearer;
use crate::gate::Gate;
use crate::office::Tokens;
use crate::pump::Pump;

/// What the pages are made from.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) gate: Arc<Gate>,
    pub(super) tokens: Arc<Tokens>,
}

/// A page, or why there is none.
pub(super) type Page<T> = Result<T, No>;

/// A refusal as a page.
pub(super) struct No(pub(super) StatusCode, pub(super) Refusal);

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.code {
            RefusalCode::Unauthenticated => StatusCode::UNAUTHORIZED,
            RefusalCode::Forbidden | RefusalCode::CapabilityViolation | RefusalCode::AuthViolation => {
                StatusCode::FORBIDDEN
            }
            RefusalCode::UnknownTarget | RefusalCode::UnknownSession => StatusCode::NOT_FOUND,
            RefusalCode::Malformed | RefusalCode::Unsupported | RefusalCode::UnsupportedProtocol => {
                StatusCode::BAD_REQUEST
            }
            RefusalCode::Conflict => StatusCode::CONFLICT,
            RefusalCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            RefusalCode::UpstreamBusy
            | RefusalCode::UpstreamDown
            | RefusalCode::Overloaded
            | RefusalCode::LogUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            RefusalCode::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            RefusalCode::UpstreamFailed | RefusalCode::OutcomeUnknown => StatusCode::BAD_GATEWAY,
            RefusalCode::Cancelled | RefusalCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, refusal)
    }
}

impl IntoResponse for No {
    fn into_response(self) -> Response {
        let problem = Problem {
            code: self.1.code.as_str().to_owned(),
            message: self.1.message.to_string(),
            hint: self.1.hint.map(|hint| hint.to_string()),
        };
        let mut response = (self.0, Json(problem)).into_response();
        if self.0 == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl Pages {
    pub(super) fn who(&self, headers: &HeaderMap) -> Page<Arc<Participant>> {
        Ok(self.gate.identify(bearer(headers))?)
    }

    /// Whoever asks, if it has this capability of the gateway's own.
    pub(super) fn may(&self, headers: &HeaderMap, capability: &str) -> Page<Arc<Participant>> {
        let who = self.who(headers)?;
        let admitted = KindRef::parse(capability).is_ok_and(|kind| who.capabilities.admits(kind, &[]));
        if admitted {
            return Ok(who);
        }
        let refusal = Refusal::new(
            RefusalCode::CapabilityViolation,
            format!("this needs the capability `{capability}`"),
        );
        Err(refusal.hint("ask the operator for it").into())
    }

    /// A caller for one page: it sees what its participant's MCP clients see.
    pub(super) fn visit(&self, headers: &HeaderMap, topic: &str) -> Page<(Arc<Pump>, Arc<Caller>)> {
        let who = self.who(headers)?;
        let pump = self.gate.enter(topic, &who)?;
        let caller = self.gate.modern(&pump, &who)?;
        Ok((pump, caller))
    }
}
