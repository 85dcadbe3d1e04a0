//! Administration: tokens and grants, changed while the gateway runs. Every attempt is recorded in
//! the audit log.

#[cfg(test)]
pub(crate) mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use auth::{LOCAL_USER, Participant};
use model::{Capabilities, ParticipantId, Refusal, RefusalCode, TopicName};
use platform::{random, unix_ms};
use store::{Ledger, not_written};

use crate::in_force::{Concerned, InForce};
use crate::registry::Registry;
use identity::config::IdentityConfig;
use identity::grants::{GrantRequest, Grants};
use identity::tokens::{self, IssuedTokenRow, RevokedTokens, TokenRequest, TokenWithSecret};
use identity::{AccessJournal, AccessRecord, AccessState, Authority, GRANTS, TOKENS};

/// Issues and revokes tokens, and changes the capabilities of participants. A change is on disk and
/// in force in every topic when its method returns, whether the participant is present or not.
/// Changes block on the disk.
pub struct Admin {
    journal: Arc<AccessJournal>,
    registry: Arc<Registry>,
    /// The address from which changes come, for their records.
    address: Option<IpAddr>,
}

/// The result of a change of capabilities.
pub struct Granted {
    /// Capabilities of the participant before, in the topic of the change or outside of topics.
    pub before: Arc<Capabilities>,
    /// Capabilities of the participant now.
    pub now: Arc<Capabilities>,
    /// When it was changed, in Unix milliseconds.
    pub at_ms: u64,
}

/// The target of a change, for its record: kind, name, topic.
type Target<'t> = (&'t str, &'t str, Option<&'t TopicName>);

impl Admin {
    /// Administration whose changes take effect in this registry.
    pub fn new(journal: Arc<AccessJournal>, registry: Arc<Registry>) -> Self {
        Self {
            journal,
            registry,
            address: None,
        }
    }

    /// For changes that come from this address.
    #[must_use]
    pub fn from_address(&self, address: Option<IpAddr>) -> Self {
        Self {
            journal: Arc::clone(&self.journal),
            registry: Arc::clone(&self.registry),
            address,
        }
    }

