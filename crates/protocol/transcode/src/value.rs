//! `google.protobuf.Struct`, `Value` and `Any` beside JSON.

use std::collections::HashMap;

use prost::Message;
use prost_types::{Any, ListValue, Struct, Value, value::Kind};
use schema::{Typed, UnsaidParts};
use serde_json::Value as Json;

use crate::key;

/// The URL prefix of messages in an `Any`. Readers look at what follows the last slash only.
const PREFIX: &str = "type.googleapis.com/";
/// Packs a message.
pub(crate) fn pack(name: &str, message: &impl Message) -> Any {
    Any {
        type_url: format!("{PREFIX}{name}"),
        value: message.encode_to_vec(),
    }
}

/// Packs arguments or a result of a tool. Parts that the message cannot say come into `metadata`.
pub(crate) fn pack_typed(typed: &Typed, metadata: &mut HashMap<String, String>) -> Any {
    let marks = typed.marks();
    for (key, places) in [(key::EMPTY, &marks.empty), (key::NULL, &marks.null)] {
        if let Some(text) = UnsaidParts::spell(places) {
            metadata.insert(key.to_owned(), text);
        }
    }
    Any {
        type_url: typed.type_url(),
        value: typed.bytes(),
    }
}

/// Packs a JSON value: an object as `Struct`, any other as `Value`.
pub(crate) fn pack_json(json: &Json) -> Any {
    match to_value(json).kind {
        Some(Kind::StructValue(object)) => pack("google.protobuf.Struct", &object),
        kind => pack("google.protobuf.Value", &Value { kind }),
    }
}

/// A JSON value as protobuf's.
pub(crate) fn to_value(json: &Json) -> Value {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(truth) => Kind::BoolValue(*truth),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text.clone()),
        Json::Array(items) => Kind::ListValue(ListValue {
            values: items.iter().map(to_value).collect(),
        }),
        Json::Object(members) => Kind::StructValue(Struct {
            fields: members
                .iter()
                .map(|(key, value)| (key.clone(), to_value(value)))
                .collect(),
        }),
    };
    Value { kind: Some(kind) }
}
