//! Merged list of one caller: the entries that it sees with the items that the servers wrote,
//! rendered.

use std::{borrow::Cow, collections::HashMap, ops::Range, sync::Arc};

use bytes::Bytes;
use model::{GATEWAY, ListKind, ParticipantId};
use topic::section::ToolsList;
use topic::{BuiltinTool, ListSnapshot, Listing, narrow_name};
use upstream::Manifest;
use wire::mcp::extensions;
use wire::mcp::large;
use wire::mcp::list::{Item, RenderedList};
use wire::mcp::task::{self, TaskListing};
use wire::mcp::uris;

/// Lists of each server for a caller, the gateway's own participant first.
pub type Manifests = Vec<(ParticipantId, Arc<Manifest>)>;

/// The names of tools that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedNames {
    /// All.
    All,
    /// Names of letters, digits, `_` and `-` ([`narrow_name`]).
    Narrow,
}

/// Clients that refuse all tools of a server, or the whole conversation, if one tool has another
/// name: Claude on the desktop and the web.
const NARROW: [&str; 2] = ["claude-ai", "Anthropic/ClaudeAI"];

impl AcceptedNames {
    /// The names that a client accepts that calls itself so in its `clientInfo`, raw JSON.
    #[must_use]
    pub fn of(client_info: Option<&[u8]>) -> Self {
        let name = client_info
            .and_then(|info| json::at(info, &["name"]))
            .and_then(json::text);
        match name {
            Some(name) if NARROW.contains(&&*name) => Self::Narrow,
            Some(_) | None => Self::All,
        }
    }
}

/// Reading of servers' lists by a caller's client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// Statements of a list of tools about tasks.
    pub tasks: TaskListing,
    /// Whether the client shows apps (MCP Apps): others are not listed what is for apps alone.
    pub apps: bool,
    /// The names of tools that the client accepts.
    pub names: AcceptedNames,
    /// Whether tools promise structured results: none are promised to a caller whose results may be
    /// cut.
    pub outputs: bool,
}

impl Reader {
    /// A reader of what the servers wrote that is for models.
    pub const PLAIN: Self = Self {
        tasks: TaskListing::AsWritten,
        apps: false,
        names: AcceptedNames::All,
        outputs: true,
    };
}

/// One entry of a list.
pub struct ListEntry<'m> {
    /// Its server.
    pub server: &'m ParticipantId,
    /// The item as the server wrote it.
    pub item: &'m Item,
    /// Its public name or URI.
    pub public: Cow<'m, str>,
    tasks: TaskListing,
    outputs: bool,
}

impl ListEntry<'_> {
    /// Length of the part of its definition that hosts pass on to their models, in bytes.
    fn read_bytes(&self) -> usize {
        let members = ["description", "inputSchema"].map(|key| self.item.get(key));
        let members = members.iter().flatten().map(|raw| raw.len());
        self.public.len() + members.sum::<usize>()
    }

    /// Whether it is a tool of the gateway's that finds or calls other tools.
    pub(crate) fn finds(&self) -> bool {
        self.server.as_str() == GATEWAY
            && BuiltinTool::of(&self.public).is_some_and(BuiltinTool::finds)
    }
}

/// A list as one caller sees it.
pub struct MergedList<'m> {
    snapshot: &'m ListSnapshot,
    list: ListKind,
    entries: Vec<ListEntry<'m>>,
    extras: &'m [(String, Bytes)],
    /// Whether its entries name their servers: skills do, if there are several servers beside the
    /// gateway.
    labels: bool,
    /// Bytes of definitions, as models read them, that the topic does not show.
    left_out_bytes: usize,
}

/// A merged list, rendered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The items.
    pub(crate) items: RenderedList,
    /// Other members of the result.
    pub(crate) extras: Vec<(String, Bytes)>,
    /// Bytes of definitions, as models read them, that the topic does not show in it.
    pub(crate) left_out_bytes: usize,
}

