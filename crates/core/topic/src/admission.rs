//! Admission of one request: the capability that admits it, and for the gateway's own tools their
//! effects.

use std::sync::Arc;

use model::{
    APPROVE, Capabilities, GATEWAY, KindRef, MethodFacts, Narrowing, PAUSE, PROPOSAL, REQUEST,
    RESUME,
};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::Cause;

/// Judges a request `METHOD[:CONTEXT]` to one server. Returns the place of the capability that
/// admits it, or `None` if it needs none. Allocates nothing.
///
/// # Errors
/// The cause for which it is not admitted.
pub(crate) fn judge(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    server: &str,
) -> Result<Option<usize>, Cause> {
    let kind = KindRef::request(method, context).map_err(|_| Cause::Malformed)?;
    // What a built-in tool does is judged again when it does it, so its name needs no capability.
    if let Some(tool) = built_in(method, context, server) {
        if !tool.is_for(capabilities) {
            return Err(Cause::NotAdmitted);
        }
        return Ok(None);
    }
    let facts = MethodFacts::of(method);
    let needed = facts.also_needs;
    if !needed.is_empty()
        && !needed
            .iter()
            .any(|other| place_of(capabilities, other, context, server).is_some())
    {
        return Err(Cause::NotAdmitted);
    }
    // With a context it names a target, and is judged like all others.
    if facts.is_free && context.is_none() {
        return Ok(None);
    }
    if let Some(at) = capabilities.position(kind, &[server]) {
        return Ok(Some(at));
    }
    // A participant that may subscribe to a resource may also unsubscribe from it.
    if let Some(wider) = facts.implied_by
        && let Some(at) = place_of(capabilities, wider, context, server)
    {
        return Ok(Some(at));
    }
    Err(Cause::NotAdmitted)
}

/// The place of the capability that admits a request `METHOD[:CONTEXT]` to one server by its kind
/// alone.
fn place_of(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    server: &str,
) -> Option<usize> {
    let kind = KindRef::request(method, context).ok()?;
    capabilities.position(kind, &[server])
}

/// Capabilities as far as an access token with this narrowing is good for them.
pub(crate) fn within(
    capabilities: &Arc<Capabilities>,
    narrowing: Option<&Narrowing>,
) -> Arc<Capabilities> {
    match narrowing {
        Some(narrowing) => Arc::new(capabilities.within(&narrowing.to)),
        None => Arc::clone(capabilities),
    }
}

/// Whether a request is admitted.
pub(crate) fn admits(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    server: &str,
) -> bool {
    judge(capabilities, method, context, server).is_ok()
}

/// Judges an envelope by its kind and addressees. Returns the place of the capability that admits
/// it, or `None` if it needs none: it calls a tool of the gateway, and of no other participant, for
/// proposals of its sender's own.
///
/// # Errors
/// [`Cause::NotAdmitted`].
pub(crate) fn judge_kind(
    capabilities: &Capabilities,
    kind: KindRef<'_>,
    to: &[&str],
) -> Result<Option<usize>, Cause> {
    if let Some(at) = capabilities.position(kind, to) {
        return Ok(Some(at));
    }
    if is_about_own_proposal(capabilities, kind, to) {
        return Ok(None);
    }
    Err(Cause::NotAdmitted)
}

/// Whether an envelope calls a tool of the gateway for proposals of its sender's own. Another
/// participant that it names would take it for a call of a tool of its own, so there must be none.
fn is_about_own_proposal(capabilities: &Capabilities, kind: KindRef<'_>, to: &[&str]) -> bool {
    let [GATEWAY] = to else {
        return false;
    };
    let calls_tool = kind
        .method()
        .is_some_and(|method| MethodFacts::of(method).calls_tool());
    if kind.head() != REQUEST || !calls_tool {
        return false;
    }
    kind.context()
        .and_then(BuiltinTool::of)
        .is_some_and(|tool| tool.serves_own() && tool.is_for(capabilities))
}

/// The way of a request as capabilities alone decide it: without rules, pauses, and what a topic does
/// not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RequestWay {
    /// It is made.
    Made,
    /// It waits for a decision.
    Held,
    /// It is refused.
    Refused,
}

impl RequestWay {
    /// The way of a request `METHOD[:CONTEXT]` to a server. Over MCP the context is a public name, in
    /// rooms it is the server's own.
    #[must_use]
    pub fn of(
        capabilities: &Capabilities,
        method: &str,
        context: Option<&str>,
        server: &str,
    ) -> Self {
        if judge(capabilities, method, context, server).is_ok() {
            Self::Made
        } else if proposes(capabilities, method, context, server) {
            Self::Held
        } else {
            Self::Refused
        }
    }
}

