//! Texts of a topic's refusals. A hidden target and an absent one get the same text.

use model::{OperationId, Refusal, RefusalCode};

use crate::{
    effect::Cause,
    event::{Interest, PublicTarget, Tightening},
};

/// A cause, with the refusal if the cause and the event do not give it.
pub(crate) struct Refused {
    pub(crate) cause: Cause,
    pub(crate) refusal: Option<Box<Refusal>>,
}

impl Refused {
    /// The refusal: its own, or the one that the cause gives with `of`.
    pub(crate) fn or_else(self, of: impl FnOnce(Cause) -> Box<Refusal>) -> Box<Refusal> {
        self.refusal.unwrap_or_else(|| of(self.cause))
    }
}

impl From<Cause> for Refused {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            refusal: None,
        }
    }
}

/// The refusal of a request.
pub fn of_request(cause: Cause, target: Option<PublicTarget<'_>>) -> Box<Refusal> {
    Box::new(match cause {
        Cause::Unknown | Cause::NotAdmitted => unknown(target),
        Cause::Malformed => Refusal::new(
            RefusalCode::Malformed,
            "the method or the name cannot be read",
        ),
        other => words(other),
    })
}

/// The refusal of what a rule takes of a request.
pub(crate) fn of_tightening(tightening: &Tightening) -> Box<Refusal> {
    let plain = plain(tightening.cause());
    match tightening {
        Tightening::Ask => plain,
        Tightening::Reject { by } => {
            Box::new(Refusal::new(plain.code, format!("rejected by {by}")))
        }
    }
}

/// The refusal of a caller that comes back.
pub(crate) fn of_return(cause: Cause) -> Box<Refusal> {
    match cause {
        Cause::Unknown | Cause::NotAdmitted => {
            let why = "nothing waits for this `requestState`: it was used before, is too old, or is not yours";
            Box::new(
                Refusal::new(RefusalCode::Malformed, why).hint("make the request again without it"),
            )
        }
        other => plain(other),
    }
}

/// The refusal of an event without a target.
pub(crate) fn plain(cause: Cause) -> Box<Refusal> {
    Box::new(words(cause))
}

