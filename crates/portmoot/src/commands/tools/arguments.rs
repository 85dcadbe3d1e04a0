//! Arguments of a tool from the command line: `key=text`, `key:=json`, or all as one object. Numbers keep their spelling.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exit::Exit;
use crate::failure::Failure;

/// An object's members in their order, values as they were written.
struct Members(Vec<(String, Box<RawValue>)>);

/// One JSON object: `whole`, with the single ones laid over it.
///
/// # Errors
/// Which argument cannot be read, and how to write it.
pub(crate) fn read(whole: Option<&str>, single: &[String]) -> Result<String, Failure> {
    let Members(mut members) = match whole {
        None => Members(Vec::new()),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            wrong(format!("--args is no JSON object: {error}"), "for example --args '{\"path\": \"/tmp\"}'")
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
                    format!("the value of `{key}` is no JSON: {error}"),
                    "a text is written without the colon: key=text",
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
    fn arguments_and_the_object_that_they_make() {
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
