//! `google.protobuf.Value` as JSON.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Number, Value as Json};

/// Integers beyond this are not exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A `Struct` as a JSON object.
pub(super) fn of_struct(object: Struct) -> Map<String, Json> {
    object
        .fields
        .into_iter()
        .map(|(key, value)| (key, of_value(value)))
        .collect()
}

/// A `Value` as JSON.
pub(super) fn of_value(value: Value) -> Json {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(is)) => Json::Bool(is),
        Some(Kind::NumberValue(double)) => of_double(double),
        Some(Kind::StringValue(text)) => Json::String(text),
        Some(Kind::ListValue(list)) => of_list(list),
        Some(Kind::StructValue(object)) => Json::Object(of_struct(object)),
    }
}

/// A `ListValue` as JSON.
pub(super) fn of_list(list: ListValue) -> Json {
    Json::Array(list.values.into_iter().map(of_value).collect())
}

/// A double as JSON: whole numbers without a fraction, what JSON has no number for as null.
#[allow(
    clippy::cast_possible_truncation,
    reason = "it is whole and within 2^53"
)]
fn of_double(double: f64) -> Json {
    if double.fract() == 0.0 && double.abs() <= EXACT {
        return Json::from(double as i64);
    }
    Number::from_f64(double).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn every_value_returns_and_no_number_changes() {
        let json = r#"{"a":[1,-2.5,true,null,"x",{"b":{}}],"c":9007199254740992}"#;
        let written = schema::struct_from_json(json.as_bytes()).unwrap().bytes();
        let read = of_struct(Struct::decode(written.as_slice()).unwrap());
        assert_eq!(Json::Object(read).to_string(), json);
        assert_eq!(of_double(f64::NAN), Json::Null);
    }
}
