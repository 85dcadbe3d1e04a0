//! Header annotations (`x-mcp-header`) of a tool's input schema (2026-07-28, Streamable HTTP).

use json::{JsonError, Span};

const KEY: &str = "x-mcp-header";

/// The deepest schema that is examined.
const DEEPEST: usize = 64;

/// An argument that is mirrored in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The header's name after `Mcp-Param-`: a token of RFC 9110.
    pub name: String,
    /// The path of the argument: names of members below `arguments`.
    pub path: Vec<String>,
    /// Its type.
    pub kind: HeaderType,
}

/// The type of a mirrored argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum HeaderType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// The annotations of an input schema, given raw.
///
/// # Errors
/// Why the tool may not be offered over HTTP: a name that is no token or occurs twice (letter case
/// aside), a type that cannot be mirrored, an annotation that is not on a path of `properties`
/// alone, or a schema that cannot be read.
pub fn annotations(schema: &[u8]) -> Result<Vec<HeaderParam>, String> {
    // Nearly all schemas have none; only an escape can hide an annotation.
    if memchr::memmem::find(schema, KEY.as_bytes()).is_none()
        && memchr::memmem::find(schema, b"\\u").is_none()
    {
        return Ok(Vec::new());
    }
    let mut walk = Walk {
        schema,
        path: Vec::new(),
        found: Vec::new(),
    };
    walk.schema(Span::all(schema), true, 0)?;
    Ok(walk.found)
}

struct Walk<'a> {
    schema: &'a [u8],
    path: Vec<String>,
    found: Vec<HeaderParam>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, at: Span, on_path: bool, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("the schema is nested more than {DEEPEST} deep"));
        }
        if !json::is_object(at.of(self.schema)) {
            return Ok(());
        }
        let members = self.read(at)?;
        for (key, member) in members.iter() {
            match key {
                KEY if on_path && !self.path.is_empty() => {
                    let kind = members.get("type").and_then(|kind| json::text(kind.raw));
                    self.annotation(member.raw, kind.as_deref())?;
                }
                KEY => {
                    return Err(format!(
                        "{KEY} must annotate a property that is reached through `properties` alone"
                    ));
                }
                "properties" => self.map(member.span, on_path, depth)?,
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    self.map(member.span, false, depth)?;
                }
                "default" | "const" | "enum" | "examples" => {}
                _ => self.below(member.span, depth)?,
            }
        }
        Ok(())
    }

    /// A map from names to schemas.
    fn map(&mut self, at: Span, on_path: bool, depth: usize) -> Result<(), String> {
        if !json::is_object(at.of(self.schema)) {
            return Ok(());
        }
        for (key, member) in self.read(at)?.iter() {
            self.path.push(key.to_owned());
            self.schema(member.span, on_path, depth + 1)?;
            self.path.pop();
        }
        Ok(())
    }

    /// A schema, or a list of them, under any other keyword.
    fn below(&mut self, at: Span, depth: usize) -> Result<(), String> {
        if at.of(self.schema).first() != Some(&b'[') {
            return self.schema(at, false, depth + 1);
        }
        for element in json::elements(self.schema, at).map_err(|error| error.to_string())? {
            self.schema(element, false, depth + 1)?;
        }
        Ok(())
    }

    fn annotation(&mut self, raw: &[u8], kind: Option<&str>) -> Result<(), String> {
        let property = self.path.join(".");
        let name =
            json::text(raw).ok_or_else(|| format!("{KEY} of `{property}` must be a string"))?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("{KEY} of `{property}` must be a header name"));
        }
        if self
            .found
            .iter()
            .any(|param| param.name.eq_ignore_ascii_case(&name))
        {
            return Err(format!("{KEY} `{name}` occurs twice"));
        }
        let kind = kind.and_then(|kind| kind.parse().ok());
        let kind = kind.ok_or_else(|| {
            format!("{KEY} of `{property}` needs type string, integer or boolean")
        })?;
        self.found.push(HeaderParam {
            name: name.into_owned(),
            path: self.path.clone(),
            kind,
        });
        Ok(())
    }

    fn read(&self, at: Span) -> Result<json::Members<'a>, String> {
        json::members(self.schema, at).map_err(|error: JsonError| error.to_string())
    }
}

/// RFC 9110, 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
