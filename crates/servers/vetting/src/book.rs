//! Book of pins: the definitions of servers that are trusted, those that differ, and what follows
//! from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::definition::{Part, PartDefinition};

/// Pins of one server at most.
pub const PINS_MAX: usize = 4_096;
/// Bytes of the pinned definitions of one server at most.
pub const PINS_BYTES_MAX: usize = 16 << 20;

/// Consequence of a change: `pins`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinMode {
    /// Nothing is pinned.
    #[default]
    Off,
    /// It is said, and goes on.
    Warn,
    /// The older definition stays listed, and calls are refused.
    Block,
}

/// Consequence of a definition without a pin: `pins_first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstUse {
    /// It is pinned as it is.
    #[default]
    Trust,
    /// It waits for an operator, and is not listed meanwhile.
    Ask,
}

/// Policy by which the definitions of a server are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PinPolicy {
    /// For changes.
    pub mode: PinMode,
    /// For what has no pin.
    pub first: FirstUse,
}

/// A part and the name of a definition.
pub type Key = (Part, String);

/// A definition that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The definition.
    pub definition: PartDefinition,
    /// Its digest.
    pub digest: String,
}

/// A definition that is kept from callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Kind of the definition.
    pub part: Part,
    /// The name.
    pub name: String,
    /// Definition that is listed instead: the pinned one; `None` if there is none.
    pub pinned: Option<String>,
}

/// Event about a definition that is said once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum News {
    /// The server lists it for the first time, after others were pinned.
    New,
    /// It differs from its pin.
    Changed,
    /// It has no pin, and waits for an operator.
    Waits,
    /// The server lists it no more.
    Gone,
    /// There is no room for its pin.
    NoRoom,
}

impl News {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Judgement on the definitions that a session lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Definitions that callers do not get as they are.
    pub withheld: Vec<Withheld>,
    /// Events to be said and recorded.
    pub news: Vec<(News, Key)>,
    /// Definitions that were pinned just now.
    pub pinned: Vec<Pin>,
    /// Whether the pins of a server of another identity were dropped before.
    pub is_another: bool,
}

/// State of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PinState {
    /// It is as it was pinned.
    Pinned,
    /// It differs from its pin.
    Changed,
    /// It waits for its first pin.
    New,
    /// It is pinned, and the server does not list it.
    Gone,
}

/// A definition with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDefinition {
    /// Kind and name of the definition.
    pub key: Key,
    /// State of the definition.
    pub standing: PinState,
    /// The pinned definition.
    pub pin: Option<Pin>,
    /// The definition that waits, with its digest.
    pub waiting: Option<Pin>,
}

/// All pins.
#[derive(Debug, Default)]
pub struct Book {
    servers: BTreeMap<String, Server>,
}

#[derive(Debug, Default)]
struct Server {
    identity: String,
    pins: BTreeMap<Key, Pin>,
    /// The latest definitions that differ from their pins, or have none.
    waiting: BTreeMap<Key, Pin>,
    /// Definitions that its shared sessions list.
    listed: BTreeSet<Key>,
    /// Events that were said already.
    said: BTreeSet<(Key, String)>,
    bytes: usize,
}

impl Server {
    fn pin(&mut self, pin: Pin) {
        let key = (pin.definition.part, pin.definition.name.clone());
        self.waiting.remove(&key);
        self.said.retain(|(said, _)| *said != key);
        self.bytes += pin.definition.text.len();
        if let Some(before) = self.pins.insert(key, pin) {
            self.bytes = self.bytes.saturating_sub(before.definition.text.len());
        }
    }

    fn has_room(&self, definition: &PartDefinition) -> bool {
        self.pins.len() < PINS_MAX && self.bytes + definition.text.len() <= PINS_BYTES_MAX
    }

