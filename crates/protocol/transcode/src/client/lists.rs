//! Lists of tools and resources.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use prost::Message as _;
use schema::{Reference, ToolSchema};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::proto::Kind;
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
pub fn list_params(kind: Kind, message: &Bytes) -> Result<(Vec<u8>, Wanted), Refusal> {
    let wrong = |_| Refusal::new(RefusalCode::Malformed, "the request is no list request");
    let (cursor, wanted) = match kind {
        Kind::ListResourcesRequest => (
            ListResourcesRequest::decode(message.clone())
                .map_err(wrong)?
                .cursor,
            Wanted::default(),
        ),
        _ => {
            let asked = ListToolsRequest::decode(message.clone()).map_err(wrong)?;
            let references = !asked.include_schemas;
            (
                asked.cursor,
                Wanted {
                    references,
                    only: asked.bsr_refs,
                    ..Wanted::default()
                },
            )
        }
    };
    let params = json::object(|params| {
        params.optional_text("cursor", (!cursor.is_empty()).then_some(&*cursor));
    });
    Ok((params, wanted))
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, alias = "resources")]
    tools: Vec<&'a RawValue>,
    #[serde(borrow)]
    next_cursor: Option<Cow<'a, str>>,
}

/// A page of `tools/list` as the payload field of a `ListToolsResponse`.
///
/// # Errors
/// [`RefusalCode::UpstreamFailed`] if the result is no page.
pub fn tools(result: &[u8], wanted: &Wanted, lookup: &Lookup<'_>) -> Result<Bytes, Refusal> {
    let (entries, next_cursor) = page(result)?;
    let tools = entries
        .iter()
        .filter_map(|entry| tool(entry.get(), wanted, lookup));
    let page = ListToolsResponse {
        tools: tools.collect(),
        next_cursor,
    };
    Ok(Kind::ListToolsResponse.field_of(&page))
}

fn page(result: &[u8]) -> Result<(Vec<&RawValue>, String), Refusal> {
    let page: Page<'_> = serde_json::from_slice(result)
        .map_err(|_| Refusal::new(RefusalCode::UpstreamFailed, "the list cannot be read"))?;
    Ok((
        page.tools,
        page.next_cursor.unwrap_or_default().into_owned(),
    ))
}

/// An entry that is none of MCP's is left out, as a client would.
fn tool(raw: &str, wanted: &Wanted, lookup: &Lookup<'_>) -> Option<Tool> {
    let entry: ToolEntry<'_> = serde_json::from_str(raw).ok()?;
    let found = lookup(&entry.name);
    let (schema, reference) = found.map_or((None, None), |(schema, reference)| {
        (Some(schema), reference)
    });
    if !wanted.only.is_empty()
        && !wanted
            .only
            .iter()
            .any(|one| is_named(one, reference.as_deref()))
    {
        return None;
    }
    let mut metadata = HashMap::new();
    let mut put = |key: &str, text: Option<&str>| {
        if let Some(text) = text {
            metadata.insert(key.to_owned(), text.to_owned());
        }
    };
    put(key::TITLE, entry.title.as_deref());
    put("mcp.annotations", entry.annotations.map(RawValue::get));
    put("mcp.icons", entry.icons.map(RawValue::get));
    put("mcp.execution", entry.execution.map(RawValue::get));
    put(key::META, entry.meta.map(RawValue::get));
    put_texts(&mut metadata, entry.meta);
    let mut put = |key: &str, text: Option<&str>| {
        if let Some(text) = text {
            metadata.insert(key.to_owned(), text.to_owned());
        }
    };
    if wanted.json_schemas {
        put(key::INPUT_SCHEMA, entry.input_schema.map(RawValue::get));
        put(key::OUTPUT_SCHEMA, entry.output_schema.map(RawValue::get));
    }
    put(
        key::INPUT_MESSAGE,
        schema.as_ref().map(|schema| schema.input().full_name()),
    );
    put(
        key::OUTPUT_MESSAGE,
        schema
            .as_ref()
            .and_then(|schema| Some(schema.output()?.full_name())),
    );
    let by_reference = reference.clone().filter(|_| wanted.references);
    if by_reference.is_none() {
        put(key::REFERENCE, reference.as_deref());
    }
    let inline = |schema: &ToolSchema| {
        if wanted.full_descriptors {
            schema.full_set()
        } else {
            schema.set()
        }
    };
    let schema_source = match by_reference {
        Some(reference) => Some(SchemaSource::BsrRef(reference)),
        None => schema
            .as_ref()
            .map(|schema| SchemaSource::InlineSchema(inline(schema))),
    };
    let description = entry.description.unwrap_or_default().into_owned();
    Some(Tool {
        name: entry.name.into_owned(),
        description,
        metadata,
        schema_source,
    })
}

/// Adds the texts of `_meta` under their own keys, as peers of proto-mcp write them; MCP's own keys
/// are not theirs to name.
fn put_texts(metadata: &mut HashMap<String, String>, meta: Option<&RawValue>) {
    let meta =
        meta.and_then(|meta| serde_json::from_str::<HashMap<String, &RawValue>>(meta.get()).ok());
    for (key, value) in meta
        .into_iter()
        .flatten()
        .filter(|(key, _)| !key.starts_with("mcp."))
    {
        let text = json::text(value.get().as_bytes());
        metadata.extend(text.map(|text| (key, text.into_owned())));
    }
}

/// Whether a reference is the one asked for, which may leave the version open.
fn is_named(asked: &str, reference: Option<&str>) -> bool {
    let read = |text: &str| text.parse::<Reference>().ok();
    reference
        .and_then(read)
        .zip(read(asked))
        .is_some_and(|(reference, asked)| reference.is_selected_by(&asked))
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
    let (entries, next_cursor) = page(result)?;
    let resources = entries.iter().filter_map(|entry| resource(entry.get()));
    let page = ListResourcesResponse {
        resources: resources.collect(),
        next_cursor,
    };
    Ok(Kind::ListResourcesResponse.field_of(&page))
}

/// A resource of MCP: an entry of a list, or a link in a result.
pub(super) fn resource(raw: &str) -> Option<Resource> {
    let entry: ResourceEntry<'_> = serde_json::from_str(raw).ok()?;
    let size = entry.size.map(|size| size.to_string());
    let metadata = [
        (key::TITLE, entry.title.as_deref()),
        ("mcp.annotations", entry.annotations.map(RawValue::get)),
        ("mcp.icons", entry.icons.map(RawValue::get)),
        ("mcp.size", size.as_deref()),
        (key::META, entry.meta.map(RawValue::get)),
    ];
    let metadata = metadata
        .into_iter()
        .filter_map(|(key, text)| Some((key.to_owned(), text?.to_owned())));
    let mut metadata: HashMap<_, _> = metadata.collect();
    put_texts(&mut metadata, entry.meta);
    Some(Resource {
        metadata,
        uri: entry.uri.into_owned(),
        name: entry.name.into_owned(),
        description: entry.description.unwrap_or_default().into_owned(),
        mime_type: entry.mime_type.unwrap_or_default().into_owned(),
    })
}
