//! Effects as short lines of text, so that a test compares all effects of a step.

use std::fmt::Display;

use model::{ListKind, Refusal, RefusalCode};
use topic::{
    Audience, Cause, CountedDecision, Ended, Ignored, Mirrored, ProposalChange, Reach, Receiver,
    RefusedDecision, RoomEffect, Roster, Verdict,
};

use crate::numbers::{Effect, Effects, Numbers};

/// The effects of a step: those of the room first, then the others. All receivers of one changed
/// list are one line.
pub(crate) fn shown(effects: &Effects) -> Vec<String> {
    let mut lines: Vec<String> = effects.room.iter().map(room).collect();
    let mut last = None;
    for one in &effects.all {
        let (Effect::ListChanged { list, to }, Some(line)) = (one, lines.last_mut()) else {
            last = changed_list(one);
            lines.push(effect(one));
            continue;
        };
        if last == Some(*list) {
            line.push_str(&format!(",{}", receiver(to)));
        } else {
            last = Some(*list);
            lines.push(effect(one));
        }
    }
    lines
}

fn changed_list(effect: &Effect) -> Option<ListKind> {
    match effect {
        Effect::ListChanged { list, .. } => Some(*list),
        _ => None,
    }
}

/// The cause for which a link may not join.
#[track_caller]
pub(crate) fn not_joined(effects: &Effects) -> &'static str {
    let Some(refusal) = &effects.refusal else {
        panic!("it has joined: {effects:?}");
    };
    assert!(effects.all.is_empty() && effects.room.is_empty());
    assert_eq!(
        effects.verdict,
        Some(Verdict::Refused(cause_of(refusal))),
        "{refusal}"
    );
    cause_of(refusal).as_str()
}

/// The cause of the only effect, a refusal.
#[track_caller]
pub(crate) fn refused(effects: &Effects) -> Cause {
    match effects.all.as_slice() {
        [
            Effect::Refuse { cause, .. }
            | Effect::NotProposed { cause, .. }
            | Effect::RefuseDecision(RefusedDecision { cause, .. }),
        ] => *cause,
        [Effect::RefuseAsk { refusal, .. }] => cause_of(refusal),
        [Effect::Withhold { .. }] | [] => match effects.verdict {
            Some(Verdict::Refused(cause)) => cause,
            _ => panic!("refused without a verdict: {effects:?}"),
        },
        other => panic!("not one refusal: {other:?}"),
    }
}

/// The cause of the refusal of a question or of a link, which has no record.
fn cause_of(refusal: &Refusal) -> Cause {
    match (refusal.code, refusal.message.as_ref()) {
        (RefusalCode::Forbidden, "this name is taken") => Cause::Taken,
        (RefusalCode::Forbidden, _) => Cause::Withdrawn,
        (RefusalCode::Overloaded, _) => Cause::Limit,
        (RefusalCode::Conflict, _) => Cause::Replaced,
        (RefusalCode::Cancelled, _) => Cause::Moot,
        (RefusalCode::CapabilityViolation, _) => Cause::NotAdmitted,
        (RefusalCode::UpstreamFailed, _) => Cause::Failed,
        (RefusalCode::Malformed, _) => Cause::Malformed,
        (RefusalCode::RateLimited, _) => Cause::RateLimited,
        other => panic!("no question or link is refused with {other:?}"),
    }
}

/// The server and own name of the only effect, a delivery.
#[track_caller]
pub(crate) fn delivered(effects: &Effects) -> (String, Option<String>) {
    match effects.all.as_slice() {
        [Effect::Deliver { server, own, .. }] => {
            (server.clone(), own.as_deref().map(str::to_owned))
        }
        other => panic!("not one delivery: {other:?}"),
    }
}

/// The receivers that are notified of a changed list.
pub(crate) fn notified(effects: &Effects, wanted: ListKind) -> Vec<String> {
    let lists = effects.all.iter().filter_map(|effect| match effect {
        Effect::ListChanged { list, to } if *list == wanted => Some(to),
        _ => None,
    });
    lists.map(receiver).collect()
}

