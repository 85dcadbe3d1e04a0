//! Tally of a simulation: effects by cause, and turns of its scenarios.

use std::collections::BTreeMap;

use model::{ProposalState, Refusal, RefusalCode};
use topic::{Cause, Ended, Ignored};

use crate::numbers::{Effect, Receiver, Record, RoomEffect};

/// The number of times that each was seen.
pub(crate) type Tally = BTreeMap<&'static str, usize>;

/// A simulation in which one of these never happens proves nothing about it.
pub(crate) const SEEN: &[&str] = &[
    // Effects of the room.
    "entered",
    "renewed",
    "joined",
    "changed",
    "left",
    "published",
    "mirrored",
    "end mirrored",
    "exit",
    "exit: revoked",
    "exit: replaced",
    // Links.
    "not joined: taken",
    "not joined: limit",
    "not joined: replaced",
    "closed",
    "closed: revoked",
    "closed: replaced",
    // Envelopes.
    "withheld: not admitted",
    "withheld: rate",
    "withheld: reserved",
    "withheld: malformed",
    "withheld: a rule asks",
    "withheld: paused",
    "withheld: a rule rejects",
    "fulfilled what a rule asks for",
    "passed on",
    "repeat",
    "mismatch",
    "not asked",
    "absent",
    "relayed",
    // Calls.
    "delivered",
    "held",
    "held for a rule",
    "held for a pause",
    "braked",
    "braked while absent, or once more",
    "released",
    "rejected by an envelope",
    "parked",
    "reported",
    "settled",
    "dropped",
    "cancelled",
    "refused: unknown",
    "refused: not admitted",
    "reloaded as a whole",
    "refused for its token",
    "held for its token",
    "came back with too small a token",
    "refused: a rule asks",
    "refused: paused",
    "refused: a rule rejects",
    "refused: withdrawn",
    "refused: malformed",
    "refused: rate",
    "refused: limit",
    "refused: upstream down",
    "refused: failed",
    "refused: moot",
    "refused: decided",
    "refused: mismatch",
    "refused: log unavailable",
    "refused: redefined or amended",
    "refused: repeated",
    "refused: expired",
    "refused: counted",
    "decided by several",
    "went on",
    // Questions.
    "asked",
    "ask settled",
    "paused",
    "came back",
    "came back on another link",
    "kept end settled",
    "asked again",
    "gathered questions",
    "came back too often",
    "its caller did not come back",
    "kept",
    "ask cancelled",
    "ask refused: moot",
    "ask refused: not admitted",
    "ask refused: withdrawn",
    "ask refused: limit",
    "ask refused: failed",
    "ask refused: malformed",
    "withdrawn question",
    // Notifications.
    "notified of a call",
    "notified while paused",
    "notified on a link",
    "list changed",
    "unsubscribed",
    "unwatched",
    // Proposals.
    "stored: opened",
    "stored: decided",
    "stored: approved by one of several",
    "stored: extended",
    "stored: amended",
    "stored: withdrawn by the topic",
    "stored: ended",
    "proposed",
    "not proposed: limit",
    "not proposed: repeat",
    "rejected on arrival",
    "reminded",
    "withheld: id taken",
    "sent again while it was opened",
    "proposal published",
    "not proposed: moot",
    "not proposed: log unavailable",
    "counted",
    "extended",
    "amended",
    "expiring",
    "claims changed",
    "claimed",
    "claimed again",
    "claim refused",
    "a claim ended by itself",
    "a claim ended with its proposal",
    "a claim ended with its holder's right",
    "approved by several",
    "approved",
    "completed",
    "failed",
    "rejected",
    "withdrawn",
    "expired",
    // Decisions.
    "ruled",
    "decision refused: own",
    "decision refused: paused",
    "decision refused: differs",
    "decision refused: redefined",
    "decision refused: decided",
    "decision refused: limit",
    "displaced",
    "refused for a former bearer",
    "decision refused: counted",
    "decision refused: moot",
    "decision refused: not admitted",
    "decision refused: log unavailable",
    "decision refused: unknown",
    "decision refused: expired",
    "decision refused: mismatch",
    "decision refused: away",
    "described",
    "went on without its approver",
    "the wall clock jumped",
    "the wall clock was set back",
    // Turns of the scenarios.
    "let go",
    "parked and let go",
    "parked and over",
    "dropped for a held call",
    "carried out",
    "carried out by its proposer",
    "recalled",
    "own proposal unlisted",
    "unknown method",
    "unknown method without a bare server",
    "delivered with its own log level",
    "queued",
    "published once it counted",
    "not published",
    "completed in the room",
    "unanswerable",
    "replayed",
    "end shown",
    "resumed",
    "waited",
    "stopped",
    "parked while stopping",
    "crashed",
    "pending again",
    "ended again",
    "closed again",
    // Plans.
    "step due",
    "a step ran in its turn",
    "a step succeeded, or not quite",
    "a step never ran",
    "a decision about a plan waits",
    "the approval of a plan counts no more",
    "a step is pending again",
    "a step ended again",
    "decision refused: later step",
    "late fulfilment refused",
    "revoked while absent",
    "regranted while absent",
    "name of a participant became a server's",
    "server went down",
    "server came back",
    "subscribed",
    "listened",
    "notified of a task",
    "notified of a call that became a task",
    // Tasks.
    "task cancelled",
    "task forgotten",
    "task lost",
    "became a task",
    "task followed to its end",
    "task of a call that is over",
    "task of a revoked participant",
    "task written",
    "task not written",
    "task expired",
    "task named",
    "task restored",
    "request about a task",
    "request about a task refused",
    "asked about a task",
    "cancelled by tag",
    "private",
    "about own proposals",
    "not published to one",
    "late link",
    "the clock jumped",
    "the clock stood",
    "the clock went back",
    // Interleavings.
    "carried out after a later step",
    "carried out before an earlier step's",
];

