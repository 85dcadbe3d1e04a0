//! The merged lists of a topic, page by page, for one caller.
//!
//! Owns paging and cursors. What is on a list the topic says; how an item is written its server said (MCP, "Pagination").
//! Must not know transports.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use auth::Sealer;
use bytes::Bytes;
use model::{Era, ParticipantId, Refusal, RefusalCode};
use upstream::{ClientProfile, Manifest};
use wire::mcp::list::{Hints, Item, render};
use wire::mcp::{ListKind, Params, Version, task};
use wire::rpc::{self, Message};

use crate::caller::Caller;
use crate::operation::Operation;
use crate::pump::{Pump, Routed, Seat};
use crate::spell;
use crate::stream::Stream;

/// Items of one page of a merged list.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// How long a cursor may be used.
pub const CURSOR_SECS: u64 = 3600;
/// What cursors are sealed as.
pub const CURSOR: &str = "cursor";

/// Answers a list request on `out`, after a bounded wait for servers that are still starting.
pub fn answer(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    kind: ListKind,
    params: &Params<'_>,
    hello: ClientProfile,
    out: &Arc<Stream>,
) -> Option<Arc<Operation>> {
    let (operation, Routed::Gateway) = pump.admit(caller, params, out)? else { return None };
    let (pump, given, message) = (Arc::clone(pump), Arc::clone(&operation), params.message().clone());
    tokio::spawn(async move {
        pump.wait_for_servers().await;
        let result = page(&pump, &operation, kind, &message, &hello).await;
        pump.answer_here(&operation, result.map(|result| rpc::result(&operation.request, &result)));
    });
    Some(given)
}

async fn page(
    pump: &Arc<Pump>,
    operation: &Arc<Operation>,
    kind: ListKind,
    message: &Message,
    hello: &ClientProfile,
) -> Result<Vec<u8>, Refusal> {
    let caller = &operation.caller;
    let params = Params::read(message).map_err(|bad| Refusal::new(RefusalCode::Malformed, bad.message))?;
    let start = match params.cursor() {
        Some(cursor) => open_cursor(pump.ground().sealer(), caller, kind, &cursor).ok_or_else(bad_cursor)?,
        None => 0,
    };
    let manifests = manifests(pump, caller, hello).await;
    let shelves: HashMap<_, _> =
        manifests.iter().map(|(id, manifest)| (id, Shelf::new(manifest, kind))).collect();
    let offers_tasks = kind == ListKind::Tools && hello.version == Version::NEWEST_LEGACY;
    let (mut items, mut extras, mut more) = (Vec::new(), None, false);
    pump.with(|topic| {
        let listings = topic.list(caller.link(), spell::topic_list(kind));
        more = listings.len() > start.saturating_add(PAGE_ITEMS_MAX);
        for listing in listings.iter().skip(start).take(PAGE_ITEMS_MAX) {
            let item = shelves.get(listing.upstream).and_then(|shelf| shelf.items.get(&**listing.own));
            let held = listing.held && offers_tasks;
            items.extend(item.map(|item| (as_seen(kind, item, held), listing.public.to_string())));
        }
        // What else one server says of its list is only passed on where no other adds to it.
        let first = listings.first().map(|listing| listing.upstream);
        let only = first.filter(|first| listings.iter().all(|listing| listing.upstream == *first));
        extras = only.and_then(|only| shelves.get(only)).map(|shelf| shelf.extras);
    });
    let next = more.then(|| seal_cursor(pump.ground().sealer(), caller, kind, start + PAGE_ITEMS_MAX));
    let hints = match caller.era() {
        Era::Legacy => Hints::Legacy,
        Era::Modern => Hints::Modern { ttl_ms: 0, public: false },
    };
    let items = items.iter().map(|(item, public)| (&**item, Some(public.as_str())));
    Ok(render(kind, items, next.as_deref(), extras.unwrap_or_default(), hints))
}

/// What would be held may be had as a task (MCP 2025-11-25, "Tool-Level Negotiation").
fn as_seen<'m>(kind: ListKind, item: &'m Item, held: bool) -> Cow<'m, Item> {
    let offered = held.then(|| task::offer(&item.raw).ok()).flatten();
    match offered.and_then(|raw| Item::read(kind, raw.into()).ok()) {
        Some(offered) => Cow::Owned(offered),
        None => Cow::Borrowed(item),
    }
}

/// One list of one upstream, by its own names.
struct Shelf<'m> {
    items: HashMap<&'m str, &'m Item>,
    extras: &'m [(String, Bytes)],
}

impl<'m> Shelf<'m> {
    fn new(manifest: &'m Manifest, kind: ListKind) -> Self {
        let list = manifest.list(kind);
        Self {
            items: list.items.iter().map(|item| (item.key.as_str(), item)).collect(),
            extras: &list.extras,
        }
    }
}

/// What each upstream lists for this caller: on its own sessions, opened now if need be, or on the shared ones.
async fn manifests(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    hello: &ClientProfile,
) -> HashMap<ParticipantId, Arc<Manifest>> {
    let key = spell::session_key(caller, hello);
    let mut opening = tokio::task::JoinSet::new();
    let mut found = HashMap::from([(ParticipantId::gateway(), pump.built_in())]);
    for seat in pump.seats().iter() {
        let own = caller.era() == Era::Legacy && !seat.upstream.shares(&key, hello, Era::Legacy);
        if own || seat.upstream.could_open(caller.era()) {
            let (pump, caller, hello, seat) =
                (Arc::clone(pump), Arc::clone(caller), hello.clone(), seat.clone());
            opening.spawn(async move { own_manifest(&pump, &caller, &hello, &seat).await });
        } else {
            found.insert(seat.id.clone(), seat.upstream.manifest_in(caller.era()));
        }
    }
    while let Some(joined) = opening.join_next().await {
        if let Ok((id, manifest)) = joined {
            found.insert(id, manifest);
        }
    }
    found
}

async fn own_manifest(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    hello: &ClientProfile,
    seat: &Seat,
) -> (ParticipantId, Arc<Manifest>) {
    let session = tokio::time::timeout(pump.list_wait(), pump.session(caller, seat, hello)).await;
    let manifest = match session {
        Ok(Ok(session)) => session.manifest(),
        // Down or slow: what it offered last stays listed, and a call says plainly what is wrong.
        Ok(Err(_)) | Err(_) => seat.upstream.manifest_in(caller.era()),
    };
    (seat.id.clone(), manifest)
}

fn seal_cursor(sealer: &Sealer, caller: &Caller, kind: ListKind, start: usize) -> String {
    let state = format!("{}:{start}", kind.method());
    let principal = caller.participant().id.as_str();
    let until = platform::unix_ms() + CURSOR_SECS * 1000;
    sealer.seal(CURSOR, principal, until, platform::random(), state.as_bytes())
}

fn open_cursor(sealer: &Sealer, caller: &Caller, kind: ListKind, cursor: &str) -> Option<usize> {
    let principal = caller.participant().id.as_str();
    let state = sealer.open(CURSOR, principal, platform::unix_ms(), cursor).ok()?;
    let text = String::from_utf8(state).ok()?;
    let (method, start) = text.rsplit_once(':')?;
    if method == kind.method() { start.parse().ok() } else { None }
}

fn bad_cursor() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "this cursor is not known here")
        .hint("list again from the beginning")
}
