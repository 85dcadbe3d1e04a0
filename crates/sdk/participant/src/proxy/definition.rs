//! One entry of a list: its kind, what it is called by, and its JSON.

use std::borrow::Cow;

use json::{Members, Span};
use model::ListKind;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wire::mcp::method::ListNames;

use super::error::ProxyError;

/// The definition of a tool, a resource, a template of resources, or a prompt.
#[derive(Debug, Clone)]
pub struct Definition {
    list: ListKind,
    key: Box<str>,
    raw: Box<RawValue>,
}

impl Definition {
    /// Reads a definition that is one of these; a template is known by its `uriTemplate`.
    pub(super) fn read(raw: &[u8], among: &[ListKind]) -> Result<Self, ProxyError> {
        let unreadable = || ProxyError::Unreadable("a definition has no name or URI");
        let members = json::members(raw, Span::all(raw)).map_err(|_| unreadable())?;
        let found = among
            .iter()
            .find_map(|list| Some((*list, text(&members, ListNames::of(*list).key)?)));
        let (list, key) = found.ok_or_else(unreadable)?;
        Ok(Self {
            list,
            key: key.into(),
            raw: owned(raw)?,
        })
    }

    /// The list that it is on.
    #[must_use]
    pub fn list(&self) -> ListKind {
        self.list
    }

    /// Name, URI or URI template, by which it is called.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its description, for a model; untrusted text.
    #[must_use]
    pub fn description(&self) -> Option<Cow<'_, str>> {
        json::at(self.raw.get().as_bytes(), &["description"]).and_then(json::text)
    }

    /// The definition as the server wrote it, with all members.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The definition as a type of your own, such as one of an SDK.
    ///
    /// # Errors
    /// When it is not of this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.raw.get())
    }

    /// Roughly how many bytes it occupies.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.raw.get().len()
    }
}

/// The text of a member, if it has one.
pub(super) fn text<'a>(members: &Members<'a>, key: &str) -> Option<Cow<'a, str>> {
    members.get(key)?.text()
}

/// A copy of some JSON.
pub(super) fn owned(raw: &[u8]) -> Result<Box<RawValue>, ProxyError> {
    serde_json::from_slice(raw).map_err(|_| ProxyError::Unreadable("a value is not JSON"))
}