    /// Replaces the definitions of a part that its shared sessions list, and returns those that are
    /// pinned and not listed any more.
    fn relisted(&mut self, part: Part, listed: BTreeSet<Key>) -> Vec<Key> {
        let mut gone = Vec::new();
        for key in &self.listed {
            if key.0 == part && !listed.contains(key) && self.pins.contains_key(key) {
                gone.push(key.clone());
            }
        }
        self.waiting
            .retain(|key, _| key.0 != part || listed.contains(key));
        self.listed.retain(|key| key.0 != part);
        self.listed.extend(listed);
        gone
    }

    /// A definition with what is known of it.
    fn known(&self, key: &Key) -> KnownDefinition {
        let pin = self.pins.get(key).cloned();
        let waiting = self.waiting.get(key).cloned();
        let standing = match (&pin, &waiting) {
            (Some(_), Some(_)) => PinState::Changed,
            (None, _) => PinState::New,
            (Some(_), None) if self.listed.contains(key) => PinState::Pinned,
            (Some(_), None) => PinState::Gone,
        };
        KnownDefinition {
            key: key.clone(),
            standing,
            pin,
            waiting,
        }
    }

    /// Whether something was not said before. What cannot be remembered is not said.
    fn is_news(&mut self, key: &Key, digest: &str) -> bool {
        self.said.len() < 2 * PINS_MAX && self.said.insert((key.clone(), digest.to_owned()))
    }
}

impl Book {
    /// Enters a pin that an earlier run has stored.
    pub fn restore(&mut self, server: &str, identity: &str, pin: Pin) {
        let known = self.servers.entry(server.to_owned()).or_default();
        if known.identity != identity {
            *known = Server {
                identity: identity.to_owned(),
                ..Server::default()
            };
        }
        known.pin(pin);
    }

    /// Judges all definitions of one kind of lists that a session has. `is_shared` says whether it
    /// is the session of all callers: what another one does not list is not gone.
    pub fn judge(
        &mut self,
        (name, identity): (&str, &str),
        policy: PinPolicy,
        (part, definitions): (Part, Vec<PartDefinition>),
        is_shared: bool,
    ) -> Judgement {
        let mut found = Judgement::default();
        if policy.mode == PinMode::Off || !part.is_pinned() {
            return found;
        }
        let server = self.servers.entry(name.to_owned()).or_default();
        if server.identity != identity {
            found.is_another = !server.identity.is_empty();
            *server = Server {
                identity: identity.to_owned(),
                ..Server::default()
            };
        }
        let is_first = !server.pins.keys().any(|(known, _)| *known == part);
        let mut listed = BTreeSet::new();
        for definition in definitions {
            let key = (part, definition.name.clone());
            let digest = definition.digest(identity);
            listed.insert(key.clone());
            let pinned = server.pins.get(&key).cloned();
            if pinned.as_ref().is_some_and(|pin| pin.digest == digest) {
                if is_shared {
                    server.waiting.remove(&key);
                }
                continue;
            }
            let has_room = server.has_room(&definition);
            let new = Pin {
                definition,
                digest: digest.clone(),
            };
            if pinned.is_none() && policy.first == FirstUse::Trust && has_room {
                server.pin(new.clone());
                found.pinned.push(new);
                // What a server lists at first is no news.
                if !is_first && server.is_news(&key, &digest) {
                    found.news.push((News::New, key));
                }
                continue;
            }
            let news = match policy.first {
                _ if pinned.is_some() => News::Changed,
                FirstUse::Trust => News::NoRoom,
                FirstUse::Ask => News::Waits,
            };
            if server.waiting.len() < PINS_MAX || server.waiting.contains_key(&key) {
                server.waiting.insert(key.clone(), new);
            }
            if server.is_news(&key, &digest) {
                found.news.push((news, key.clone()));
            }
            if policy.mode == PinMode::Block {
                let pinned = pinned.map(|pin| pin.definition.text);
                found.withheld.push(Withheld {
                    part,
                    name: key.1,
                    pinned,
                });
            }
        }
        if is_shared {
            let gone = server.relisted(part, listed);
            found
                .news
                .extend(gone.into_iter().map(|key| (News::Gone, key)));
        }
        found
    }