pub(crate) fn room_name(effect: &RoomEffect) -> &'static str {
    match effect {
        RoomEffect::Enter { .. } => "entered",
        RoomEffect::Renew { .. } => "renewed",
        RoomEffect::Joined(_) => "joined",
        RoomEffect::Changed(_) => "changed",
        RoomEffect::Left(_) => "left",
        RoomEffect::Publish { .. } => "published",
        RoomEffect::Mirror { mirrored, .. } if mirrored.end.is_some() => "end mirrored",
        RoomEffect::Mirror { .. } => "mirrored",
        RoomEffect::Exit { why: None, .. } => "exit",
        RoomEffect::Exit {
            why: Some(Ended::Revoked),
            ..
        } => "exit: revoked",
        RoomEffect::Exit {
            why: Some(Ended::Replaced),
            ..
        } => "exit: replaced",
    }
}

pub(crate) fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Closed { why: None, .. } => "closed",
        Effect::Closed {
            why: Some(Ended::Revoked),
            ..
        } => "closed: revoked",
        Effect::Closed {
            why: Some(Ended::Replaced),
            ..
        } => "closed: replaced",
        Effect::Withhold { refusal, .. } => {
            let begins = |words: &str| refusal.message.starts_with(words);
            match (refusal.code, begins("You lack")) {
                (RefusalCode::CapabilityViolation, true) => "withheld: not admitted",
                (RefusalCode::CapabilityViolation, _) if begins("a rule") => {
                    "withheld: a rule asks"
                }
                (RefusalCode::CapabilityViolation, _) if begins("you are paused") => {
                    "withheld: paused"
                }
                (RefusalCode::CapabilityViolation, _) if begins("rejected by") => {
                    "withheld: a rule rejects"
                }
                (RefusalCode::CapabilityViolation, false) => "withheld: reserved",
                (RefusalCode::RateLimited, _) => "withheld: rate",
                (RefusalCode::Conflict, _) if refusal.message.starts_with("the id of this") => {
                    "withheld: id taken"
                }
                _ => "withheld: malformed",
            }
        }
        Effect::Receive { .. } => "passed on",
        Effect::Ignore {
            why: Ignored::Repeat,
            ..
        } => "repeat",
        Effect::Ignore {
            why: Ignored::Mismatch,
            ..
        } => "mismatch",
        Effect::Ignore {
            why: Ignored::NotAsked,
            ..
        } => "not asked",
        Effect::Ignore {
            why: Ignored::Absent,
            ..
        } => "absent",
        Effect::Relay { .. } => "relayed",
        Effect::Deliver { .. } => "delivered",
        Effect::Hold { .. } => "held",
        Effect::Park { .. } => "parked",
        Effect::Pause { .. } => "paused",
        Effect::Return { .. } => "came back",
        Effect::Proceed { .. } => "went on",
        Effect::Report { .. } => "reported",
        Effect::Settle { .. } => "settled",
        Effect::Drop { .. } => "dropped",
        Effect::Cancel { .. } => "cancelled",
        Effect::Refuse { cause, .. } => refused(*cause),
        Effect::Ask { .. } => "asked",
        Effect::SettleAsk { .. } => "ask settled",
        Effect::CancelAsk { .. } => "ask cancelled",
        Effect::RefuseAsk { refusal, .. } => match cause_of_ask(refusal) {
            Cause::Moot => "ask refused: moot",
            Cause::NotAdmitted => "ask refused: not admitted",
            Cause::Withdrawn => "ask refused: withdrawn",
            Cause::Limit => "ask refused: limit",
            Cause::Failed => "ask refused: failed",
            _ => "ask refused: malformed",
        },
        Effect::Notify {
            to: Receiver::Call(_),
            ..
        } => "notified of a call",
        Effect::Notify {
            to: Receiver::Link(_),
            ..
        } => "notified on a link",
        Effect::ListChanged { .. } => "list changed",
        Effect::Unsubscribe { .. } => "unsubscribed",
        Effect::Unwatch { .. } => "unwatched",
        Effect::CancelTask { .. } => "task cancelled",
        Effect::ForgetTask { .. } => "task forgotten",
        Effect::LoseTask { .. } => "task lost",
        Effect::Store { record, .. } => match **record {
            Record::Opened => "stored: opened",
            Record::Counted { .. } => "stored: approved by one of several",
            Record::Extended { .. } => "stored: extended",
            Record::Amended { .. } => "stored: amended",
            Record::Decided {
                ruling: Some(_), ..
            } => "stored: decided",
            Record::Decided { ruling: None, .. } => "stored: withdrawn by the topic",
            Record::Ended { .. } => "stored: ended",
        },
        Effect::Proposed { .. } => "proposed",
        Effect::NotProposed { cause, .. } => match cause {
            Cause::Limit => "not proposed: limit",
            Cause::Repeated => "not proposed: repeat",
            Cause::Moot => "not proposed: moot",
            _ => "not proposed: log unavailable",
        },
        Effect::Rejected { .. } => "rejected on arrival",
        Effect::Remind { .. } => "reminded",
        Effect::Counted(_) => "counted",
        Effect::Claimed { .. } => "claims changed",
        Effect::Extended { .. } => "extended",
        Effect::Amended { .. } => "amended",
        Effect::Expiring { .. } => "expiring",
        Effect::Approved { proposal, .. } if proposal.approvals > 1 => "approved by several",
        Effect::Approved { .. } => "approved",
        Effect::StepDue { .. } => "step due",
        Effect::Concluded { proposal } => match proposal.state {
            ProposalState::Completed => "completed",
            ProposalState::Failed => "failed",
            ProposalState::Rejected => "rejected",
            ProposalState::Withdrawn => "withdrawn",
            ProposalState::Expired => "expired",
            ProposalState::Pending | ProposalState::Running => "not over",
        },
        Effect::Ruled { .. } => "ruled",
        Effect::RefuseDecision(refused) => match refused.cause {
            Cause::Own => "decision refused: own",
            Cause::Paused => "decision refused: paused",
            Cause::Differs => "decision refused: differs",
            Cause::Redefined => "decision refused: redefined",
            Cause::Decided => "decision refused: decided",
            Cause::Limit => "decision refused: limit",
            Cause::Counted => "decision refused: counted",
            Cause::Moot => "decision refused: moot",
            Cause::NotAdmitted => "decision refused: not admitted",
            Cause::LogUnavailable => "decision refused: log unavailable",
            Cause::Expired => "decision refused: expired",
            Cause::Mismatch => "decision refused: mismatch",
            Cause::Away => "decision refused: away",
            Cause::LaterStep => "decision refused: later step",
            _ => "decision refused: unknown",
        },
    }
}

