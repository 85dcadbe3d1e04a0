//! Token service: tokens issued, listed and revoked while the gateway runs.

use std::sync::Arc;

use model::{ParticipantId, Refusal, RefusalCode};
use platform::{random, unix_ms};
use store::IssuedToken;

use crate::audit::TOKENS;
use crate::registry::Registry;
use access::AccessJournal;
use access::tokens::{self, TokenRequest};

/// Issues and revokes tokens of a running gateway. Every attempt is recorded in the audit log.
pub struct TokenService {
    journal: Arc<AccessJournal>,
    registry: Arc<Registry>,
}

impl TokenService {
    /// A service whose changes take effect in this registry.
    pub fn new(journal: Arc<AccessJournal>, registry: Arc<Registry>) -> Self {
        Self { journal, registry }
    }

    /// The issued tokens, without their secrets.
    pub fn issued(&self) -> Vec<IssuedToken> {
        self.journal.issued_tokens()
    }

    /// Issues a token, which is valid at once. Returns it, for the only time. Blocks on the disk.
    ///
    /// # Errors
    /// As [`tokens::issue`]; if the gateway was started without tokens or without a journal; if the audit log takes no entry.
    pub fn issue(&self, by: &ParticipantId, request: TokenRequest) -> Result<(String, IssuedToken), Refusal> {
        let (permit, name) = (self.registry.audit().reserve()?, request.name.clone());
        let end = self.make(request);
        permit.write_change((TOKENS, &name, None), by.as_str(), "issued", &end);
        end
    }

    fn make(&self, request: TokenRequest) -> Result<(String, IssuedToken), Refusal> {
        let config = self.registry.config();
        if !self.journal.requires_token() {
            return Err(Refusal::new(RefusalCode::Forbidden, "this gateway was started without tokens")
                .hint("stop it, issue the token, and start it again: from then on every caller needs one"));
        }
        self.journal.change(|journal| {
            let issued = tokens::issue(journal, &config, request, &random(), unix_ms())?;
            self.take_effect();
            Ok(issued)
        })
    }

    /// Revokes every token that was issued to a participant, and ends what was opened with them. Blocks on the disk.
    ///
    /// # Errors
    /// As [`tokens::revoke`]; if the gateway keeps no journal; if the audit log takes no entry.
    pub fn revoke(&self, by: &ParticipantId, name: &str) -> Result<(), Refusal> {
        let permit = self.registry.audit().reserve()?;
        let end = self.journal.change(|journal| {
            tokens::revoke(journal, name, unix_ms())?;
            self.take_effect();
            Ok(())
        });
        permit.write_change((TOKENS, name, None), by.as_str(), "revoked", &end);
        end
    }

    fn take_effect(&self) {
        self.registry.set_identities(self.journal.identities(&self.registry.config()));
    }
}
