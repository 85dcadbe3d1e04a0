//! List fetching: paging and its bounds, quarantine of unusable tools, refresh after changes.

use std::sync::{Arc, Weak};
use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use json::quote;
use model::Coding;
use tokio::sync::Notify;
use tokio::time::Instant;
use vetting::Part;
use wire::mcp::list::{BadItem, Item, split};
use wire::mcp::{Era, extensions, gateways, header::annotations, task};
use wire::mcp::{ListKind, ListNames};
use wire::rpc::code;

use crate::arguments::{Arguments, Checks};
use crate::curation::Curated;
use crate::judged::{judge_instructions, judge_list};
use crate::manifest::{Compiled, List, Manifest, Written};
use crate::origin::Origin;
use crate::sent::{Resolve, Retry};
use crate::session::requests::result;
use crate::session::{Session, SessionEvent};
use crate::{declared::Handshake, fault::Fault, schema, sent, status::QuarantinedTool};

/// Changes within this time cause one refresh.
const COALESCE: Duration = Duration::from_millis(50);
/// The longest pause between refreshes that bring nothing new.
const QUIET_MAX: Duration = Duration::from_secs(30);
/// The most announcements of one list without a change that clients get, until the server is quiet
/// for a while.
const UNCHANGED_MAX: usize = 3;
/// Refreshes that a server's announcements cause at once; from then on one each [`REFRESH_EVERY`].
const REFRESHES_AT_ONCE: u32 = 20;
/// The time between refreshes of a server that announces changes without end.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// Time that a server that declares no list may take to say that it has tools.
const UNDECLARED: Duration = Duration::from_secs(1);
/// Values in the schemas of all tools of a server whose arguments are checked; a pattern counts for
/// many.
const CHECKED_VALUES_MAX: usize = 500_000;
/// All lists, as bits.
pub(crate) const ALL: u64 = 0b1_1111;

/// The bit of a list in a set of lists.
pub(crate) fn bit(kind: ListKind) -> u64 {
    1 << kind as u64
}

/// The manifest that a kept handshake and kept lists make, as if they had just been fetched. It
/// judges and checks them anew, because the operator may have decided otherwise meanwhile.
pub(crate) fn manifest_of(
    origin: &Origin<'_>,
    handshake: &Handshake,
    written: &Written,
) -> Manifest {
    let mut manifest = Manifest::default();
    origin.begin(&mut manifest, handshake);
    judge_instructions(origin, &mut manifest, handshake);
    for kind in ListKind::ALL {
        let mut list = written.list(kind).clone();
        judge_list(origin, &mut manifest, kind, &mut list);
        add(origin, &mut manifest, kind, list, Verdicts::default());
    }
    manifest.compiled = Compiled::with(&origin.environment.fields);
    manifest
}

/// Fetches the lists of `stale` again. A list that cannot be fetched keeps its last state.
pub(crate) async fn refresh(
    session: &Session,
    handshake: &Handshake,
    stale: u64,
) -> Result<(), Fault> {
    let _listing = session.listing.lock().await;
    let origin = Origin::of(session);
    let before = session.manifest();
    let mut manifest = Manifest::clone(&before);
    origin.begin(&mut manifest, handshake);
    if stale == ALL {
        judge_instructions(&origin, &mut manifest, handshake);
    }
    let mut outcome = Ok(());
    for kind in ListKind::ALL {
        if stale & bit(kind) == 0 {
            continue;
        }
        if !extensions::lists(&handshake.capabilities, kind) {
            let empty = List::default();
            add(&origin, &mut manifest, kind, empty, Verdicts::default());
            session.written.lock().set(kind, List::default());
            if kind == ListKind::Tools && stale == ALL {
                manifest.quarantined = undeclared(session, handshake).await;
            }
            continue;
        }
        match fetch(session, kind).await {
            Ok(fetched) => add_fetched(session, &origin, &mut manifest, kind, fetched).await?,
            Err(fault) => {
                tracing::warn!(server = session.upstream(), method = ListNames::of(kind).method, %fault, "a list could not be fetched");
                // Many servers declare resources and do not implement templates; an extension
                // affects nothing else.
                if !matches!(kind, ListKind::Templates | ListKind::Skills) {
                    outcome = Err(fault);
                }
            }
        }
    }
    let has_same_tools = before.tools == manifest.tools
        && before.altered == manifest.altered
        && before.sent == manifest.sent;
    if !has_same_tools {
        manifest.compiled = Compiled::with(&session.setup.environment.fields);
        manifest.checks = Checks::default();
    }
    if *before != manifest {
        *session.manifest.lock() = Arc::new(manifest);
    }
    outcome
}

