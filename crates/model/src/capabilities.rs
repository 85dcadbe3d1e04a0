//! Owns a set of capabilities, and which of them admitted an act.
//! Must not know whose set it is, nor where it was configured.

use crate::{Capability, CapabilityError, KindRef};

/// The most capabilities in one set that configuration should accept.
pub const CAPABILITIES_MAX: usize = 1024;

/// What one participant may do. Empty by default: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    all: Box<[Capability]>,
}

impl Capabilities {
    /// Everything that can be granted to the operator on their own machine: all of MCP, chat, and the
    /// gateway's own acts (`portmoot/*`).
    pub fn full() -> Self {
        Self::all_of(&["mcp/*", "chat", "portmoot/*"])
    }

    /// What a new participant without configured capabilities gets: to propose, to answer, to chat.
    pub fn newcomer() -> Self {
        Self::all_of(&["mcp/proposal:*", "mcp/response:*", "chat"])
    }

    /// What an upstream may ask of its current caller: sampling, elicitation and roots.
    pub fn upstream() -> Self {
        Self::all_of(&[
            "mcp/response:*",
            "mcp/request:notifications/*",
            "mcp/request:sampling/createMessage",
            "mcp/request:elicitation/create",
            "mcp/request:roots/list",
        ])
    }

    /// What the gateway's own participant says: requests to those who serve, answers, and how proposals stand.
    pub fn gateway() -> Self {
        Self::all_of(&["mcp/request:*", "mcp/response:*", "chat", "portmoot/*"])
    }

    /// Reads a set from texts, each without addressees.
    ///
    /// # Errors
    /// The first text that is no capability, with the reason.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, (String, CapabilityError)> {
        texts
            .into_iter()
            .map(|text| Capability::parse(text).map_err(|error| (text.to_owned(), error)))
            .collect::<Result<_, _>>()
    }

    /// Whether the act is admitted towards these addressees. Allocates nothing.
    pub fn admits(&self, kind: KindRef<'_>, addressees: &[&str]) -> bool {
        self.why(kind, addressees).is_some()
    }

    /// The place, in [`Capabilities::iter`], of the first capability that admits the act.
    pub fn position(&self, kind: KindRef<'_>, addressees: &[&str]) -> Option<usize> {
        self.all.iter().position(|capability| capability.admits_to(kind, addressees))
    }

    /// The capability at this place.
    pub fn get(&self, at: usize) -> Option<&Capability> {
        self.all.get(at)
    }

    /// The first capability that admits the act: a decision carries its reason.
    pub fn why(&self, kind: KindRef<'_>, addressees: &[&str]) -> Option<&Capability> {
        self.all.iter().find(|capability| capability.admits_to(kind, addressees))
    }

    /// Whether the act is admitted towards at least one addressee, whichever that is.
    pub fn admits_somewhere(&self, kind: KindRef<'_>) -> bool {
        self.all.iter().any(|capability| capability.admits_somewhere(kind))
    }

    /// Whether some act with a context of this shape is admitted; see [`Capability::admits_some`].
    pub fn admits_some(&self, head: &str, method: &str, shape: &[Option<char>], addressees: &[&str]) -> bool {
        self.all.iter().any(|capability| capability.admits_some(head, method, shape, addressees))
    }

    /// The capabilities, in the order in which they were configured.
    pub fn iter(&self) -> impl Iterator<Item = &Capability> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing is admitted.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// For texts of our own, which tests prove to be well formed.
    fn all_of(texts: &[&str]) -> Self {
        texts.iter().filter_map(|text| Capability::parse(text).ok()).collect()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(all: I) -> Self {
        Self { all: all.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> KindRef<'_> {
        KindRef::parse(text).unwrap()
    }

    #[test]
    fn our_own_sets_are_well_formed() {
        assert_eq!(Capabilities::full().len(), 3);
        assert_eq!(Capabilities::newcomer().len(), 3);
        assert_eq!(Capabilities::upstream().len(), 5);
        assert!(Capabilities::default().is_empty());
    }

    #[test]
    fn a_decision_carries_its_reason() {
        let set = Capabilities::parse(["chat", "mcp/request:tools/call:read_*", "mcp/request:*"]).unwrap();
        let why = |text: &str| set.why(kind(text), &[]).map(Capability::as_str);
        assert_eq!(why("mcp/request:tools/call:read_x"), Some("mcp/request:tools/call:read_*"));
        assert_eq!(why("mcp/request:tools/call:x"), Some("mcp/request:*"));
        assert_eq!(why("mcp/proposal:tools/call:x"), None);
    }

    #[test]
    fn a_bad_text_is_named() {
        let error = Capabilities::parse(["chat", "*"]).unwrap_err();
        assert_eq!(error, ("*".to_owned(), CapabilityError::WideWildcard));
    }
}
