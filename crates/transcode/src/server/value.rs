//! Any JSON value as `google.protobuf.Value`, and back.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Number, Value as Json};

/// Integers beyond this are not exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number that a double cannot carry exactly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the number {0} has too many digits for a server that reads protobuf")]
pub struct Inexact(String);

/// A JSON object as a `Struct`.
pub(super) fn to_struct(object: &Map<String, Json>) -> Result<Struct, Inexact> {
    let one = |(key, value): (&String, &Json)| Ok((key.clone(), to_value(value)?));
    Ok(Struct { fields: object.iter().map(one).collect::<Result<_, Inexact>>()? })
}

fn to_value(json: &Json) -> Result<Value, Inexact> {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(is) => Kind::BoolValue(*is),
        Json::Number(number) => Kind::NumberValue(to_double(number)?),
        Json::String(text) => Kind::StringValue(text.clone()),
        Json::Array(items) => {
            let values = items.iter().map(to_value).collect::<Result<_, Inexact>>()?;
            Kind::ListValue(ListValue { values })
        }
        Json::Object(object) => Kind::StructValue(to_struct(object)?),
    };
    Ok(Value { kind: Some(kind) })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "2^53 is whole and positive")]
fn to_double(number: &Number) -> Result<f64, Inexact> {
    let inexact = || Inexact(number.to_string());
    let double = number.as_f64().filter(|double| double.is_finite()).ok_or_else(inexact)?;
    let whole = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
    let exact = whole.is_none_or(|whole| whole <= EXACT as u64);
    if exact { Ok(double) } else { Err(inexact()) }
}

/// A `Struct` as a JSON object.
pub(super) fn of_struct(object: Struct) -> Map<String, Json> {
    object.fields.into_iter().map(|(key, value)| (key, of_value(value))).collect()
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
#[allow(clippy::cast_possible_truncation, reason = "it is whole and within 2^53")]
fn of_double(double: f64) -> Json {
    if double.fract() == 0.0 && double.abs() <= EXACT {
        return Json::from(double as i64);
    }
    Number::from_f64(double).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_returns_and_no_number_changes() {
        let json =
            serde_json::json!({"a": [1, -2.5, true, null, "x", {"b": {}}], "c": 9_007_199_254_740_992_u64});
        let Json::Object(object) = &json else { panic!("{json}") };
        assert_eq!(Json::Object(of_struct(to_struct(object).unwrap())), json);
        let big = serde_json::json!({"id": 9_007_199_254_740_993_u64});
        assert!(to_struct(big.as_object().unwrap()).unwrap_err().to_string().contains("9007199254740993"));
        assert_eq!(of_double(f64::NAN), Json::Null);
    }
}
