//! Pages of `tasks/list` (MCP 2025-11-25): a participant's own proposals of calls, and its tasks at
//! all servers.

use std::collections::HashMap;
use std::sync::Arc;

use auth::{Purpose, Sealer};
use lists::bad_cursor;
use model::{ParticipantId, Refusal};
use platform::{random, unix_ms};
use tokio::{task::JoinSet, time::timeout};
use upstream::Session;
use upstream::tasks::{ServerTask, look};
use wire::mcp::task;

use super::waiting::session_of;
use crate::{call::Call, dispatch::Dispatch, live::ProposalView, proposals::view::View};

/// Tasks of one page. Each that is not over is asked for at its server.
pub const PAGE_TASKS_MAX: usize = 64;
const CURSOR: Purpose = Purpose {
    name: "tasks/list",
    valid_ms: 3_600_000,
};

/// A task of a page.
enum Entry {
    Proposal(Box<ProposalView>),
    Server(Arc<ServerTask>),
}

/// The order of tasks: when a task was created, in milliseconds since 1970, and its id.
type Place = (u64, String);

/// One page of the tasks of a caller's participant, oldest first.
///
/// # Errors
/// A refusal (-32602) of a cursor that the gateway did not make.
pub(crate) async fn page(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    let sealer = &dispatch.context.sealer;
    let who = &call.link.participant.id;
    let cursor = wire::mcp::relay::param_text(&call.request, "cursor");
    let after = cursor
        .map(|cursor| open(sealer, who, &cursor).ok_or_else(bad_cursor))
        .transpose()?;
    let mut all = entries(&dispatch, &call);
    // A cursor is a place in this order, so it stays good while tasks come and go.
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all.retain(|(place, _)| after.as_ref().is_none_or(|after| place > after));
    let more = all.len() > PAGE_TASKS_MAX;
    all.truncate(PAGE_TASKS_MAX);
    let next = all
        .last()
        .filter(|_| more)
        .map(|(place, _)| seal(sealer, who, place));
    let servers = all.iter().filter_map(|(_, entry)| match entry {
        Entry::Server(task) => Some(Arc::clone(task)),
        Entry::Proposal(_) => None,
    });
    look::refresh(asked(&dispatch, &call, servers).await.into_iter()).await;
    let form = call.request.payload.form;
    Ok(json::object(|result| {
        result.array("tasks", |tasks| {
            for (_, entry) in &all {
                let task = match entry {
                    Entry::Proposal(proposal) => Some(task::get(
                        &View::new(&dispatch, proposal, form).task(),
                        form,
                    )),
                    // Its server may have said by now that it is no more.
                    Entry::Server(task) if task.until_ms() <= unix_ms() => None,
                    Entry::Server(task) if task.is_lost() => {
                        Some(task.lost_view(form, |view| task::get(view, form)))
                    }
                    Entry::Server(task) => task.listed(),
                };
                if let Some(task) = task {
                    tasks.raw(&task);
                }
            }
        });
        result.optional_text("nextCursor", next.as_deref());
    }))
}

/// The tasks that may not be over, each with the session by which its server is asked. Sessions
/// with servers of tasks that have none are opened within a bound.
async fn asked(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    tasks: impl Iterator<Item = Arc<ServerTask>>,
) -> Vec<(Arc<ServerTask>, Arc<Session>)> {
    let tasks: Vec<_> = tasks
        .filter(|task| !task.is_over() && !task.is_lost())
        .collect();
    let mut opening = JoinSet::new();
    let mut opened = HashMap::new();
    for task in tasks.iter().filter(|task| task.last_session().is_none()) {
        if opened.insert(task.origin.server.clone(), None).is_none() {
            let dispatch = Arc::clone(dispatch);
            let call = Arc::clone(call);
            let task = Arc::clone(task);
            let within = dispatch.settings().topic.list_wait;
            opening.spawn(async move {
                let session = timeout(within, session_of(&dispatch, &call, &task)).await;
                (
                    task.origin.server.clone(),
                    session.ok().and_then(Result::ok),
                )
            });
        }
    }
    while let Some(one) = opening.join_next().await {
        opened.extend(one);
    }
    let by = |task: &ServerTask| {
        task.last_session()
            .or_else(|| opened.get(&task.origin.server)?.clone())
    };
    tasks
        .into_iter()
        .filter_map(|task| Some((Arc::clone(&task), by(&task)?)))
        .collect()
}

/// Everything that the caller's participant has as tasks and the call's access token is good for,
/// in no order.
fn entries(dispatch: &Dispatch, call: &Call) -> Vec<(Place, Entry)> {
    let who = &call.link.participant.id;
    let held: Vec<ProposalView> = dispatch.with(|topic| {
        let mut proposals = topic.proposals(who, &model::Capabilities::default(), true);
        proposals.retain(|proposal| {
            let is_theirs = proposal.held && proposal.by == *who;
            is_theirs && topic.covers_proposal(call.narrowing(), proposal.id)
        });
        proposals
    });
    let held = held.into_iter().map(|proposal| {
        let place = (proposal.content.opened.at_ms, proposal.id.to_string());
        (place, Entry::Proposal(Box::new(proposal)))
    });
    let now_ms = unix_ms();
    let tasks = dispatch.with(|topic| topic.tasks_of(who, call.narrowing()));
    let tasks = tasks.into_iter();
    let tasks = tasks.filter(|task| now_ms < task.until_ms());
    held.chain(tasks.map(|task| {
        (
            (task.origin.created_ms, task.public.clone()),
            Entry::Server(task),
        )
    }))
    .collect()
}

fn seal(sealer: &Sealer, who: &ParticipantId, (at_ms, id): &Place) -> String {
    CURSOR.seal(sealer, who, unix_ms(), random(), &format!("{at_ms}:{id}"))
}

fn open(sealer: &Sealer, who: &ParticipantId, cursor: &str) -> Option<Place> {
    let state = CURSOR.open(sealer, who, unix_ms(), cursor)?;
    let (at_ms, id) = state.split_once(':')?;
    Some((at_ms.parse().ok()?, id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_for_its_participant_only() {
        let sealer = Sealer::new(&[7; 32], None);
        let ada = ParticipantId::new("ada").unwrap();
        let bob = ParticipantId::new("bob").unwrap();
        let place = (5, "a:b".to_owned());
        let cursor = seal(&sealer, &ada, &place);
        assert_eq!(open(&sealer, &ada, &cursor), Some(place));
        assert_eq!(open(&sealer, &bob, &cursor), None);
        assert_eq!(open(&sealer, &ada, "7"), None);
    }
}
