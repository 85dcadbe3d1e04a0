//! Requests of calls: path, query, headers and body from arguments. No argument changes where a
//! request goes.

use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::operation::Operation;
use crate::parameter::{Parameter, Place};
use crate::path::{Part, has_steps};
use crate::written::{Others, Pairs, Written, encoded};

/// The longest path with its query, in bytes.
const TARGET_BYTES_MAX: usize = 32 << 10;
/// The longest header that is made of arguments, in bytes; all cookies are one.
const HEADER_BYTES_MAX: usize = 32 << 10;

/// A request, without its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRequest {
    /// The method.
    pub method: &'static str,
    /// The path and query; it begins with `/`.
    pub target: String,
    /// Headers; their values are visible ASCII.
    pub headers: Vec<(String, String)>,
    /// The body, with its content type.
    pub body: Option<(String, Vec<u8>)>,
}

impl OperationRequest {
    /// Adds a parameter to the query.
    pub fn add_query(&mut self, name: &str, value: &str) {
        self.target
            .push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(&encoded(name));
        self.target.push('=');
        self.target.push_str(&encoded(value));
    }
}

impl Operation {
    /// The request of a call with these arguments.
    ///
    /// # Errors
    /// The fault of the arguments, in words for the caller.
    pub fn request(&self, arguments: &Map<String, Value>) -> Result<OperationRequest, String> {
        self.check(arguments)?;
        let mut target = self.path(arguments)?;
        let mut query = Pairs::new("&", Written::new("its URL", TARGET_BYTES_MAX));
        query
            .written
            .push(self.query.as_deref().unwrap_or_default())?;
        let mut headers = Vec::new();
        let mut cookies = Pairs::new("; ", Written::new("a header", HEADER_BYTES_MAX));
        for (at, parameter) in self.parameters.iter().enumerate() {
            let Some(value) = given(arguments, parameter) else {
                continue;
            };
            parameter.check(value)?;
            match parameter.place {
                Place::Path => {}
                Place::Query => {
                    parameter.pairs(&mut query, value, &self.others(at, parameter, value))?
                }
                Place::Cookie => {
                    parameter.pairs(&mut cookies, value, &self.others(at, parameter, value))?
                }
                Place::Header => {
                    let mut written = Written::new("a header", HEADER_BYTES_MAX);
                    parameter.in_header(&mut written, value)?;
                    let text = written.text().to_owned();
                    // A line break would begin another header, which the caller must not set.
                    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                        return Err(format!(
                            "`{}` must be one line of ASCII characters",
                            parameter.argument
                        ));
                    }
                    headers.push((parameter.name.clone(), text));
                }
            }
        }
        if query.written.len() > 0 {
            target.push("?")?;
            target.push(query.written.text())?;
        }
        let target = target.text().to_owned();
        if cookies.written.len() > 0 {
            headers.push(("Cookie".to_owned(), cookies.written.text().to_owned()));
        }
        Ok(OperationRequest {
            method: self.method,
            target,
            headers,
            body: self.written_body(arguments)?,
        })
    }

    /// The body, with its content type; `None` if it has none, or the arguments leave it out.
    fn written_body(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Option<(String, Vec<u8>)>, String> {
        let Some(body) = &self.body else {
            return Ok(None);
        };
        match arguments.get(&body.argument) {
            // A body may be `null` where it is JSON; an optional one then is none.
            Some(value) if body.required || !value.is_null() => body.written(value).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// The names that keys of a value must not become: those of all other parameters at its place,
    /// whether or not callers may pass them.
    fn others(&self, at: usize, parameter: &Parameter, value: &Value) -> Others {
        if !parameter.sends_keys(value) {
            return Others::default();
        }
        let names = self
            .parameters
            .iter()
            .enumerate()
            .filter(|(other, one)| *other != at && one.place == parameter.place)
            .map(|(_, one)| one.name.as_str());
        if parameter.place != Place::Query {
            return Others::new(names);
        }
        let of_base = self.query.as_deref().unwrap_or_default();
        let of_base: Vec<_> = form_urlencoded::parse(of_base.as_bytes())
            .map(|(name, _)| name)
            .collect();
        let given = self.configured_query.iter().map(String::as_str);
        Others::new(names.chain(given).chain(of_base.iter().map(AsRef::as_ref)))
    }

    /// Whether all arguments are known, and all that are needed there.
    fn check(&self, arguments: &Map<String, Value>) -> Result<(), String> {
        if let Some(name) = arguments.keys().find(|name| !self.has_argument(name)) {
            let name: String = name.chars().take(64).collect();
            return Err(format!("there is no argument `{}`", name.escape_debug()));
        }
        let mut absent = Vec::new();
        for parameter in &self.parameters {
            if parameter.required && given(arguments, parameter).is_none() {
                absent.push(format!("`{}`", parameter.argument));
            }
        }
        // A required body may be null.
        if let Some(body) = &self.body
            && body.required
            && !arguments.contains_key(&body.argument)
        {
            absent.push(format!("`{}`", body.argument));
        }
        if absent.is_empty() {
            Ok(())
        } else {
            Err(format!("missing: {}", absent.join(", ")))
        }
    }

    /// Whether an argument has this name.
    fn has_argument(&self, name: &str) -> bool {
        self.parameters.iter().any(|one| one.argument == name)
            || self.body.as_ref().is_some_and(|one| one.argument == name)
    }

    /// The path, with every argument within its segment.
    fn path(&self, arguments: &Map<String, Value>) -> Result<Written, String> {
        let mut path = Written::new("its URL", TARGET_BYTES_MAX);
        for part in &self.path {
            match part {
                Part::Text(text) => path.push(text)?,
                Part::Parameter(at) => {
                    let Some(parameter) = self.parameters.get(*at) else {
                        continue;
                    };
                    let Some(value) = given(arguments, parameter) else {
                        continue;
                    };
                    let before = path.len();
                    parameter.check(value)?;
                    parameter.in_path(&mut path, value, &self.others(*at, parameter, value))?;
                    if path.len() == before {
                        return Err(format!(
                            "`{}` must not be empty: it is part of the path",
                            parameter.argument
                        ));
                    }
                }
            }
        }
        // An argument that is a step would lead to another operation, with the API's credentials.
        if has_steps(path.text()) {
            return Err("a part of the path must not be `.` or `..`".to_owned());
        }
        if path.len() == 0 {
            path.push("/")?;
        }
        Ok(path)
    }
}

/// The value of a parameter among the arguments; null is none.
fn given<'a>(arguments: &'a Map<String, Value>, parameter: &Parameter) -> Option<&'a Value> {
    arguments
        .get(&parameter.argument)
        .filter(|value| !value.is_null())
}