impl<'m> MergedList<'m> {
    /// List of these manifests as a caller with this snapshot and client sees it.
    pub(crate) fn new(
        snapshot: &'m ListSnapshot,
        list: ListKind,
        manifests: &'m Manifests,
        reader: Reader,
    ) -> Self {
        let listings = snapshot.list(list);
        let extras = extras(&listings, list, manifests);
        let mut entries = Vec::with_capacity(listings.len());
        let mut of_server = None;
        for listing in listings {
            if of_server
                .as_ref()
                .is_none_or(|(id, _)| *id != listing.upstream)
            {
                let found = manifests.iter().find(|(id, _)| id == listing.upstream);
                of_server = found.map(|(id, manifest)| (id, Items::new(manifest, list)));
            }
            let Some((_, items)) = &mut of_server else {
                continue;
            };
            let tasks = items.tasks_for(reader, listing.held);
            let Some(item) = items.find(listing.own) else {
                continue;
            };
            if !reader.apps && extensions::is_for_apps_alone(list, &item.raw) {
                continue;
            }
            let mut public = listing.public;
            if list == ListKind::Tools
                && reader.names == AcceptedNames::Narrow
                && let Some(narrow) = narrow_name(&public)
            {
                public = Cow::Owned(narrow);
            }
            entries.push(ListEntry {
                server: listing.upstream,
                item,
                public,
                tasks,
                outputs: reader.outputs,
            });
        }
        // The gateway's own participant is one of them: more than two are several servers.
        let labels = list == ListKind::Skills && manifests.len() > 2;
        Self {
            snapshot,
            list,
            entries,
            extras,
            labels,
            left_out_bytes: 0,
        }
    }

    /// The list, cut to what a topic shows of it.
    pub(crate) fn shown(mut self, only: ToolsList) -> Self {
        if only == ToolsList::Search {
            let before = self.read_bytes();
            self.entries.retain(ListEntry::finds);
            self.left_out_bytes = before.saturating_sub(self.read_bytes());
            self.extras = &[];
        }
        self
    }

    /// About how long all items are together as hosts pass them on to their models, in bytes.
    fn read_bytes(&self) -> usize {
        self.entries.iter().map(ListEntry::read_bytes).sum()
    }

    /// The entries, in the order of the list.
    pub fn entries(&self) -> &[ListEntry<'m>] {
        &self.entries
    }

    /// An entry as the caller sees it.
    pub fn definition(&self, entry: &ListEntry<'_>) -> Vec<u8> {
        self.changed(entry)
            .as_ref()
            .unwrap_or(entry.item)
            .spelled(&entry.public)
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// About how long all items are together, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.item.raw.len() + entry.public.len())
            .sum()
    }

    /// Renders the entries at these places, as far as there are any. The result shares no memory
    /// with the servers' answers.
    pub(crate) fn render(&self, places: Range<usize>) -> Rendered {
        let end = places.end.min(self.entries.len());
        let entries = self.entries.get(places.start..end).unwrap_or_default();
        let bytes = entries
            .iter()
            .map(|entry| entry.item.raw.len() + entry.public.len())
            .sum();
        let mut items = RenderedList::with_capacity(entries.len(), bytes);
        for entry in entries {
            items.push(
                self.changed(entry).as_ref().unwrap_or(entry.item),
                Some(&entry.public),
            );
        }
        let extras = self
            .extras
            .iter()
            .map(|(key, raw)| (key.clone(), Bytes::copy_from_slice(raw)));
        Rendered {
            items,
            extras: extras.collect(),
            left_out_bytes: self.left_out_bytes,
        }
    }

    /// The item of an entry if it differs from the server's: a tool whose calls the gateway can
    /// make tasks may be called as a task (MCP 2025-11-25, "Tool-Level Negotiation"), and the URI
    /// in its `_meta` has the public spelling.
    fn changed(&self, entry: &ListEntry<'_>) -> Option<Item> {
        let written = &entry.item.raw;
        // Each step takes the item as the one before has left it.
        let mut rewritten = match entry.tasks {
            TaskListing::Offered => task::offer(written).ok(),
            TaskListing::AsWritten => None,
            TaskListing::Hidden => task::unmarked(written),
        };
        // A client that has read an `outputSchema` refuses a result that was cut.
        let hides_outputs = !entry.outputs && self.list == ListKind::Tools;
        if hides_outputs
            && let Some(without) = large::unpromised(rewritten.as_deref().unwrap_or(written))
        {
            rewritten = Some(without);
        }
        let mut changed = rewritten.map(Bytes::from);
        if let Some(respelled) = uris::rewrite_item(
            self.list,
            changed.as_ref().unwrap_or(written),
            &|own: &str| self.snapshot.respelled_uri(entry.server, own),
        ) {
            changed = Some(respelled);
        }
        if self.labels
            && let Some(labelled) = labelled(changed.as_ref().unwrap_or(written), entry.server)
        {
            changed = Some(labelled);
        }
        Item::read(self.list, changed?).ok()
    }
}

/// The key in the `_meta` of a skill that names its server: hosts keep skills of one name apart by
/// where they come from.
const ORIGIN: &str = "portmoot/server";