fn words(cause: Cause) -> Refusal {
    use RefusalCode as Code;
    let (code, message, hint) = match cause {
        Cause::Unknown => (
            Code::UnknownTarget,
            "there is no participant or server of this name here",
            None,
        ),
        Cause::NotAdmitted => (Code::CapabilityViolation, "this is not granted", None),
        Cause::RuleAsks => (
            Code::CapabilityViolation,
            "a rule leaves this request to the decision of another participant",
            Some("propose it with `mcp/proposal`, and wait for the decision"),
        ),
        Cause::RuleRejects => (Code::CapabilityViolation, "a rule rejects this", None),
        Cause::Paused => (
            Code::CapabilityViolation,
            "you are paused: what you could do yourself waits for the decision of another participant",
            Some(
                "propose it with `mcp/proposal`, and wait for the decision, or until you are resumed",
            ),
        ),
        Cause::Withdrawn => (
            Code::Forbidden,
            "the permission for this was withdrawn",
            None,
        ),
        Cause::Malformed => (Code::Malformed, "the method cannot be read", None),
        Cause::RateLimited => (
            Code::RateLimited,
            "too many requests in too short a time",
            Some("wait before trying again"),
        ),
        Cause::Limit => (
            Code::Overloaded,
            "too much is open at once",
            Some("wait until some of it has been answered"),
        ),
        Cause::UpstreamDown => (
            Code::UpstreamDown,
            "the server behind this is not running",
            None,
        ),
        Cause::Failed => (Code::UpstreamFailed, "the server could not take this", None),
        Cause::Expired => (Code::UpstreamTimeout, "there was no answer in time", None),
        Cause::Moot => (Code::Cancelled, "the call or session of this is over", None),
        Cause::Taken => (Code::Forbidden, "this name is taken", None),
        Cause::Replaced => (
            Code::Conflict,
            "another connection of the same participant took over",
            None,
        ),
        Cause::Reserved => (
            Code::CapabilityViolation,
            "kinds under `system`, `presence` and `portmoot` are the gateway's own, and `mcp/approve` is a right alone",
            None,
        ),
        Cause::Own => (
            Code::Conflict,
            "no participant decides about a proposal of its own",
            Some("wait for the decision of another participant, or withdraw it"),
        ),
        Cause::Counted => (
            Code::Conflict,
            "you have approved this proposal already",
            Some("wait until another participant approves it, or reject it"),
        ),
        Cause::Extended => (
            Code::Conflict,
            "this proposal was given more time as often as it may be",
            Some("decide about it, or let its proposer propose it again"),
        ),
        Cause::Amended => (
            Code::Conflict,
            "this proposal was amended as often as it may be",
            Some("withdraw it, and propose the request again"),
        ),
        Cause::LaterStep => (
            Code::Conflict,
            "this is a later step of a plan, which is decided about as a whole",
            Some("decide about the first step of the plan"),
        ),
        Cause::WholePlan => (
            Code::Conflict,
            "a plan is approved as a whole, and runs as it was proposed",
            Some(
                "approve it by `portmoot proposals`, the chat, the API or the tool `approve_proposal`; to change it, propose another one",
            ),
        ),
        Cause::Decided => (Code::Conflict, "this proposal is decided already", None),
        Cause::Differs => (
            Code::Conflict,
            "the decision is about another request than the proposed one",
            Some("look at the proposal again and decide about it as it is now"),
        ),
        Cause::Mismatch => (
            Code::Conflict,
            "this is not what was proposed",
            Some(
                "name method and target as they were proposed, and in `to` the participants that the proposal names",
            ),
        ),
        Cause::Redefined => (
            Code::Conflict,
            "its server describes the tool otherwise now than was shown",
            Some("reject it, and have it proposed again"),
        ),
        Cause::ToolChanged => (
            Code::ToolChanged,
            "its server has changed this since it was approved, so it is not called",
            Some("the operator looks at the change and approves it: portmoot pins show SERVER"),
        ),
        Cause::Repeated => (
            Code::Conflict,
            "the id of this envelope names another proposal, or one that is decided",
            Some("propose it under an id that was never used"),
        ),
        Cause::Away => (
            Code::UpstreamDown,
            "none of the participants that would carry this out is here at the moment, so it was not approved",
            Some("it is still pending: approve it once they are back"),
        ),
        Cause::Elsewhere => (
            Code::LogUnavailable,
            "another node of the cluster decides about this now",
            Some("make the request again"),
        ),
        Cause::LogUnavailable => (
            Code::LogUnavailable,
            "this cannot be written down now, so it was not done",
            Some("try again later"),
        ),
    };
    let refusal = Refusal::new(code, message);
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// The refusal of an envelope, in the words of MCPx v0.1, section 3.5.2.
pub(crate) fn of_envelope(cause: Cause, kind: &str) -> Box<Refusal> {
    Box::new(match cause {
        Cause::NotAdmitted => Refusal::new(
            RefusalCode::CapabilityViolation,
            format!("You lack capability for '{kind}'"),
        ),
        Cause::Malformed => Refusal::new(RefusalCode::Malformed, "the kind cannot be read"),
        other => words(other),
    })
}

/// The refusal of a proposal that is sent once more after it was rejected when it arrived.
pub(crate) fn rejected_before() -> Box<Refusal> {
    let why = "a proposal of this id was rejected when it arrived";
    Box::new(
        Refusal::new(RefusalCode::Conflict, why).hint("propose it under an id that was never used"),
    )
}

/// The refusal of a proposal.
pub(crate) fn of_proposal(cause: Cause) -> Box<Refusal> {
    Box::new(match cause {
        Cause::Limit => Refusal::new(
            RefusalCode::Overloaded,
            "too many proposals are open, or too long ones",
        )
        .hint("wait until some of them are decided, or withdraw some"),
        other => words(other),
    })
}

/// The refusal of a decision. A participant that may not decide does not learn whether the proposal
/// exists.
pub(crate) fn of_decision(cause: Cause) -> Box<Refusal> {
    Box::new(match cause {
        Cause::Unknown | Cause::NotAdmitted => Refusal::new(
            RefusalCode::UnknownTarget,
            "there is no open proposal of this id that you may decide",
        ),
        Cause::Expired => Refusal::new(RefusalCode::Conflict, "this proposal has expired"),
        Cause::Paused => Refusal::new(
            RefusalCode::CapabilityViolation,
            "a paused participant decides nothing until it is resumed",
        ),
        Cause::Moot => Refusal::new(
            RefusalCode::Conflict,
            "this proposal was withdrawn meanwhile",
        ),
        other => words(other),
    })
}

/// The refusal of a decision about a later step of this plan.
pub(crate) fn of_later_step(plan: OperationId) -> Box<Refusal> {
    let refusal = words(Cause::LaterStep);
    Box::new(refusal.hint(format!("decide about the plan {plan}, its first step")))
}

/// The refusal of a request that would take more notifications than its link may have.
pub(crate) fn of_interest(interest: &Interest) -> Box<Refusal> {
    Box::new(match interest {
        Interest::Listen(_) => {
            Refusal::new(RefusalCode::Overloaded, "too many listen requests are open")
        }
        Interest::None | Interest::Level(_) | Interest::Subscribe | Interest::Unsubscribe => {
            Refusal::new(RefusalCode::Overloaded, "too many subscriptions")
                .hint("unsubscribe from resources that are no longer needed")
        }
    })
}

/// The refusal of a call about which there were as many rounds of questions as there may be, or of
/// a further question about it.
pub(crate) fn of_rounds(rounds_max: u32) -> Box<Refusal> {
    let why = format!(
        "there were {rounds_max} rounds of questions about this call, the most that a call may have"
    );
    let refusal = Refusal::new(RefusalCode::Overloaded, why);
    Box::new(
        refusal.hint("make the call again, and answer all questions of a round before coming back"),
    )
}

/// The refusal of what came too soon.
pub(crate) fn too_soon(retry_after_ms: u64) -> Refused {
    let refusal = words(Cause::RateLimited).retry_after_ms(retry_after_ms);
    Refused {
        cause: Cause::RateLimited,
        refusal: Some(Box::new(refusal)),
    }
}

/// The refusal of a request about a task that does not exist, or is not its caller's.
pub(crate) fn of_task() -> Box<Refusal> {
    Box::new(task())
}

fn task() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "there is no such task or proposal")
}

fn unknown(target: Option<PublicTarget<'_>>) -> Refusal {
    let message = match target {
        None => return Refusal::new(RefusalCode::Unsupported, "this method is not offered"),
        Some(PublicTarget::Tool(_)) => "there is no tool of this name",
        Some(PublicTarget::Prompt(_)) => "there is no prompt of this name",
        Some(PublicTarget::Uri(_)) => "there is no resource of this URI",
        Some(PublicTarget::Upstream(_)) => "there is no server of this name",
        Some(PublicTarget::Task(_)) => return task(),
        Some(PublicTarget::Kept) => "this result is not kept any more",
    };
    Refusal::new(RefusalCode::UnknownTarget, message)
        .hint("list what there is and use a name from the list")
}
