//! Requests of calls: path, query, headers and body from arguments. No argument changes where a request goes.

use serde_json::{Map, Value};

use crate::operation::Operation;
use crate::parameter::{Parameter, Place, encoded};
use crate::path::{Part, is_step};

/// The longest path with its query, in bytes.
const TARGET_BYTES_MAX: usize = 32 << 10;
/// A request, without its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: &'static str,
    /// The path and query; it begins with `/`.
    pub target: String,
    /// Headers; their values are visible ASCII.
    pub headers: Vec<(String, String)>,
    /// The body, with its content type.
    pub body: Option<(String, Vec<u8>)>,
}

impl Request {
    /// Adds a parameter to the query.
    pub fn add_query(&mut self, name: &str, value: &str) {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(&encoded(name));
        self.target.push('=');
        self.target.push_str(&encoded(value));
    }
}

impl Operation {
    /// The request of a call with these arguments.
    ///
    /// # Errors
    /// What is wrong with the arguments, in words for the caller.
    pub fn request(&self, arguments: &Map<String, Value>) -> Result<Request, String> {
        self.check(arguments)?;
        let value =
            |parameter: &Parameter| arguments.get(&parameter.argument).filter(|value| !value.is_null());
        let mut target = self.path(value)?;
        let mut query: Vec<String> = self.query.iter().cloned().collect();
        let (mut headers, mut cookies) = (Vec::new(), Vec::new());
        for (parameter, value) in self.parameters.iter().filter_map(|one| Some((one, value(one)?))) {
            let pairs = || parameter.pairs(value).into_iter().map(|(name, value)| format!("{name}={value}"));
            match parameter.place {
                Place::Path => {}
                Place::Query => query.extend(pairs()),
                Place::Cookie => cookies.extend(pairs()),
                Place::Header => {
                    let text = parameter.in_header(value);
                    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                        return Err(format!("`{}` must be one line of ASCII characters", parameter.argument));
                    }
                    headers.push((parameter.name.clone(), text));
                }
            }
        }
        if !query.is_empty() {
            target.push('?');
            target.push_str(&query.join("&"));
        }
        if target.len() > TARGET_BYTES_MAX {
            return Err(format!("the URL would be longer than {TARGET_BYTES_MAX} bytes"));
        }
        if !cookies.is_empty() {
            headers.push(("Cookie".to_owned(), cookies.join("; ")));
        }
        let body = self.body.as_ref().and_then(|body| Some((body, arguments.get(&body.argument)?)));
        // A body may be `null` where it is JSON; an optional one then is none.
        let body = body.filter(|(body, value)| body.required || !value.is_null());
        let body = body.map(|(body, value)| body.written(value)).transpose()?;
        Ok(Request { method: self.method, target, headers, body })
    }

    /// Whether all arguments are known, and all that are needed there.
    fn check(&self, arguments: &Map<String, Value>) -> Result<(), String> {
        let body = self.body.as_ref();
        let known = |name: &String| {
            self.parameters.iter().any(|one| one.argument == *name)
                || body.is_some_and(|one| one.argument == *name)
        };
        if let Some(name) = arguments.keys().find(|name| !known(name)) {
            let name: String = name.chars().take(64).collect();
            return Err(format!("there is no argument `{}`", name.escape_debug()));
        }
        let is_there = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
        let needed = self.parameters.iter().filter(|one| one.required).map(|one| one.argument.as_str());
        let mut absent: Vec<String> =
            needed.filter(|name| !is_there(name)).map(|name| format!("`{name}`")).collect();
        let body = body.filter(|one| one.required && !arguments.contains_key(&one.argument));
        absent.extend(body.map(|one| format!("`{}`", one.argument)));
        if absent.is_empty() { Ok(()) } else { Err(format!("missing: {}", absent.join(", "))) }
    }

    /// The path, with every argument within its segment.
    fn path<'a>(&self, value: impl Fn(&Parameter) -> Option<&'a Value>) -> Result<String, String> {
        let mut path = String::new();
        for part in &self.path {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Parameter(at) => {
                    let parameter = self.parameters.get(*at);
                    let written = parameter.and_then(|one| Some((one, one.in_path(value(one)?))));
                    let Some((parameter, text)) = written else { continue };
                    if text.is_empty() {
                        return Err(format!(
                            "`{}` must not be empty: it is part of the path",
                            parameter.argument
                        ));
                    }
                    path.push_str(&text);
                }
            }
        }
        if path.split('/').any(is_step) {
            return Err("a part of the path must not be `.` or `..`".to_owned());
        }
        if path.is_empty() {
            path.push('/');
        }
        Ok(path)
    }
}