/// Adds a list that was fetched to the manifest.
///
/// # Errors
/// The list came through this gateway: its server is this gateway itself.
async fn add_fetched(
    session: &Session,
    origin: &Origin<'_>,
    manifest: &mut Manifest,
    kind: ListKind,
    fetched: Fetched,
) -> Result<(), Fault> {
    let mut list = fetched.list;
    if let Some(gateways) = named_gateways(&mut list) {
        if let Some(fault) = Fault::of_gateways(&gateways, &origin.environment.instance) {
            return Err(fault);
        }
        manifest.gateways = gateways;
    }
    if kind == ListKind::Tools && session.coding() == Coding::Proto {
        read_sent(session, manifest, &mut list.items).await;
    }
    // As the server wrote it, before it is judged: the operator may decide otherwise later.
    session.written.lock().set(kind, list.clone());
    judge_list(origin, manifest, kind, &mut list);
    let verdicts = Verdicts::of_all(origin, kind, &list).await;
    add(origin, manifest, kind, list, verdicts);
    // After `add`, which empties the quarantine for the new list.
    if kind == ListKind::Tools {
        manifest.quarantined.extend(fetched.invalid);
        manifest
            .quarantined
            .extend(session.left_out.get().into_iter().flatten().cloned());
    }
    Ok(())
}

/// Reads the messages that a server of proto-mcp sent with its tools.
async fn read_sent(session: &Session, manifest: &mut Manifest, tools: &mut [Item]) {
    let sent = session.sent_schemas.take();
    let resolve = session.setup.environment.resolve.as_ref();
    let read = sent::read(session.upstream(), resolve, sent, tools).await;
    manifest.sent = read.tools;
    manifest.untyped = read.unusable;
    let was_unresolved = session
        .unresolved
        .swap(read.is_unresolved, Ordering::SeqCst);
    if was_unresolved || read.is_unresolved {
        // `keep` plans the next attempt, or none.
        session.upkeep.notify_one();
    }
}

/// Takes out of a list which gateways it came through, if its server is one.
fn named_gateways(list: &mut List) -> Option<Vec<String>> {
    let index = list.extras.iter().position(|(key, _)| key == "_meta")?;
    let (_, meta) = list.extras.get_mut(index)?;
    let named = gateways::read_in(meta)?;
    match gateways::removed(meta) {
        Some(rest) if rest.as_slice() != b"{}" => *meta = rest.into(),
        // Nothing else is in it.
        Some(_) | None => drop(list.extras.remove(index)),
    }
    Some(named)
}

/// The tools of a server that declares no list at all, and yet may have some: nothing of it is
/// offered, and operators see why.
async fn undeclared(session: &Session, handshake: &Handshake) -> Vec<QuarantinedTool> {
    let declares = |list: &str| json::at(&handshake.capabilities, &[list]).is_some();
    if ["tools", "resources", "prompts"].into_iter().any(declares) {
        return Vec::new();
    }
    let Ok(answer) = session
        .ask(session.era(), "tools/list", &[], UNDECLARED)
        .await
    else {
        return Vec::new();
    };
    let page = split(ListKind::Tools, &answer).unwrap_or_default();
    let mut left_out = Vec::with_capacity(page.items.len());
    for tool in page.items {
        left_out.push(QuarantinedTool {
            name: tool.key,
            reason: "its server does not declare `tools` among its capabilities, as servers that have some must".to_owned(),
        });
    }
    left_out
}

