//! Requests of calls: path, query, headers and body from arguments. No argument changes where a request goes.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::operation::Operation;
use crate::parameter::{Parameter, Place, encoded};
use crate::refs::Unusable;

/// The longest path with its query, in bytes.
const TARGET_BYTES_MAX: usize = 32 << 10;
/// What is encoded of a path as the description writes it. A `%` begins what is encoded already.
const NO_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'\\').add(b'^').add(b'|');

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// This text, encoded.
    Text(String),
    /// The parameter at this place in the list.
    Parameter(usize),
}

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

/// The names of the variables in a path of the description.
pub(crate) fn variables(path: &str) -> Result<Vec<String>, Unusable> {
    let mut names: Vec<String> = Vec::new();
    pieces(path, |piece| {
        if let Err(name) = piece
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    })?;
    Ok(names)
}

/// The parts of a path: that of the base, then that of the description.
pub(crate) fn template(
    base: &str,
    path: &str,
    parameters: &BTreeMap<&str, usize>,
) -> Result<Vec<Part>, Unusable> {
    let mut parts = vec![Part::Text(base.trim_end_matches('/').to_owned())];
    let mut unknown = false;
    pieces(path, |piece| match piece {
        Ok(text) => parts.push(Part::Text(utf8_percent_encode(text, NO_PATH).to_string())),
        Err(name) => match parameters.get(name) {
            Some(at) => parts.push(Part::Parameter(*at)),
            None => unknown = true,
        },
    })?;
    if unknown || path.contains(['?', '#']) {
        return Err(Unusable::because("its path cannot be read"));
    }
    if path.split('/').any(is_step) {
        return Err(Unusable::because("its path leads to another one"));
    }
    Ok(parts)
}

/// Calls `each` with the texts of a path, and with its variables as errors.
fn pieces<'p>(path: &'p str, mut each: impl FnMut(Result<&'p str, &'p str>)) -> Result<(), Unusable> {
    let mut rest = path;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) =
            after.split_once('}').ok_or_else(|| Unusable::because("its path cannot be read"))?;
        each(Ok(text));
        each(Err(name));
        rest = after;
    }
    each(Ok(rest));
    Ok(())
}

/// Whether a segment of a path is `.` or `..`, in any spelling: some servers and proxies resolve these.
fn is_step(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
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
