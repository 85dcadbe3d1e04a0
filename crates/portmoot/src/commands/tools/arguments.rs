//! Tool arguments on the command line: `key=text`, `key:=json`, or one JSON object. Numbers keep their spelling.

use json::{Span, members, quote};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// Builds one JSON object: `whole`, with the members of `single` added or replaced.
///
/// # Errors
/// When an argument cannot be parsed.
pub(crate) fn read(whole: Option<&str>, single: &[String]) -> Result<String, Failure> {
    let whole = whole.unwrap_or("{}").as_bytes();
    let given = members(whole, Span::all(whole)).map_err(|error| {
        wrong(format!("--args is not a JSON object: {error}"), "for example --args '{\"path\": \"/tmp\"}'")
    })?;
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let mut all: Vec<(String, String)> =
        given.iter().map(|(key, value)| (key.to_owned(), text(value.raw))).collect();
    for argument in single {
        let (key, value) = one(argument)?;
        match all.iter_mut().find(|(known, _)| known == key) {
            Some(member) => member.1 = value,
            None => all.push((key.to_owned(), value)),
        }
    }
    let written = json::object(|object| {
        for (key, value) in &all {
            object.raw(key, value.as_bytes());
        }
    });
    Ok(text(&written))
}

fn one(argument: &str) -> Result<(&str, String), Failure> {
    let hint = "write key=text, key:=json, or --args JSON";
    let (key, value) =
        argument.split_once('=').ok_or_else(|| wrong(format!("`{argument}` has no `=`"), hint))?;
    let (key, value) = match key.strip_suffix(':') {
        None => (key, quote(value)),
        Some(key) => {
            let raw: Result<&RawValue, _> = serde_json::from_str(value);
            let text = "to pass a text, leave out the colon: key=text";
            let wrong = |error| wrong(format!("the value of `{key}` is not JSON: {error}"), text);
            (key, raw.map_err(wrong)?.get().to_owned())
        }
    };
    if key.is_empty() {
        return Err(wrong(format!("`{argument}` has no key"), hint));
    }
    Ok((key, value))
}

fn wrong(message: String, hint: &str) -> Failure {
    Failure::bad_argument(message).hint(hint)
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
