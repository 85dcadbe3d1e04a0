//! Schemas of a description as JSON Schema 2020-12: those of 3.0 upgraded, references gathered in
//! `$defs`, sizes bounded.
//!
//! What a schema of arguments says is kept. A schema of answers only describes them: APIs deviate
//! from what they promise, and clients that check answers would lose good ones. So it names types
//! and members, and demands nothing.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use crate::document::{Dialect, Document};
use crate::names::{self, Taken};
use crate::refs::{self, Unusable};

/// The longest input schema, in bytes. Definitions beyond it accept everything: the API checks its
/// input itself.
pub const INPUT_SCHEMA_BYTES_MAX: usize = 64 << 10;
/// The longest output schema, in bytes. A tool whose answers would need more has none.
pub const OUTPUT_SCHEMA_BYTES_MAX: usize = 24 << 10;

/// Bytes of a value beside its texts, as JSON writes it.
const VALUE_BYTES: usize = 6;

/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

/// Side of a call that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    Output,
}

/// The schemas of one tool, with the definitions that they share.
pub(crate) struct Schemas<'d> {
    document: &'d Document,
    direction: Direction,
    /// The definitions' names, by reference.
    named: BTreeMap<String, String>,
    taken: Taken,
    /// References whose definitions are not written yet.
    waiting: VecDeque<String>,
    /// Bytes that may still be written.
    left: usize,
}

impl<'d> Schemas<'d> {
    pub(crate) fn new(document: &'d Document, direction: Direction) -> Self {
        let left = match direction {
            Direction::Input => INPUT_SCHEMA_BYTES_MAX,
            Direction::Output => OUTPUT_SCHEMA_BYTES_MAX,
        };
        Self {
            document,
            direction,
            named: BTreeMap::new(),
            taken: Taken::default(),
            waiting: VecDeque::new(),
            left,
        }
    }

    fn is_input(&self) -> bool {
        self.direction == Direction::Input
    }

    /// Counts a value that is written, with the bytes of its texts.
    fn spend(&mut self, bytes: usize) -> Result<(), Unusable> {
        self.left = self
            .left
            .checked_sub(bytes + VALUE_BYTES)
            .ok_or(Unusable::TooLarge)?;
        Ok(())
    }