    /// Records what expires from now on, and what has expired while no gateway ran: it stays
    /// expired, wherever the clock is set. Must be called inside a runtime.
    pub fn watch_expiries(self: &Arc<Self>) {
        if self.registry.journal.is_none() {
            return;
        }
        let admin = Arc::downgrade(self);
        let mut expired = self.registry.expired();
        tokio::spawn(async move {
            while let Some(admin) = admin.upgrade() {
                // The log says why a record could not be written.
                let _ = tokio::task::spawn_blocking(move || admin.record_expired()).await;
                if expired.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn record_expired(&self) -> Result<(), Refusal> {
        let at_ms = unix_ms();
        if !self.journal.read(|state| state.has_expired(at_ms)) {
            return Ok(());
        }
        self.change(Concerned::Everybody, |journal, _| {
            append(journal, &[AccessRecord::Expired { at_ms }])
        })
    }

    fn change<T>(
        &self,
        concerned: Concerned<'_>,
        make: impl FnOnce(&Ledger<AccessState>, &InForce) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.registry.change(&self.journal, concerned, make)
    }

    /// The issued tokens, without their secrets and without topics that the participant may not
    /// know of.
    pub fn issued_tokens(&self, by: &Participant) -> Vec<IssuedTokenRow> {
        let known = |topic: &String| {
            TopicName::new(topic).is_ok_and(|topic| self.registry.may_know(by, &topic))
        };
        let config = self.registry.config();
        let mut tokens: Vec<IssuedTokenRow> = self
            .journal
            .issued_tokens()
            .iter()
            .map(|token| IssuedTokenRow::of(token, &config.identity))
            .collect();
        tokens
            .iter_mut()
            .filter_map(|token| token.topics.as_mut())
            .for_each(|topics| topics.retain(known));
        tokens
    }

    /// Issues a token. Returns it, for the only time. While callers need no token, every program of
    /// the machine is the local user, so that only one that has shown the operator key
    /// (`is_operator`) issues the first: from then on callers need one.
    ///
    /// # Errors
    /// As [`tokens::issue`]; for the first one without the operator key; if the gateway keeps no
    /// journal; if the audit log takes no entry.
    pub fn issue_token(
        &self,
        by: &Participant,
        is_operator: bool,
        request: TokenRequest,
    ) -> Result<TokenWithSecret, Refusal> {
        let name = request.name.clone();
        self.recorded((TOKENS, &name, None), &by.id, "issued", || {
            if !is_operator && !self.journal.requires_token() {
                let why = "the first token of a gateway whose callers need none takes the operator key";
                return Err(Refusal::new(RefusalCode::Forbidden, why).hint(
                    "as the user of the gateway, on its machine: portmoot token new NAME; or stop it, and issue the token then",
                ));
            }
            self.change(Concerned::Everybody, |journal, now| {
                self.registry.refuse_paused(&by.id, None)?;
                let authority = right_of(by, &now.grants);
                let issued =
                    tokens::issue(journal, &now.config.identity, authority, request, &random(), unix_ms())?;
                // Before the token is valid.
                self.disown(&now.config.identity, &issued.shown.name);
                Ok(issued)
            })
        })
    }

    /// Ends what a name owns in topics, unless it is that of a configured participant: its next
    /// bearer is another participant.
    fn disown(&self, config: &IdentityConfig, name: &str) {
        let is_configured = config
            .participants
            .iter()
            .any(|one| one.participant.id.as_str() == name);
        if let Some(id) = ParticipantId::new(name).ok().filter(|_| !is_configured) {
            self.registry
                .topics()
                .iter()
                .for_each(|dispatch| dispatch.disown(&id));
        }
    }

    /// Issues another token to a participant that has one, which stays valid for a while. Returns
    /// the new one, for the only time.
    ///
    /// # Errors
    /// As [`tokens::rotate`]; if the gateway keeps no journal; if the audit log takes no entry.
    pub fn rotate_token(
        &self,
        by: &Participant,
        name: &str,
        overlap_ms: u64,
    ) -> Result<TokenWithSecret, Refusal> {
        self.recorded((TOKENS, name, None), &by.id, "rotated", || {
            self.change(Concerned::Everybody, |journal, now| {
                self.registry.refuse_paused(&by.id, None)?;
                let authority = right_of(by, &now.grants);
                tokens::rotate(
                    journal,
                    &now.config.identity,
                    authority,
                    name,
                    overlap_ms,
                    &random(),
                    unix_ms(),
                )
            })
        })
    }

    /// Revokes every token that was issued to a participant, and ends what was opened with them.
    ///
    /// # Errors
    /// As [`tokens::revoke`]; if the gateway keeps no journal; if the audit log takes no entry.
    pub fn revoke_tokens(&self, by: &Participant, name: &str) -> Result<RevokedTokens, Refusal> {
        self.recorded((TOKENS, name, None), &by.id, "revoked", || {
            self.change(Concerned::Everybody, |journal, now| {
                let authority = right_of(by, &now.grants);
                let revoked =
                    tokens::revoke(journal, &now.config.identity, authority, name, unix_ms())?;
                let is_configured = now
                    .config
                    .identity
                    .participants
                    .iter()
                    .any(|one| one.participant.id.as_str() == name);
                if !is_configured {
                    self.registry.accounts.end_all_of(name, by.id.as_str());
                }
                Ok(revoked)
            })
        })
    }

    /// Grants and revokes capabilities. A paused participant only revokes.
    ///
    /// # Errors
    /// As [`Grants::change`] and [`Authority::may_change`]; if the participant is not known; if the
    /// journal cannot be written or the audit log takes no entry.
    pub fn grant(&self, request: &GrantRequest, by: &Participant) -> Result<Granted, Refusal> {
        let id = &request.participant;
        let topic = request.topic.as_ref();
        let target = (GRANTS, id.as_str(), topic);
        self.recorded(target, &by.id, &request.to_string(), || {
            let made = self.change(Concerned::One(id), |journal, now| {
                if !request.add.is_empty() {
                    self.registry.refuse_paused(&by.id, topic)?;
                }
                let known = self.known(id)?;
                let at_ms = unix_ms();
                let authority = now.capabilities(by, topic);
                let before = now.capabilities(&known, topic);
                let changes = now
                    .grants
                    .change(request, &before, (&by.id, &authority), at_ms)?;
                let changed = now.grants.changed(request, at_ms);
                let right = right_of(by, &now.grants);
                right.may_change(&now.config.identity, &known, topic, &changed, at_ms)?;
                let records: Vec<AccessRecord> = changes
                    .into_iter()
                    .map(AccessRecord::GrantChanged)
                    .collect();
                append(journal, &records)?;
                Ok((known, before, at_ms))
            });
            let (known, before, at_ms) = made?;
            Ok(Granted {
                before,
                now: self.registry.in_force(&known, topic),
                at_ms,
            })
        })
    }

    /// Removes every change of a participant, or those made for one topic, so that its configured
    /// capabilities apply again: among them may be some that were revoked, so a paused participant does
    /// not.
    ///
    /// # Errors
    /// As [`Authority::may_change`]; if the participant is not known; if the journal cannot be
    /// written or the audit log takes no entry.
    pub fn clear_grants(
        &self,
        id: &ParticipantId,
        topic: Option<&TopicName>,
        by: &Participant,
    ) -> Result<(), Refusal> {
        let target = (GRANTS, id.as_str(), topic);
        self.recorded(target, &by.id, "cleared", || {
            self.change(Concerned::One(id), |journal, now| {
                self.registry.refuse_paused(&by.id, topic)?;
                let known = self.known(id)?;
                let at_ms = unix_ms();
                let right = right_of(by, &now.grants);
                let cleared = now.grants.cleared(id, topic, at_ms);
                right.may_change(&now.config.identity, &known, topic, &cleared, at_ms)?;
                let participant = id.to_string();
                let topic = topic.map(ToString::to_string);
                let cleared = AccessRecord::GrantsCleared {
                    participant,
                    topic,
                    at_ms,
                };
                append(journal, &[cleared])
            })
        })
    }

    /// Makes a change, and records how it ended.
    fn recorded<T>(
        &self,
        (kind, name, topic): Target<'_>,
        by: &ParticipantId,
        change: &str,
        make: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let permit = self.registry.audit.reserve_of(by)?;
        let permit = permit.from_address(self.address);
        let end = make();
        permit.write_change(
            (kind, name, topic.map(TopicName::as_str)),
            by.as_str(),
            change,
            &end,
        );
        end
    }

    /// A participant whose capabilities can be changed, as it is configured: present or not, with a
    /// valid token or not.
    ///
    /// # Errors
    /// If there is none.
    pub fn known(&self, id: &ParticipantId) -> Result<Arc<Participant>, Refusal> {
        if let Some(known) = self.registry.known(id) {
            return Ok(known);
        }
        let config = self.registry.config();
        if let Some(one) = config
            .identity
            .participants
            .iter()
            .find(|one| one.participant.id == *id)
        {
            return Ok(Arc::clone(&one.participant));
        }
        let refusal = Refusal::new(
            RefusalCode::UnknownTarget,
            format!("there is no participant `{id}`"),
        );
        Err(if config.servers.iter().any(|server| server.name == *id) {
            refusal.hint(format!(
                "it is a server: its capabilities are configured in [servers.{id}]"
            ))
        } else {
            refusal.hint("list them: portmoot participants ls")
        })
    }
}

/// Writes a change to the journal.
fn append(journal: &Ledger<AccessState>, records: &[AccessRecord]) -> Result<(), Refusal> {
    journal.append(records).map_err(|error| not_written(&error))
}

/// By which right a participant gives and takes: the local user, who has started the gateway or has
/// its operator key, is the operator.
fn right_of<'a>(by: &'a Participant, grants: &'a Grants) -> Authority<'a> {
    if by.id.as_str() == LOCAL_USER {
        Authority::Operator
    } else {
        Authority::Participant(by, grants)
    }
}
