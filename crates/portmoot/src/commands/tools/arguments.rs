//! Tool arguments on the command line: `key=text`, `key:=json`, or one JSON object. Numbers keep their spelling.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exit::Exit;
use crate::failure::Failure;

/// Members of an object in their order, values with their spelling.
struct Members(Vec<(String, Box<RawValue>)>);

/// Builds one JSON object: `whole`, with the members of `single` added or replaced.
///
/// # Errors
/// When an argument cannot be parsed.
pub(crate) fn read(whole: Option<&str>, single: &[String]) -> Result<String, Failure> {
    let Members(mut members) = match whole {
        None => Members(Vec::new()),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            wrong(
                format!("--args is not a JSON object: {error}"),
                "for example --args '{\"path\": \"/tmp\"}'",
            )
        })?,
    };
    for argument in single {
        let (key, value) = one(argument)?;
        match members.iter_mut().find(|(known, _)| *known == key) {
            Some(member) => member.1 = value,
            None => members.push((key, value)),
        }
    }
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str()))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

fn one(argument: &str) -> Result<(String, Box<RawValue>), Failure> {
    let hint = "write key=text, key:=json, or --args JSON";
    let (key, value) =
        argument.split_once('=').ok_or_else(|| wrong(format!("`{argument}` has no `=`"), hint))?;
    let (key, value) = match key.strip_suffix(':') {
        Some(key) => (
            key,
            serde_json::from_str(value).map_err(|error| {
                wrong(
                    format!("the value of `{key}` is not JSON: {error}"),
                    "to pass a text, leave out the colon: key=text",
                )
            })?,
        ),
        None => {
            (key, serde_json::value::to_raw_value(value).map_err(|error| wrong(error.to_string(), hint))?)
        }
    };
    if key.is_empty() {
        return Err(wrong(format!("`{argument}` has no key"), hint));
    }
    Ok((key.to_owned(), value))
}

fn wrong(message: String, hint: &str) -> Failure {
    Failure::new(Exit::Usage, "bad_argument", message).hint(hint)
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if members.iter().any(|(known, _)| *known == key) {
                        return Err(serde::de::Error::custom(format!("`{key}` occurs twice")));
                    }
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_make_an_object() {
        for (whole, single, expect) in [
            (None, &[][..], Some("{}")),
            (None, &["a=1", "b=x=y", "c="][..], Some(r#"{"a":"1","b":"x=y","c":""}"#)),
            (
                None,
                &["n:=12345678901234567890123", "l:=[1, 2]", "t:=true"],
                Some(r#"{"n":12345678901234567890123,"l":[1, 2],"t":true}"#),
            ),
            (
                Some(r#"{"z":-0.0,"a":1e400}"#),
                &["a=q\"", "b:=null"],
                Some(r#"{"z":-0.0,"a":"q\"","b":null}"#),
            ),
            (Some("[]"), &[], None),
            (Some(r#"{"a":1,"a":2}"#), &[], None),
            (None, &["plain"], None),
            (None, &["=x"], None),
            (None, &[":=1"], None),
            (None, &["a:=x"], None),
        ] {
            let single: Vec<String> = single.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(read(whole, &single).ok().as_deref(), expect, "{whole:?} {single:?}");
        }
    }
}
