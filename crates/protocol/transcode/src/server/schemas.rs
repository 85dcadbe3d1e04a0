//! Schemas that a server sends with its tools: read together, described in JSON Schema.

use bytes::Bytes;
use model::Refusal;
use schema::{Descriptors, SetError, ToolReference, ToolSchema, json_schema};
use wire::proto::contract::{Tool, tool::SchemaSource};

use crate::arguments::{invalid, wrong};
use crate::client::call_params;
use crate::key;

/// The schema of a tool as it came, unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentSchema {
    /// The server's name of the tool.
    pub tool: String,
    /// Source of its descriptors.
    pub source: DescriptorSource,
    reference: Option<String>,
    input: Option<String>,
    output: Option<String>,
    takes_struct: bool,
}

/// Source of the descriptors of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescriptorSource {
    /// Here: a serialized `google.protobuf.FileDescriptorSet`.
    Inline(Bytes),
    /// In a registry: `host/owner/module/symbol[:version]`. [`SentSchema::resolved`] sets what it
    /// stands for.
    Reference(String),
}

/// The messages of a server's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentTool {
    /// The messages.
    pub schema: ToolSchema,
    /// The reference that the server gave to them.
    pub reference: Option<String>,
    /// Whether arguments that the message cannot carry may go as a `google.protobuf.Struct`: the
    /// server said in JSON Schema what it takes, which can be more.
    pub takes_struct: bool,
    /// Whether the server named the message of its results. Clients of MCP refuse results without
    /// what was described to them, so a message that only looks like it is not described.
    pub names_output: bool,
}

impl SentSchema {
    /// The schema that came with a tool, if one did.
    pub(super) fn of(tool: &Tool) -> Option<Self> {
        let (source, reference) = match tool.schema_source.as_ref()? {
            SchemaSource::InlineSchema(set) => (
                DescriptorSource::Inline(set.clone()),
                tool.metadata.get(key::REFERENCE).cloned(),
            ),
            SchemaSource::BsrRef(reference) => (
                DescriptorSource::Reference(reference.clone()),
                Some(reference.clone()),
            ),
        };
        Some(Self {
            tool: tool.name.clone(),
            source,
            reference,
            input: tool.metadata.get(key::INPUT_MESSAGE).cloned(),
            output: tool.metadata.get(key::OUTPUT_MESSAGE).cloned(),
            takes_struct: tool.metadata.contains_key(key::INPUT_SCHEMA),
        })
    }

    /// The tool and the reference of a schema that is elsewhere.
    #[must_use]
    pub fn far(&self) -> Option<(String, String)> {
        match &self.source {
            DescriptorSource::Inline(_) => None,
            DescriptorSource::Reference(reference) => Some((self.tool.clone(), reference.clone())),
        }
    }

    /// The schema, with the set that its reference stands for.
    #[must_use]
    pub fn resolved(self, set: Bytes) -> Self {
        Self {
            source: DescriptorSource::Inline(set),
            ..self
        }
    }

    fn find(&self, descriptors: &Descriptors) -> Result<SentTool, SetError> {
        let named = ToolReference {
            tool: &self.tool,
            symbol: self.reference.as_deref().and_then(symbol_of),
            input: self.input.as_deref(),
            output: self.output.as_deref(),
        };
        let schema = ToolSchema::find(descriptors, &named)?;
        let reference = self.reference.clone();
        let names_output = self.output.is_some();
        Ok(SentTool {
            schema,
            reference,
            takes_struct: self.takes_struct,
            names_output,
        })
    }
}

/// Reads the inline schemas of a server's tools: each tool's messages, or why they cannot be used.
/// It compiles their rules, a few milliseconds a tool: not on the path of a call.
#[must_use]
pub fn read(sent: &[SentSchema]) -> Vec<(String, Result<SentTool, String>)> {
    let mut inline = Vec::new();
    let mut sets: Vec<&[u8]> = Vec::new();
    for one in sent {
        if let DescriptorSource::Inline(set) = &one.source {
            inline.push(one);
            sets.push(set);
        }
    }
    let mut tools = Vec::with_capacity(inline.len());
    for (one, descriptors) in inline.into_iter().zip(Descriptors::read_all(&sets)) {
        let found = descriptors.and_then(|descriptors| one.find(&descriptors));
        tools.push((one.tool.clone(), found.map_err(|why| why.to_string())));
    }
    tools
}

impl SentTool {
    /// Checks arguments in JSON as the message that the server gets: whether they are one, and the
    /// message's rules. Arguments that go as a `google.protobuf.Struct` have no rules.
    ///
    /// # Errors
    /// As [`call_params`].
    pub fn check(&self, arguments: &[u8]) -> Result<(), Refusal> {
        match self.schema.arguments_from_json(arguments) {
            Ok(typed) => self.schema.validate(&typed).map_err(invalid),
            Err(_) if self.takes_struct => Ok(()),
            Err(why) => Err(wrong(why)),
        }
    }

    /// Checks a `CallToolRequest` whose bytes pass to the server as they are. `checked` is the
    /// schema by which it was checked before.
    ///
    /// # Errors
    /// As [`call_params`].
    pub fn check_message(&self, call: &Bytes, checked: Option<&ToolSchema>) -> Result<(), Refusal> {
        match checked {
            Some(checked) if checked.is(&self.schema) => Ok(()),
            Some(_) | None => call_params(call, &self.schema).map(drop),
        }
    }