fn room(effect: &RoomEffect<Numbers>) -> String {
    match effect {
        RoomEffect::Enter {
            link,
            handle,
            person,
            listener,
            roster,
            replay,
        } => {
            assert_eq!(link.0, *handle);
            let replay = replay.as_ref().map(|replay| {
                let messages: Vec<&str> = replay.messages.iter().map(|one| &*one.message).collect();
                format!(
                    "{}{}",
                    messages.join(","),
                    if replay.complete { "" } else { "..." }
                )
            });
            let mode = listener.mode;
            let here = roster_text(roster);
            format!(
                "enter {handle} {} {mode:?} among {here}{}",
                person.id,
                some(" replay ", replay)
            )
        }
        RoomEffect::Renew {
            link,
            person,
            roster,
        } => {
            format!(
                "renew {} {} among {}",
                link.0,
                person.id,
                roster_text(roster)
            )
        }
        RoomEffect::Joined(person) => format!("joined {}", person.id),
        RoomEffect::Changed(person) => format!("changed {}", person.id),
        RoomEffect::Left(participant) => format!("left {participant}"),
        RoomEffect::Publish {
            message, audience, ..
        } => {
            format!("publish {message}{}", reach(audience))
        }
        RoomEffect::Mirror { mirrored, audience } => {
            let Mirrored {
                operation,
                from,
                to,
                call,
                own,
                end,
            } = &**mirrored;
            assert_eq!(operation.0, *call);
            let end = end
                .as_ref()
                .map(|(outcome, answer)| format!("{outcome:?}{}", some(" with ", *answer)));
            let own = some(" as ", own.as_deref());
            format!(
                "mirror {call} of {from} to {to}{own}{}{}",
                some(": ", end),
                reach(audience)
            )
        }
        RoomEffect::Exit { link, why } => format!("exit {}{}", link.0, some(": ", why.map(ended))),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Closed { handle, why } => format!("closed {handle}{}", some(": ", why.map(ended))),
        Effect::Withhold {
            handle, refusal, ..
        } => format!("withhold from {handle}: {}", refusal.code),
        Effect::Receive {
            handle,
            server,
            message,
        } => {
            format!(
                "receive {message} from {handle}{}",
                some(" for ", server.as_deref())
            )
        }
        Effect::Ignore {
            from,
            message,
            by,
            why,
        } => {
            let why = match why {
                Ignored::Repeat => "repeat",
                Ignored::Mismatch => "mismatch",
                Ignored::NotAsked => "not asked",
                Ignored::Absent => "absent",
            };
            format!("ignore {message} of {from} by {}: {why}", names(by))
        }
        Effect::Deliver {
            call,
            server,
            own,
            proposal,
            ..
        } => {
            let proposal = proposal.as_ref().map(|proposal| proposal.id.0);
            format!(
                "deliver {call} to {server}{}{}",
                some(" as ", own.as_deref()),
                some(" for p", proposal)
            )
        }
        Effect::Hold {
            call,
            to,
            server,
            own,
        } => {
            assert_eq!(to.as_str(), &**server);
            format!("hold {call} for {server}{}", some(" as ", own.as_deref()))
        }
        Effect::Park { call, proposal } => format!("park {call} for p{}", proposal.id.0),
        Effect::Pause {
            call,
            round,
            questions,
        } => {
            let asked: Vec<String> = questions
                .iter()
                .map(|(_, question)| question.to_string())
                .collect();
            format!("pause {call} in round {round} with {}", asked.join(","))
        }
        Effect::Report { call, proposal } => {
            format!("report to {call}: p{} {}", proposal.id.0, proposal.state)
        }
        Effect::Settle {
            call,
            answer,
            proposal,
        } => {
            let proposal = proposal.as_ref().map(|proposal| proposal.id.0);
            format!("settle {call} with {answer}{}", some(" for p", proposal))
        }
        Effect::Refuse { call, cause, .. } => format!("refuse {call}: {}", cause.as_str()),
        Effect::Drop { call } => format!("drop {call}"),
        Effect::Cancel { call } => format!("cancel {call}"),
        Effect::Ask {
            operation,
            question,
            link,
            to,
        } => {
            assert_eq!(operation.0, *question);
            format!("ask {question} of {} at {}", link.0, receiver(to))
        }
        Effect::SettleAsk { question, answer } => format!("settle ask {question} with {answer}"),
        Effect::RefuseAsk { question, refusal } => {
            format!("refuse ask {question}: {}", cause_of(refusal).as_str())
        }
        Effect::CancelAsk { operation, to } => {
            format!("cancel ask {} at {}", operation.0, receiver(to))
        }
        Effect::Notify {
            to,
            notice,
            public,
            about,
        } => {
            let public = some(" as ", public.as_deref());
            let about = some(" about ", about.as_deref());
            format!("notify {} of {notice}{public}{about}", receiver(to))
        }
        Effect::ListChanged { list, to } => format!("{list:?} changed for {}", receiver(to)),
        Effect::Return { call, by } => format!("return to {call} by {by}"),
        Effect::Proceed { call, work } => format!("proceed with {call}: {work}"),
        Effect::Unsubscribe {
            handle,
            server,
            own,
        } => format!("unsubscribe {handle} from {own} at {server}"),
        Effect::Unwatch { handle, tasks } => format!("unwatch {handle} {}", tasks.join(",")),
        Effect::CancelTask { task } => format!("cancel task {task}"),
        Effect::ForgetTask { task } => format!("forget task {task}"),
        Effect::LoseTask { task } => format!("lose task {task}"),
        Effect::Store {
            proposal,
            content,
            record,
        } => {
            assert_eq!(proposal.0, *content);
            format!("store p{content} {}", self::record(record))
        }
        Effect::Proposed { proposal } => format!("proposed p{}", proposal.id.0),
        Effect::NotProposed {
            proposal,
            by,
            held,
            cause,
            ..
        } => {
            let held = if *held { " held" } else { "" };
            format!(
                "not proposed p{} of {by}{held}: {}",
                proposal.0,
                cause.as_str()
            )
        }
        Effect::Rejected {
            by,
            envelope,
            refusal,
        } => {
            format!("rejected {envelope} of {by}: {}", refusal.code)
        }
        Effect::Remind { handle, proposal } => {
            format!("remind {handle} of p{} {}", proposal.id.0, proposal.state)
        }
        Effect::Counted(CountedDecision {
            proposal,
            by,
            is_amended,
            ..
        }) => {
            let all = &proposal.approved_by;
            let count = format!("{} of {}", all.len(), proposal.approvals);
            let how = if *is_amended { " amended" } else { "" };
            format!(
                "counted p{}{how} by {by}, of {}: {count}",
                proposal.id.0,
                names(all)
            )
        }
        Effect::Extended { proposal, by, .. } => {
            let until = proposal.expires_wall_ms;
            format!("extended p{} by {by} to {until}", proposal.id.0)
        }
        Effect::Amended { proposal, .. } => format!("amended p{}", proposal.id.0),
        Effect::Expiring { proposal } => format!("expiring p{}", proposal.id.0),
        Effect::Claimed { proposal } => {
            let by: Vec<_> = proposal.claims.iter().map(|one| one.by.clone()).collect();
            let by = if by.is_empty() {
                "none".to_owned()
            } else {
                names(&by)
            };
            format!("looks at p{}: {by}", proposal.id.0)
        }
        Effect::Approved { proposal, servers } => {
            format!("approved p{} at {}", proposal.id.0, names(servers))
        }
        Effect::StepDue { proposal } => format!("step due p{}", proposal.id.0),
        Effect::Concluded { proposal } => {
            let why = some(": ", proposal.reason.as_deref());
            format!("concluded p{} {}{why}", proposal.id.0, proposal.state)
        }
        Effect::Relay { message, to } => format!("relay {message} to {to}"),
        Effect::Ruled { ruling } => format!("ruled {ruling}"),
        Effect::RefuseDecision(RefusedDecision {
            proposal,
            by,
            ruling,
            answered,
            cause,
            ..
        }) => {
            let answered = if *answered { " and its calls" } else { "" };
            let why = cause.as_str();
            format!(
                "refuse decision {ruling} of {by} on p{}{answered}: {why}",
                proposal.0
            )
        }
    }
}

