//! Server descriptions: the results of `initialize` and `server/discover`, read and written.

use json::{JsonError, Members, Object, Span, members};

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
    json::object(|result| {
        result.text("protocolVersion", version.as_str());
        result.raw("capabilities", greeting.capabilities);
        match greeting.server_info {
            Some(info) => result.raw("serverInfo", info),
            None => result.object("serverInfo", |info| {
                info.text("name", name).text("version", "0");
            }),
        };
        write_instructions(result, greeting);
        for (key, raw) in &greeting.extras {
            result.raw(key, raw);
        }
    })
}

/// A greeting as the result of `server/discover`, to be asked again each time, for this caller alone.
#[must_use]
pub fn discover(greeting: &Greeting<'_>, versions: &[Version]) -> Vec<u8> {
    json::object(|result| {
        result.text("resultType", "complete");
        result.texts("supportedVersions", versions.iter().map(|version| version.as_str()));
        result.raw("capabilities", greeting.capabilities);
        write_instructions(result, greeting);
        result.number("ttlMs", 0).text("cacheScope", "private");
        let mut known = None;
        for (key, raw) in &greeting.extras {
            if key == "_meta" {
                known = Some(raw.as_slice());
            } else {
                result.raw(key, raw);
            }
        }
        if let Some(meta) = with_server_info(known, greeting.server_info) {
            result.raw("_meta", &meta);
        }
    })
}

fn write_instructions(result: &mut Object<'_>, greeting: &Greeting<'_>) {
    if let Some(instructions) = greeting.instructions {
        result.raw("instructions", instructions);
    }
}

/// `_meta` without the protocol's own keys; `None` if nothing is left.
fn foreign(known: &Members<'_>) -> Option<Vec<u8>> {
    let mut is_empty = true;
    let rest = json::object(|rest| {
        for (key, member) in known.iter().filter(|(key, _)| !meta::ANSWER_KEYS.contains(key)) {
            rest.raw(key, member.raw);
        }
        is_empty = rest.is_empty();
    });
    (!is_empty).then_some(rest)
}

fn with_server_info(known: Option<&[u8]>, server_info: Option<&[u8]>) -> Option<Vec<u8>> {
    let Some(info) = server_info else {
        return known.map(<[u8]>::to_vec);
    };
    let known = known.unwrap_or(b"{}");
    Some(json::object(|all| {
        all.raw(meta::SERVER_INFO, info);
        if let Ok(rest) = members(known, Span::all(known)) {
            for (key, member) in rest.iter() {
                all.raw(key, member.raw);
            }
        }
    }))
}
