//! Proposals that wait for the disk: the share of each proposer in the journal's queue.

use std::sync::Arc;

use access::account;
use model::ParticipantId;
use platform::{Share, Taken};
use store::{JournalWriter, OpenedProposal};

use super::content::bytes_of;

/// Whether one more proposal fits into what its proposer may have waiting.
pub(super) fn has_room(journal: &JournalWriter, opened: &OpenedProposal) -> bool {
    account_of(journal, opened).is_none_or(|account| account.has_room(bytes_of(opened)))
}

/// Puts a proposal on its proposer's account.
pub(super) fn take(journal: &JournalWriter, opened: &OpenedProposal) -> Option<Taken> {
    let mut taken = account_of(journal, opened)?.take(0).ok()?;
    taken.add(bytes_of(opened));
    Some(taken)
}

fn account_of(journal: &JournalWriter, opened: &OpenedProposal) -> Option<Arc<Share>> {
    ParticipantId::new(&opened.by).ok().map(|by| journal.account(account(&by)))
}
