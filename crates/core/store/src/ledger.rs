//! The part of one owner in the journal: its state, and appends of its records.

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::sync::Arc;

use platform::Mutex;

use crate::entry::Entry;
use crate::error::StoreError;
use crate::fold::Fold;
use crate::journal::Place;
use crate::writer::JournalWriter;

/// The state of one owner after all durable records, and the journal that it is folded from; clones
/// share both.
pub struct Ledger<F> {
    journal: JournalWriter,
    state: Arc<Mutex<F>>,
}

impl JournalWriter {
    /// The part of one owner: its state, and appends of its records. The first call folds the state
    /// from the owner's records; all calls give the same state.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the owner cannot read one of its records.
    pub fn ledger<F: Fold>(&self) -> Result<Ledger<F>, StoreError> {
        Ok(Ledger {
            journal: self.clone(),
            state: self.folded()?,
        })
    }
}

impl<F: Fold> Ledger<F> {
    /// Calls `read` with the state after all durable records. The thread that writes the journal
    /// waits meanwhile: keep `read` short.
    pub fn state<T>(&self, read: impl FnOnce(&F) -> T) -> T {
        read(&self.state.lock())
    }

    /// Writes records that belong together, and blocks until they are durable and in the state.
    /// Deadlocks when `on_durable` of a submission calls it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses; [`StoreError::Stopped`] from then on.
    pub fn append(&self, records: &[F::Record]) -> Result<(), StoreError> {
        self.journal.append(entries::<F>(records)?)
    }

    /// Writes records together with entries of other owners, as [`Ledger::append`].
    ///
    /// # Errors
    /// As [`Ledger::append`].
    pub fn append_with(&self, records: &[F::Record], others: Vec<Entry>) -> Result<(), StoreError> {
        let mut all = entries::<F>(records)?;
        all.extend(others);
        self.journal.append(all)
    }

    /// Writes records that belong together. `on_durable` runs on a thread of the journal when they
    /// are durable or their write has failed: it must be short and must not wait for this journal.
    /// It runs at once when the queue is full.
    pub fn submit(
        &self,
        records: &[F::Record],
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        match entries::<F>(records) {
            Ok(entries) => self.journal.submit(entries, on_durable),
            Err(error) => on_durable(Err(error)),
        }
    }

    /// Writes records together with entries of other owners, as [`Ledger::submit`].
    pub fn submit_with(
        &self,
        records: &[F::Record],
        others: Vec<Entry>,
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        match entries::<F>(records) {
            Ok(mut all) => {
                all.extend(others);
                self.journal.submit(all, on_durable);
            }
            Err(error) => on_durable(Err(error)),
        }
    }

    /// Reserves a permit for one submission that the caller makes under a lock or after a step that
    /// cannot be undone.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when [`crate::WRITER_PERMITS_MAX`] or [`crate::WRITER_BYTES_MAX`] is
    /// reached, [`StoreError::Stopped`] when the journal cannot be written any more.
    pub fn reserve(&self) -> Result<JournalPermit<F>, StoreError> {
        Ok(JournalPermit {
            place: self.journal.reserve()?,
            owner: PhantomData,
        })
    }

    /// The journal of all owners.
    #[must_use]
    pub fn journal(&self) -> &JournalWriter {
        &self.journal
    }
}

impl<F> Clone for Ledger<F> {
    fn clone(&self) -> Self {
        Self {
            journal: self.journal.clone(),
            state: Arc::clone(&self.state),
        }
    }
}

impl<F: Fold> Debug for Ledger<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ledger").field(&F::OWNER).finish()
    }
}

/// Permit for one submission of an owner: the queue does not reject it as [`StoreError::Busy`].
/// Released when dropped.
#[derive(Debug)]
pub struct JournalPermit<F> {
    place: Box<dyn Place>,
    owner: PhantomData<fn() -> F>,
}

impl<F: Fold> JournalPermit<F> {
    /// As [`Ledger::submit`], with this permit.
    pub fn submit(
        self,
        records: &[F::Record],
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        match entries::<F>(records) {
            Ok(entries) => self
                .place
                .append(entries, Box::new(|end| on_durable(end.map(drop)))),
            Err(error) => on_durable(Err(error)),
        }
    }
}

fn entries<F: Fold>(records: &[F::Record]) -> Result<Vec<Entry>, StoreError> {
    records.iter().map(Entry::of::<F>).collect()
}
