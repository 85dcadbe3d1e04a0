//! Owns the rule which links of a room hear what is said in it.
//! Must not know who may say it (see `say`), nor how it is sent.

use model::{KindRef, PROPOSAL};

/// What a link hears of the room. One participant has one link with an ear at most.
/// Source: MCPx v0.1 section 6; the third form is ours, for reviewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ear {
    /// Everything, also what it says itself.
    All,
    /// What is for everybody, and what names it.
    Directed,
    /// The same, and every proposal.
    DirectedAndProposals,
}

impl Ear {
    /// Whether the link of `own` hears an envelope of this kind to these addressees; none is everybody.
    /// Allocates nothing.
    pub fn hears(self, own: &str, to: &[&str], kind: &str) -> bool {
        let named = || to.is_empty() || to.contains(&own);
        match self {
            Self::All => true,
            Self::Directed => named(),
            Self::DirectedAndProposals => {
                named() || KindRef::parse(kind).is_ok_and(|kind| kind.head() == PROPOSAL)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hears_what() {
        let check = |to: &[&str], kind: &str, expected: [bool; 3]| {
            let heard =
                [Ear::All, Ear::Directed, Ear::DirectedAndProposals].map(|ear| ear.hears("ann", to, kind));
            assert_eq!(heard, expected, "{to:?} {kind}");
        };
        check(&[], "chat", [true, true, true]);
        check(&["ann"], "chat", [true, true, true]);
        check(&["bob", "ann"], "mcp/request:tools/list", [true, true, true]);
        check(&["bob"], "chat", [true, false, false]);
        check(&["bob"], "mcp/request:tools/call:mcp/proposal", [true, false, false]);
        check(&["bob"], "mcp/proposal:tools/call:x", [true, false, true]);
        check(&["bob"], "mcp/proposals:x", [true, false, false]);
    }
}
