//! `google.protobuf.Struct`, `Value` and `Any` beside JSON.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::{Any, ListValue, Struct, Value, value::Kind};
use serde_json::Value as Json;

/// The URL prefix of messages in an `Any`. Readers look at what follows the last slash only.
const PREFIX: &str = "type.googleapis.com/";
/// The largest integer below which a double holds every other one.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// The full name of the message in an `Any`.
pub(crate) fn name_of(any: &Any) -> &str {
    any.type_url.rsplit('/').next().unwrap_or_default()
}

/// Packs a message.
pub(crate) fn pack(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("{PREFIX}{name}"), value: message.encode_to_vec() }
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
        Json::Array(items) => Kind::ListValue(ListValue { values: items.iter().map(to_value).collect() }),
        Json::Object(members) => Kind::StructValue(Struct {
            fields: members.iter().map(|(key, value)| (key.clone(), to_value(value))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}

/// A protobuf object as JSON.
pub(crate) fn object(object: &Struct) -> Json {
    // In one order, whatever that of the map is.
    let members: BTreeMap<_, _> = object.fields.iter().collect();
    Json::Object(members.into_iter().map(|(key, value)| (key.clone(), of_value(value))).collect())
}

/// A protobuf value as JSON. Infinities and NaN, which JSON does not have, become null.
pub(crate) fn of_value(value: &Value) -> Json {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(truth)) => Json::Bool(*truth),
        Some(Kind::NumberValue(number)) => number_of(*number),
        Some(Kind::StringValue(text)) => Json::String(text.clone()),
        Some(Kind::ListValue(list)) => Json::Array(list.values.iter().map(of_value).collect()),
        Some(Kind::StructValue(members)) => object(members),
    }
}

/// A whole number is written without a fraction, as JSON's writers do.
fn number_of(number: f64) -> Json {
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and in the range of i64")]
    let whole = (number.fract() == 0.0 && number.abs() <= INTEGER_MAX).then_some(number as i64);
    match whole {
        Some(whole) => Json::from(whole),
        None => Json::from(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_survives() {
        let text = r#"{"a":[1,-2.5,true,null,"x",{}],"b":{"c":9007199254740992}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(of_value(&to_value(&json)).to_string(), text);
    }
}
