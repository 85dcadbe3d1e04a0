//! Set of capabilities, and the one among them that admits an act.

use std::{collections::HashMap, sync::Arc};

use crate::{APPROVE, Capability, CapabilityError, KindRef, REQUEST};

/// The most capabilities in one set that configuration should accept.
pub const CAPABILITIES_MAX: usize = 1024;

/// Sets from this length on are indexed by context.
const INDEXED_LEN_MIN: usize = 16;

/// The capabilities of one participant. Empty by default: it may do nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    all: Box<[Capability]>,
    index: Option<Index>,
    /// A set that must admit an act too.
    within: Option<Arc<Capabilities>>,
}

/// Places in a long set, so that a list of thousands of names is judged quickly.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Index {
    /// Capabilities with an exact context, by it.
    exact: HashMap<Box<str>, Vec<usize>>,
    /// All others, by place.
    others: Box<[usize]>,
}

impl Index {
    fn new(all: &[Capability]) -> Self {
        let (mut exact, mut others) = (HashMap::<Box<str>, Vec<usize>>::new(), Vec::new());
        for (at, one) in all.iter().enumerate() {
            match one.exact_context() {
                Some(context) => exact.entry(context.into()).or_default().push(at),
                None => others.push(at),
            }
        }
        Self {
            exact,
            others: others.into(),
        }
    }
}

impl Capabilities {
    /// All that can be granted to the operator on their own machine: all of MCP, chat, and the
    /// gateway's own acts (`portmoot/*`).
    pub fn full() -> Self {
        Self::all_of(&["mcp/*", "chat", "portmoot/*"])
    }

    /// The set of a new participant without configured capabilities: to propose, to answer, to
    /// chat.
    pub fn newcomer() -> Self {
        Self::all_of(&["mcp/proposal:*", "mcp/response:*", "chat"])
    }

    /// The requests that an upstream may send to its current caller: sampling, elicitation and
    /// roots.
    pub fn upstream() -> Self {
        Self::all_of(&[
            "mcp/response:*",
            "mcp/request:notifications/*",
            "mcp/request:sampling/createMessage",
            "mcp/request:elicitation/create",
            "mcp/request:roots/list",
        ])
    }

    /// The set of the gateway's own participant: requests to participants that serve, answers, and
    /// states of proposals.
    pub fn gateway() -> Self {
        Self::all_of(&["mcp/request:*", "mcp/response:*", "chat", "portmoot/*"])
    }

    /// Reads a set from texts, each without addressees.
    ///
    /// # Errors
    /// The first text that is no capability, with the reason.
    pub fn parse<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, (String, CapabilityError)> {
        texts
            .into_iter()
            .map(|text| Capability::parse(text).map_err(|error| (text.to_owned(), error)))
            .collect::<Result<_, _>>()
    }

    /// Whether the act is admitted towards these addressees. Allocates nothing.
    pub fn admits(&self, kind: KindRef<'_>, addressees: &[&str]) -> bool {
        self.why(kind, addressees).is_some()
    }

    /// The capabilities, narrowed to the acts that `scope` admits too.
    #[must_use]
    pub fn within(&self, scope: &Arc<Capabilities>) -> Self {
        Self {
            within: Some(Arc::clone(scope)),
            ..self.clone()
        }
    }

    /// The scope to which they are narrowed, if they are.
    #[must_use]
    pub fn scope(&self) -> Option<&Capabilities> {
        self.within.as_deref()
    }

    fn scope_admits(&self, admits: impl FnOnce(&Capabilities) -> bool) -> bool {
        self.scope().is_none_or(admits)
    }

    /// The place, in [`Capabilities::iter`], of the first capability that admits the act.
    pub fn position(&self, kind: KindRef<'_>, addressees: &[&str]) -> Option<usize> {
        let at = self.own_position(kind, addressees)?;
        self.scope_admits(|scope| scope.admits(kind, addressees))
            .then_some(at)
    }

