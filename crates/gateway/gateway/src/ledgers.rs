//! Ledgers of the topics: their parts of the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ParticipantId, TopicName};
use store::{Fold as _, JournalWriter, Ledger, StoreError};
use topic::Brake;

use crate::brakes::kept::{KeptBrake, KeptBrakes};
use crate::by_rule::kept::KeptRules;
use crate::outside::kept::KeptRequests;
use crate::proposals::kept::KeptProposals;
use crate::tasks::kept::KeptTasks;

/// The parts of the journal that topics have; all topics share them.
#[derive(Debug, Clone)]
pub struct TopicLedgers {
    pub(crate) proposals: Ledger<KeptProposals>,
    pub(crate) tasks: Ledger<KeptTasks>,
    pub(crate) rules: Ledger<KeptRules>,
    pub(crate) brakes: Ledger<KeptBrakes>,
    pub(crate) approvers: Ledger<KeptRequests>,
}

impl TopicLedgers {
    /// The owner of rules in the journal.
    pub const RULES: &'static str = KeptRules::OWNER;
    /// The owner of pauses in the journal.
    pub const PAUSES: &'static str = KeptBrakes::OWNER;

    /// The topics' parts of this journal.
    ///
    /// # Errors
    /// When the journal has a record of theirs that cannot be read.
    pub fn open(journal: &JournalWriter) -> Result<Self, StoreError> {
        Ok(Self {
            proposals: journal.ledger()?,
            tasks: journal.ledger()?,
            rules: journal.ledger()?,
            brakes: journal.ledger()?,
            approvers: journal.ledger()?,
        })
    }

    /// The pauses of a topic, by participant.
    pub(crate) fn brakes_of(&self, topic: &TopicName) -> BTreeMap<ParticipantId, Brake> {
        let all: Vec<KeptBrake> = self
            .brakes
            .state(|kept| kept.of_topic(topic.as_str()).cloned().collect());
        let mut brakes = BTreeMap::new();
        for kept in all {
            let (Ok(participant), Ok(by)) = (
                ParticipantId::new(&kept.participant),
                ParticipantId::new(&kept.by),
            ) else {
                tracing::error!(participant = kept.participant, "a pause cannot be read");
                continue;
            };
            let brake = Brake {
                by,
                reason: kept.reason.map(Arc::from),
                since_ms: kept.at_ms,
            };
            brakes.insert(participant, brake);
        }
        brakes
    }
}