/// The entry of a skill with the server that it comes from.
fn labelled(raw: &[u8], server: &ParticipantId) -> Option<Bytes> {
    let meta = json::at(raw, &["_meta"])
        .filter(|meta| json::is_object(meta))
        .unwrap_or(b"{}");
    let server = json::quote(server.as_str());
    let meta = json::edited(meta, &[(ORIGIN, Some(server.as_bytes()))]).ok()?;
    json::edited(raw, &[("_meta", Some(&meta))])
        .ok()
        .map(Bytes::from)
}

/// What else a server says about its list. It is passed on only if no other server adds to the
/// list.
fn extras<'m>(
    listings: &[Listing<'_>],
    list: ListKind,
    manifests: &'m Manifests,
) -> &'m [(String, Bytes)] {
    let (Some(first), Some(last)) = (listings.first(), listings.last()) else {
        return &[];
    };
    // Entries of one server stand together: if the first and the last are of one server, all are.
    if first.upstream != last.upstream {
        return &[];
    }
    match manifests.iter().find(|(id, _)| id == first.upstream) {
        Some((_, manifest)) => &manifest.list(list).extras,
        None => &[],
    }
}

/// The items of one server's list, by key. The topic lists them in the server's order, so each is
/// usually the next one.
struct Items<'m> {
    manifest: &'m Manifest,
    items: &'m [Item],
    next: usize,
    /// All items, made as soon as one is not found in order.
    by_key: Option<HashMap<&'m str, &'m Item>>,
}

impl<'m> Items<'m> {
    fn new(manifest: &'m Manifest, list: ListKind) -> Self {
        Self {
            manifest,
            items: &manifest.list(list).items,
            next: 0,
            by_key: None,
        }
    }

    /// Whether the server is a modern one whose calls may become tasks: it says so of none of its
    /// tools.
    fn offers_tasks(&self) -> bool {
        !self.manifest.is_legacy && task::declares(&self.manifest.capabilities)
    }

    /// What this reader is shown of tasks of a tool. `is_held` is whether its calls wait for an
    /// approval.
    fn tasks_for(&self, reader: Reader, is_held: bool) -> TaskListing {
        match reader.tasks {
            // Only such calls become tasks of the gateway: those that wait for an approval, and
            // those that a modern server may make tasks.
            TaskListing::Offered if !is_held && !self.offers_tasks() => TaskListing::AsWritten,
            // What a modern server writes means something else, if anything.
            TaskListing::Hidden if !self.manifest.is_legacy => TaskListing::AsWritten,
            tasks => tasks,
        }
    }

    /// The first item with this key.
    fn find(&mut self, key: &str) -> Option<&'m Item> {
        if let Some(by_key) = &self.by_key {
            return by_key.get(key).copied();
        }
        let rest = self.items.get(self.next..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|item| item.key == key) {
            self.next += at + 1;
            return rest.get(at);
        }
        // Backwards: of two items with one key the first is to stay.
        let by_key = self
            .items
            .iter()
            .rev()
            .map(|item| (item.key.as_str(), item))
            .collect::<HashMap<_, _>>();
        self.by_key.insert(by_key).get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use upstream::List;

    use super::*;

    #[test]
    fn items_are_found_in_any_order() {
        let item = |key: &str, x: u8| {
            let raw = format!(r#"{{"name":"{key}","inputSchema":{{}},"x":{x}}}"#);
            Item::read(ListKind::Tools, raw.into()).unwrap()
        };
        let items = vec![item("a", 1), item("b", 2), item("c", 3), item("b", 4)];
        let list = List {
            items,
            ..List::default()
        };
        let manifest = Manifest {
            tools: list,
            ..Manifest::default()
        };
        for (keys, expected) in [
            (&["a", "b", "c"][..], &[Some("1"), Some("2"), Some("3")][..]),
            (&["c", "a", "b"][..], &[Some("3"), Some("1"), Some("2")][..]),
            (&["b", "x", "a"][..], &[Some("2"), None, Some("1")][..]),
            (&[][..], &[][..]),
        ] {
            let mut items = Items::new(&manifest, ListKind::Tools);
            let found = |key: &&str| items.find(key).and_then(|item| item.get("x"));
            let found: Vec<_> = keys.iter().map(found).collect();
            let expected: Vec<_> = expected.iter().map(|text| text.map(Bytes::from)).collect();
            assert_eq!(found, expected, "{keys:?}");
        }
    }
}
