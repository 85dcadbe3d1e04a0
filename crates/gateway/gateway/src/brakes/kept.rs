//! Pauses of participants in the journal: those that last.

use std::collections::BTreeMap;

use model::{ParticipantId, TopicName};
use serde::{Deserialize, Serialize};
use store::Fold;
use topic::Brake;

/// A fact about pauses that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum BrakeRecord {
    /// A participant was paused in a topic, in place of an earlier pause.
    Paused(KeptBrake),
    /// It was resumed.
    Resumed {
        /// The topic.
        topic: String,
        /// The participant.
        participant: String,
        /// The participant that resumed it.
        by: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
}

/// The pause of a participant in a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptBrake {
    /// The topic.
    pub(crate) topic: String,
    /// The participant.
    pub(crate) participant: String,
    /// The participant that paused it.
    pub(crate) by: String,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Time in Unix milliseconds.
    pub(crate) at_ms: u64,
}

impl KeptBrake {
    /// The pause of a participant in a topic, as the journal has it.
    pub(crate) fn of(topic: &TopicName, participant: &ParticipantId, brake: &Brake) -> Self {
        Self {
            topic: topic.to_string(),
            participant: participant.to_string(),
            by: brake.by.to_string(),
            reason: brake.reason.as_deref().map(str::to_owned),
            at_ms: brake.since_ms,
        }
    }
}

/// All pauses of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptBrakes {
    /// By topic and participant.
    brakes: BTreeMap<(String, String), KeptBrake>,
}

impl KeptBrakes {
    /// Those of one topic.
    pub(crate) fn of_topic(&self, topic: &str) -> impl Iterator<Item = &KeptBrake> {
        self.brakes
            .values()
            .filter(move |brake| brake.topic == topic)
    }
}

impl Fold for KeptBrakes {
    const OWNER: &'static str = "brakes";
    type Record = BrakeRecord;

    fn is_for_all(_: &BrakeRecord) -> bool {
        true
    }

    fn apply(&mut self, record: &BrakeRecord) {
        match record {
            BrakeRecord::Paused(brake) => {
                let key = (brake.topic.clone(), brake.participant.clone());
                self.brakes.insert(key, brake.clone());
            }
            BrakeRecord::Resumed {
                topic, participant, ..
            } => {
                self.brakes.remove(&(topic.clone(), participant.clone()));
            }
        }
    }

    fn live(&self) -> usize {
        self.brakes.len()
    }

    fn records(&mut self, _: u64) -> Vec<BrakeRecord> {
        self.brakes
            .values()
            .cloned()
            .map(BrakeRecord::Paused)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        r#"{"record":"paused","topic":"main","participant":"scout","by":"ann","reason":"too fast","at_ms":1}"#,
        r#"{"record":"paused","topic":"main","participant":"clerk","by":"ann","at_ms":2}"#,
        r#"{"record":"paused","topic":"other","participant":"scout","by":"bob","at_ms":3}"#,
        r#"{"record":"resumed","topic":"main","participant":"scout","by":"bob","at_ms":4}"#,
    ];

    fn folded(records: &[BrakeRecord]) -> KeptBrakes {
        let mut kept = KeptBrakes::default();
        records.iter().for_each(|record| kept.apply(record));
        kept
    }

    #[test]
    fn every_record_has_its_golden_line_and_rebuilds_the_pauses() {
        let records = LINES.map(|line| serde_json::from_str::<BrakeRecord>(line).unwrap());
        for (record, line) in records.iter().zip(LINES) {
            assert_eq!(serde_json::to_string(record).unwrap(), line);
        }
        let mut all = folded(&records[..3]);
        let written = all.records(0);
        assert_eq!((written.len(), all.live()), (3, 3));
        assert_eq!(folded(&written), all);
        let left = folded(&records);
        let names = |topic| {
            let of_topic = left.of_topic(topic);
            of_topic
                .map(|brake| brake.participant.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (names("main"), names("other")),
            (vec!["clerk"], vec!["scout"])
        );
    }
}
