//! JSON files as trees, members in the order of the file.

use std::fmt;
use std::sync::Arc;

use crate::config::node::{Layer, Node, TreeEntry, Value};
use crate::config::problem::Problem;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a JSON document. A `null` member counts as absent.
///
/// # Errors
/// One problem with its line when the text is not JSON or repeats a member.
pub(crate) fn read(text: &str, layer: &Arc<Layer>) -> Result<Node, Problem> {
    let json: Json = serde_json::from_str(text).map_err(|error| {
        let mut location = layer.unknown_line();
        location.line = Some(error.line());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or("not JSON").to_owned();
        Problem::new("config_syntax", message).at(&location).hint("this file must be JSON, without comments")
    })?;
    Ok(node(json, layer).unwrap_or_else(|| Node::empty(layer)))
}

enum Json {
    Null,
    Flag(bool),
    Integer(i64),
    Decimal(f64),
    Text(String),
    List(Vec<Json>),
    Table(Vec<(String, Json)>),
}

fn node(json: Json, layer: &Arc<Layer>) -> Option<Node> {
    let value = match json {
        Json::Null => return None,
        Json::Flag(flag) => Value::Flag(flag),
        Json::Integer(number) => Value::Integer(number),
        Json::Decimal(number) => Value::Decimal(number),
        Json::Text(text) => Value::Text(text),
        Json::List(items) => Value::List(items.into_iter().filter_map(|item| node(item, layer)).collect()),
        Json::Table(members) => {
            let entry = |(key, json)| {
                Some(TreeEntry { key, location: layer.unknown_line(), node: node(json, layer)? })
            };
            Value::Table(members.into_iter().filter_map(entry).collect())
        }
    };
    Some(Node { value, location: layer.unknown_line() })
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        i64::try_from(number).map(Json::Integer).map_err(|_| E::custom("a number is too large"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Decimal(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut table: Vec<(String, Json)> = Vec::new();
        while let Some((key, value)) = members.next_entry::<String, Json>()? {
            if table.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format!("the member `{key}` occurs twice")));
            }
            table.push((key, value));
        }
        Ok(Json::Table(table))
    }
}
