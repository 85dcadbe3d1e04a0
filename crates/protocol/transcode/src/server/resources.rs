//! A page of resources, and their contents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};
use wire::proto::contract::{
    ListResourcesResponse, ReadResourceResponse, Resource, ResourceContent,
    resource_content::Content,
};

use super::items::{extend, list};

/// A page as a result of `resources/list`.
#[must_use]
pub fn page(page: ListResourcesResponse) -> Json {
    let items = page
        .resources
        .into_iter()
        .map(|item| Json::Object(resource(item)))
        .collect();
    list("resources", items, page.next_cursor)
}

/// A resource as an item of the list, without the members that are empty.
pub(super) fn resource(resource: Resource) -> Map<String, Json> {
    let Resource {
        uri,
        mut name,
        description,
        mime_type,
        metadata,
    } = resource;
    // MCP wants a name.
    if name.is_empty() {
        name.clone_from(&uri);
    }
    let mut item = Map::new();
    item.insert("uri".to_owned(), uri.into());
    item.insert("name".to_owned(), name.into());
    for (key, text) in [("description", description), ("mimeType", mime_type)] {
        if !text.is_empty() {
            item.insert(key.to_owned(), text.into());
        }
    }
    extend(
        &mut item,
        metadata,
        &["annotations", "icons", "size", "_meta"],
    );
    item
}

/// The contents of a resource as a `ReadResourceResult`.
#[must_use]
pub fn read(answer: ReadResourceResponse) -> Json {
    json!({ "contents": answer.contents.into_iter().map(content).collect::<Vec<_>>() })
}

/// One content of a resource.
pub(super) fn content(content: ResourceContent) -> Json {
    let mut item = Map::new();
    item.insert("uri".to_owned(), content.uri.into());
    if !content.mime_type.is_empty() {
        item.insert("mimeType".to_owned(), content.mime_type.into());
    }
    match content.content {
        Some(Content::Blob(blob)) => item.insert("blob".to_owned(), STANDARD.encode(blob).into()),
        Some(Content::Text(text)) => item.insert("text".to_owned(), text.into()),
        None => item.insert("text".to_owned(), "".into()),
    };
    Json::Object(item)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_resource_keeps_what_it_says() {
        let metadata = HashMap::from([
            ("mcp.title".to_owned(), "A".to_owned()),
            ("mcp.size".to_owned(), "3".to_owned()),
        ]);
        let named = Resource {
            uri: "file:///a".into(),
            name: "a".into(),
            mime_type: "text/plain".into(),
            metadata,
            ..Resource::default()
        };
        let bare = Resource {
            uri: "file:///b".into(),
            ..Resource::default()
        };
        assert_eq!(
            page(ListResourcesResponse {
                resources: vec![named, bare],
                next_cursor: "2".into()
            }),
            json!({
                "resources": [
                    { "uri": "file:///a", "name": "a", "mimeType": "text/plain", "title": "A", "size": 3 },
                    { "uri": "file:///b", "name": "file:///b" },
                ],
                "nextCursor": "2",
            })
        );
    }
}