    fn own_position(&self, kind: KindRef<'_>, addressees: &[&str]) -> Option<usize> {
        let admits = |at: &usize| {
            self.all
                .get(*at)
                .is_some_and(|one| one.admits_to(kind, addressees))
        };
        let Some(index) = &self.index else {
            return (0..self.all.len()).find(admits);
        };
        let exact = kind.context().and_then(|context| index.exact.get(context));
        let exact = exact.and_then(|places| places.iter().copied().find(admits));
        let before = |at: &usize| exact.is_none_or(|exact| *at < exact);
        index
            .others
            .iter()
            .copied()
            .take_while(before)
            .find(admits)
            .or(exact)
    }

    /// The capability at this place.
    pub fn get(&self, at: usize) -> Option<&Capability> {
        self.all.get(at)
    }

    /// The first capability that admits the act: the reason of the decision.
    pub(crate) fn why(&self, kind: KindRef<'_>, addressees: &[&str]) -> Option<&Capability> {
        self.get(self.position(kind, addressees)?)
    }

    /// Whether one of these capabilities admits every act that `other` admits: a participant gives
    /// and takes only what it holds.
    pub fn covers(&self, other: &Capability) -> bool {
        self.all.iter().any(|own| own.includes(other))
            && self.scope_admits(|scope| scope.covers(other))
    }

    /// Whether these capabilities let a participant decide about a proposed request: they admit the
    /// request itself, or its approval. A scope may have either of the two.
    pub fn admits_deciding(
        &self,
        method: &str,
        context: Option<&str>,
        addressees: &[&str],
    ) -> bool {
        let kinds = [
            KindRef::request(method, context),
            KindRef::approval(method, context),
        ];
        let mut kinds = kinds.iter().flatten();
        kinds.any(|kind| self.own_position(*kind, addressees).is_some())
            && self.scope_admits(|scope| scope.admits_deciding(method, context, addressees))
    }

    /// Whether one of these capabilities admits every act that one of `others` admits, and so does
    /// the scope.
    pub fn covers_one_of(&self, others: &[Capability]) -> bool {
        let mut own = self.all.iter();
        own.any(|own| others.iter().any(|other| own.includes(other)))
            && self.scope_admits(|scope| scope.covers_one_of(others))
    }

    /// Whether they let a participant decide about some proposal.
    pub fn admits_some_deciding(&self) -> bool {
        let mut own = self.all.iter();
        own.any(|own| own.admits_head(REQUEST) || own.admits_head(APPROVE))
            && self.scope_admits(Capabilities::admits_some_deciding)
    }

    /// Whether some act with this head is admitted, towards some addressee.
    pub fn admits_head(&self, head: &str) -> bool {
        self.all
            .iter()
            .any(|capability| capability.admits_head(head))
            && self.scope_admits(|scope| scope.admits_head(head))
    }

    /// Whether the act is admitted towards at least one addressee, whichever that is.
    pub fn admits_somewhere(&self, kind: KindRef<'_>) -> bool {
        self.all
            .iter()
            .any(|capability| capability.admits_somewhere(kind))
            && self.scope_admits(|scope| scope.admits_somewhere(kind))
    }

    /// Whether some act with a context of this shape is admitted; see `admits_some`.
    pub fn admits_some(
        &self,
        head: &str,
        method: &str,
        shape: &[Option<char>],
        addressees: &[&str],
    ) -> bool {
        self.all
            .iter()
            .any(|capability| capability.admits_some(head, method, shape, addressees))
            && self.scope_admits(|scope| scope.admits_some(head, method, shape, addressees))
    }

    /// The capabilities, in the order in which they were configured, also those that a scope leaves
    /// nothing of.
    pub fn iter(&self) -> impl Iterator<Item = &Capability> {
        self.all.iter()
    }

