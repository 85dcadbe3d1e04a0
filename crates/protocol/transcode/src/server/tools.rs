//! A page of tools.

use serde_json::{Map, Value as Json, json};
use wire::proto::contract::{ListToolsResponse, Tool};

use super::items::{extend, list};
use super::schemas::SentSchema;
use crate::key;

/// A page of tools.
#[derive(Debug)]
pub struct ToolPage {
    /// The result of `tools/list`. Tools take any object, unless the server wrote a JSON Schema.
    pub result: Json,
    /// The schemas that came with tools.
    pub schemas: Vec<SentSchema>,
}

/// Reads a page.
#[must_use]
pub fn page(page: ListToolsResponse) -> ToolPage {
    let schemas = page.tools.iter().filter_map(SentSchema::of).collect();
    let tools = page.tools.into_iter().map(item).collect();
    ToolPage {
        result: list("tools", tools, page.next_cursor),
        schemas,
    }
}

/// A tool as an item of `tools/list`.
fn item(tool: Tool) -> Json {
    let mut item = Map::new();
    item.insert("name".to_owned(), tool.name.into());
    if !tool.description.is_empty() {
        item.insert("description".to_owned(), tool.description.into());
    }
    let mut metadata = tool.metadata;
    let input = metadata
        .remove(key::INPUT_SCHEMA)
        .and_then(|text| object(&text));
    let output = metadata
        .remove(key::OUTPUT_SCHEMA)
        .and_then(|text| object(&text));
    item.insert(
        "inputSchema".to_owned(),
        input.unwrap_or_else(|| json!({ "type": "object" })),
    );
    item.extend(output.map(|schema| ("outputSchema".to_owned(), schema)));
    extend(&mut item, metadata, &["annotations", "icons", "_meta"]);
    Json::Object(item)
}

fn object(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok().filter(Json::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_schema_takes_any_object() {
        let metadata = [
            ("mcp.title", "A"),
            ("mcp.annotations", r#"{"readOnlyHint":true}"#),
            ("mcp.icons", "not json"),
            ("owner", "x"),
        ];
        let metadata = metadata
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into();
        let tool = Tool {
            name: "a".into(),
            description: "d".into(),
            metadata,
            ..Tool::default()
        };
        let read = page(ListToolsResponse {
            tools: vec![tool],
            next_cursor: String::new(),
        });
        assert_eq!(
            read.result,
            json!({ "tools": [{
                "name": "a", "description": "d", "inputSchema": { "type": "object" }, "title": "A",
                "annotations": { "readOnlyHint": true }, "_meta": { "owner": "x" },
            }] })
        );
        assert!(read.schemas.is_empty());
    }
}