/// All pages of a list, and its items that cannot be offered.
struct Fetched {
    list: List,
    /// Items that cannot be read, as far as they have names.
    invalid: Vec<QuarantinedTool>,
}

/// Fetches all pages of one list.
async fn fetch(session: &Session, kind: ListKind) -> Result<Fetched, Fault> {
    let limits = session.setup.spec.limits;
    let patience = session.setup.spec.timeout(None);
    let mut fetched = Fetched {
        list: List {
            public: true,
            ..List::default()
        },
        invalid: Vec::new(),
    };
    let mut cursor: Option<String> = None;
    for number in 0..limits.pages_max {
        let raw = cursor.as_deref().map(quote);
        let params: Vec<(&str, &[u8])> = raw.iter().map(|raw| ("cursor", raw.as_bytes())).collect();
        let message = session
            .ask(session.era(), ListNames::of(kind).method, &params, patience)
            .await?;
        let is_unknown = message
            .error_object()
            .is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
        if is_unknown && number == 0 {
            // Many servers declare a list, and do not implement it: it is empty.
            warn(
                session,
                kind,
                "the server declares this list, and does not have the method",
            );
            fetched.list = List::default();
            return Ok(fetched);
        }
        result(&message)?;
        let page = split(kind, &message).map_err(|error| Fault::Answer(error.to_string()))?;
        for BadItem { at, key, why } in page.bad {
            let name = key.clone().unwrap_or_else(|| format!("number {at}"));
            let what = format!("left out an invalid item: {}, {why}", name.escape_debug());
            warn(session, kind, &what);
            if let Some(name) = key {
                fetched.invalid.push(QuarantinedTool { name, reason: why });
            }
        }
        let list = &mut fetched.list;
        if number == 0 {
            list.extras = page.extras;
            list.ttl_ms = page.ttl_ms;
        }
        // The shortest of all pages; one page without a time makes the list one without.
        list.ttl_ms = match (list.ttl_ms, page.ttl_ms) {
            (Some(so_far), Some(of_page)) => Some(so_far.min(of_page)),
            _ => None,
        };
        list.public &= page.public;
        list.items.extend(page.items);
        if list.items.len() > limits.items_max {
            list.items.truncate(limits.items_max);
            warn(session, kind, "the list is too long; the rest is left out");
            return Ok(fetched);
        }
        match page.next_cursor {
            // A repeated cursor would loop.
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            Some(_) | None => return Ok(fetched),
        }
    }
    warn(
        session,
        kind,
        "the list has too many pages; the rest is left out",
    );
    Ok(fetched)
}

/// Logs what is wrong with a list of a server.
fn warn(session: &Session, kind: ListKind, what: &str) {
    tracing::warn!(
        server = session.upstream(),
        method = ListNames::of(kind).method,
        "{what}"
    );
}

/// Adds a list to the manifest; unusable tools go to the quarantine, each with a reason.
fn add(
    origin: &Origin<'_>,
    manifest: &mut Manifest,
    kind: ListKind,
    mut list: List,
    verdicts: Verdicts,
) {
    if kind == ListKind::Tools {
        return add_tools(origin, manifest, list, verdicts);
    }
    list.items
        .retain(|item| !item.key.contains(char::is_control));
    manifest.set(kind, list);
}

fn add_tools(
    origin: &Origin<'_>,
    manifest: &mut Manifest,
    mut tools: List,
    mut verdicts: Verdicts,
) {
    manifest.quarantined.clear();
    manifest.annotations.clear();
    tools.items.retain(|tool| {
        let Err(reason) = check(origin, tool, manifest, &mut verdicts) else {
            return true;
        };
        tracing::warn!(
            server = origin.server(),
            tool = tool.key,
            reason,
            "a tool is not listed: its schema cannot be used"
        );
        manifest.quarantined.push(QuarantinedTool {
            name: tool.key.clone(),
            reason,
        });
        false
    });
    manifest.tasks.clear();
    // Later revisions do not say it of a tool.
    if origin.era == Era::Legacy && task::serves_calls(&manifest.capabilities) {
        for tool in &tools.items {
            let support = task::support_of(&tool.raw);
            if support != task::TaskSupport::None {
                manifest.tasks.insert(tool.key.clone(), support);
            }
        }
    }
    // Last: what a tool can do stands in its server's definition.
    let tools = curate(origin, manifest, tools);
    let names = tools.items.iter().map(|tool| tool.key.as_str());
    origin.environment.kept.note_listed(origin.server(), names);
    manifest.set(ListKind::Tools, tools);
}

