//! Lists and their items: pages, and what metadata says of an item.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

/// A page of a list with these items.
pub(super) fn list(key: &str, items: Vec<Json>, next: String) -> Json {
    let mut page = Map::new();
    page.insert(key.to_owned(), items.into());
    if !next.is_empty() {
        page.insert("nextCursor".to_owned(), next.into());
    }
    Json::Object(page)
}

/// Adds the title, what JSON text in the metadata says of these members (`mcp.KEY`), and all else
/// that is not MCP's as texts in `_meta`.
pub(super) fn extend(
    item: &mut Map<String, Json>,
    mut metadata: HashMap<String, String>,
    members: &[&str],
) {
    item.extend(
        metadata
            .remove("mcp.title")
            .map(|title| ("title".to_owned(), title.into())),
    );
    for member in members {
        let said = metadata.remove(&format!("mcp.{member}"));
        let said = said.and_then(|text| serde_json::from_str::<Json>(&text).ok());
        item.extend(said.map(|said| ((*member).to_owned(), said)));
    }
    let own = metadata
        .into_iter()
        .filter(|(key, _)| !key.starts_with("mcp."));
    let own: Vec<_> = own.map(|(key, text)| (key, Json::from(text))).collect();
    if own.is_empty() {
        return;
    }
    let meta = item
        .entry("_meta")
        .or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(meta) = meta {
        for (key, text) in own {
            meta.entry(key).or_insert(text);
        }
    }
}
