//! A page of tools, and the messages that its tools name.

use std::collections::HashMap;

use schema::{Descriptors, Named, ToolSchema};
use serde_json::{Map, Value as Json, json};
use wire::proto::contract::{ListToolsResponse, Tool, tool::SchemaSource};

use super::items::{extend, list};

/// A page of tools.
#[derive(Debug)]
pub struct ToolPage {
    /// The result of `tools/list`.
    pub result: Json,
    /// The messages of the tools that came with a schema, by name. The arguments of every other tool are a `Struct`.
    pub schemas: HashMap<String, ToolSchema>,
    /// Tools whose schemas cannot be used, each with the reason. They are listed without one.
    pub bad: Vec<(String, String)>,
}

/// Reads a page.
#[must_use]
pub fn page(page: ListToolsResponse) -> ToolPage {
    let (mut tools, mut schemas, mut bad) = (Vec::new(), HashMap::new(), Vec::new());
    for tool in page.tools {
        match schema_of(&tool) {
            Ok(None) => {}
            Ok(Some(found)) => drop(schemas.insert(tool.name.clone(), found)),
            Err(why) => bad.push((tool.name.clone(), why)),
        }
        tools.push(item(tool));
    }
    let result = list("tools", tools, page.next_cursor);
    ToolPage { result, schemas, bad }
}

/// The messages of a tool; `None` if it has no schema with it.
fn schema_of(tool: &Tool) -> Result<Option<ToolSchema>, String> {
    let Some(SchemaSource::InlineSchema(set)) = &tool.schema_source else { return Ok(None) };
    let said = |key: &str| tool.metadata.get(key).map(String::as_str);
    let symbol = said("mcp.bsr_ref").and_then(symbol_of);
    let named = Named {
        tool: &tool.name,
        symbol,
        input: said("mcp.input_message"),
        output: said("mcp.output_message"),
    };
    let found = Descriptors::read(set).and_then(|read| ToolSchema::find(&read, &named));
    found.map(Some).map_err(|why| why.to_string())
}

/// The symbol of a reference `host/owner/module/symbol[:version]`.
fn symbol_of(reference: &str) -> Option<&str> {
    reference.splitn(4, '/').nth(3)?.split(':').next()
}

/// A tool as an item of `tools/list`.
fn item(tool: Tool) -> Json {
    let mut item = Map::new();
    item.insert("name".to_owned(), tool.name.into());
    if !tool.description.is_empty() {
        item.insert("description".to_owned(), tool.description.into());
    }
    let mut metadata = tool.metadata;
    let input = metadata.remove("mcp.input_schema").and_then(|text| object(&text));
    let output = metadata.remove("mcp.output_schema").and_then(|text| object(&text));
    item.insert("inputSchema".to_owned(), input.unwrap_or_else(|| json!({ "type": "object" })));
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
        let metadata = metadata.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        let tool = Tool { name: "a".into(), description: "d".into(), metadata, ..Tool::default() };
        let read = page(ListToolsResponse { tools: vec![tool], next_cursor: String::new() });
        assert_eq!(
            read.result,
            json!({ "tools": [{
                "name": "a", "description": "d", "inputSchema": { "type": "object" }, "title": "A",
                "annotations": { "readOnlyHint": true },
            }] })
        );
        assert!(read.schemas.is_empty() && read.bad.is_empty());
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_named() {
        let tool = Tool {
            name: "a".into(),
            schema_source: Some(SchemaSource::InlineSchema(vec![0xFF].into())),
            ..Tool::default()
        };
        let read = page(ListToolsResponse { tools: vec![tool], next_cursor: String::new() });
        assert_eq!((read.schemas.len(), read.bad.len()), (0, 1));
    }
}
