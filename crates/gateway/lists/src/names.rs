//! A server's lists as the topic has them: names and digests, and what is withheld.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use topic::Withholding;
use upstream::Manifest;
use wire::mcp::extensions;

/// A server's lists as names and digests. Of a server that lists in two eras, everything that is in
/// either.
pub fn topic_manifest(manifests: &[Arc<Manifest>]) -> topic::Manifest {
    let items = |kind| {
        let mut items: Vec<topic::ListItem> = Vec::new();
        let mut known = HashSet::new();
        let withheld = |name: &str| match manifests
            .iter()
            .any(|manifest| manifest.withholds(kind, name))
        {
            true => Withholding::Listed,
            false => Withholding::None,
        };
        for item in manifests
            .iter()
            .flat_map(|manifest| &manifest.list(kind).items)
        {
            if known.insert(item.key.as_str()) {
                let own = item.key.as_str().into();
                let digest = digest(&item.raw);
                let app = extensions::app_of(kind, &item.raw).map(|uri| uri.as_ref().into());
                items.push(topic::ListItem {
                    own,
                    digest,
                    withheld: withheld(&item.key),
                    app,
                });
            }
        }
        for one in manifests
            .iter()
            .flat_map(|manifest| manifest.withheld_of(kind))
        {
            if known.insert(one.name.as_str()) {
                let own = one.name.as_str().into();
                let withheld = Withholding::Unlisted;
                items.push(topic::ListItem {
                    own,
                    digest: 0,
                    withheld,
                    app: None,
                });
            }
        }
        items
    };
    topic::Manifest::new(items)
}

/// Servers write the definitions, so the hash is keyed: no server can make two that look the same.
fn digest(bytes: &[u8]) -> u64 {
    static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYED.hash_one(bytes)
}
