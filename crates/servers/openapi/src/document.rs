//! A description as it was read: bounds, version, and where its API is.

use std::borrow::Cow;

use serde_json::Value;
use url::Url;

use crate::error::{DEPTH_MAX, DOCUMENT_BYTES_MAX, DescriptionError, VALUES_MAX};
use crate::written::plain;
use crate::yaml;

/// The most servers of one list that are looked at.
const LISTED_SERVERS_MAX: usize = 16;
/// The longest URL of a server, its variables at their defaults, in bytes.
const SERVER_URL_BYTES_MAX: usize = 8 << 10;
/// Stands for a server whose URL is longer: no request goes there.
const NOWHERE: &str = "too-long:";

/// The version of a description, as far as schemas differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// 3.0: `nullable`, `exclusiveMinimum: true`, nothing beside `$ref`.
    V30,
    /// 3.1 and 3.2: JSON Schema 2020-12.
    V31,
}

/// A description.
#[derive(Debug, PartialEq)]
pub struct Document {
    pub(crate) root: Value,
    pub(crate) dialect: Dialect,
}

impl Document {
    /// Reads JSON or YAML. What is wrong with single operations is found later, and is not an error
    /// here.
    ///
    /// # Errors
    /// Why the description cannot be used.
    pub fn read(text: &[u8]) -> Result<Self, DescriptionError> {
        if text.len() > DOCUMENT_BYTES_MAX {
            return Err(DescriptionError::TooLarge);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let Ok(text) = std::str::from_utf8(text) else {
            return Err(DescriptionError::Syntax {
                line: 1,
                why: "it is not UTF-8".to_owned(),
            });
        };
        let root = if text.trim_start().starts_with('{') {
            json(text)?
        } else {
            yaml::read(text)?
        };
        let Some(version) = root.get("openapi") else {
            return Err(DescriptionError::NoOpenApi);
        };
        // YAML reads 3.1 as a number.
        let version = version
            .as_str()
            .map_or_else(|| version.to_string(), str::to_owned);
        let dialect = match version.split('.').take(2).collect::<Vec<_>>().as_slice() {
            ["3", "0"] => Dialect::V30,
            ["3", "1" | "2"] => Dialect::V31,
            _ => {
                return Err(DescriptionError::Version(
                    version.chars().take(20).collect(),
                ));
            }
        };
        if !root.get("paths").is_some_and(Value::is_object) {
            return Err(DescriptionError::NoPaths);
        }
        Ok(Self { root, dialect })
    }

    /// The title of the API; empty without one.
    #[must_use]
    pub fn title(&self) -> &str {
        self.info("title")
    }

    /// The version of the API; empty without one.
    #[must_use]
    pub fn version(&self) -> &str {
        self.info("version")
    }

    fn info(&self, member: &str) -> &str {
        self.root
            .get("info")
            .and_then(|info| info.get(member))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Where the API is: the first of its servers with an `http` or `https` URL. Relative ones are
    /// resolved against the place from which the description was fetched; without any server that
    /// place's root is it.
    #[must_use]
    pub fn base(&self, from: Option<&Url>) -> Option<Url> {
        let servers = servers(&self.root);
        if servers.is_empty() {
            return from.and_then(|from| from.join("/").ok());
        }
        servers.iter().find_map(|server| resolved(server, from))
    }
}

/// The URLs of the servers of the whole description, a path or an operation, with their variables
/// at their defaults.
pub(crate) fn servers(of: &Value) -> Vec<String> {
    let servers = of
        .get("servers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    servers
        .iter()
        .take(LISTED_SERVERS_MAX)
        .filter_map(server_url)
        .collect()
}

/// The URL of a server with its variables at their defaults, which are not expanded again; `None`
/// if it has none.
fn server_url(server: &Value) -> Option<String> {
    let mut rest = server.get("url")?.as_str()?;
    let variables = server.get("variables");
    let mut url = String::new();
    while let Some((text, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        if !add(&mut url, text) {
            return Some(NOWHERE.to_owned());
        }
        let fits = match variables.and_then(|variables| variables.get(name)) {
            Some(variable) => add(&mut url, &default_of(variable)?),
            // A variable that is not declared stays as it is written.
            None => add(&mut url, "{") && add(&mut url, name) && add(&mut url, "}"),
        };
        if !fits {
            return Some(NOWHERE.to_owned());
        }
        rest = after;
    }
    if add(&mut url, rest) {
        Some(url)
    } else {
        Some(NOWHERE.to_owned())
    }
}

/// Adds a text to the URL of a server, unless it would be too long then. False if it would.
fn add(url: &mut String, text: &str) -> bool {
    let fits = url.len() + text.len() <= SERVER_URL_BYTES_MAX;
    if fits {
        url.push_str(text);
    }
    fits
}

/// The default of a variable; `None` if it has none that is a text or a number.
fn default_of(variable: &Value) -> Option<Cow<'_, str>> {
    match variable.get("default")? {
        default @ (Value::String(_) | Value::Number(_)) => Some(plain(default)),
        _ => None,
    }
}

/// A server's URL, absolute; `None` when it is no place to send requests to.
pub(crate) fn resolved(server: &str, from: Option<&Url>) -> Option<Url> {
    let url = match from {
        Some(from) => from.join(server).ok()?,
        None => Url::parse(server).ok()?,
    };
    let is_usable = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    is_usable.then_some(url)
}

fn json(text: &str) -> Result<Value, DescriptionError> {
    let extent = extent(text.as_bytes());
    if extent.values > VALUES_MAX {
        return Err(DescriptionError::TooManyValues);
    }
    if extent.depth > DEPTH_MAX {
        return Err(DescriptionError::TooDeep);
    }
    serde_json::from_str(text).map_err(|error| DescriptionError::Syntax {
        line: error.line(),
        why: error.to_string(),
    })
}

/// Size of a JSON text before any of it is kept.
struct Extent {
    /// The most values that it can have.
    values: usize,
    /// The deepest nesting of lists and objects.
    depth: usize,
}

/// Measures a JSON text by its brackets and commas outside of texts.
fn extent(text: &[u8]) -> Extent {
    let mut values = 1;
    let mut depth = 0_usize;
    let mut deepest = 0;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_text(&mut bytes),
            b',' => values += 1,
            b'{' | b'[' => {
                values += 1;
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Extent {
        values,
        depth: deepest,
    }
}

/// Skips the rest of a text in quotes, its closing quote included.
fn skip_text(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            // The next one is escaped, and ends nothing.
            b'\\' => _ = bytes.next(),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"openapi":"3.1.0","paths":{},"x":"PAD"}"#;

    #[test]
    fn versions_and_shapes_are_checked() {
        use DescriptionError as E;
        for (text, why) in [
            (r#"{"openapi":"3.0.3","paths":{}}"#, None),
            ("openapi: 3.1\npaths: {}\n", None),
            ("\u{feff}openapi: '3.2.0'\npaths: {}\n", None),
            (r#"{"swagger":"2.0","paths":{}}"#, Some(E::NoOpenApi)),
            (
                r#"{"openapi":"2.0","paths":{}}"#,
                Some(E::Version("2.0".to_owned())),
            ),
            (
                r#"{"openapi":"4.0.0","paths":{}}"#,
                Some(E::Version("4.0.0".to_owned())),
            ),
            (r#"{"openapi":"3.1.0"}"#, Some(E::NoPaths)),
            ("just words", Some(E::NoOpenApi)),
        ] {
            assert_eq!(Document::read(text.as_bytes()).err(), why, "{text}");
        }
        for broken in ["{\n\"openapi\": }", "a: [1\n", "{"] {
            assert!(
                matches!(Document::read(broken.as_bytes()), Err(E::Syntax { .. })),
                "{broken}"
            );
        }
        assert!(matches!(
            Document::read(b"\xff\xfe"),
            Err(E::Syntax { line: 1, .. })
        ));
    }

    #[test]
    fn a_description_is_read_up_to_its_longest_and_not_beyond() {
        let longest = SMALL.replace("PAD", &"a".repeat(DOCUMENT_BYTES_MAX - SMALL.len() + 3));
        assert_eq!(longest.len(), DOCUMENT_BYTES_MAX);
        assert!(Document::read(longest.as_bytes()).is_ok());
        let longer = format!("{longest} ");
        assert_eq!(
            Document::read(longer.as_bytes()),
            Err(DescriptionError::TooLarge)
        );
    }

    #[test]
    fn values_and_depth_are_bounded_in_json_and_yaml() {
        let with = |inner: &str| SMALL.replace("\"PAD\"", inner);
        // The object itself, its list, and what the commas part.
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert!(Document::read(with(&list(VALUES_MAX - 10)).as_bytes()).is_ok());
        let many = with(&list(VALUES_MAX));
        assert_eq!(
            Document::read(many.as_bytes()),
            Err(DescriptionError::TooManyValues)
        );
        let yaml = format!("openapi: 3.1.0\npaths: {{}}\nx: {}\n", list(VALUES_MAX));
        assert_eq!(
            Document::read(yaml.as_bytes()),
            Err(DescriptionError::TooManyValues)
        );
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Document::read(with(&nested(DEPTH_MAX - 1)).as_bytes()).is_ok());
        assert_eq!(
            Document::read(with(&nested(DEPTH_MAX)).as_bytes()),
            Err(DescriptionError::TooDeep)
        );
        let yaml = format!(
            "openapi: 3.1.0\npaths: {{}}\nx: {}\n",
            nested(DEPTH_MAX + 1)
        );
        assert_eq!(
            Document::read(yaml.as_bytes()),
            Err(DescriptionError::TooDeep)
        );
        // A bracket in a text is none.
        let text = with(&format!(
            "\"{}\\\"{}\"",
            "[".repeat(DEPTH_MAX + 5),
            ",".repeat(9)
        ));
        assert!(Document::read(text.as_bytes()).is_ok());
    }

    #[test]
    fn the_base_is_the_first_server_that_can_be_reached() {
        let base = |servers: &str, from: Option<&str>| {
            let text = format!(r#"{{"openapi":"3.1.0","paths":{{}}{servers}}}"#);
            let from = from.map(|from| Url::parse(from).unwrap());
            Document::read(text.as_bytes())
                .unwrap()
                .base(from.as_ref())
                .map(String::from)
        };
        let from = Some("https://api.test/docs/openapi.json");
        for (servers, from, expected) in [
            ("", None, None),
            ("", from, Some("https://api.test/")),
            (r#","servers":[{"url":"/v1"}]"#, None, None),
            (
                r#","servers":[{"url":"/v1"}]"#,
                from,
                Some("https://api.test/v1"),
            ),
            (
                r#","servers":[{"url":"/v1"},{"url":"https://b.test/v2"}]"#,
                None,
                Some("https://b.test/v2"),
            ),
            (
                r#","servers":[{"url":"https://{at}.test/{v}","variables":{"at":{"default":"eu"},"v":{"default":"v3"}}}]"#,
                from,
                Some("https://eu.test/v3"),
            ),
            // Values are not expanded again, and a variable that is not declared stays.
            (
                r#","servers":[{"url":"https://c.test/{b}/{d}","variables":{"b":{"default":"{d}"},"d":{"default":8443}}}]"#,
                None,
                Some("https://c.test/%7Bd%7D/8443"),
            ),
            (
                r#","servers":[{"url":"https://a.test/{b}","variables":{"b":{}}}]"#,
                None,
                None,
            ),
            (
                r#","servers":[{"url":"ftp://a.test/"},{"url":"https://u:p@a.test/"}]"#,
                None,
                None,
            ),
        ] {
            assert_eq!(
                base(servers, from).as_deref(),
                expected,
                "{servers} {from:?}"
            );
        }
    }

    #[test]
    fn servers_and_their_urls_are_read_up_to_their_most_and_not_beyond() {
        let of = |servers: Value| super::servers(&serde_json::json!({ "servers": servers }));
        let server = serde_json::json!({ "url": "/" });
        assert_eq!(
            of(vec![server.clone(); LISTED_SERVERS_MAX].into()).len(),
            LISTED_SERVERS_MAX
        );
        assert_eq!(
            of(vec![server; LISTED_SERVERS_MAX + 1].into()).len(),
            LISTED_SERVERS_MAX
        );
        let with = |default: String| {
            of(serde_json::json!([{ "url": "/{a}", "variables": { "a": { "default": default } } }]))
        };
        assert_eq!(
            with("x".repeat(SERVER_URL_BYTES_MAX - 1))[0].len(),
            SERVER_URL_BYTES_MAX
        );
        assert_eq!(with("x".repeat(SERVER_URL_BYTES_MAX)), [NOWHERE]);
        assert_eq!(
            resolved(NOWHERE, Url::parse("https://api.test/").ok().as_ref()),
            None
        );
        // Each variable has ten of the next one.
        let bomb = (0..30).map(|n| {
            (
                format!("v{n}"),
                serde_json::json!({ "default": format!("{{v{}}}", n + 1).repeat(10) }),
            )
        });
        let bomb: serde_json::Map<String, Value> = bomb.collect();
        let url = of(serde_json::json!([{ "url": "/{v0}", "variables": bomb }]));
        assert_eq!(url, [format!("/{}", "{v1}".repeat(10))]);
    }
}
