//! Access journal: identities, issued tokens and grants that follow from the journal.

use std::sync::atomic::{AtomicBool, Ordering};

use auth::{Identities, TokenHash};
use model::{Refusal, RefusalCode};
use platform::Mutex;
use store::{DirectoryOwner, Ledger, StoreError};

use crate::record::IssuedToken;
use crate::state::AccessState;
use crate::{config::IdentityConfig, grants::Grants, identities::identities, sign_ins::SignIns};

/// Standing of participants: what a configuration and the journal make of them together.
#[derive(Debug)]
pub struct Standing {
    /// Known participants and their tokens.
    pub identities: Identities,
    /// Sign-ins of clients.
    pub sign_ins: SignIns,
    /// Changes of capabilities that apply to these participants.
    pub grants: Grants,
}

/// The journal as far as access follows from it. Changes are made one at a time.
pub struct AccessJournal {
    journal: Option<Ledger<AccessState>>,
    /// Locked during a change, which first reads the state and then writes.
    changes: Mutex<()>,
    /// Whether callers need a token.
    requires_token: AtomicBool,
    /// The hash of the operator key, if the gateway keeps one in its data directory.
    operator: Option<TokenHash>,
}

impl AccessJournal {
    /// Access over this journal, if the gateway keeps one. `requires_token` is whether callers need
    /// a token from the start.
    pub fn new(journal: Option<Ledger<AccessState>>, requires_token: bool) -> Self {
        let requires_token = AtomicBool::new(requires_token);
        Self {
            journal,
            changes: Mutex::new(()),
            requires_token,
            operator: None,
        }
    }

    /// The journal with an operator key, whose bearer is the local user.
    #[must_use]
    pub fn with_operator(self, key: Option<TokenHash>) -> Self {
        Self {
            operator: key,
            ..self
        }
    }

    /// Whether this is the operator key of the running gateway. Where callers need no token, this
    /// alone tells who can read its data directory from other programs of the machine.
    pub fn is_operator_key(&self, key: &str) -> bool {
        self.operator
            .is_some_and(|known| known == TokenHash::of(key))
    }

    /// Writes into the data directory what commands must know of the gateway: where it listens, the
    /// certificate that it shows there, its configuration files.
    ///
    /// # Errors
    /// If the data directory cannot be written.
    pub fn announce(&self, gateway: DirectoryOwner) -> Result<(), StoreError> {
        self.journal
            .as_ref()
            .map_or(Ok(()), |ledger| ledger.journal().announce(gateway))
    }

    /// Whether the gateway keeps a journal.
    pub fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// Whether callers need a token. A gateway that requires one goes on requiring one until it
    /// stops.
    pub fn requires_token(&self) -> bool {
        self.requires_token.load(Ordering::Acquire)
    }

    /// Standing of participants under a configuration, all of one state of the journal.
    pub fn standing(&self, config: &IdentityConfig) -> Standing {
        let standing = self.state(|state| Standing {
            identities: identities(config, state, self.requires_token(), self.operator),
            sign_ins: SignIns::read(config, state),
            grants: Grants::read(state, config),
        });
        self.requires_token
            .fetch_or(standing.identities.requires_token(), Ordering::AcqRel);
        standing
    }

    /// The issued tokens, without their secrets.
    pub fn issued_tokens(&self) -> Vec<IssuedToken> {
        self.state(|state| state.tokens().to_vec())
    }

    /// Reads the state of all durable records. The writing thread waits meanwhile: keep `read`
    /// short.
    pub fn read<T>(&self, read: impl FnOnce(&AccessState) -> T) -> T {
        self.state(read)
    }

    /// Does something while no change is made.
    pub fn undisturbed<T>(&self, act: impl FnOnce() -> T) -> T {
        let _changes = self.changes.lock();
        act()
    }

    /// Makes one change. Blocks on the disk.
    ///
    /// # Errors
    /// `unsupported` without a journal, and the refusal of the change itself.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&Ledger<AccessState>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let _changes = self.changes.lock();
        let journal = self.journal.as_ref().ok_or_else(|| {
            Refusal::new(
                RefusalCode::Unsupported,
                "this gateway keeps nothing on disk",
            )
            .hint("start it with a data_dir")
        })?;
        change(journal)
    }

    fn state<T>(&self, read: impl FnOnce(&AccessState) -> T) -> T {
        match &self.journal {
            Some(journal) => journal.state(read),
            None => read(&AccessState::default()),
        }
    }
}
