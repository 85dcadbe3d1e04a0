//! Built-in tool `list_participants`.

use model::Refusal;
use serde::{Deserialize, Serialize};
use topic::Present;

use super::arguments;
use crate::{call::Call, dispatch::Dispatch};

/// Participants of one page, without a `limit`.
const PAGE_PARTICIPANTS: usize = 100;
/// Most participants of one page.
pub const PAGE_PARTICIPANTS_MAX: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    after: Option<String>,
    limit: Option<usize>,
}

/// A page of participants.
#[derive(Serialize)]
pub(super) struct ParticipantPage {
    participants: Vec<ShownParticipant>,
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct ShownParticipant {
    id: String,
    role: &'static str,
    links: usize,
    you: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    capabilities: Vec<String>,
}

/// A page of the topic's participants, by name. All participants may see it, as in the room.
pub(super) fn list(dispatch: &Dispatch, call: &Call) -> Result<ParticipantPage, Refusal> {
    let ListArguments { after, limit } = arguments::read(&call.request)?;
    let mut all = dispatch.with(|topic| topic.participants());
    all.retain(|present| {
        after
            .as_deref()
            .is_none_or(|after| present.person.id.as_str() > after)
    });
    all.sort_unstable_by(|one, other| one.person.id.as_str().cmp(other.person.id.as_str()));
    let limit = limit
        .unwrap_or(PAGE_PARTICIPANTS)
        .clamp(1, PAGE_PARTICIPANTS_MAX);
    let more = all.len() > limit;
    all.truncate(limit);
    let next = all
        .last()
        .filter(|_| more)
        .map(|last| last.person.id.to_string());
    let me = &call.link.participant.id;
    let shown = |Present {
                     person,
                     serves,
                     links,
                 }: Present| ShownParticipant {
        you: person.id == *me,
        id: person.id.to_string(),
        role: if serves { "server" } else { "caller" },
        links,
        paused: person.paused,
        capabilities: person
            .capabilities
            .iter()
            .map(|one| json::visible::lines(one.as_str()))
            .collect(),
    };
    Ok(ParticipantPage {
        participants: all.into_iter().map(shown).collect(),
        more,
        next,
    })
}