    /// Converts one schema. References in it become references into [`Schemas::definitions`].
    pub(crate) fn convert(&mut self, schema: &Value) -> Result<Value, Unusable> {
        self.spend(0)?;
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(accepts) => return Ok(Value::Bool(*accepts)),
            _ => return Ok(json!({})),
        };
        let mut out = Map::new();
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let name = self.name_of(reference)?;
            out.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
            if self.document.dialect == Dialect::V30 {
                return Ok(out.into());
            }
        }
        if members.contains_key("$dynamicRef") || members.contains_key("$recursiveRef") {
            return Err(Unusable::because(
                "its schema has a `$dynamicRef`, which is not supported",
            ));
        }
        for (key, value) in members {
            let Some(value) = self.member(key, value)? else {
                continue;
            };
            self.spend(key.len())?;
            // JSON Schema 2020-12 has another name for a list of items than for all items' schema.
            let is_tuple = key == "items" && value.is_array();
            let key = if is_tuple { "prefixItems" } else { key };
            out.insert(key.to_owned(), value);
        }
        self.upgrade(members, &mut out)?;
        Ok(out.into())
    }

    /// The value of one keyword; `None` for one that says nothing here, or that is not what JSON
    /// Schema has under its name.
    fn member(&mut self, key: &str, value: &Value) -> Result<Option<Value>, Unusable> {
        match key {
            "properties" | "patternProperties" | "dependentSchemas" => self.properties(value),
            "items" if value.is_array() => self.list(value),
            "items" | "contentSchema" => self.convert(value).map(Some),
            "additionalProperties" if self.is_input() || value.is_object() => {
                self.convert(value).map(Some)
            }
            "allOf" | "anyOf" | "prefixItems" => self.list(value),
            "type" => Ok(types(value)),
            "title" | "description" => self.text(value),
            _ if self.is_input() => self.input_member(key, value),
            _ => Ok(None),
        }
    }

    /// The value of a keyword that demands something, which only schemas of arguments keep.
    fn input_member(&mut self, key: &str, value: &Value) -> Result<Option<Value>, Unusable> {
        match key {
            "not"
            | "contains"
            | "propertyNames"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties" => self.convert(value).map(Some),
            "oneOf" => self.list(value),
            "format" | "pattern" | "contentEncoding" | "contentMediaType" => self.text(value),
            "enum" => match value {
                Value::Array(values) if !values.is_empty() => self.whole(value).map(Some),
                _ => Ok(None),
            },
            "const" | "default" => self.whole(value).map(Some),
            "dependentRequired" => {
                let whole = self.whole(value)?;
                Ok(is_dependent_required(&whole).then_some(whole))
            }
            _ if is_number_or_flag(key, value) => Ok(Some(value.clone())),
            _ => Ok(None),
        }
    }

    /// Schemas by name, without those of the other way.
    fn properties(&mut self, value: &Value) -> Result<Option<Value>, Unusable> {
        let Value::Object(schemas) = value else {
            return Ok(None);
        };
        let mut out = Map::new();
        for (name, schema) in schemas {
            if self.is_of_other_way(schema) {
                continue;
            }
            self.spend(name.len())?;
            out.insert(name.clone(), self.convert(schema)?);
        }
        Ok(Some(out.into()))
    }

    /// A list of schemas, which JSON Schema does not allow to be empty.
    fn list(&mut self, value: &Value) -> Result<Option<Value>, Unusable> {
        let schemas = match value {
            Value::Array(schemas) if !schemas.is_empty() => schemas,
            _ => return Ok(None),
        };
        let mut converted = Vec::with_capacity(schemas.len());
        for schema in schemas {
            converted.push(self.convert(schema)?);
        }
        Ok(Some(converted.into()))
    }

    fn text(&mut self, value: &Value) -> Result<Option<Value>, Unusable> {
        let Some(text) = value.as_str() else {
            return Ok(None);
        };
        self.spend(text.len())?;
        Ok(Some(text.into()))
    }

    /// A value that is no schema, as it is.
    fn whole(&mut self, value: &Value) -> Result<Value, Unusable> {
        self.spend_whole(value)?;
        // Bounded by what was spent.
        Ok(value.clone())
    }

    fn spend_whole(&mut self, value: &Value) -> Result<(), Unusable> {
        self.spend(0)?;
        match value {
            Value::String(text) => self.spend(text.len()),
            Value::Array(values) => values.iter().try_for_each(|value| self.spend_whole(value)),
            Value::Object(members) => members.iter().try_for_each(|(key, value)| {
                self.spend(key.len())?;
                self.spend_whole(value)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// Writes the keywords that OpenAPI 3.0 spells in another way than JSON Schema, and those that
    /// depend on others.
    fn upgrade(
        &mut self,
        from: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) -> Result<(), Unusable> {
        if self.is_input() {
            self.upgrade_input(from, out)
        } else {
            self.upgrade_output(from, out)
        }
    }

    fn upgrade_output(
        &mut self,
        from: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) -> Result<(), Unusable> {
        // `oneOf` demands that only one alternative fits. A schema that has `anyOf` too keeps that.
        if let Some(alternatives) = from.get("oneOf")
            && !out.contains_key("anyOf")
            && let Some(list) = self.list(alternatives)?
        {
            out.insert("anyOf".to_owned(), list);
        }
        if out.contains_key("type") {
            admit_null(out);
        }
        Ok(())
    }

    fn upgrade_input(
        &mut self,
        from: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) -> Result<(), Unusable> {
        if let Some(Value::Array(names)) = from.get("required") {
            self.require(names, from.get("properties"), out)?;
        }
        // In 3.0 these are flags beside the bound, in JSON Schema the bound itself.
        for (exclusive, bound) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            if is_set(from, exclusive)
                && let Some(value) = out.remove(bound)
            {
                out.insert(exclusive.to_owned(), value);
            }
        }
        if let Some(example) = from.get("example")
            && !example.is_object()
            && !example.is_array()
        {
            let example = self.whole(example)?;
            out.insert("examples".to_owned(), json!([example]));
        }
        if is_binary(from) {
            out.remove("format");
            out.insert("contentEncoding".to_owned(), "base64".into());
        }
        if self.document.dialect == Dialect::V30 && is_set(from, "nullable") {
            admit_null(out);
        }
        Ok(())
    }

    /// Writes `required`, without the properties that are left out.
    fn require(
        &mut self,
        names: &[Value],
        properties: Option<&Value>,
        out: &mut Map<String, Value>,
    ) -> Result<(), Unusable> {
        self.spend(names.len())?;
        let mut needed: Vec<&str> = Vec::new();
        for name in names.iter().filter_map(Value::as_str) {
            let property = properties.and_then(|properties| properties.get(name));
            if !property.is_some_and(|property| self.is_of_other_way(property)) {
                needed.push(name);
            }
        }
        // JSON Schema demands that they are unique.
        needed.sort_unstable();
        needed.dedup();
        if needed.is_empty() {
            return Ok(());
        }
        out.insert("required".to_owned(), json!(needed));
        self.spend(needed.iter().map(|name| name.len() + 4).sum())
    }

    /// Whether a property is only for the other way: `readOnly` ones are in answers, `writeOnly`
    /// ones in requests.
    fn is_of_other_way(&self, property: &Value) -> bool {
        let flag = if self.is_input() {
            "readOnly"
        } else {
            "writeOnly"
        };
        property.get(flag) == Some(&Value::Bool(true))
    }

    /// Puts words about an argument into its schema, before those that it has.
    pub(crate) fn describe(
        &mut self,
        schema: &mut Value,
        mut words: String,
    ) -> Result<(), Unusable> {
        if words.is_empty() {
            return Ok(());
        }
        self.spend(words.len())?;
        if let Value::Bool(_) = schema {
            *schema = json!({});
        }
        let Some(members) = schema.as_object_mut() else {
            return Ok(());
        };
        if let Some(Value::String(described)) = members.get("description")
            && *described != words
        {
            words = format!("{words} {described}");
        }
        members.insert("description".to_owned(), words.into());
        Ok(())
    }

    /// The name of the definition that a reference leads to.
    fn name_of(&mut self, reference: &str) -> Result<String, Unusable> {
        if let Some(name) = self.named.get(reference).cloned() {
            self.spend(name.len() + 16)?;
            return Ok(name);
        }
        // A definition that is nothing but a way back to itself would be an endless one.
        refs::object(
            &self.document.root,
            refs::target(&self.document.root, reference)?,
        )?;
        let name = names::of_definition(reference, &mut self.taken);
        self.spend(2 * name.len() + 32)?;
        self.named.insert(reference.to_owned(), name.clone());
        self.waiting.push_back(reference.to_owned());
        Ok(name)
    }

    /// The bytes that were written, those of what was given up included.
    pub(crate) fn spent(&self) -> usize {
        let all = if self.is_input() {
            INPUT_SCHEMA_BYTES_MAX
        } else {
            OUTPUT_SCHEMA_BYTES_MAX
        };
        all - self.left
    }

    /// The definitions that the converted schemas need, those of definitions included: the nearest
    /// first. In a schema of arguments those beyond the bound accept everything.
    pub(crate) fn definitions(&mut self) -> Result<Map<String, Value>, Unusable> {
        let mut out = Map::new();
        while let Some(reference) = self.waiting.pop_front() {
            let target = refs::target(&self.document.root, &reference)?;
            let converted = match self.convert(target) {
                Err(Unusable::TooLarge) if self.is_input() => {
                    self.left = 0;
                    json!({})
                }
                converted => converted?,
            };
            if let Some(name) = self.named.get(&reference) {
                out.insert(name.clone(), converted);
            }
        }
        Ok(out)
    }
}

/// Whether a schema has a flag of OpenAPI, and it is set.
fn is_set(schema: &Map<String, Value>, flag: &str) -> bool {
    schema.get(flag) == Some(&Value::Bool(true))
}

/// Whether a keyword is a bound, a count or a flag, and its value what JSON Schema has for it.
fn is_number_or_flag(key: &str, value: &Value) -> bool {
    match key {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.is_u64(),
        "uniqueItems" | "deprecated" => value.is_boolean(),
        _ => false,
    }
}

/// Whether a schema is one of bytes, which JSON has no text for.
pub(crate) fn is_binary(schema: &Map<String, Value>) -> bool {
    schema.get("format").and_then(Value::as_str) == Some("binary")
        || schema.get("contentMediaType").and_then(Value::as_str)
            == Some("application/octet-stream")
}

/// The types that JSON Schema has.
fn types(value: &Value) -> Option<Value> {
    match value {
        Value::String(name) if TYPES.contains(&name.as_str()) => Some(value.clone()),
        Value::Array(names) if names.len() <= TYPES.len() => {
            let mut known: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            known.retain(|name| TYPES.contains(name));
            known.sort_unstable();
            known.dedup();
            if known.is_empty() {
                return None;
            }
            Some(json!(known))
        }
        _ => None,
    }
}

/// Whether a value is one of `dependentRequired`: lists of names, by name.
fn is_dependent_required(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().all(is_list_of_names),
        _ => false,
    }
}

/// Whether a value is a list of texts, each of which is in it once.
fn is_list_of_names(value: &Value) -> bool {
    let Value::Array(items) = value else {
        return false;
    };
    let mut names: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names.dedup();
    // Shorter if an item is no text, or is there twice.
    names.len() == items.len()
}

/// Has a schema accept `null` too.
fn admit_null(schema: &mut Map<String, Value>) {
    match schema.get_mut("type") {
        Some(Value::String(name)) if name != "null" => {
            let both = json!([name, "null"]);
            schema.insert("type".to_owned(), both);
        }
        Some(Value::Array(names)) if !names.contains(&"null".into()) => names.push("null".into()),
        Some(_) => {}
        None => {
            let rest = std::mem::take(schema);
            schema.insert("anyOf".to_owned(), json!([rest, { "type": "null" }]));
            return;
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(version: &str, schemas: &Value) -> Document {
        let text = json!({ "openapi": version, "paths": {}, "components": { "schemas": schemas } });
        Document::read(text.to_string().as_bytes()).unwrap()
    }

    fn converted(version: &str, direction: Direction, schema: &Value) -> Value {
        let document = document(version, &json!({}));
        Schemas::new(&document, direction).convert(schema).unwrap()
    }

    #[test]
    fn schemas_of_3_0_become_2020_12() {
        for (from, to) in [
            (
                json!({ "type": "string", "nullable": true }),
                json!({ "type": ["string", "null"] }),
            ),
            (
                json!({ "type": "string", "nullable": true, "enum": ["a"] }),
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
            ),
            (
                json!({ "nullable": true, "allOf": [{ "type": "object" }] }),
                json!({ "anyOf": [{ "allOf": [{ "type": "object" }] }, { "type": "null" }] }),
            ),
            (
                json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false }),
                json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 9 }),
            ),
            (
                json!({ "type": "string", "example": "x" }),
                json!({ "type": "string", "examples": ["x"] }),
            ),
            (
                json!({ "type": "string", "format": "binary" }),
                json!({ "type": "string", "contentEncoding": "base64" }),
            ),
            (
                json!({ "type": "object", "required": ["id", "name"], "properties": {
                    "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } } }),
                json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } }),
            ),
            // What is no JSON Schema is left out.
            (
                json!({ "type": "file", "required": true, "minLength": "3", "enum": [], "xml": {}, "discriminator": {}, "x-a": 1, "$id": "a" }),
                json!({}),
            ),
            (
                json!({ "items": [{ "type": "string" }] }),
                json!({ "prefixItems": [{ "type": "string" }] }),
            ),
            (json!(7), json!({})),
        ] {
            assert_eq!(converted("3.0.3", Direction::Input, &from), to, "{from}");
        }
    }

    #[test]
    fn schemas_of_3_1_keep_their_keywords() {
        let schema = json!({ "type": ["null", "string"], "const": "a", "exclusiveMinimum": 3, "if": true, "then": { "minLength": 2 },
            "unevaluatedProperties": false, "prefixItems": [true], "dependentRequired": { "a": ["b"] } });
        assert_eq!(converted("3.1.0", Direction::Input, &schema), schema);
    }

    #[test]
    fn schemas_of_answers_demand_nothing() {
        let schema = json!({ "type": "object", "required": ["a"], "additionalProperties": false, "properties": {
            "a": { "type": "string", "enum": ["x"], "pattern": "^x$", "description": "A." }, "b": { "writeOnly": true } } });
        let lenient = json!({ "type": ["object", "null"], "properties": {
            "a": { "type": ["string", "null"], "description": "A." } } });
        assert_eq!(converted("3.1.0", Direction::Output, &schema), lenient);
        let either = json!({ "oneOf": [{ "type": "string" }] });
        let any = json!({ "anyOf": [{ "type": ["string", "null"] }] });
        assert_eq!(converted("3.1.0", Direction::Output, &either), any);
    }

    #[test]
    fn references_and_cycles_become_definitions() {
        let document = document(
            "3.1.0",
            &json!({ "Node": { "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" },
                     "of": { "$ref": "#/components/schemas/a~1Node" } } },
                     "a/Node": { "type": "string" }, "Unused": { "type": "null" },
                     "Loop": { "$ref": "#/components/schemas/Pool" }, "Pool": { "$ref": "#/components/schemas/Loop" } }),
        );
        let mut schemas = Schemas::new(&document, Direction::Input);
        let node = json!({ "$ref": "#/components/schemas/Node", "description": "Here." });
        assert_eq!(
            schemas.convert(&node),
            Ok(json!({ "$ref": "#/$defs/Node", "description": "Here." }))
        );
        let all = json!({ "Node": { "type": "object", "properties": {
            "next": { "$ref": "#/$defs/Node" }, "of": { "$ref": "#/$defs/a_1Node" } } },
            "a_1Node": { "type": "string" } });
        assert_eq!(Value::from(schemas.definitions().unwrap()), all);
        for (reference, why) in [
            ("https://other.test/schema.json", "another document"),
            ("file:///etc/passwd", "another document"),
            ("../common.yaml#/A", "another document"),
            ("#/components/schemas/Nowhere", "leads to nothing"),
            ("#anchor", "leads to nothing"),
            ("#/components/schemas/Loop", "circle"),
        ] {
            let mut schemas = Schemas::new(&document, Direction::Input);
            let refused = schemas
                .convert(&json!({ "items": { "$ref": reference } }))
                .unwrap_err()
                .why();
            assert!(refused.contains(why), "{reference}: {refused}");
        }
    }

    #[test]
    fn schemas_are_bounded() {
        let choice = |bytes: usize| json!({ "enum": ["x".repeat(bytes)] });
        let size = |direction, bytes| {
            let document = document("3.1.0", &json!({ "Big": choice(bytes) }));
            let mut schemas = Schemas::new(&document, direction);
            let of = schemas
                .convert(&json!({ "$ref": "#/components/schemas/Big" }))
                .unwrap();
            assert_eq!(of, json!({ "$ref": "#/$defs/Big" }));
            schemas
                .definitions()
                .map(|all: Map<String, Value>| Value::from(all).to_string().len())
        };
        assert!(
            size(Direction::Input, INPUT_SCHEMA_BYTES_MAX - 200).unwrap()
                > INPUT_SCHEMA_BYTES_MAX - 200
        );
        // Beyond the bound it accepts everything.
        assert_eq!(
            size(Direction::Input, INPUT_SCHEMA_BYTES_MAX),
            Ok(r#"{"Big":{}}"#.len())
        );
        let document = document("3.1.0", &json!({}));
        let inline = |direction, bytes| Schemas::new(&document, direction).convert(&choice(bytes));
        assert_eq!(
            inline(Direction::Input, INPUT_SCHEMA_BYTES_MAX),
            Err(Unusable::TooLarge)
        );
        let described = |bytes: usize| json!({ "description": "x".repeat(bytes) });
        let mut schemas = Schemas::new(&document, Direction::Output);
        assert!(
            schemas
                .convert(&described(OUTPUT_SCHEMA_BYTES_MAX - 200))
                .is_ok()
        );
        assert_eq!(schemas.convert(&described(200)), Err(Unusable::TooLarge));
    }
}
