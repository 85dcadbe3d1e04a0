//! `tasks/list` of 2025-11-25: what a participant has, of the gateway's own and of all servers together, page by page.
//!
//! Must not know how a single task is asked for.

use std::collections::HashMap;
use std::sync::Arc;

use auth::Sealer;
use json::quote;
use model::{Era, Refusal, RefusalCode};
use tokio::task::JoinSet;
use wire::mcp::{Params, task};

use super::Pump;
use crate::caller::Caller;
use crate::lists::{CURSOR, CURSOR_SECS};
use crate::tasks::Relayed;
use platform::{random, unix_ms};

/// Tasks of one page. Each that is not over is asked for at its server.
pub const PAGE_TASKS_MAX: usize = 64;
const METHOD: &str = "tasks/list";

/// A task of a page, and by what it is ordered.
enum Entry {
    Own(Vec<u8>),
    Server(Arc<Relayed>),
}

/// When a task was made, and its id.
type Place = (u64, String);

impl Pump {
    /// The calls of this caller's participant that are tasks, the oldest first.
    ///
    /// # Errors
    /// A refusal (-32602) of a cursor that is not ours.
    pub(crate) async fn task_list(&self, caller: &Caller, params: &Params<'_>) -> Result<Vec<u8>, Refusal> {
        let sealer = self.ground.sealer();
        let after = match params.cursor() {
            Some(cursor) => Some(open(sealer, caller, &cursor).ok_or_else(bad_cursor)?),
            None => None,
        };
        let mut all = self.all_tasks(caller);
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all.retain(|(place, _)| after.as_ref().is_none_or(|after| place > after));
        let more = all.len() > PAGE_TASKS_MAX;
        all.truncate(PAGE_TASKS_MAX);
        let next = more.then(|| all.last().map(|(place, _)| seal(sealer, caller, place))).flatten();
        self.look(&all).await;
        let items = all.iter().filter_map(|(_, entry)| match entry {
            Entry::Own(task) => Some(task.clone()),
            Entry::Server(task) if task.is_lost() => Some(task.view(|view| task::get(view, Era::Legacy))),
            Entry::Server(task) => task.told(),
        });
        let items = items.collect::<Vec<_>>().join(b",".as_slice());
        let next = next.map(|cursor| format!(",\"nextCursor\":{}", quote(&cursor))).unwrap_or_default();
        Ok([b"{\"tasks\":[".as_slice(), &items, b"]", next.as_bytes(), b"}"].concat())
    }

    fn all_tasks(&self, caller: &Caller) -> Vec<(Place, Entry)> {
        let who = &caller.participant().id;
        let held = self.desk.all(|id, case| {
            let theirs = case.opened.held && case.opened.by == who.as_str();
            theirs.then_some((id, case.opened.at_ms))
        });
        let own = held.into_iter().filter_map(|(id, at_ms)| {
            let task = self.view(id, |view| task::get(&view.task(), Era::Legacy))?;
            Some(((at_ms, id.to_string()), Entry::Own(task)))
        });
        let theirs = self.tasks.of(who).into_iter().filter(|task| task.origin.era == caller.era());
        let theirs = theirs.filter(|task| self.may_keep(task));
        let theirs = theirs.map(|task| ((task.origin.created_ms, task.public.clone()), Entry::Server(task)));
        own.chain(theirs).collect()
    }

    /// Asks the servers how those stand now that are not over. One that does not answer in time is listed as it stood.
    async fn look(&self, all: &[(Place, Entry)]) {
        let mut looks = JoinSet::new();
        let mut asked = HashMap::new();
        for (_, entry) in all {
            let Entry::Server(task) = entry else { continue };
            let Some(session) = task.session().filter(|_| !task.is_over()) else { continue };
            let own = Arc::clone(&task.origin.own);
            asked.insert(task.public.clone(), Arc::clone(task));
            let public = task.public.clone();
            looks.spawn(async move { (public, session.get_task(&own).await) });
        }
        while let Some(looked) = looks.join_next().await {
            let Ok((public, Some(answer))) = looked else { continue };
            let (Some(task), Some(glimpse)) = (asked.get(&public), task::glimpse(&answer)) else { continue };
            if *glimpse.named.id == *task.origin.own {
                task.saw(&glimpse, answer.frame());
            }
        }
    }
}

fn seal(sealer: &Sealer, caller: &Caller, (at_ms, id): &Place) -> String {
    let state = format!("{METHOD}:{at_ms}:{id}");
    let until = unix_ms() + CURSOR_SECS * 1000;
    sealer.seal(CURSOR, caller.participant().id.as_str(), until, random(), state.as_bytes())
}

fn open(sealer: &Sealer, caller: &Caller, cursor: &str) -> Option<Place> {
    let state = sealer.open(CURSOR, caller.participant().id.as_str(), unix_ms(), cursor).ok()?;
    let state = String::from_utf8(state).ok()?;
    let (at_ms, id) = state.strip_prefix(METHOD)?.strip_prefix(':')?.split_once(':')?;
    Some((at_ms.parse().ok()?, id.to_owned()))
}

fn bad_cursor() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "this cursor is not known here")
        .hint("list again from the beginning")
}