/// The tools as callers see them. What is withheld and hidden is hidden.
fn curate(origin: &Origin<'_>, manifest: &mut Manifest, tools: List) -> List {
    let Some(curation) = &origin.spec.config.curation else {
        return tools;
    };
    let Curated {
        tools,
        altered,
        hidden,
        unusable,
        notes,
    } = curation.curate(origin.server(), tools);
    manifest
        .withheld
        .retain(|one| one.part != Part::Tool || curation.shows(&one.name));
    manifest.quarantined.extend(unusable);
    manifest.altered = altered;
    manifest.hidden = hidden;
    manifest.notes = notes;
    tools
}

/// Verdicts on schemas by their raw text: many tools of a server have the same schema.
#[derive(Default)]
struct Verdicts {
    known: HashMap<Bytes, Result<(), String>>,
    /// Values in those by which arguments can be checked.
    values: usize,
}

impl Verdicts {
    /// Verdicts on all tools in a list whose arguments are checked: to compile their schemas can
    /// take long, so that it has a thread of its own. Other schemas are read where they are needed.
    async fn of_all(origin: &Origin<'_>, kind: ListKind, list: &List) -> Self {
        if kind != ListKind::Tools || !origin.validates() {
            return Self::default();
        }
        let schemas: Vec<Bytes> = list
            .items
            .iter()
            .filter_map(|tool| tool.get("inputSchema"))
            .collect();
        let compiled = tokio::task::spawn_blocking(move || {
            let mut verdicts = Self::default();
            for schema in schemas {
                let _ = verdicts.of(&schema, true);
            }
            verdicts
        });
        // Without a thread it is done by the caller.
        compiled.await.unwrap_or_default()
    }

    /// Whether a schema can be used; `validates` if arguments are checked by it.
    fn of(&mut self, schema: &Bytes, validates: bool) -> Result<(), String> {
        if let Some(known) = self.known.get(schema) {
            return known.clone();
        }
        let mut verdict = schema::check(schema);
        if validates && verdict.is_ok() {
            verdict = if self.values < CHECKED_VALUES_MAX {
                Arguments::new(schema).map(|arguments| self.values += arguments.values())
            } else {
                Err(
                    "arguments cannot be checked: the schemas before its own are too large"
                        .to_owned(),
                )
            };
        }
        self.known.insert(schema.clone(), verdict.clone());
        verdict
    }
}

/// Whether a tool can be offered; notes its arguments that are mirrored in headers.
///
/// # Errors
/// Why it cannot, in words for operators.
fn check(
    origin: &Origin<'_>,
    tool: &Item,
    manifest: &mut Manifest,
    verdicts: &mut Verdicts,
) -> Result<(), String> {
    if tool.key.contains(char::is_control) {
        return Err("its name has control characters".to_owned());
    }
    let schema = tool.get("inputSchema").ok_or("it has no input schema")?;
    verdicts.of(&schema, origin.validates())?;
    // Clients over HTTP mirror the annotated arguments to the gateway, whatever transport the
    // server has.
    match annotations(&schema) {
        Ok(mirrored) if mirrored.is_empty() => {}
        Ok(mirrored) => drop(manifest.annotations.insert(tool.key.clone(), mirrored)),
        Err(reason) if origin.era == Era::Modern && origin.over_http => return Err(reason),
        Err(_) => {}
    }
    Ok(())
}

