//! What every page of the API needs: who asks, what they hold, and how a refusal is spelled as a page.

use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{KindRef, Refusal, RefusalCode, TopicName};

use crate::schema::Problem;

use crate::door::bearer;
use gateway::Registry;
use gateway::admin::office::{Granting, Tokens};
use gateway::Dispatch;

/// What the pages are made from.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) gate: Arc<Registry>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) granting: Arc<Granting>,
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
    /// Whoever asks.
    pub(super) fn who(&self, headers: &HeaderMap) -> Page<Arc<Participant>> {
        Ok(self.gate.asker(bearer(headers), "for the API")?)
    }

    /// Whoever asks, if it has this capability of the gateway's own.
    pub(super) fn may(&self, headers: &HeaderMap, capability: &str) -> Page<Arc<Participant>> {
        self.may_in(headers, capability, None)
    }

    /// The same in one topic.
    pub(super) fn may_in(
        &self,
        headers: &HeaderMap,
        capability: &str,
        topic: Option<&TopicName>,
    ) -> Page<Arc<Participant>> {
        let who = self.who(headers)?;
        if self.holds(&who, capability, topic) {
            return Ok(who);
        }
        let refusal = Refusal::new(
            RefusalCode::CapabilityViolation,
            format!("this needs the capability `{capability}`"),
        );
        Err(refusal.hint("ask the operator for it").into())
    }

    /// Whether somebody holds a capability of the gateway's own.
    pub(super) fn holds(&self, who: &Participant, capability: &str, topic: Option<&TopicName>) -> bool {
        let held = self.gate.in_force(who, topic);
        KindRef::parse(capability).is_ok_and(|kind| held.admits(kind, &[]))
    }

    /// A caller for one page: it sees what its participant's MCP clients see.
    pub(super) fn visit(&self, headers: &HeaderMap, topic: &str) -> Page<(Arc<Dispatch>, Arc<Caller>)> {
        let (dispatch, who) = self.gate.member(bearer(headers), topic)?;
        let caller = self.gate.modern(&dispatch, &who)?;
        Ok((dispatch, caller))
    }
}

/// The refusal when the task that made a change is gone.
pub(super) fn lost() -> Refusal {
    Refusal::new(RefusalCode::Internal, "the change was interrupted")
}
