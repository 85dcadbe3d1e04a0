//! The journal, and who may come in by it: issued tokens made, listed and revoked while the gateway runs.
//!
//! Must not know HTTP or the command line.

use std::sync::{Arc, Mutex, PoisonError};

use auth::Identities;
use model::{Refusal, RefusalCode};
use store::{IssuedToken, State, StoreError, Writer};

use crate::config::Config;
use crate::gate::Gate;
use crate::ground::{random, unix_ms};
use crate::tokens::{self, TokenRequest};

/// The journal, and the identities that follow from it.
pub struct Office {
    journal: Option<Writer>,
    /// Changes look first and write then: one at a time.
    turn: Mutex<()>,
    /// Once tokens were asked for, this process goes on asking.
    asks: bool,
}

impl Office {
    /// An office with this journal, if there is one. `asks` is whether callers need a token.
    pub fn new(journal: Option<Writer>, asks: bool) -> Self {
        Self { journal, turn: Mutex::new(()), asks }
    }

    /// Whether callers need a token.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Writes down where the gateway listens, for commands that look for it.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub fn announce(&self, address: &str) -> Result<(), StoreError> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.announce(address))
    }

    fn state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        match &self.journal {
            Some(journal) => journal.state(look),
            None => look(&State::default()),
        }
    }

    /// All who may come in now.
    pub fn identities(&self, config: &Config) -> Identities {
        self.state(|state| tokens::identities(config, state, self.asks))
    }

    /// The issued tokens, without their secrets.
    pub fn issued(&self) -> Vec<IssuedToken> {
        self.state(|state| state.tokens().to_vec())
    }

    fn change<T>(&self, change: impl FnOnce(&Writer) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = self.journal.as_ref().ok_or_else(|| {
            Refusal::new(RefusalCode::Unsupported, "this gateway keeps nothing on disk")
                .hint("start it with a data_dir")
        })?;
        change(journal)
    }
}

/// What the API does with tokens.
pub struct Tokens {
    /// The journal.
    pub office: Arc<Office>,
    /// Whose identities follow.
    pub gate: Arc<Gate>,
}

impl Tokens {
    /// Issues a token, and lets its bearer in.
    ///
    /// # Errors
    /// As [`tokens::issue`].
    pub fn issue(&self, request: TokenRequest) -> Result<(String, IssuedToken), Refusal> {
        let config = self.gate.config();
        if !self.office.asks {
            return Err(Refusal::new(RefusalCode::Forbidden, "this gateway was started without tokens")
                .hint("stop it, issue the token, and start it again: from then on everyone needs one"));
        }
        let issued =
            self.office.change(|journal| tokens::issue(journal, &config, request, &random(), unix_ms()))?;
        self.gate.set_identities(self.office.identities(&config));
        Ok(issued)
    }

    /// Revokes a token; what its bearer has open ends.
    ///
    /// # Errors
    /// As [`tokens::revoke`].
    pub fn revoke(&self, name: &str) -> Result<(), Refusal> {
        self.office.change(|journal| tokens::revoke(journal, name, unix_ms()))?;
        self.gate.set_identities(self.office.identities(&self.gate.config()));
        Ok(())
    }
}
