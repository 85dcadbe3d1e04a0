//! Shared state of all routes, and the checks that they begin with.

use std::sync::Arc;

use access::AccessJournal;
use auth::Participant;
use axum::http::HeaderMap;
use gateway::admin::grant_service::GrantService;
use gateway::admin::token_service::TokenService;
use gateway::{Dispatch, Registry};
use model::{KindRef, Refusal, RefusalCode, TopicName};

use crate::bearer::bearer;
use crate::error::ApiResult;

/// The state of the router.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) registry: Arc<Registry>,
    pub(crate) tokens: Arc<TokenService>,
    pub(crate) grants: Arc<GrantService>,
}

impl Api {
    /// The API of a gateway.
    pub(crate) fn new(registry: &Arc<Registry>, access: &Arc<AccessJournal>) -> Self {
        let tokens = Arc::new(TokenService::new(Arc::clone(access), Arc::clone(registry)));
        let grants = Arc::new(GrantService::new(Arc::clone(access), Arc::clone(registry)));
        Self { registry: Arc::clone(registry), tokens, grants }
    }

    /// The participant that sends the request.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> ApiResult<Arc<Participant>> {
        Ok(self.registry.asker(bearer(headers), "for the API")?)
    }

    /// The caller, if it holds a capability for one of the gateway's own acts, in a topic or outside of topics.
    pub(crate) fn authorize(
        &self,
        headers: &HeaderMap,
        capability: &str,
        topic: Option<&TopicName>,
    ) -> ApiResult<Arc<Participant>> {
        let caller = self.caller(headers)?;
        if self.holds(&caller, capability, topic) {
            return Ok(caller);
        }
        let message = format!("this needs the capability `{capability}`");
        Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint("ask the operator for it").into())
    }

    /// Whether a participant holds a capability for one of the gateway's own acts.
    pub(crate) fn holds(&self, who: &Participant, capability: &str, topic: Option<&TopicName>) -> bool {
        let held = self.registry.in_force(who, topic);
        KindRef::parse(capability).is_ok_and(|kind| held.admits(kind, &[]))
    }

    /// The topics that a participant may enter, by name, and the participant with its capabilities in each.
    pub(crate) fn topics_of(&self, who: &Participant) -> Vec<(Arc<Dispatch>, Arc<Participant>)> {
        let topics = self.sorted_topics(|topic| self.registry.may_enter(who, topic));
        let there = |dispatch: Arc<Dispatch>| {
            let participant = self.registry.there(who, dispatch.name());
            (dispatch, participant)
        };
        topics.into_iter().map(there).collect()
    }

    /// Some of the topics, by name.
    pub(crate) fn sorted_topics(&self, wanted: impl Fn(&TopicName) -> bool) -> Vec<Arc<Dispatch>> {
        let mut topics = self.registry.topics();
        topics.retain(|dispatch| wanted(dispatch.name()));
        topics.sort_by(|one, other| one.name().cmp(other.name()));
        topics
    }
}