    /// Everything that is known of a server's definitions.
    #[must_use]
    pub fn rows(&self, server: &str) -> Vec<KnownDefinition> {
        let Some(server) = self.servers.get(server) else {
            return Vec::new();
        };
        let keys: BTreeSet<&Key> = server.pins.keys().chain(server.waiting.keys()).collect();
        keys.into_iter().map(|key| server.known(key)).collect()
    }

    /// The names of servers of which anything is known.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The identity of a server whose definitions were judged.
    #[must_use]
    pub fn identity(&self, server: &str) -> Option<&str> {
        self.servers
            .get(server)
            .map(|server| server.identity.as_str())
    }

    /// The definitions that wait and have one of these digests, as they are to be pinned.
    #[must_use]
    pub fn approved(&self, server: &str, digests: &[String]) -> Vec<Pin> {
        let waiting = self
            .servers
            .get(server)
            .into_iter()
            .flat_map(|server| server.waiting.values());
        waiting
            .filter(|pin| digests.contains(&pin.digest))
            .cloned()
            .collect()
    }

    /// Pins these definitions.
    pub fn approve(&mut self, server: &str, pins: Vec<Pin>) {
        if let Some(server) = self.servers.get_mut(server) {
            pins.into_iter().for_each(|pin| server.pin(pin));
        }
    }