/// Whether capabilities alone admit an envelope by its kind and addressees.
#[must_use]
pub fn admits_envelope(capabilities: &Capabilities, kind: &str, to: &[&str]) -> bool {
    // The right to pause is the right to resume.
    let judged = if kind == RESUME { PAUSE } else { kind };
    let kind = KindRef::parse(judged);
    kind.is_ok_and(|kind| judge_kind(capabilities, kind, to).is_ok())
}

/// Whether a request in the room, or a server's question, is admitted: by its kind alone.
pub(crate) fn admits_kind(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    to: &str,
) -> bool {
    KindRef::request(method, context)
        .is_ok_and(|kind| judge_kind(capabilities, kind, &[to]).is_ok())
}

/// Whether a request that is not admitted may be proposed instead: only calls whose answer a caller
/// can wait for.
pub(crate) fn proposes(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    server: &str,
) -> bool {
    MethodFacts::of(method).is_proposable
        && KindRef::proposal(method, context).is_ok_and(|kind| capabilities.admits(kind, &[server]))
}

/// The way in which a caller may make a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// At once.
    Admitted,
    /// As a proposal: its call is held.
    Held,
}

/// A caller for which entries of lists are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looker<'a> {
    pub(crate) capabilities: &'a Capabilities,
    /// Whether calls that are not admitted may be held as proposals.
    pub(crate) promotes: bool,
}

impl Looker<'_> {
    /// The caller's access to the target of a request; `None` if the request would be refused.
    pub(crate) fn access(self, method: &str, context: &str, server: &str) -> Option<Access> {
        if admits(self.capabilities, method, Some(context), server) {
            return Some(Access::Admitted);
        }
        if self.promotes && proposes(self.capabilities, method, Some(context), server) {
            return Some(Access::Held);
        }
        None
    }

    /// The caller's access to some URI of a template: one possible URI is enough.
    pub(crate) fn access_to_some(
        self,
        method: &str,
        shape: &[Option<char>],
        server: &str,
    ) -> Option<Access> {
        let to = [server];
        if self.capabilities.admits_some(REQUEST, method, shape, &to) {
            return Some(Access::Admitted);
        }
        if self.promotes && self.capabilities.admits_some(PROPOSAL, method, shape, &to) {
            return Some(Access::Held);
        }
        None
    }
}

/// Whether some of these capabilities, whatever their scope leaves of them, is for an envelope that
/// is no request.
fn sends(capabilities: &Capabilities) -> bool {
    let mut heads = capabilities
        .iter()
        .filter_map(|one| one.as_str().split(':').next());
    heads.any(|head| head != REQUEST && head != APPROVE)
}

/// The built-in tool that a request calls: its effects decide which callers may use it.
fn built_in(method: &str, context: Option<&str>, server: &str) -> Option<BuiltinTool> {
    if server == GATEWAY && MethodFacts::of(method).calls_tool() {
        BuiltinTool::of(context?)
    } else {
        None
    }
}

/// A tool of the gateway's own participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum BuiltinTool {
    /// Lists the proposals that wait for a decision.
    ListProposals,
    /// Shows one proposal in full.
    ShowProposal,
    /// Approves another participant's proposal.
    ApproveProposal,
    /// Rejects another participant's proposal.
    RejectProposal,
    /// Shows others that the caller looks at a proposal.
    ClaimProposal,
    /// Gives more time to decide about another participant's proposal.
    ExtendProposal,
    /// Replaces the arguments of a proposal of the caller's own.
    AmendProposal,
    /// Proposes several calls as one plan.
    ProposePlan,
    /// Withdraws a proposal of the caller's own.
    WithdrawProposal,
    /// Waits for a proposal of the caller's own.
    WaitForProposal,
    /// Sends a message to the room.
    Say,
    /// Reads the messages of the room.
    ReadMessages,
    /// Lists the participants in the topic.
    ListParticipants,
    /// Lists, describes and calls what the caller may use.
    Proxy,
    /// Finds tools by words.
    SearchTools,
}

