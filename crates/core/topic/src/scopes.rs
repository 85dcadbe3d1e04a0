//! Refusals that name the scope with which the caller could come back.

use model::{KindRef, LinkId, Narrowing, Refusal, RefusalCode};

use crate::{
    Handles, Topic,
    admission::{admits, judge_kind, proposes},
    effect::Cause,
    event::PublicTarget,
    refusals,
};

impl<H: Handles> Topic<H> {
    /// The refusal of a request for this cause. It names the scope that the caller's access token
    /// lacks, if the client can come back with that.
    pub(crate) fn refusal_of(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        method: &str,
        target: Option<PublicTarget<'_>>,
        cause: Cause,
    ) -> Box<Refusal> {
        if cause == Cause::NotAdmitted
            && let Some(lacking) = self.lacking(link, narrowing, method, target)
        {
            return lacking;
        }
        refusals::of_request(cause, target)
    }

    /// The refusal of a request that its participant may make or propose, if its caller's access
    /// token is not good for it and its client can come back with another one.
    fn lacking(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        method: &str,
        target: Option<PublicTarget<'_>>,
    ) -> Option<Box<Refusal>> {
        let (link, member) = self.members.linked(link)?;
        let scopes = narrowing?.step_up.as_deref()?;
        let route = self.catalog.resolve(link.overrides(), target)?;
        let context = route.ruled_context(target.and_then(PublicTarget::context));
        let server = route.upstream.as_str();
        let granted = link.granted(member, narrowing);
        if admits(&granted, method, context, server) || proposes(&granted, method, context, server)
        {
            return None;
        }
        let whole = &member.capabilities;
        let kind = if admits(whole, method, context, server) {
            KindRef::request(method, context)
        } else if proposes(whole, method, context, server) {
            KindRef::proposal(method, context)
        } else {
            // No token is good for what its participant may not do.
            return None;
        };
        scopes.good_for(kind.ok()?, &[server]).map(needs)
    }

    /// The refusal of an envelope that a wider access token would admit, if the client can come back
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
        // No token is good for what its participant may not do.
        judge_kind(&member.capabilities, kind, to).ok()?;
        scopes.good_for(kind, to).map(needs)
    }
}

/// The refusal that names a missing scope.
fn needs(scope: &str) -> Box<Refusal> {
    let refusal = Refusal::new(
        RefusalCode::InsufficientScope,
        format!("this call needs {scope}"),
    );
    Box::new(refusal.hint("sign in again with this scope").scope(scope))
}
