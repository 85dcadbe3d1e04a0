//! Keywords of JSON Schema as a plan needs them: which subschemas each applies, to what, and what
//! its assertions read.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::node::{Node, size};
use super::patterns;

/// Values in a schema.
const VALUES_MAX: usize = 10_000;
/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 2_048;

/// The number of values in a schema, to which each pattern adds its own weight.
///
/// # Errors
/// It is too large, or refers to what a plan cannot follow.
pub(super) fn look_through(schema: &Value) -> Result<usize, String> {
    let dialect = schema
        .get("$schema")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let id = if dialect.contains("draft-04") {
        "id"
    } else {
        "$id"
    };
    let mut values = 0;
    let mut states = 0_u64;
    let mut weight = 0;
    let mut waiting = vec![(schema, true)];
    while let Some((value, is_root)) = waiting.pop() {
        values += 1;
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, false))),
            Value::Object(members) => {
                for (name, member) in members {
                    if !is_root && (name == id || name == "$schema") && member.is_string() {
                        return Err(format!(
                            "its input schema has a schema with a `{name}` in it"
                        ));
                    }
                    for pattern in keyword(name, member)? {
                        if pattern.len() > PATTERN_BYTES_MAX {
                            let why = "its input schema has a pattern of more than";
                            return Err(format!("{why} {PATTERN_BYTES_MAX} bytes"));
                        }
                        let more = patterns::states(pattern);
                        states = states.saturating_add(more);
                        weight += patterns::values(more) as usize;
                        if states > patterns::STATES_MAX {
                            return Err("the patterns in its input schema are too large together"
                                .to_owned());
                        }
                    }
                    waiting.push((member, false));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        // What waits is counted too: no long list is made of a schema that is too large.
        if values + waiting.len() > VALUES_MAX {
            return Err(format!(
                "its input schema has more than {VALUES_MAX} values"
            ));
        }
    }
    Ok(values + weight)
}

/// The patterns in a member, whether or not it is a keyword where it stands.
fn keyword<'s>(name: &str, member: &'s Value) -> Result<Vec<&'s str>, String> {
    Ok(match (name, member) {
        ("$ref", Value::String(to)) if !to.starts_with('#') => {
            return Err("its input schema refers to another document".to_owned());
        }
        ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
            return Err(format!("its input schema has a `{name}`"));
        }
        ("pattern", Value::String(pattern)) => vec![pattern],
        ("patternProperties", Value::Object(of)) => of.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    })
}

/// The subschemas that a schema can reach from its root.
///
/// # Errors
/// A reference leads nowhere.
pub(super) fn nodes(schema: &Value) -> Result<Vec<Node>, String> {
    let mut reader = Reader {
        root: schema,
        numbers: HashMap::new(),
        waiting: Vec::new(),
    };
    let mut nodes = Vec::new();
    reader.number(schema);
    while let Some(next) = reader.waiting.get(nodes.len()).copied() {
        nodes.push(match next {
            Value::Object(members) => reader.node(members)?,
            Value::Bool(_) => Node::default(),
            _ => return Err("its input schema refers to what is no schema".to_owned()),
        });
    }
    Ok(nodes)
}

/// Numbers subschemas in the order in which they are found.
struct Reader<'s> {
    root: &'s Value,
    /// By address: two equal subschemas are two.
    numbers: HashMap<*const Value, usize>,
    waiting: Vec<&'s Value>,
}

impl<'s> Reader<'s> {
    fn number(&mut self, schema: &'s Value) -> usize {
        let next = self.waiting.len();
        let number = *self
            .numbers
            .entry(std::ptr::from_ref(schema))
            .or_insert(next);
        if number == next {
            self.waiting.push(schema);
        }
        number
    }

    fn each(&mut self, schemas: impl IntoIterator<Item = &'s Value>) -> Vec<usize> {
        // A list of names in `dependencies` is no schema.
        let schemas = schemas
            .into_iter()
            .filter(|one| one.is_object() || one.is_boolean());
        schemas.map(|one| self.number(one)).collect()
    }

    fn node(&mut self, members: &'s Map<String, Value>) -> Result<Node, String> {
        let mut node = Node::default();
        for (name, value) in members {
            match (name.as_str(), value) {
                ("$ref", Value::String(to)) => {
                    let target = self
                        .target(to)
                        .ok_or("its input schema has a reference that leads nowhere")?;
                    node.here.push(self.number(target));
                }
                ("allOf", Value::Array(all)) => node.here.extend(self.each(all)),
                ("anyOf" | "oneOf", Value::Array(any)) => {
                    node.is_choice = true;
                    node.here.extend(self.each(any));
                }
                ("not", one) => {
                    node.copies = node.copies.saturating_add(size(one));
                    node.here.extend(self.each([one]));
                }
                ("if" | "then" | "else", one) => node.here.extend(self.each([one])),
                ("dependentSchemas" | "dependencies", Value::Object(of)) => {
                    node.steps = node.steps.saturating_add(size(value));
                    node.here.extend(self.each(of.values()));
                }
                ("properties", Value::Object(of)) => {
                    node.steps = node.steps.saturating_add(of.len() as u64);
                    for (member, one) in of {
                        let number = self.number(one);
                        node.members.insert(member.clone(), number);
                    }
                }
                ("patternProperties", Value::Object(of)) => {
                    node.byte_steps[1] += names_steps(of);
                    node.each_member.extend(self.each(of.values()));
                }
                ("additionalProperties", one) => {
                    // It matches names with the patterns once more.
                    let patterns = members.get("patternProperties").and_then(Value::as_object);
                    node.byte_steps[1] += patterns.map_or(0, names_steps);
                    node.each_member.extend(self.each([one]));
                }
                ("unevaluatedProperties", one) => {
                    node.repeats = true;
                    node.each_member.extend(self.each([one]));
                }
                ("propertyNames", one) => node.names.extend(self.each([one])),
                ("items" | "prefixItems", Value::Array(places)) => {
                    // No `filter`: a place is a number.
                    node.places = places.iter().map(|one| self.number(one)).collect();
                }
                ("items" | "additionalItems" | "contains", one) => {
                    node.each_item.extend(self.each([one]))
                }
                ("unevaluatedItems", one) => {
                    node.repeats = true;
                    node.each_item.extend(self.each([one]));
                }
                ("pattern", Value::String(pattern)) => {
                    node.byte_steps[0] += patterns::byte_steps(pattern)
                }
                ("uniqueItems", Value::Bool(true)) => {
                    node.compares = true;
                    node.reads += 1;
                }
                ("enum" | "const", _) => {
                    node.steps = node.steps.saturating_add(size(value));
                    node.reads += 1;
                }
                ("minLength" | "maxLength" | "contentEncoding" | "contentMediaType", _) => {
                    node.reads += 1
                }
                ("required" | "dependentRequired" | "type", _) => {
                    node.steps = node.steps.saturating_add(size(value));
                }
                _ => node.steps = node.steps.saturating_add(1),
            }
        }
        Ok(node)
    }

    /// The place in the schema that a reference names.
    fn target(&self, to: &str) -> Option<&'s Value> {
        let pointer = percent_decode_str(to.strip_prefix('#')?)
            .decode_utf8()
            .ok()?;
        self.root.pointer(&pointer)
    }
}

fn names_steps(patterns: &Map<String, Value>) -> u64 {
    patterns
        .keys()
        .map(|pattern| patterns::byte_steps(pattern))
        .sum()
}
