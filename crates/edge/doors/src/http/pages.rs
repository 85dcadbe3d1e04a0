//! Pages of the API router: the bodies of their requests, and their answers, which are on an account
//! until they are written.

use std::sync::Arc;

use auth::Participant;
use control::CallerLinks;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use model::ParticipantId;
use platform::Share;
use tower::ServiceExt as _;

use super::body::Body;
use super::connection::Connection;
use super::request::{read_body, read_form};
use super::response::{self, Answered};
use super::{Endpoints, authorization, ws};
use crate::links::ClientLinks;
use crate::unread::{admitted, too_many};

/// The longest body of a request of a client that signs in, in bytes.
pub(crate) const SIGN_IN_BODY_BYTES_MAX: usize = 64 * 1024;

/// The account of an answer.
enum Account {
    /// That of a participant.
    Known(Arc<Share>),
    /// That of the address of a sender that is not known.
    Newcomer(Arc<Share>),
}

impl Endpoints {
    /// The answer of a page. A page that knows its sender better than the door, such as by a cookie,
    /// leaves the [`ParticipantId`] in the extensions of its response.
    pub(super) async fn page(
        &self,
        connection: &Connection,
        request: Request<Incoming>,
        sender: Option<&Participant>,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        parts
            .extensions
            .insert(Arc::<ClientLinks>::clone(&self.links) as Arc<dyn CallerLinks>);
        let body = match self.page_body(connection, &parts, sender, body).await {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        let answered = self
            .pages
            .clone()
            .oneshot(Request::from_parts(parts, body))
            .await;
        let mut response = match answered {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let named = response.extensions_mut().remove::<ParticipantId>();
        let known = named.as_ref().or(sender.map(|sender| &sender.id));
        let account = match known {
            Some(id) => Account::Known(self.links.registry.held_of(id)),
            None => Account::Newcomer(connection.newcomer()),
        };
        unread(response, account).await
    }

    /// The body of a request for a page, whole. The pages refuse a sender that is not known without
    /// reading its body, but those where participants sign in, which read a short one on the
    /// account of its address.
    async fn page_body(
        &self,
        connection: &Connection,
        parts: &Parts,
        sender: Option<&Participant>,
        body: Incoming,
    ) -> Answered<axum::body::Body> {
        let registry = &self.links.registry;
        if body.is_end_stream() {
            return Ok(axum::body::Body::empty());
        }
        let bytes_max = registry.limits().body_bytes_max;
        if authorization::is_sign_in(&registry.config(), parts.uri.path()) {
            let bytes_max = bytes_max.min(SIGN_IN_BODY_BYTES_MAX);
            return Ok(read_form(bytes_max, &connection.newcomer(), body)
                .await?
                .into());
        }
        let Some(sender) = sender else {
            return Ok(axum::body::Body::empty());
        };
        let body = read_body(bytes_max, &registry.held_of(&sender.id), body).await?;
        Ok(body.into())
    }
}

/// A response that is on an account until it is written; a refusal if there is no room for it. A
/// body whose length is known is there already. Of others each part is on the account as it comes.
async fn unread(response: Response<axum::body::Body>, account: Account) -> Response<Body> {
    let (parts, page) = response.into_parts();
    let (Account::Known(share) | Account::Newcomer(share)) = &account;
    let body = match page.size_hint().exact() {
        Some(0) => Body::empty(),
        Some(_) => match page
            .collect()
            .await
            .map(|whole| admitted(whole.to_bytes(), share))
        {
            Ok(Ok(whole)) => Body::full(whole),
            Ok(Err(_)) => return ws::refused(&too_many()),
            Err(error) => {
                tracing::warn!(%error, "a page broke off");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return response::plain(status, "the answer broke off; the log has the cause\n");
            }
        },
        None => Body::Page(
            page,
            match account {
                Account::Known(share) => Some(share),
                Account::Newcomer(_) => None,
            },
        ),
    };
    Response::from_parts(parts, body)
}