/// Refreshes stale lists, lists tools again whose references had no answer, and restores legacy
/// subscriptions, while the session lives.
pub(crate) async fn keep(
    session: Weak<Session>,
    upkeep: Arc<Notify>,
    resolve: Option<Arc<dyn Resolve>>,
) {
    let first_pause = resolve.map(|resolve| resolve.retry()).unwrap_or_default();
    let mut retry = Retry::default();
    // When tools are listed again whose references had no answer.
    let mut next_retry = None;
    let mut quiet = Quiet::default();
    loop {
        tokio::select! {
            () = upkeep.notified() => {}
            () = at(next_retry) => {
                next_retry = None;
                let Some(session) = session.upgrade() else { return };
                session.stale.fetch_or(bit(ListKind::Tools), Ordering::SeqCst);
            }
        }
        tokio::time::sleep(COALESCE).await;
        quiet.wait(&session, &upkeep).await;
        let Some(session) = session.upgrade() else {
            return;
        };
        if !session.is_open() {
            return;
        }
        let _fetching = session.relisting.begin();
        // Before the fetch, so that what changes meanwhile is fetched again.
        let stale = session.stale.swap(0, Ordering::SeqCst);
        let is_unresolved = session.unresolved.load(Ordering::SeqCst);
        if stale == 0 {
            // `refresh` may have woken this task because of references: some have no answer, or now all
            // have one.
            if next_retry.is_none() || !is_unresolved {
                next_retry = retry
                    .pause(is_unresolved, first_pause)
                    .map(|pause| Instant::now() + pause);
            }
            continue;
        }
        let Some(handshake) = session.handshake() else {
            continue;
        };
        if stale == ALL && session.era() == Era::Legacy {
            session.restore_interest().await;
        }
        let announced = session.announced.swap(0, Ordering::SeqCst);
        let announced: Vec<ListKind> = ListKind::ALL
            .into_iter()
            .filter(|kind| announced & bit(*kind) != 0)
            .collect();
        let before = session.manifest();
        // `refresh` logs what it cannot fetch.
        if let Err(fault @ Fault::Itself(_)) = refresh(&session, &handshake, stale).await {
            return session.end_as_itself(fault).await;
        }
        let after = session.manifest();
        let is_changed = |kind: ListKind| before.list(kind) != after.list(kind);
        let passed_on = quiet.refreshed(&announced, is_changed);
        if !passed_on.is_empty() || !Arc::ptr_eq(&before, &after) {
            session.emit(SessionEvent::Changed(&passed_on));
        }
    }
}

/// The pause after announcements of a server. After those that have brought nothing new it grows
/// with each, so that a server that announces a change whenever it is asked for its lists is not
/// asked for ever; one whose lists do change each time is asked a few times at once and then in
/// steps.
#[derive(Default)]
struct Quiet {
    barren: u32,
    until: Option<Instant>,
    /// Time at which all announced refreshes so far have had their [`REFRESH_EVERY`].
    paid_until: Option<Instant>,
    /// The lists of which an announcement without a change was passed on, once for each.
    passed_on: Vec<ListKind>,
}

impl Quiet {
    /// Notes the outcome of a refresh, and returns the announcements that clients get: those of
    /// changes, and of each list the first few without one, for a server may know of changes that
    /// its list does not show.
    fn refreshed(
        &mut self,
        announced: &[ListKind],
        is_changed: impl Fn(ListKind) -> bool,
    ) -> Vec<ListKind> {
        let now = Instant::now();
        // One that was quiet for long has begun anew.
        if self.until.is_none_or(|until| now > until + QUIET_MAX) {
            *self = Self {
                paid_until: self.paid_until,
                ..Self::default()
            };
        }
        if !announced.is_empty() {
            self.paid_until =
                Some(self.paid_until.map_or(now, |until| until.max(now)) + REFRESH_EVERY);
        }
        let (changed, same): (Vec<ListKind>, Vec<ListKind>) =
            announced.iter().partition(|kind| is_changed(**kind));
        if changed.is_empty() && !same.is_empty() {
            self.barren = self.barren.saturating_add(1);
            self.until = Some(now + pause(self.barren));
        } else {
            self.barren = 0;
            self.until = None;
        }
        let mut passed_on = changed;
        for kind in same {
            let times = self
                .passed_on
                .iter()
                .filter(|other| **other == kind)
                .count();
            if times < UNCHANGED_MAX {
                self.passed_on.push(kind);
                passed_on.push(kind);
            }
        }
        passed_on
    }

