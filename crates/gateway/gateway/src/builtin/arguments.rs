//! Arguments of calls of built-in tools.

use model::{Refusal, RefusalCode, Request};
use serde::de::DeserializeOwned;

/// The arguments of a call. A call without arguments has none of them.
///
/// # Errors
/// A refusal that says what is wrong with them.
pub(super) fn read<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    let raw = json::at(request.payload.body_bytes(), &["arguments"]);
    serde_json::from_slice(raw.unwrap_or(b"{}")).map_err(|error| {
        let why = format!("the arguments cannot be read: {error}");
        Refusal::new(RefusalCode::Malformed, why).hint("the tool's inputSchema says what it takes")
    })
}

/// One argument that is a string.
pub(super) fn text(request: &Request, key: &str) -> Option<String> {
    let text = json::at(request.payload.body_bytes(), &["arguments", key]).and_then(json::text)?;
    Some(text.into_owned())
}

/// One argument that is a flag.
pub(super) fn flag(request: &Request, key: &str) -> Option<bool> {
    let raw = json::at(request.payload.body_bytes(), &["arguments", key])?;
    serde_json::from_slice(raw).ok()
}

#[cfg(test)]
mod tests {
    use model::{Form, Method, Payload};
    use serde::Deserialize;

    use super::*;

    fn call(params: &'static str) -> Request {
        let payload = Payload::body(Form::Legacy, params.as_bytes());
        Request {
            method: Method::Known("tools/call"),
            target: None,
            progress: None,
            payload,
        }
    }

    #[derive(Debug, Clone, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct One {
        id: Option<String>,
    }

    #[test]
    fn arguments_are_read_strictly_and_may_be_absent() {
        let id = |id: &str| {
            Ok(One {
                id: Some(id.to_owned()),
            })
        };
        let none = Ok(One { id: None });
        for (params, expected) in [
            (r#"{"name":"t","arguments":{"id":"\u0061"}}"#, id("a")),
            (r#"{"name":"t"}"#, none.clone()),
            ("", none),
            (r#"{"arguments":{"id":1}}"#, Err("malformed")),
            (r#"{"arguments":{"more":1}}"#, Err("malformed")),
            (r#"{"arguments":[]}"#, Err("malformed")),
        ] {
            let read: Result<One, _> = read(&call(params)).map_err(|refusal| refusal.code.as_str());
            assert_eq!(read, expected, "{params}");
        }
        assert_eq!(
            text(&call(r#"{"arguments":{"id":"a","n":1}}"#), "id").as_deref(),
            Some("a")
        );
        assert_eq!(text(&call(r#"{"arguments":{"id":"a","n":1}}"#), "n"), None);
        assert_eq!(text(&call("{}"), "id"), None);
        for (value, expected) in [
            ("false", Some(false)),
            ("true", Some(true)),
            ("\"no\"", None),
        ] {
            let params: &'static str = format!(r#"{{"arguments":{{"wait":{value}}}}}"#).leak();
            assert_eq!(flag(&call(params), "wait"), expected, "{value}");
        }
        assert_eq!(flag(&call("{}"), "wait"), None);
    }
}
