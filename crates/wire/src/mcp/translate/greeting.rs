//! What a server says about itself: the result of `initialize`, and that of `server/discover`.
//!
//! It must not know who asked.

use json::{JsonError, Members, Span, members, quote, write_member};

use crate::mcp::meta;
use crate::mcp::version::Version;

/// What both results say, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// `ServerCapabilities`.
    pub capabilities: &'a [u8],
    /// `Implementation`; a modern server need not tell it.
    pub server_info: Option<&'a [u8]>,
    /// How to use the server, a JSON string.
    pub instructions: Option<&'a [u8]>,
    /// Everything else that is not the business of one era, in order; `_meta` without the protocol's own keys.
    pub extras: Vec<(String, Vec<u8>)>,
}

impl<'a> Greeting<'a> {
    /// Reads the result of `initialize` or `server/discover`.
    ///
    /// # Errors
    /// [`JsonError`] when it is no object, or it or its `_meta` has a member twice.
    pub fn read(result: &'a [u8]) -> Result<Self, JsonError> {
        let all = members(result, Span::all(result))?;
        let raw = |key: &str| all.get(key).map(|member| member.raw);
        let known = match all.get("_meta").filter(|meta| meta.raw != b"null") {
            Some(meta) => Some(members(result, meta.span)?),
            None => None,
        };
        let in_meta = known.as_ref().and_then(|meta| meta.get(meta::SERVER_INFO)).map(|member| member.raw);
        let mut extras = Vec::new();
        for (key, member) in all.iter() {
            match key {
                "capabilities" | "serverInfo" | "instructions" | "protocolVersion" | "supportedVersions"
                | "resultType" | "ttlMs" | "cacheScope" | "_meta" => {}
                key => extras.push((key.to_owned(), member.raw.to_vec())),
            }
        }
        if let Some(rest) = known.as_ref().and_then(foreign) {
            extras.push(("_meta".to_owned(), rest));
        }
        Ok(Self {
            capabilities: raw("capabilities").unwrap_or(b"{}"),
            server_info: raw("serverInfo").or(in_meta),
            instructions: raw("instructions"),
            extras,
        })
    }
}

/// A greeting as the result of `initialize` in `version`. A server that does not say who it is goes by `name`.
#[must_use]
pub fn initialize(greeting: &Greeting<'_>, version: Version, name: &str) -> Vec<u8> {
    let mut out = Writer::new();
    out.member("protocolVersion", quote(version.as_str()).as_bytes());
    out.member("capabilities", greeting.capabilities);
    let unnamed = format!("{{\"name\":{},\"version\":\"0\"}}", quote(name));
    out.member("serverInfo", greeting.server_info.unwrap_or(unnamed.as_bytes()));
    out.rest(greeting);
    for (key, raw) in &greeting.extras {
        out.member(key, raw);
    }
    out.end()
}

/// A greeting as the result of `server/discover`, to be asked again each time, for this caller alone.
#[must_use]
pub fn discover(greeting: &Greeting<'_>, versions: &[Version]) -> Vec<u8> {
    let versions: Vec<String> = versions.iter().map(|version| quote(version.as_str())).collect();
    let mut out = Writer::new();
    out.member("resultType", b"\"complete\"");
    out.member("supportedVersions", format!("[{}]", versions.join(",")).as_bytes());
    out.member("capabilities", greeting.capabilities);
    out.rest(greeting);
    out.member("ttlMs", b"0");
    out.member("cacheScope", b"\"private\"");
    let mut known = None;
    for (key, raw) in &greeting.extras {
        if key == "_meta" {
            known = Some(raw.as_slice());
        } else {
            out.member(key, raw);
        }
    }
    if let Some(meta) = with_server_info(known, greeting.server_info) {
        out.member("_meta", &meta);
    }
    out.end()
}

/// `_meta` without the protocol's own keys; `None` if nothing is left.
fn foreign(known: &Members<'_>) -> Option<Vec<u8>> {
    let mut out = Writer::new();
    for (key, member) in known.iter().filter(|(key, _)| !meta::ANSWER_KEYS.contains(key)) {
        out.member(key, member.raw);
    }
    (!out.is_empty()).then(|| out.end())
}

fn with_server_info(known: Option<&[u8]>, server_info: Option<&[u8]>) -> Option<Vec<u8>> {
    let Some(info) = server_info else {
        return known.map(<[u8]>::to_vec);
    };
    let mut out = Writer::new();
    out.member(meta::SERVER_INFO, info);
    let known = known.unwrap_or(b"{}");
    if let Ok(rest) = members(known, Span::all(known)) {
        for (key, member) in rest.iter() {
            out.member(key, member.raw);
        }
    }
    Some(out.end())
}

/// An object, member by member.
struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        Self(b"{".to_vec())
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    fn member(&mut self, key: &str, raw: &[u8]) {
        if !self.is_empty() {
            self.0.push(b',');
        }
        write_member(&mut self.0, key, raw);
    }

    fn rest(&mut self, greeting: &Greeting<'_>) {
        if let Some(instructions) = greeting.instructions {
            self.member("instructions", instructions);
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}