    /// The time of the next refresh, once [`REFRESHES_AT_ONCE`] are used up.
    fn next_step(&self) -> Option<Instant> {
        self.paid_until?
            .checked_sub(REFRESH_EVERY * REFRESHES_AT_ONCE)
    }

    /// Waits for the end of the pause, unless something else than an announcement wants a list.
    async fn wait(&self, session: &Weak<Session>, upkeep: &Notify) {
        let Some(until) = self.until.max(self.next_step()) else {
            return;
        };
        loop {
            if Instant::now() >= until || wants_a_list(session) {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                () = upkeep.notified() => {}
            }
        }
    }
}

/// Whether something else than the server's announcements wants a list to be fetched, a call waits for
/// one, or the session is gone.
fn wants_a_list(session: &Weak<Session>) -> bool {
    let Some(session) = session.upgrade() else {
        return true;
    };
    let stale = session.stale.load(Ordering::SeqCst);
    let announced = session.announced.load(Ordering::SeqCst);
    stale & !announced != 0 || session.relisting.is_awaited()
}

/// The pause after so many refreshes in a row that have brought nothing new.
fn pause(barren: u32) -> Duration {
    COALESCE
        .saturating_mul(2_u32.saturating_pow(barren))
        .min(QUIET_MAX)
}

/// Waits until then, or for ever.
async fn at(then: Option<Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_list_a_few_announcements_without_a_change_are_passed_on() {
        let mut quiet = Quiet::default();
        let tools = ListKind::Tools;
        let prompts = ListKind::Prompts;
        for _ in 0..UNCHANGED_MAX {
            assert_eq!(quiet.refreshed(&[tools], |_| false), [tools]);
        }
        assert_eq!(quiet.refreshed(&[tools, prompts], |_| false), [prompts]);
        assert_eq!(quiet.refreshed(&[tools], |_| false), []);
        assert_eq!(
            quiet.refreshed(&[tools, prompts], |kind| kind == tools),
            [tools, prompts]
        );
        assert_eq!(quiet.refreshed(&[], |_| true), []);
    }

    #[test]
    fn changes_without_end_are_fetched_in_steps() {
        let mut quiet = Quiet::default();
        let start = Instant::now();
        for _ in 0..REFRESHES_AT_ONCE {
            quiet.refreshed(&[ListKind::Tools], |_| true);
            assert!(quiet.next_step().is_none_or(|step| step <= Instant::now()));
        }
        for number in 1..=3 {
            quiet.refreshed(&[ListKind::Tools], |_| true);
            assert!(
                quiet
                    .next_step()
                    .is_some_and(|step| step >= start + REFRESH_EVERY * number)
            );
        }
    }

    #[test]
    fn the_pause_grows_up_to_its_maximum() {
        let pauses: Vec<_> = (1..=12).map(|barren| pause(barren).as_millis()).collect();
        assert_eq!(pauses[..3], [100, 200, 400]);
        assert_eq!(pauses[9..], [30_000, 30_000, 30_000]);
        assert_eq!(pause(u32::MAX), QUIET_MAX);
    }

    #[test]
    fn schemas_by_which_arguments_are_checked_are_limited_together() {
        let schema = |number: usize| {
            let values = vec!["1"; 9_990].join(",");
            Bytes::from(format!(
                r#"{{"type":"object","title":"{number}","x":[{values}]}}"#
            ))
        };
        let mut verdicts = Verdicts::default();
        let all = CHECKED_VALUES_MAX / 9_990;
        for number in 0..=all {
            assert_eq!(verdicts.of(&schema(number), true), Ok(()));
        }
        assert!(
            verdicts
                .of(&schema(all + 1), true)
                .unwrap_err()
                .contains("too large")
        );
        assert_eq!(verdicts.of(&schema(0), true), Ok(()), "it is known");
        assert_eq!(verdicts.of(&schema(all + 2), false), Ok(()));
    }
}
