//! Refusals that name the scope with which the caller could come back.

use model::{Capabilities, KindRef, LinkId, Narrowing, PROPOSAL, REQUEST, Refusal, RefusalCode};

use crate::{
    Handles, Topic,
    admission::{admits, judge_kind, proposes},
    event::PublicTarget,
};

impl<H: Handles> Topic<H> {
    /// The refusal of a request that its participant may make or propose, if its caller's access
    /// token is not good for it and its client can come back with another one.
    pub(crate) fn lacking(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        method: &str,
        target: Option<PublicTarget<'_>>,
    ) -> Option<Box<Refusal>> {
        let (own, member) = self.members.linked(link)?;
        let scopes = narrowing?.step_up.as_deref()?;
        let route = self.catalog.resolve(own.overrides(), target)?;
        let context = route.ruled_context(target.and_then(PublicTarget::context));
        let at = route.upstream.as_str();
        let may = |capabilities: &Capabilities| {
            if admits(capabilities, method, context, at) {
                Some(REQUEST)
            } else {
                proposes(capabilities, method, context, at).then_some(PROPOSAL)
            }
        };
        if may(&own.granted(member, narrowing)).is_some() {
            return None;
        }
        let kind = match may(&member.capabilities)? {
            PROPOSAL => KindRef::proposal(method, context),
            _ => KindRef::request(method, context),
        };
        scopes.good_for(kind.ok()?, &[at]).map(needs)
    }

    /// Refusal of an envelope that a wider access token would admit, if the client can come back
    /// with one.
    pub(crate) fn lacking_kind(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        kind: KindRef<'_>,
        to: &[&str],
    ) -> Option<Box<Refusal>> {
        let scopes = narrowing?.step_up.as_deref()?;
        let member = self.members.of_link(link)?;
        judge_kind(&member.capabilities, kind, to).ok()?;
        scopes.good_for(kind, to).map(needs)
    }
}

fn needs(scope: &str) -> Box<Refusal> {
    let refusal = Refusal::new(
        RefusalCode::InsufficientScope,
        format!("this call needs {scope}"),
    );
    Box::new(refusal.hint("sign in again with this scope").scope(scope))
}