fn record(record: &ProposalChange<Numbers>) -> String {
    match record {
        ProposalChange::Opened => "opened".into(),
        ProposalChange::Counted { by, amended, .. } => {
            let how = if *amended {
                "amended and approved"
            } else {
                "approved"
            };
            format!("{how} by {by}")
        }
        ProposalChange::Extended { by, .. } => format!("extended by {by}"),
        ProposalChange::Amended { by, .. } => format!("amended by {by}"),
        ProposalChange::Decided {
            by,
            state,
            reason,
            ruling,
            ..
        } => {
            let own = if ruling.is_none() { " unasked" } else { "" };
            format!(
                "decided {state} by {by}{own}{}",
                some(": ", reason.as_deref())
            )
        }
        ProposalChange::Ended {
            state,
            reason,
            answer,
        } => {
            format!(
                "ended {state}{}{}",
                some(" with ", *answer),
                some(": ", reason.as_deref())
            )
        }
    }
}

fn receiver(receiver: &Receiver<Numbers>) -> String {
    match receiver {
        Receiver::Call(call) => format!("call {call}"),
        Receiver::Link(link) => format!("link {link}"),
    }
}

fn reach(audience: &Audience) -> String {
    match &audience.reach {
        Reach::Listeners => String::new(),
        Reach::Except(participant) => format!(" except for {participant}"),
        Reach::Watchers { except } => {
            format!(" to watchers{}", some(" except for ", except.as_ref()))
        }
    }
}

fn ended(why: Ended) -> &'static str {
    match why {
        Ended::Revoked => "revoked",
        Ended::Replaced => "replaced",
    }
}

fn roster_text(all: &Roster) -> String {
    all.iter()
        .map(|person| person.id.as_str())
        .collect::<Vec<_>>()
        .join(",")
}

fn names(all: &[model::ParticipantId]) -> String {
    all.iter()
        .map(|id| id.as_str())
        .collect::<Vec<_>>()
        .join(",")
}

fn some(lead: &str, value: Option<impl Display>) -> String {
    value
        .map(|value| format!("{lead}{value}"))
        .unwrap_or_default()
}