    /// For texts of this file, which tests prove to be well formed.
    fn all_of(texts: &[&str]) -> Self {
        texts
            .iter()
            .filter_map(|text| Capability::parse(text).ok())
            .collect()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(all: I) -> Self {
        let all: Box<[Capability]> = all.into_iter().collect();
        let index = (all.len() >= INDEXED_LEN_MIN).then(|| Index::new(&all));
        Self {
            all,
            index,
            within: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> KindRef<'_> {
        KindRef::parse(text).unwrap()
    }

    #[test]
    fn predefined_sets_are_well_formed() {
        assert_eq!(Capabilities::full().iter().count(), 3);
        assert_eq!(Capabilities::newcomer().iter().count(), 3);
        assert_eq!(Capabilities::upstream().iter().count(), 5);
        assert!(Capabilities::default().iter().next().is_none());
    }

    #[test]
    fn a_scope_only_ever_narrows() {
        let own =
            Capabilities::parse(["chat", "mcp/request:tools/call:gh_*", "mcp/proposal:*"]).unwrap();
        let scope = Capabilities::parse([
            "mcp/request:tools/call:*_read",
            "mcp/request:prompts/*",
            "chat",
        ])
        .unwrap();
        let both = own.within(&Arc::new(scope.clone()));
        for text in [
            "chat",
            "mcp/request:tools/call:gh_read",
            "mcp/request:tools/call:gh_write",
            "mcp/request:tools/call:fs_read",
            "mcp/request:prompts/get:x",
            "mcp/proposal:tools/call:gh_read",
        ] {
            let kind = kind(text);
            let expected = own.admits(kind, &["up"]) && scope.admits(kind, &["up"]);
            assert_eq!(both.admits(kind, &["up"]), expected, "{text}");
            assert_eq!(both.admits_somewhere(kind), expected, "{text}");
            assert_eq!(
                both.covers(&Capability::parse(text).unwrap()),
                expected,
                "{text}"
            );
        }
        assert!(both.admits_head("chat") && !both.admits_head("mcp/proposal"));
        let shape: Vec<_> = "fs_".chars().map(Some).chain([None]).collect();
        assert!(!both.admits_some("mcp/request", "tools/call", &shape, &["up"]));
        let nothing = Capabilities::full().within(&Arc::default());
        assert!(!nothing.admits(kind("chat"), &[]) && !nothing.admits_head("chat"));
    }

    #[test]
    fn a_decision_carries_its_reason() {
        let set = Capabilities::parse(["chat", "mcp/request:tools/call:read_*", "mcp/request:*"])
            .unwrap();
        let why = |text: &str| set.why(kind(text), &[]).map(Capability::as_str);
        assert_eq!(
            why("mcp/request:tools/call:read_x"),
            Some("mcp/request:tools/call:read_*")
        );
        assert_eq!(why("mcp/request:tools/call:x"), Some("mcp/request:*"));
        assert_eq!(why("mcp/proposal:tools/call:x"), None);
    }

    #[test]
    fn a_long_set_gives_the_same_reasons() {
        // Two of each, at places that mix exact contexts and others.
        let mut texts = Vec::new();
        for at in 0..40 {
            let name = (at * 7) % 11;
            texts.push(match at % 5 {
                0 => format!("mcp/request:tools/call:t{name}*"),
                1 => format!("mcp/proposal:tools/call:t{name}"),
                2 => format!("mcp/request:prompts/get:t{name}"),
                _ => format!("mcp/request:tools/call:t{name}"),
            });
        }
        let all: Vec<Capability> = texts
            .iter()
            .map(|text| Capability::parse(text).unwrap())
            .collect();
        let set: Capabilities = all.iter().cloned().collect();
        assert!(set.index.is_some());
        let mut admitted = 0;
        for name in (0..25)
            .map(|at| format!("t{at}"))
            .chain(["t".to_owned(), "zz".to_owned()])
        {
            for head in [
                "mcp/request:tools/call",
                "mcp/request:prompts/get",
                "mcp/proposal:tools/call",
            ] {
                for text in [format!("{head}:{name}"), head.to_owned()] {
                    let kind = kind(&text);
                    let expected = all.iter().position(|one| one.admits_to(kind, &["up"]));
                    assert_eq!(set.position(kind, &["up"]), expected, "{text}");
                    admitted += usize::from(expected.is_some());
                }
            }
        }
        assert!(admitted > 10, "{admitted}");
    }

    #[test]
    fn a_bad_text_is_named() {
        let error = Capabilities::parse(["chat", "*"]).unwrap_err();
        assert_eq!(error, ("*".to_owned(), CapabilityError::WideWildcard));
    }
}