    /// Forgets all pins of a server: what it lists next is seen for the first time.
    pub fn reset(&mut self, server: &str) {
        if let Some(server) = self.servers.get_mut(server) {
            *server = Server {
                identity: std::mem::take(&mut server.identity),
                ..Server::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "stdio server";

    fn tools(list: &[(&str, &str)]) -> (Part, Vec<PartDefinition>) {
        let one = |(name, says): &(&str, &str)| {
            PartDefinition::of(
                Part::Tool,
                name,
                format!(r#"{{"name":"{name}","description":"{says}"}}"#).as_bytes(),
            )
        };
        (Part::Tool, list.iter().map(one).collect())
    }

    fn block(first: FirstUse) -> PinPolicy {
        PinPolicy {
            mode: PinMode::Block,
            first,
        }
    }

    /// What is said and withheld, as words.
    fn judged(
        book: &mut Book,
        policy: PinPolicy,
        list: &[(&str, &str)],
        is_shared: bool,
    ) -> (String, String) {
        let found = book.judge(("s", ID), policy, tools(list), is_shared);
        let news: Vec<String> = found
            .news
            .iter()
            .map(|(news, key)| format!("{} {}", news.as_str(), key.1))
            .collect();
        let withheld: Vec<String> = found
            .withheld
            .iter()
            .map(|one| {
                format!(
                    "{}{}",
                    one.name,
                    if one.pinned.is_some() { "" } else { "!" }
                )
            })
            .collect();
        (news.join(","), withheld.join(","))
    }

    #[track_caller]
    fn check(
        book: &mut Book,
        policy: PinPolicy,
        list: &[(&str, &str)],
        news: &str,
        withheld: &str,
    ) {
        assert_eq!(
            judged(book, policy, list, true),
            (news.to_owned(), withheld.to_owned()),
            "{list:?}"
        );
    }

    #[test]
    fn changes_are_said_once_and_withheld_until_they_are_approved_or_taken_back() {
        let mut book = Book::default();
        let policy = block(FirstUse::Trust);
        check(&mut book, policy, &[("a", "1"), ("b", "1")], "", "");
        check(
            &mut book,
            policy,
            &[("b", "1"), ("a", "2")],
            "changed a",
            "a",
        );
        check(&mut book, policy, &[("b", "1"), ("a", "2")], "", "a");
        check(
            &mut book,
            policy,
            &[("b", "1"), ("a", "3")],
            "changed a",
            "a",
        );
        let waits = book
            .rows("s")
            .into_iter()
            .find_map(|row| row.waiting)
            .unwrap();
        assert_eq!(book.approved("s", &["0".repeat(64)]), []);
        let approved = book.approved("s", &[waits.digest]);
        assert_eq!(approved.len(), 1);
        book.approve("s", approved);
        check(&mut book, policy, &[("b", "1"), ("a", "3")], "", "");
        check(
            &mut book,
            policy,
            &[("b", "1"), ("a", "1")],
            "changed a",
            "a",
        );
        check(&mut book, policy, &[("b", "1"), ("a", "3")], "", "");
        // A new name for a definition is a new tool, and its older name is gone.
        check(
            &mut book,
            policy,
            &[("c", "1"), ("a", "3")],
            "new c,gone b",
            "",
        );
        // Two that change places have both changed; what was said before is not said again.
        check(
            &mut book,
            policy,
            &[("c", "3"), ("a", "1")],
            "changed c",
            "c,a",
        );
        book.reset("s");
        check(&mut book, policy, &[("c", "3"), ("a", "1")], "", "");
    }

    #[test]
    fn what_only_one_caller_is_shown_is_noticed() {
        let mut book = Book::default();
        let policy = block(FirstUse::Trust);
        check(&mut book, policy, &[("a", "1"), ("b", "1")], "", "");
        assert_eq!(
            judged(&mut book, policy, &[("a", "2")], false),
            ("changed a".into(), "a".into())
        );
        // The others go on with theirs, and nothing is gone.
        check(&mut book, policy, &[("a", "1"), ("b", "1")], "", "");
        assert!(
            book.rows("s")
                .iter()
                .all(|row| row.standing == PinState::Pinned)
        );
    }

    #[test]
    fn a_first_sight_is_trusted_or_asked_about() {
        let mut book = Book::default();
        check(
            &mut book,
            block(FirstUse::Ask),
            &[("a", "1")],
            "waits a",
            "a!",
        );
        let waiting = book.rows("s")[0].waiting.clone().unwrap();
        book.approve("s", vec![waiting]);
        check(
            &mut book,
            block(FirstUse::Ask),
            &[("a", "1"), ("b", "1")],
            "waits b",
            "b!",
        );
        let warn = PinPolicy {
            mode: PinMode::Warn,
            first: FirstUse::Trust,
        };
        let mut book = Book::default();
        check(&mut book, warn, &[("a", "1")], "", "");
        check(&mut book, warn, &[("a", "2")], "changed a", "");
        check(&mut book, warn, &[("a", "2")], "", "");
        assert_eq!(book.rows("s")[0].standing, PinState::Changed);
        let mut book = Book::default();
        check(&mut book, PinPolicy::default(), &[("a", "1")], "", "");
        assert_eq!(book.rows("s"), []);
    }

    #[test]
    fn another_server_of_the_name_is_seen_for_the_first_time() {
        let mut book = Book::default();
        let policy = block(FirstUse::Trust);
        let pin = |identity: &str| {
            let definition = tools(&[("a", "1")]).1.remove(0);
            Pin {
                digest: definition.digest(identity),
                definition,
            }
        };
        book.restore("s", ID, pin(ID));
        check(&mut book, policy, &[("a", "2")], "changed a", "a");
        let found = book.judge(("s", "other"), policy, tools(&[("a", "2")]), true);
        assert!(
            found.is_another && found.withheld.is_empty() && found.pinned.len() == 1,
            "{found:?}"
        );
    }

    #[test]
    fn pins_of_a_server_are_limited() {
        let mut book = Book::default();
        let names: Vec<String> = (0..=PINS_MAX).map(|number| format!("t{number}")).collect();
        let list: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let last = format!("t{PINS_MAX}");
        check(
            &mut book,
            block(FirstUse::Trust),
            &list,
            &format!("no_room {last}"),
            &format!("{last}!"),
        );
        let mut book = Book::default();
        let long = "x".repeat(PINS_BYTES_MAX / 2);
        let found = judged(
            &mut book,
            block(FirstUse::Trust),
            &[("a", &long), ("b", &long)],
            true,
        );
        assert_eq!(found, ("no_room b".into(), "b!".into()));
    }
}
