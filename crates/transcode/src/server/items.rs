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

/// Adds the title, and what JSON text in the metadata says of these members (`mcp.KEY`).
pub(super) fn extend(item: &mut Map<String, Json>, mut metadata: HashMap<String, String>, members: &[&str]) {
    item.extend(metadata.remove("mcp.title").map(|title| ("title".to_owned(), title.into())));
    for member in members {
        let said = metadata.remove(&format!("mcp.{member}"));
        let said = said.and_then(|text| serde_json::from_str::<Json>(&text).ok());
        item.extend(said.map(|said| ((*member).to_owned(), said)));
    }
}