    /// An item of `tools/list` with JSON Schemas of the messages, where the server wrote none.
    /// `None` if the item stays as it is.
    #[must_use]
    pub fn described(&self, item: &[u8]) -> Option<Vec<u8>> {
        let mut schemas = Vec::new();
        if !self.takes_struct && !self.schema.takes_struct() {
            schemas.push(("inputSchema", json_schema(self.schema.input())));
        }
        if let Some(output) = self.schema.output()
            && self.names_output
            && json::at(item, &["outputSchema"]).is_none()
            // A result of any form needs no description.
            && !output.full_name().starts_with("google.protobuf.")
        {
            schemas.push(("outputSchema", json_schema(output)));
        }
        if schemas.is_empty() {
            return None;
        }
        let changes: Vec<_> = schemas
            .iter()
            .map(|(key, schema)| (*key, Some(schema.as_slice())))
            .collect();
        json::edited(item, &changes).ok()
    }
}

/// The symbol of a reference `host/owner/module/symbol[:version]`.
fn symbol_of(reference: &str) -> Option<&str> {
    reference.splitn(4, '/').nth(3)?.split(':').next()
}

#[cfg(test)]
mod tests {
    use model::RefusalCode;
    use schema::compile;
    use serde_json::{Value as Json, json};

    use super::*;

    fn tool(name: &str, source: SchemaSource, metadata: &[(&str, &str)]) -> SentSchema {
        let metadata = metadata
            .iter()
            .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
            .collect();
        let tool = Tool {
            name: name.into(),
            schema_source: Some(source),
            metadata,
            ..Tool::default()
        };
        SentSchema::of(&tool).unwrap()
    }

    fn set() -> SchemaSource {
        let text = "syntax = \"proto3\"; package acme; message FindRequest { optional string q = 1; } message FindResponse { int32 n = 1; }";
        SchemaSource::InlineSchema(
            compile(&[("a.proto".to_owned(), text.to_owned())])
                .unwrap()
                .into(),
        )
    }

    #[test]
    fn messages_are_described_in_json_schema() {
        let output = (key::OUTPUT_MESSAGE, "acme.FindResponse");
        let [(_, found)] = &*read(&[tool("find", set(), &[output])]) else {
            panic!()
        };
        let found = found.as_ref().unwrap();
        let item: Json = serde_json::from_slice(
            &found
                .described(br#"{"name":"find","inputSchema":{"type":"object"}}"#)
                .unwrap(),
        )
        .unwrap();
        assert_eq!(
            item["inputSchema"]["properties"],
            json!({ "q": { "type": "string" } })
        );
        assert_eq!(item["outputSchema"]["properties"]["n"]["type"], "integer");
        // A message that only looks like the result's is not described, and what the server said in
        // JSON Schema stays.
        let [(_, said)] = &*read(&[tool("find", set(), &[(key::INPUT_SCHEMA, "{}")])]) else {
            panic!()
        };
        assert!(said.as_ref().unwrap().takes_struct);
        let full = br#"{"name":"find","inputSchema":{"a":1}}"#;
        assert_eq!(said.as_ref().unwrap().described(full), None);
    }

    #[test]
    fn arguments_are_checked_as_the_message_that_they_become() {
        let text = "syntax = \"proto3\"; package acme; import \"buf/validate/validate.proto\"; \
            message FindRequest { string q = 1 [(buf.validate.field).string.min_len = 2]; }";
        let set = compile(&[("a.proto".to_owned(), text.to_owned())]).unwrap();
        let [(_, found)] = &*read(&[tool("find", SchemaSource::InlineSchema(set.into()), &[])])
        else {
            panic!()
        };
        let found = found.clone().unwrap();
        let code = |tool: &SentTool, arguments: &str| {
            tool.check(arguments.as_bytes()).map_err(|why| why.code)
        };
        for (arguments, expected) in [
            (r#"{"q":"ab"}"#, Ok(())),
            (r#"{"q":"a"}"#, Err(RefusalCode::SchemaViolation)),
            ("{}", Err(RefusalCode::SchemaViolation)),
            (r#"{"q":5}"#, Err(RefusalCode::Malformed)),
            ("null", Err(RefusalCode::Malformed)),
        ] {
            assert_eq!(code(&found, arguments), expected, "{arguments}");
        }
        // What goes as a `Struct` has no message whose rules it could break.
        let open = SentTool {
            takes_struct: true,
            ..found.clone()
        };
        assert_eq!(code(&open, r#"{"q":5}"#), Ok(()));
        assert_eq!(
            code(&open, r#"{"q":"a"}"#),
            Err(RefusalCode::SchemaViolation)
        );
        // A call that was checked by this schema is not checked twice.
        let call = Bytes::from_static(b"\x0a\x04find");
        let copy = found.schema.clone();
        assert!(found.check_message(&call, Some(&copy)).is_ok());
        assert_eq!(
            found.check_message(&call, None).unwrap_err().code,
            RefusalCode::SchemaViolation
        );
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_named() {
        let bad = tool("a", SchemaSource::InlineSchema(vec![0xFF].into()), &[]);
        let other = tool("other", set(), &[]);
        let far = tool(
            "b",
            SchemaSource::BsrRef("buf.build/acme/tools/acme.FindRequest:v1".into()),
            &[],
        );
        let read = read(&[
            bad,
            other,
            far.clone(),
            far.resolved(match set() {
                SchemaSource::InlineSchema(set) => set,
                SchemaSource::BsrRef(_) => Bytes::new(),
            }),
        ]);
        let shown: Vec<_> = read
            .iter()
            .map(|(name, found)| (name.as_str(), found.is_ok()))
            .collect();
        assert_eq!(shown, [("a", false), ("other", false), ("b", true)]);
    }
}