impl BuiltinTool {
    /// All of them, in the order in which they are listed.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The tool of this name.
    pub fn of(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Whether the tool serves proposals of its caller's own alone, so that every participant that
    /// may propose may call it, listed or not.
    pub fn serves_own(self) -> bool {
        matches!(
            self,
            Self::AmendProposal
                | Self::ProposePlan
                | Self::WithdrawProposal
                | Self::WaitForProposal
        )
    }

    /// Whether the tool finds and calls other tools.
    pub fn finds(self) -> bool {
        matches!(self, Self::Proxy | Self::SearchTools)
    }

    /// Whether the tool is of use to a caller with these capabilities. Each decision, message or
    /// request by the tool is judged again.
    ///
    /// - Deciding: callers that may make or approve some request, because a participant may propose
    ///   it.
    /// - Looking: callers that may decide, or propose.
    /// - Proposing plans, waiting and withdrawing: callers that may propose.
    /// - Sending: callers that may send some envelope other than requests, which are calls.
    /// - Finding and calling through the proxy: callers that may make or propose some request.
    /// - Reading, and listing participants: all callers, because every participant may listen to
    ///   the room.
    pub fn is_for(self, capabilities: &Capabilities) -> bool {
        match self {
            Self::ListProposals | Self::ShowProposal => {
                capabilities.admits_some_deciding() || capabilities.admits_head(PROPOSAL)
            }
            Self::Proxy | Self::SearchTools => {
                capabilities.admits_head(REQUEST) || capabilities.admits_head(PROPOSAL)
            }
            Self::ApproveProposal
            | Self::RejectProposal
            | Self::ClaimProposal
            | Self::ExtendProposal => capabilities.admits_some_deciding(),
            Self::AmendProposal
            | Self::ProposePlan
            | Self::WithdrawProposal
            | Self::WaitForProposal => capabilities.admits_head(PROPOSAL),
            Self::Say => sends(capabilities) && capabilities.scope().is_none_or(sends),
            Self::ReadMessages | Self::ListParticipants => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_alone_make_hold_or_refuse_a_request() {
        let texts = ["mcp/request:tools/call:read_*", "mcp/proposal:*"];
        let granted = Capabilities::parse(texts).unwrap();
        let way = |method, name| RequestWay::of(&granted, method, Some(name), "files");
        assert_eq!(way("tools/call", "read_file"), RequestWay::Made);
        assert_eq!(way("tools/call", "write_file"), RequestWay::Held);
        assert_eq!(way("resources/subscribe", "file:///a"), RequestWay::Refused);
    }

    #[test]
    fn capabilities_alone_admit_an_envelope_by_kind_and_addressees() {
        let granted = Capabilities::parse(["chat", PAUSE]).unwrap();
        let admits = |kind| admits_envelope(&granted, kind, &["ann"]);
        assert!(admits("chat") && admits(PAUSE) && admits(RESUME));
        assert!(!admits("mcp/request:tools/call:a") && !admits("no kind"));
    }

    #[test]
    fn verdicts() {
        let granted = Capabilities::parse([
            "mcp/request:tools/call:a*",
            "mcp/request:resources/subscribe:x:*",
            "mcp/request:completion/complete",
            "mcp/request:prompts/get:p*",
            "mcp/request:resources/read:r:*",
        ])
        .unwrap();
        let check =
            |method: &str, context: Option<&str>, expected: Result<Option<usize>, Cause>| {
                assert_eq!(
                    judge(&granted, method, context, "up"),
                    expected,
                    "{method} {context:?}"
                );
            };
        let no = Err(Cause::NotAdmitted);
        check("tools/call", Some("ab"), Ok(Some(0)));
        check("tools/call", Some("b"), no);
        check("tools/call", None, no);
        check("tools/call", Some(""), Err(Cause::Malformed));
        check("tools/call:ab", None, Err(Cause::Malformed));
        check("tools/list", None, Ok(None));
        check("tools/list", Some("x"), no);
        check("ping", None, Ok(None));
        check("tasks/get", None, Ok(None));
        check("logging/setLevel", None, no);
        check("resources/unsubscribe", Some("x:y"), Ok(Some(1)));
        check("resources/unsubscribe", Some("y"), no);
        check("completion/complete", Some("plan"), Ok(Some(2)));
        check("completion/complete", Some("r:{x}"), Ok(Some(2)));
        check("completion/complete", Some("hidden"), no);
    }

    #[test]
    fn built_in_tools_are_judged_by_what_they_reach() {
        let check = |text: &str, server: &str, expected: Result<Option<usize>, Cause>| {
            let granted = Capabilities::parse([text]).unwrap();
            let verdict = judge(&granted, "tools/call", Some("approve_proposal"), server);
            assert_eq!(verdict, expected, "{text} {server}");
        };
        let no = Err(Cause::NotAdmitted);
        check("mcp/request:tools/call:add", GATEWAY, Ok(None));
        check("mcp/request:tools/call:add", "up", no);
        check("mcp/proposal:*", GATEWAY, no);
    }

    #[test]
    fn envelopes_about_own_proposals_need_no_capability() {
        let check =
            |text: &str, kind: &str, to: &[&str], expected: Result<Option<usize>, Cause>| {
                let granted = Capabilities::parse([text]).unwrap();
                let kind = KindRef::parse(kind).unwrap();
                assert_eq!(
                    judge_kind(&granted, kind, to),
                    expected,
                    "{text} {kind:?} {to:?}"
                );
            };
        let no = Err(Cause::NotAdmitted);
        let proposes = "mcp/proposal:tools/call:a";
        let withdraw = "mcp/request:tools/call:withdraw_proposal";
        let own = &[GATEWAY][..];
        check(proposes, withdraw, own, Ok(None));
        check(
            proposes,
            "mcp/request:tools/call:wait_for_proposal",
            own,
            Ok(None),
        );
        check("mcp/request:tools/*", withdraw, own, Ok(Some(0)));
        check("chat", withdraw, own, no);
        check("mcp/response:*", withdraw, own, no);
        // Another participant would take it for a call of its own tool.
        check(proposes, withdraw, &["worker"], no);
        check(proposes, withdraw, &[GATEWAY, "worker"], no);
        check(proposes, withdraw, &[], no);
        check(proposes, "mcp/request:tools/call:approve_proposal", own, no);
        check(proposes, "mcp/request:tools/call:show_proposal", own, no);
        check(proposes, "mcp/request:tools/call", own, no);
        check(
            proposes,
            "mcp/request:prompts/get:withdraw_proposal",
            own,
            no,
        );
        check(
            proposes,
            "mcp/response:tools/call:withdraw_proposal",
            own,
            no,
        );
    }
}

#[cfg(test)]
mod builtin_tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for tool in BuiltinTool::ALL {
            assert_eq!(BuiltinTool::of(tool.name()), Some(*tool));
        }
        assert_eq!(BuiltinTool::of("Proxy"), None);
    }

    #[test]
    fn a_scope_narrows_what_may_be_sent() {
        let all = Capabilities::parse(["mcp/*", "chat"]).unwrap();
        let may_send = |scope: &[&str]| {
            let scope = Capabilities::parse(scope.iter().copied()).unwrap();
            BuiltinTool::Say.is_for(&all.within(&Arc::new(scope)))
        };
        assert!(may_send(&["chat"]) && may_send(&["mcp/proposal:*"]));
        assert!(!may_send(&["mcp/request:*"]) && !may_send(&[]));
    }

    #[test]
    fn callers_that_may_use_each() {
        let check = |texts: &[&str], expected: &[&str]| {
            let granted = Capabilities::parse(texts.iter().copied()).unwrap();
            let mine: Vec<_> = BuiltinTool::ALL
                .iter()
                .filter(|tool| tool.is_for(&granted))
                .collect();
            assert_eq!(
                mine.iter().map(|tool| tool.name()).collect::<Vec<_>>(),
                expected,
                "{texts:?}"
            );
        };
        let look = ["list_proposals", "show_proposal"];
        let decide = [
            "approve_proposal",
            "reject_proposal",
            "claim_proposal",
            "extend_proposal",
        ];
        let own = [
            "amend_proposal",
            "propose_plan",
            "withdraw_proposal",
            "wait_for_proposal",
        ];
        let read = ["read_messages", "list_participants"];
        check(&[], &read);
        check(&["chat"], &[&["say"][..], &read].concat());
        let find = ["proxy", "search_tools"];
        check(
            &["mcp/request:tools/call:a*"],
            &[&look[..], &decide, &read, &find].concat(),
        );
        check(
            &["mcp/approve:tools/call:a*"],
            &[&look[..], &decide, &read].concat(),
        );
        check(
            &["mcp/proposal:tools/call:a*"],
            &[&look[..], &own, &["say"], &read, &find].concat(),
        );
        check(
            &["mcp/re*:tools/call"],
            &[&look[..], &decide, &["say"], &read, &find].concat(),
        );
        check(
            &["mcp/*"],
            &BuiltinTool::ALL
                .iter()
                .map(|tool| tool.name())
                .collect::<Vec<_>>(),
        );
    }
}
