//! Pinned definitions in the journal: the last pin of each definition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::Fold;

/// A fact about pins that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum PinRecord {
    /// A definition of a server is trusted, in place of the one before.
    Pin(PinnedDefinition),
    /// The pinned definitions of a server are forgotten.
    PinsReset {
        /// The server.
        server: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
}

/// A definition of a server that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedDefinition {
    /// The configured name of the server.
    pub server: String,
    /// SHA-256 of the traits by which the server differs from another one of its name, 64
    /// hexadecimal digits.
    pub identity: String,
    /// Kind of the definition: `tool`, `prompt`, `instructions`.
    pub part: String,
    /// The server's own name of it.
    pub name: String,
    /// SHA-256 of identity and definition, 64 hexadecimal digits.
    pub digest: String,
    /// The definition, as canonical JSON.
    pub definition: String,
    /// The participant that approved it; `None` at first sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// All pins of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptPins {
    /// By server, part and name.
    pins: BTreeMap<(String, String, String), PinnedDefinition>,
}

impl KeptPins {
    /// Definitions of servers that are trusted.
    pub(super) fn all(&self) -> impl Iterator<Item = &PinnedDefinition> {
        self.pins.values()
    }

    /// Takes a pin. Those of another server of the name are of no use any more.
    fn pin(&mut self, pin: &PinnedDefinition) {
        let key = |name: &str| (pin.server.clone(), pin.part.clone(), name.to_owned());
        let is_others = |(_, other): (&(String, String, String), &PinnedDefinition)| {
            other.server == pin.server && other.identity != pin.identity
        };
        let first = (pin.server.clone(), String::new(), String::new());
        // The first of the server tells for all.
        if self.pins.range(first..).next().is_some_and(is_others) {
            self.pins.retain(|_, other| other.server != pin.server);
        }
        self.pins.insert(key(&pin.name), pin.clone());
    }
}

impl Fold for KeptPins {
    const OWNER: &'static str = "pins";
    type Record = PinRecord;

    fn is_for_all(_: &PinRecord) -> bool {
        true
    }

    fn apply(&mut self, record: &PinRecord) {
        match record {
            PinRecord::Pin(pin) => self.pin(pin),
            PinRecord::PinsReset { server, .. } => {
                self.pins.retain(|_, pin| pin.server != *server);
            }
        }
    }

    fn live(&self) -> usize {
        self.pins.len()
    }

    fn records(&mut self, _: u64) -> Vec<PinRecord> {
        self.pins.values().cloned().map(PinRecord::Pin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        r#"{"record":"pin","server":"files","identity":"ab","part":"tool","name":"read","digest":"cd","definition":"{\"name\":\"read\"}","at_ms":27}"#,
        r#"{"record":"pin","server":"files","identity":"ab","part":"instructions","name":"","digest":"ef","definition":"{}","by":"ana","at_ms":28}"#,
        r#"{"record":"pin","server":"docs","identity":"ab","part":"tool","name":"find","digest":"01","definition":"{}","at_ms":28}"#,
        r#"{"record":"pins_reset","server":"files","at_ms":29}"#,
    ];

    fn folded(records: &[PinRecord]) -> KeptPins {
        let mut pins = KeptPins::default();
        records.iter().for_each(|record| pins.apply(record));
        pins
    }

    #[test]
    fn every_record_has_its_golden_line_and_rebuilds_the_pins() {
        let records = LINES.map(|line| serde_json::from_str::<PinRecord>(line).unwrap());
        for (record, line) in records.iter().zip(LINES) {
            assert_eq!(serde_json::to_string(record).unwrap(), line);
        }
        let mut all = folded(&records[..3]);
        let written = all.records(0);
        assert_eq!((written.len(), all.live()), (3, 3));
        assert_eq!(folded(&written), all);
        let left = folded(&records);
        let servers: Vec<_> = left.all().map(|pin| pin.server.as_str()).collect();
        assert_eq!(servers, ["docs"]);
    }

    #[test]
    fn a_pin_of_another_server_of_the_name_replaces_all_of_the_first_one() {
        let records = LINES.map(|line| serde_json::from_str::<PinRecord>(line).unwrap());
        let PinRecord::Pin(first) = &records[0] else {
            panic!("a pin")
        };
        let other = PinRecord::Pin(PinnedDefinition {
            identity: "other".into(),
            ..first.clone()
        });
        let pins = folded(&[&records[..3], &[other]].concat());
        let found: Vec<_> = pins
            .all()
            .map(|pin| (pin.server.as_str(), pin.identity.as_str()))
            .collect();
        assert_eq!(found, [("docs", "ab"), ("files", "other")]);
    }
}