/// The cause for which a link may not join.
pub(crate) fn not_joined(cause: Cause) -> &'static str {
    match cause {
        Cause::Taken => "not joined: taken",
        Cause::Limit => "not joined: limit",
        Cause::Replaced => "not joined: replaced",
        other => panic!("no link is refused because of {other:?}"),
    }
}

/// The cause of the refusal of a question, which has no record.
pub(crate) fn cause_of_ask(refusal: &Refusal) -> Cause {
    match refusal.code {
        RefusalCode::Cancelled => Cause::Moot,
        RefusalCode::CapabilityViolation => Cause::NotAdmitted,
        RefusalCode::Forbidden => Cause::Withdrawn,
        RefusalCode::Overloaded => Cause::Limit,
        RefusalCode::UpstreamFailed => Cause::Failed,
        RefusalCode::Malformed => Cause::Malformed,
        other => panic!("no question is refused with {other}"),
    }
}

fn refused(cause: Cause) -> &'static str {
    match cause {
        Cause::Unknown => "refused: unknown",
        Cause::NotAdmitted => "refused: not admitted",
        Cause::RuleAsks => "refused: a rule asks",
        Cause::Paused => "refused: paused",
        Cause::RuleRejects => "refused: a rule rejects",
        Cause::Withdrawn => "refused: withdrawn",
        Cause::Malformed => "refused: malformed",
        Cause::RateLimited => "refused: rate",
        Cause::Limit => "refused: limit",
        Cause::UpstreamDown | Cause::Away => "refused: upstream down",
        Cause::Failed => "refused: failed",
        Cause::Moot => "refused: moot",
        Cause::Decided => "refused: decided",
        Cause::Mismatch => "refused: mismatch",
        Cause::Elsewhere => "refused: elsewhere",
        Cause::LogUnavailable => "refused: log unavailable",
        Cause::Redefined | Cause::Differs => "refused: redefined or amended",
        Cause::Repeated => "refused: repeated",
        Cause::Expired => "refused: expired",
        Cause::Counted => "refused: counted",
        other => panic!("no call is refused because of {other:?}"),
    }
}
