//! Texts of a topic's refusals. A hidden target and an absent one get the same text.

use model::{Refusal, RefusalCode};

use crate::{
    effect::Cause,
    event::{Interest, Target},
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
        Self { cause, refusal: None }
    }
}

/// The refusal of a request.
pub(crate) fn of_request(cause: Cause, target: Option<Target<'_>>) -> Box<Refusal> {
    Box::new(match cause {
        Cause::Unknown | Cause::NotAdmitted => unknown(target),
        Cause::Malformed => Refusal::new(RefusalCode::Malformed, "the method or the name cannot be read"),
        other => words(other),
    })
}

/// The refusal of an event without a target.
pub(crate) fn plain(cause: Cause) -> Box<Refusal> {
    Box::new(words(cause))
}

fn words(cause: Cause) -> Refusal {
    match cause {
        Cause::Unknown => Refusal::new(RefusalCode::UnknownTarget, "there is no participant or server of this name here"),
        Cause::NotAdmitted => Refusal::new(RefusalCode::CapabilityViolation, "this is not granted"),
        Cause::Withdrawn => Refusal::new(RefusalCode::Forbidden, "the permission for this was withdrawn"),
        Cause::Malformed => Refusal::new(RefusalCode::Malformed, "the method cannot be read"),
        Cause::RateLimited => Refusal::new(RefusalCode::RateLimited, "too many requests in too short a time"),
        Cause::Limit => Refusal::new(RefusalCode::Overloaded, "too much is open at once")
            .hint("wait until some of it has been answered"),
        Cause::UpstreamDown => {
            Refusal::new(RefusalCode::UpstreamDown, "the server behind this is not running")
        }
        Cause::Failed => Refusal::new(RefusalCode::UpstreamFailed, "the server could not take this"),
        Cause::Expired => Refusal::new(RefusalCode::UpstreamTimeout, "there was no answer in time"),
        Cause::Moot => Refusal::new(RefusalCode::Cancelled, "the call or session of this is over"),
        Cause::Taken => Refusal::new(RefusalCode::Forbidden, "this name is taken"),
        Cause::Replaced => {
            Refusal::new(RefusalCode::Conflict, "another connection of the same participant took over")
        }
        Cause::Reserved => Refusal::new(
            RefusalCode::CapabilityViolation,
            "kinds under `system` and `presence` are the gateway's own",
        ),
        Cause::Rejected => Refusal::new(RefusalCode::CapabilityViolation, "the proposal was rejected"),
        Cause::TakenBack => Refusal::new(RefusalCode::Cancelled, "the proposal was withdrawn"),
        Cause::Own => Refusal::new(RefusalCode::Conflict, "no participant decides about a proposal of its own")
            .hint("wait for the decision of another participant, or withdraw it"),
        Cause::Decided => Refusal::new(RefusalCode::Conflict, "this proposal is decided already"),
        Cause::Differs => {
            Refusal::new(RefusalCode::Conflict, "the decision is about another request than the proposed one")
                .hint("look at the proposal again and decide about it as it is now")
        }
        Cause::Mismatch => {
            Refusal::new(RefusalCode::Conflict, "this is not what was proposed").hint(
                "name method and target as they were proposed, and in `to` the participants that the proposal names",
            )
        }
        Cause::Redefined => {
            Refusal::new(RefusalCode::Conflict, "its server describes the tool otherwise now than was shown")
                .hint("reject it, and have it proposed again")
        }
        Cause::Repeated => Refusal::new(
            RefusalCode::Malformed,
            "this cannot be proposed: an envelope of this id has proposed already",
        ),
        Cause::LogUnavailable => {
            Refusal::new(RefusalCode::LogUnavailable, "this cannot be written down now, so it was not done")
                .hint("try again later")
        }
    }
}

/// The refusal of an envelope, in the words of MCPx v0.1, section 3.5.2.
pub(crate) fn of_envelope(cause: Cause, kind: &str) -> Box<Refusal> {
    Box::new(match cause {
        Cause::NotAdmitted => {
            Refusal::new(RefusalCode::CapabilityViolation, format!("You lack capability for '{kind}'"))
        }
        Cause::Malformed => Refusal::new(RefusalCode::Malformed, "the kind cannot be read"),
        other => words(other),
    })
}

/// The refusal of a proposal.
pub(crate) fn of_proposal(cause: Cause) -> Box<Refusal> {
    Box::new(match cause {
        Cause::Limit => Refusal::new(RefusalCode::Overloaded, "too many proposals are open at once")
            .hint("wait until some of them are decided, or withdraw some"),
        other => words(other),
    })
}

/// The refusal of a decision. A participant that may not decide does not learn whether the proposal exists.
pub(crate) fn of_decision(cause: Cause) -> Box<Refusal> {
    Box::new(match cause {
        Cause::Unknown | Cause::NotAdmitted => Refusal::new(
            RefusalCode::UnknownTarget,
            "there is no open proposal of this id that you may decide",
        ),
        Cause::Expired => Refusal::new(RefusalCode::Conflict, "this proposal has expired"),
        Cause::Moot => Refusal::new(RefusalCode::Conflict, "this proposal was withdrawn meanwhile"),
        other => words(other),
    })
}

/// The refusal of a request that would take more notifications than its link may have.
pub(crate) fn of_interest(interest: &Interest) -> Box<Refusal> {
    Box::new(match interest {
        Interest::Listen(_) => Refusal::new(RefusalCode::Overloaded, "too many listen requests are open"),
        Interest::None | Interest::Level(_) | Interest::Subscribe | Interest::Unsubscribe => {
            Refusal::new(RefusalCode::Overloaded, "too many subscriptions")
                .hint("unsubscribe from resources that are no longer needed")
        }
    })
}

/// The refusal of what came too soon.
pub(crate) fn too_soon(retry_after_ms: u64) -> Refused {
    let refusal = words(Cause::RateLimited).hint("wait before trying again").retry_after_ms(retry_after_ms);
    Refused { cause: Cause::RateLimited, refusal: Some(Box::new(refusal)) }
}

fn unknown(target: Option<Target<'_>>) -> Refusal {
    let message = match target {
        None => return Refusal::new(RefusalCode::Unsupported, "this method is not offered"),
        Some(Target::Tool(_)) => "there is no tool of this name",
        Some(Target::Prompt(_)) => "there is no prompt of this name",
        Some(Target::Uri(_)) => "there is no resource of this URI",
        Some(Target::Upstream(_)) => "there is no server of this name",
    };
    Refusal::new(RefusalCode::UnknownTarget, message).hint("list what there is and use a name from the list")
}
