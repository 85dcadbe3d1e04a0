//! Lists of tools and resources.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use prost::Message as _;
use schema::{Reference, ToolSchema};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::proto::PayloadKind;
use wire::proto::contract::{ListResourcesRequest, ListToolsRequest, tool::SchemaSource};
use wire::proto::contract::{ListResourcesResponse, ListToolsResponse, Resource, Tool};

use crate::key;

/// Form in which a client wants tools to be listed.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Schemas by reference to a registry. Without it they are inline.
    pub references: bool,
    /// The imports that both sides have are sent too.
    pub full_descriptors: bool,
    /// JSON Schemas in `metadata`.
    pub json_schemas: bool,
    /// Only the tools of these references, with or without a version. Empty for all.
    pub only: Vec<String>,
}

/// The schema of a tool by its public name, and its reference if a registry has it.
pub type Lookup<'l> = dyn Fn(&str) -> Option<(ToolSchema, Option<String>)> + 'l;

/// The params of `tools/list` or `resources/list`, and what the client wants of the answer.
///
/// # Errors
/// [`RefusalCode::Malformed`] if the bytes are no such message.
pub fn list_params(kind: PayloadKind, message: &Bytes) -> Result<(Vec<u8>, Wanted), Refusal> {
    let (cursor, wanted) = if kind == PayloadKind::ListResourcesRequest {
        let asked = ListResourcesRequest::decode(message.clone()).map_err(|_| no_request())?;
        (asked.cursor, Wanted::default())
    } else {
        let asked = ListToolsRequest::decode(message.clone()).map_err(|_| no_request())?;
        let wanted = Wanted {
            references: !asked.include_schemas,
            only: asked.bsr_refs,
            ..Wanted::default()
        };
        (asked.cursor, wanted)
    };
    let params = json::object(|params| {
        params.optional_text("cursor", (!cursor.is_empty()).then_some(&*cursor));
    });
    Ok((params, wanted))
}

fn no_request() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "the request is no list request")
}

/// An entry of `tools/list`, as far as the contract has places for it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolEntry<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    icons: Option<&'a RawValue>,
    #[serde(borrow)]
    execution: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// A page of `tools/list` or `resources/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, rename = "tools", alias = "resources")]
    entries: Vec<&'a RawValue>,
    #[serde(borrow)]
    next_cursor: Option<Cow<'a, str>>,
}

/// A page of `tools/list` as the payload field of a `ListToolsResponse`.
///
/// # Errors
/// [`RefusalCode::UpstreamFailed`] if the result is no page.
pub fn tools(result: &[u8], wanted: &Wanted, lookup: &Lookup<'_>) -> Result<Bytes, Refusal> {
    let page = page(result)?;
    let tools = page
        .entries
        .iter()
        .filter_map(|entry| tool(entry.get(), wanted, lookup));
    let response = ListToolsResponse {
        tools: tools.collect(),
        next_cursor: page.next_cursor.unwrap_or_default().into_owned(),
    };
    Ok(PayloadKind::ListToolsResponse.field_of(&response))
}

fn page(result: &[u8]) -> Result<Page<'_>, Refusal> {
    serde_json::from_slice(result)
        .map_err(|_| Refusal::new(RefusalCode::UpstreamFailed, "the list cannot be read"))
}

