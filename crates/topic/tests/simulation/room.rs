//! Owns what is said to the room in the simulation, and who hears it.
//! Must not know proposals.

use model::KindRef;
use topic::{Cause, Ear, Effect, Event};

use crate::{books::Expected, world::World};

const KINDS: [&str; 9] = [
    "chat",
    "notes/x",
    "mcp/request:tools/call:a",
    "mcp/request:tools/call:one_a",
    "mcp/proposal:tools/call:a",
    "mcp/response:tools/call:a",
    "system/error",
    "presence/join",
    "mcp/request",
];
const NAMED: [&[&str]; 5] = [&[], &["one"], &["ann"], &["one", "two"], &["bob", "nobody"]];

impl World {
    /// Nobody hears what was not admitted, and whoever should hears it.
    pub(crate) fn say(&mut self) {
        let (link, kind, to) =
            (self.any_link(), *self.prng.pick(&KINDS).unwrap(), *self.prng.pick(&NAMED).unwrap());
        let who = self.books.links.get(&link).cloned();
        let effects = self.live(Event::Say { link, kind, to }, Expected::default());
        let Some(who) = who else { return assert!(effects.is_empty()) };
        let own = kind.starts_with("system") || kind.starts_with("presence");
        let admitted = !own && KindRef::parse(kind).is_ok_and(|kind| self.grants[&who].admits(kind, to));
        match effects.as_slice() {
            [Effect::Publish { link: said }] => assert!(admitted && *said == link, "{kind} was not admitted"),
            [Effect::Withhold { link: said, cause, refusal }] => {
                assert_eq!(*said, link);
                assert_eq!(refusal.retry_after_ms.is_some(), *cause == Cause::RateLimited);
                assert!(!admitted || *cause == Cause::RateLimited, "{kind} was withheld");
            }
            other => panic!("one effect for what is said: {other:?}"),
        }
        for (listener, name) in &self.books.links {
            let expected = match self.books.ears.get(listener) {
                None => false,
                Some(Ear::All) => true,
                Some(ear) => {
                    let proposal = kind.starts_with("mcp/proposal:") && *ear == Ear::DirectedAndProposals;
                    to.is_empty() || to.contains(&name.as_str()) || proposal
                }
            };
            assert_eq!(self.topic.hears(*listener, to, kind), expected, "{name} {to:?} {kind}");
        }
    }

    /// Whoever has heard every join and leave, in their order, knows who is here. One ear a participant.
    pub(crate) fn check_room(&self) {
        let mut here: Vec<&str> = self.topic.participants().map(|present| present.id.as_str()).collect();
        here.sort_unstable();
        let told: Vec<&str> = self.books.told_here.iter().map(|name| name.as_str()).collect();
        assert_eq!(here, told);
        let mut listeners: Vec<_> = self.books.ears.keys().map(|link| &self.books.links[link]).collect();
        let count = listeners.len();
        listeners.sort_unstable();
        listeners.dedup();
        assert_eq!(listeners.len(), count, "two ears of one participant");
    }
}
