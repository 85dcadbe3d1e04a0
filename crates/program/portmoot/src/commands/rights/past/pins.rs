//! Policies of pins that change, tried on a participant's calls of what servers had changed.

use std::collections::{BTreeMap, BTreeSet};

use config::Config;
use identity::PINS;
use json::visible;
use model::{KindRef, REQUEST};
use store::audit::RecordedEntry;
use upstream::config::{FirstUse, PinMode, PinPolicy};

use super::capabilities::NO_SERVER;
use super::findings::{Findings, OtherAct, PolicyPart, that_were};

/// The cause of a refusal for which a changed definition is the reason.
const TOOL_CHANGED: &str = "tool_changed";
/// Why calls of a server without pins cannot be tried.
const NO_PINS: &str = "without pins the audit log has no changes of a server's definitions";

/// The servers whose policy of pins changes.
pub(super) struct TriedPins(BTreeMap<String, TriedServer>);

/// A server whose policy of pins changes.
struct TriedServer {
    before: PinPolicy,
    after: PinPolicy,
    /// What its operator has not approved at this time of the log: `tool read`.
    unapproved: BTreeSet<String>,
}

impl TriedPins {
    /// The servers of a configuration in force for which another one has other pins.
    pub(super) fn new(before: &Config, after: &Config) -> Self {
        let changed = before.servers.iter().filter_map(|server| {
            let mut others = after.servers.iter();
            let after = others.find(|other| other.name == server.name)?.pins;
            let tried = TriedServer {
                before: server.pins,
                after,
                unapproved: BTreeSet::new(),
            };
            (after != server.pins).then(|| (server.name.to_string(), tried))
        });
        Self(changed.collect())
    }

    /// Whether no policy changes.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes what the gateway has recorded about definitions of servers, by whatever participant.
    pub(super) fn learn(&mut self, entry: &RecordedEntry<'_>) {
        let ([to], Some(why)) = (entry.to.as_slice(), &entry.why) else {
            return;
        };
        if entry.kind != PINS {
            return;
        }
        if let Some(server) = self.0.get_mut(&**to) {
            server.learn(why);
        }
    }

    /// Takes an act of the participant.
    pub(super) fn take(&self, entry: &RecordedEntry<'_>, findings: &mut Findings) {
        let Ok(kind) = KindRef::parse(&entry.kind) else {
            return;
        };
        if kind.head() != REQUEST {
            return;
        }
        let is_changed = entry.why.as_deref() == Some(TOOL_CHANGED);
        let loosens = |server: &TriedServer| server.before.mode == PinMode::Block;
        if is_changed && entry.to.is_empty() && self.0.values().any(loosens) {
            return findings.not_tried(PolicyPart::Pins, NO_SERVER);
        }
        let mut servers = entry.to.iter().filter_map(|to| self.0.get(&**to));
        let Some(server) = servers.next() else {
            return;
        };
        let outcome = match &*entry.verdict {
            "admitted" => server
                .refuses(entry, kind, findings)
                .then_some(("made", "refused")),
            "held" => server
                .refuses(entry, kind, findings)
                .then_some(("held", "refused")),
            "refused" if is_changed && server.after.mode != PinMode::Block => {
                Some(("refused", "allowed"))
            }
            _ => None,
        };
        if let Some((was, would_be)) = outcome {
            findings.note(OtherAct {
                by: PolicyPart::Pins,
                kind: entry.kind.to_string(),
                to: entry.to.join(","),
                was,
                would_be,
            });
        }
    }
}

impl TriedServer {
    /// Takes a line about its definitions: `changed: tool read`, `approved: tool read, tool write`,
    /// `reset`.
    fn learn(&mut self, why: &str) {
        let asks = self.after.first == FirstUse::Ask;
        match why.split_once(": ") {
            Some(("changed" | "no_room", what)) => {
                self.unapproved.insert(what.to_owned());
            }
            Some(("new" | "waits", what)) if asks => {
                self.unapproved.insert(what.to_owned());
            }
            Some(("approved", all)) => all.split(", ").for_each(|what| {
                self.unapproved.remove(what);
            }),
            Some(("gone", what)) => {
                self.unapproved.remove(what);
            }
            None if why == "reset" => self.unapproved.clear(),
            _ => {}
        }
    }

    /// Whether a call that was not refused would be.
    fn refuses(
        &self,
        entry: &RecordedEntry<'_>,
        kind: KindRef<'_>,
        findings: &mut Findings,
    ) -> bool {
        let part = match kind.method() {
            Some("tools/call") => "tool",
            Some("prompts/get") => "prompt",
            _ => return false,
        };
        if self.after.mode != PinMode::Block {
            return false;
        }
        if self.before.mode == PinMode::Off {
            findings.not_tried(PolicyPart::Pins, NO_PINS);
            return false;
        }
        let own = entry.own.as_deref().or(kind.context());
        own.is_some_and(|own| {
            let what = format!("{part} {}", visible::line(own));
            self.unapproved.contains(&what)
        })
    }
}

/// The result in words: `would have refused 1 call that was made`.
pub(super) fn words(findings: &Findings) -> String {
    let outcomes = findings.outcomes(PolicyPart::Pins);
    let words = outcomes.iter().map(|((was, would_be), times)| {
        format!("would have {would_be} {}", that_were(*times, "call", was))
    });
    words.collect::<Vec<_>>().join(", ")
}