/// An entry of a list as a tool; `None` if the client does not want it. An entry that is none of
/// MCP's is left out too, as a client would.
fn tool(raw: &str, wanted: &Wanted, lookup: &Lookup<'_>) -> Option<Tool> {
    let entry: ToolEntry<'_> = serde_json::from_str(raw).ok()?;
    let (schema, reference) = match lookup(&entry.name) {
        Some((schema, reference)) => (Some(schema), reference),
        None => (None, None),
    };
    let is_wanted = wanted.only.is_empty()
        || wanted
            .only
            .iter()
            .any(|asked| is_named(asked, reference.as_deref()));
    if !is_wanted {
        return None;
    }
    let mut metadata = HashMap::new();
    let all = &mut metadata;
    put(all, key::TITLE, entry.title.as_deref());
    put(all, "mcp.annotations", entry.annotations.map(RawValue::get));
    put(all, "mcp.icons", entry.icons.map(RawValue::get));
    put(all, "mcp.execution", entry.execution.map(RawValue::get));
    put(all, key::META, entry.meta.map(RawValue::get));
    put_texts(all, entry.meta);
    if wanted.json_schemas {
        put(
            all,
            key::INPUT_SCHEMA,
            entry.input_schema.map(RawValue::get),
        );
        put(
            all,
            key::OUTPUT_SCHEMA,
            entry.output_schema.map(RawValue::get),
        );
    }
    if let Some(schema) = &schema {
        let output = schema.output().map(|output| output.full_name());
        put(all, key::INPUT_MESSAGE, Some(schema.input().full_name()));
        put(all, key::OUTPUT_MESSAGE, output);
    }
    let schema_source = match (&schema, reference) {
        (_, Some(reference)) if wanted.references => Some(SchemaSource::BsrRef(reference)),
        (schema, reference) => {
            // The client need not resolve it: the schema is here too.
            put(all, key::REFERENCE, reference.as_deref());
            schema.as_ref().map(|schema| inline(schema, wanted))
        }
    };
    let description = entry.description.unwrap_or_default().into_owned();
    Some(Tool {
        name: entry.name.into_owned(),
        description,
        metadata,
        schema_source,
    })
}

/// The descriptors of a tool as they stand in a list.
fn inline(schema: &ToolSchema, wanted: &Wanted) -> SchemaSource {
    SchemaSource::InlineSchema(if wanted.full_descriptors {
        schema.full_set()
    } else {
        schema.set()
    })
}

/// Adds a text to metadata, if there is one.
fn put(metadata: &mut HashMap<String, String>, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        metadata.insert(key.to_owned(), text.to_owned());
    }
}

/// Adds the texts of `_meta` under their own keys, as peers of proto-mcp write them; MCP's own keys
/// are not theirs to name.
fn put_texts(metadata: &mut HashMap<String, String>, meta: Option<&RawValue>) {
    let members =
        meta.and_then(|meta| serde_json::from_str::<HashMap<String, &RawValue>>(meta.get()).ok());
    for (key, value) in members.into_iter().flatten() {
        if key.starts_with("mcp.") {
            continue;
        }
        if let Some(text) = json::text(value.get().as_bytes()) {
            metadata.insert(key, text.into_owned());
        }
    }
}

/// Whether a reference is the one asked for, which may leave the version open.
fn is_named(asked: &str, reference: Option<&str>) -> bool {
    let Some(Ok(reference)) = reference.map(str::parse::<Reference>) else {
        return false;
    };
    match asked.parse::<Reference>() {
        Ok(asked) => reference.is_selected_by(&asked),
        Err(_) => false,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntry<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    mime_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    icons: Option<&'a RawValue>,
    size: Option<u64>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// A page of `resources/list` as the payload field of a `ListResourcesResponse`.
///
/// # Errors
/// [`RefusalCode::UpstreamFailed`] if the result is no page.
pub fn resources(result: &[u8]) -> Result<Bytes, Refusal> {
    let page = page(result)?;
    let resources = page
        .entries
        .iter()
        .filter_map(|entry| resource(entry.get()));
    let response = ListResourcesResponse {
        resources: resources.collect(),
        next_cursor: page.next_cursor.unwrap_or_default().into_owned(),
    };
    Ok(PayloadKind::ListResourcesResponse.field_of(&response))
}

/// A resource of MCP: an entry of a list, or a link in a result.
pub(super) fn resource(raw: &str) -> Option<Resource> {
    let entry: ResourceEntry<'_> = serde_json::from_str(raw).ok()?;
    let size = entry.size.map(|size| size.to_string());
    let mut metadata = HashMap::new();
    let all = &mut metadata;
    put(all, key::TITLE, entry.title.as_deref());
    put(all, "mcp.annotations", entry.annotations.map(RawValue::get));
    put(all, "mcp.icons", entry.icons.map(RawValue::get));
    put(all, "mcp.size", size.as_deref());
    put(all, key::META, entry.meta.map(RawValue::get));
    put_texts(all, entry.meta);
    Some(Resource {
        metadata,
        uri: entry.uri.into_owned(),
        name: entry.name.into_owned(),
        description: entry.description.unwrap_or_default().into_owned(),
        mime_type: entry.mime_type.unwrap_or_default().into_owned(),
    })
}
