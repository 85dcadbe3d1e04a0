//! Shared state of all routes, and the checks that they begin with.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use auth::{ClientCertificate, Participant, Peer, Presented};
use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, HeaderValue, header, request::Parts};
use control::{Registry, admin::Admin};
use gateway::Dispatch;
use identity::{AccessJournal, Authority, identities::bearer_token};
use model::{KindRef, Refusal, RefusalCode, TopicName};
use platform::{Shares, Taken, default_share, unix_ms};
use serde::de::DeserializeOwned;
use signin::{Connect, SignIn};
use tokio::task::spawn_blocking;

use crate::audit_places::AuditPlaces;
use crate::config_file::ConfigFile;
use crate::error::{ApiError, ApiResult};

/// The most files of rules that are tried on the past, and the most participants for which offers
/// are made, at a time; of one participant a quarter.
pub const TRIALS_MAX: usize = 4;

/// The state of the router.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) registry: Arc<Registry>,
    pub(crate) admin: Arc<Admin>,
    /// The gateway's own authorization server, if it is enabled.
    pub(crate) sign_in: Option<Arc<SignIn>>,
    /// The connect pages.
    pub(crate) connect: Arc<Connect>,
    /// The journal, for the operator key.
    pub(crate) access: Arc<AccessJournal>,
    /// The configuration file, if the API can change it.
    pub(crate) file: Option<Arc<ConfigFile>>,
    /// Files of rules that are tried on the past now.
    pub(crate) trials: Arc<Shares>,
    /// Places for looks at the audit log.
    pub(crate) audit: AuditPlaces,
}

impl Api {
    /// The API of a gateway.
    pub(crate) fn new(
        registry: &Arc<Registry>,
        access: &Arc<AccessJournal>,
        sign_in: Option<Arc<SignIn>>,
        connect: &Arc<Connect>,
        file: Option<Arc<ConfigFile>>,
    ) -> Self {
        let registry = Arc::clone(registry);
        let access = Arc::clone(access);
        let connect = Arc::clone(connect);
        let admin = Arc::new(Admin::new(Arc::clone(&access), Arc::clone(&registry)));
        admin.watch_expiries();
        Self {
            registry,
            admin,
            sign_in,
            connect,
            access,
            file,
            trials: trials(),
            audit: AuditPlaces::default(),
        }
    }

    /// A topic that a caller may enter, and the caller with its capabilities there.
    pub(crate) fn there(
        &self,
        topic: &str,
        caller: &Participant,
    ) -> Result<(Arc<Dispatch>, Arc<Participant>), Refusal> {
        let dispatch = self.registry.enter(topic, caller)?;
        let caller = self.registry.there(caller, dispatch.name());
        Ok((dispatch, caller))
    }

    /// A place to try rules on the past, or to learn from it.
    pub(crate) fn place_to_try(&self, caller: &Participant) -> Result<Taken, Refusal> {
        let account = self.trials.of(caller.id.account());
        account.take(1).map_err(|_| {
            let why = "as many rules as may be are tried already";
            Refusal::new(RefusalCode::Overloaded, why).hint("wait for the results of those before")
        })
    }

    /// Refuses a caller that does not hold a capability for one of the gateway's own acts, in a
    /// topic or outside of topics.
    pub(crate) fn authorize(
        &self,
        caller: &Participant,
        capability: &str,
        topic: Option<&TopicName>,
    ) -> Result<(), Refusal> {
        self.authorize_about(caller, capability, topic, &[])
    }

    /// As [`Api::authorize`], by which a caller also gives something to others: one that is paused is
    /// refused.
    pub(crate) fn authorize_giving(
        &self,
        caller: &Participant,
        capability: &str,
        topic: Option<&TopicName>,
    ) -> Result<(), Refusal> {
        self.authorize(caller, capability, topic)?;
        self.registry.refuse_paused(&caller.id, topic)
    }

