//! Fetching what an upstream offers, and keeping it up to date: one task per session.
//!
//! Owns paging, its bounds and the quarantine. Lists are read again when the server says that they changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use json::quote;
use model::Era;
use wire::mcp::ListKind;
use wire::mcp::header::annotations;
use wire::mcp::list::{Item, split};

use super::fault::Fault;
use super::manifest::{List, Manifest};
use super::schema;
use super::session::own::member;
use super::session::{Greeting, Session};
use super::status::Quarantined;

/// Changes that come within this time are one.
const COALESCE: Duration = Duration::from_millis(50);
/// All lists, as bits.
pub(super) const ALL: u64 = 0b1111;

/// The bit of a list in a set of lists.
pub(super) fn bit(kind: ListKind) -> u64 {
    match kind {
        ListKind::Tools => 1,
        ListKind::Resources => 2,
        ListKind::Templates => 4,
        ListKind::Prompts => 8,
    }
}

const KINDS: [ListKind; 4] = [ListKind::Tools, ListKind::Resources, ListKind::Templates, ListKind::Prompts];

fn capability(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Resources | ListKind::Templates => "resources",
        ListKind::Prompts => "prompts",
    }
}

/// Reads the lists of `stale` again; true when anything is different now. What cannot be read stays as it was.
pub(super) async fn refresh(session: &Session, greeting: &Greeting, stale: u64) -> Result<bool, Fault> {
    let before = session.manifest();
    let mut manifest = Manifest::clone(&before);
    manifest.capabilities = greeting.capabilities.clone();
    let mut outcome = Ok(());
    for kind in KINDS {
        if stale & bit(kind) == 0 {
            continue;
        }
        if member(&greeting.capabilities, capability(kind)).is_none() {
            manifest.set(kind, List::default());
            continue;
        }
        match fetch(session, greeting.era, kind).await {
            Ok(list) => admit(session, &mut manifest, kind, list),
            Err(fault) => {
                tracing::warn!(server = session.upstream(), method = kind.method(), %fault, "a list cannot be read");
                // Many servers declare resources and have no templates method.
                if kind != ListKind::Templates {
                    outcome = Err(fault);
                }
            }
        }
    }
    let changed = *before != manifest;
    if changed {
        *session.manifest.lock() = Arc::new(manifest);
    }
    outcome.map(|()| changed)
}

/// All pages of one list.
async fn fetch(session: &Session, era: Era, kind: ListKind) -> Result<List, Fault> {
    let bounds = session.opening.spec.bounds;
    let mut list = List { public: true, ..List::default() };
    let mut cursor: Option<String> = None;
    for number in 0..bounds.pages_max {
        let raw = cursor.as_deref().map(quote);
        let params: Vec<(&str, &[u8])> = raw.iter().map(|raw| ("cursor", raw.as_bytes())).collect();
        let message = session.result(era, kind.method(), &params).await?;
        let page = split(kind, &message).map_err(|error| Fault::Answer(error.to_string()))?;
        for bad in &page.bad {
            tracing::warn!(
                server = session.upstream(),
                method = kind.method(),
                at = bad.at,
                why = bad.why,
                "bad item"
            );
        }
        if number == 0 {
            list.extras = page.extras;
            list.ttl_ms = page.ttl_ms;
        }
        list.ttl_ms = list.ttl_ms.zip(page.ttl_ms).map(|(one, other)| one.min(other));
        list.public &= page.public;
        list.items.extend(page.items);
        if list.items.len() > bounds.items_max {
            list.items.truncate(bounds.items_max);
            tracing::warn!(
                server = session.upstream(),
                method = kind.method(),
                "the list is cut at its limit"
            );
            return Ok(list);
        }
        match page.next_cursor {
            // A server that repeats a cursor would lead in circles.
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            Some(_) | None => return Ok(list),
        }
    }
    tracing::warn!(
        server = session.upstream(),
        method = kind.method(),
        "the list has more pages than are read"
    );
    Ok(list)
}

/// Puts a list in; tools that cannot be used are left out, each with a reason.
fn admit(session: &Session, manifest: &mut Manifest, kind: ListKind, mut list: List) {
    if kind != ListKind::Tools {
        list.items.retain(|item| !item.key.contains(char::is_control));
    }
    if kind == ListKind::Tools {
        manifest.quarantined.clear();
        manifest.annotations.clear();
        let mut verdicts = HashMap::new();
        list.items.retain(|tool| match check(session, tool, manifest, &mut verdicts) {
            Ok(()) => true,
            Err(reason) => {
                tracing::warn!(server = session.upstream(), tool = tool.key, reason, "a tool is left out");
                manifest.quarantined.push(Quarantined { name: tool.key.clone(), reason });
                false
            }
        });
    }
    manifest.set(kind, list);
}

/// What was found out about schemas: many tools of a server have the same one.
type Verdicts = HashMap<Bytes, Result<(), String>>;

fn check(
    session: &Session,
    tool: &Item,
    manifest: &mut Manifest,
    verdicts: &mut Verdicts,
) -> Result<(), String> {
    if tool.key.contains(char::is_control) {
        return Err("its name has control characters".to_owned());
    }
    let schema = tool.get("inputSchema").ok_or("it has no input schema")?;
    verdicts.entry(schema.clone()).or_insert_with(|| schema::check(&schema)).clone()?;
    // Whatever carries it to us, our own callers over HTTP mirror what the schema says.
    match annotations(&schema) {
        Ok(mirrored) if mirrored.is_empty() => {}
        Ok(mirrored) => drop(manifest.annotations.insert(tool.key.clone(), mirrored)),
        Err(reason) if session.era() == Era::Modern && session.over_http() => return Err(reason),
        Err(_) => {}
    }
    Ok(())
}

/// Reads again what is out of date, for as long as the session lives.
pub(super) async fn keep(session: std::sync::Weak<Session>, upkeep: Arc<tokio::sync::Notify>) {
    loop {
        upkeep.notified().await;
        tokio::time::sleep(COALESCE).await;
        let Some(session) = session.upgrade().filter(|session| session.is_open()) else { return };
        let stale = session.stale.swap(0, Ordering::SeqCst);
        let Some(greeting) = session.greeted().filter(|_| stale != 0) else { continue };
        if stale == ALL && greeting.era == Era::Legacy {
            session.tell_wants().await;
        }
        let told = session.told.swap(0, Ordering::SeqCst);
        let told: Vec<ListKind> = KINDS.into_iter().filter(|kind| told & bit(*kind) != 0).collect();
        let before = session.manifest();
        // What could not be read is logged there; the rest counts.
        let _ = refresh(&session, &greeting, stale).await;
        if !told.is_empty() || !Arc::ptr_eq(&before, &session.manifest()) {
            session.opening.sink.changed(&session, &told);
        }
    }
}
