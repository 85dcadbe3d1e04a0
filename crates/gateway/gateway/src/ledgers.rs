//! Ledgers of the topics: their parts of the journal.

use store::{JournalWriter, Ledger, StoreError};

use crate::brakes::kept::KeptBrakes;
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
}