    /// As [`Api::authorize`], for an act on these participants: a capability may be for some alone.
    pub(crate) fn authorize_about(
        &self,
        caller: &Participant,
        capability: &str,
        topic: Option<&TopicName>,
        about: &[&str],
    ) -> Result<(), Refusal> {
        let held = self.registry.in_force(caller, topic);
        if KindRef::parse(capability).is_ok_and(|kind| held.admits(kind, about)) {
            return Ok(());
        }
        let message = format!("this needs the capability `{capability}`");
        Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint("ask the operator for it"))
    }

    /// Refuses a caller for an act on what its participant has as a whole, such as its account at a
    /// server, if the token that it came with is not good for all that the participant may do.
    pub(crate) fn acts_in_full(&self, caller: &Participant) -> Result<(), Refusal> {
        let Some(whole) = self.registry.known(&caller.id) else {
            return Ok(());
        };
        let grants = self.registry.grants();
        Authority::Participant(caller, &grants).may_take(
            &self.registry.config().identity,
            &whole,
            unix_ms(),
        )
    }

    /// Whether a participant holds a capability for one of the gateway's own acts.
    pub(crate) fn holds(
        &self,
        who: &Participant,
        capability: &str,
        topic: Option<&TopicName>,
    ) -> bool {
        let held = self.registry.in_force(who, topic);
        KindRef::parse(capability).is_ok_and(|kind| held.admits(kind, &[]))
    }
}

/// The places of files of rules that are tried on the past.
fn trials() -> Arc<Shares> {
    Shares::new(TRIALS_MAX, default_share(TRIALS_MAX))
}

/// The participant that sends the request.
pub(crate) struct Caller(pub(crate) Arc<Participant>);

impl FromRequestParts<Api> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        Ok(Self(api.registry.asker(presented(parts), "for the API")?))
    }
}

/// The address that a request came from, for the record of what it changes.
#[derive(Clone, Copy)]
pub(crate) struct Source(pub(crate) Option<IpAddr>);

impl FromRequestParts<Api> for Source {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Infallible> {
        Ok(Self(address(parts)))
    }
}

/// Credentials of a request's client: its token, and the certificate of its connection, which the
/// door adds.
pub(crate) fn presented(parts: &Parts) -> Presented<'_> {
    let certificate = parts
        .extensions
        .get::<Arc<ClientCertificate>>()
        .map(|shown| &**shown);
    Presented {
        bearer: bearer(&parts.headers),
        certificate,
        address: address(parts),
    }
}

/// The address that a request came from, which the door adds.
pub(crate) fn address(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<Peer>().map(|peer| peer.0)
}

/// The bearer token of a request, if it has one (RFC 6750, section 2.1). Two `Authorization`
/// headers, or one that is no text, count as an unknown token.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next()?;
    match (std::str::from_utf8(first.as_bytes()), values.next()) {
        (Ok(text), None) => bearer_token(text),
        (Ok(_), Some(_)) | (Err(_), _) => Some(""),
    }
}

/// The body of a request, as JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Api> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(mut request: Request, api: &Api) -> ApiResult<Self> {
        let headers = request.headers_mut();
        // The request that MCPx v0.1 prints (11.3) has no type. No page of a browser sends one with
        // a token unasked.
        if headers.contains_key(header::AUTHORIZATION) {
            headers
                .entry(header::CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/json"));
        }
        let Json(body) = Json::from_request(request, api).await?;
        Ok(Self(body))
    }
}

/// Makes a change that blocks on the disk, off the runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    change: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> ApiResult<T> {
    let interrupted = |_| Refusal::new(RefusalCode::Internal, "the change was interrupted");
    Ok(spawn_blocking(change).await.map_err(interrupted)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_has_one_place_to_try_rules_and_takes_none_from_others() {
        let trials = trials();
        let take = |who: &str| trials.of(who).take(1);
        let first = take("ann").unwrap();
        assert!(take("ann").is_err());
        let others = ["bo", "cid", "dee"].map(|who| take(who).unwrap());
        assert_eq!(trials.taken(), TRIALS_MAX);
        assert!(take("eve").is_err());
        drop(first);
        assert!(take("eve").is_ok());
        drop(others);
        assert_eq!(trials.taken(), 0);
    }

    #[test]
    fn the_token_follows_the_scheme() {
        let cases: [(&[&[u8]], Option<&str>); 7] = [
            (&[], None),
            (&[b"Bearer abc"], Some("abc")),
            (&[b"bEARER  abc "], Some("abc")),
            (&[b"Basic abc"], None),
            (&[b"abc"], None),
            (&[b"Bearer abc", b"Bearer abc"], Some("")),
            (&[b"Bearer \xff"], Some("")),
        ];
        for (values, token) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(
                    header::AUTHORIZATION,
                    HeaderValue::from_bytes(value).unwrap(),
                );
            }
            assert_eq!(bearer(&headers), token, "{values:?}");
        }
    }
}
