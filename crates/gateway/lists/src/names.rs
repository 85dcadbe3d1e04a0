//! A server's lists as the topic has them: names and digests, and what is withheld.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use model::ListKind;
use topic::Withholding;
use upstream::Manifest;
use wire::mcp::extensions;

/// A server's lists as names and digests. Of a server that lists in two eras, everything that is in
/// either.
pub fn topic_manifest(manifests: &[Arc<Manifest>]) -> topic::ServerLists {
    topic::ServerLists::new(|kind| list_items(manifests, kind))
}

/// The items of one list, each once: those that a server lists, then those that are withheld
/// without being listed.
fn list_items(manifests: &[Arc<Manifest>], kind: ListKind) -> Vec<topic::ListItem> {
    let mut items = Vec::new();
    let mut known = HashSet::new();
    for item in manifests
        .iter()
        .flat_map(|manifest| &manifest.list(kind).items)
    {
        if !known.insert(item.key.as_str()) {
            continue;
        }
        let is_withheld = manifests
            .iter()
            .any(|manifest| manifest.withholds(kind, &item.key));
        items.push(topic::ListItem {
            own: item.key.as_str().into(),
            digest: digest(&item.raw),
            withheld: if is_withheld {
                Withholding::Listed
            } else {
                Withholding::None
            },
            app: extensions::app_of(kind, &item.raw).map(|uri| uri.as_ref().into()),
        });
    }
    for one in manifests
        .iter()
        .flat_map(|manifest| manifest.withheld_of(kind))
    {
        if known.insert(one.name.as_str()) {
            items.push(topic::ListItem {
                own: one.name.as_str().into(),
                digest: 0,
                withheld: Withholding::Unlisted,
                app: None,
            });
        }
    }
    items
}

/// Servers write the definitions, so the hash is keyed: no server can make two that look the same.
fn digest(bytes: &[u8]) -> u64 {
    static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYED.hash_one(bytes)
}
