//! Acts of operators and participants about sign-ins: one-time codes, clients that have signed in,
//! consents.

use std::net::IpAddr;

use auth::Participant;
use identity::{AccessRecord, AccessState, Consent, Family};
use identity::{Authority, TOKENS};
use model::{Refusal, RefusalCode};
use platform::{millis, random, unix_ms};
use serde::Serialize;
use store::Ledger;
use store::audit::RecordedVerdict;
use utoipa::ToSchema;

use crate::one_time::ONE_TIME_MS;
use crate::service::{SignIn, bearer};

/// Hexadecimal digits of a client's digest that people see.
const SHORT_DIGITS: usize = 12;
/// The fewest digits that name a client.
const NAMING_DIGITS_MIN: usize = 8;

/// A one-time code.
#[derive(Serialize, ToSchema)]
pub struct OneTimeCode {
    /// The participant that signs in with it.
    pub name: String,
    /// The code. Blanks and dashes in it do not count.
    pub code: String,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: u64,
}

/// A client that acts as a participant.
#[derive(Serialize, ToSchema)]
pub struct SignedInClient {
    /// The beginning of the SHA-256 of its id.
    pub client: String,
    /// Its name, as it gave it.
    pub name: String,
    /// Its id, if it is the URL of its document or a configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The participant.
    pub participant: String,
    /// The endpoint.
    pub resource: String,
    /// The scopes.
    pub scopes: Vec<String>,
    /// When the participant consented, in Unix milliseconds.
    pub began_ms: u64,
    /// When its tokens were renewed last, in Unix milliseconds.
    pub renewed_ms: u64,
    /// When the sign-in ends unless it is renewed, in Unix milliseconds.
    pub expires_ms: u64,
}

/// A consent of a participant.
#[derive(Serialize, ToSchema)]
pub struct GivenConsent {
    /// The beginning of the SHA-256 of the client's id.
    pub client: String,
    /// The client's name, as it gave it.
    pub name: String,
    /// The participant.
    pub participant: String,
    /// Where the client is sent back to.
    pub redirect_uri: String,
    /// The endpoint.
    pub resource: String,
    /// The scopes.
    pub scopes: Vec<String>,
    /// Whether the participant wants not to be asked again in the same browser.
    pub remembered: bool,
    /// When it was given, in Unix milliseconds.
    pub at_ms: u64,
}

/// The sign-ins that a revocation has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct EndedSignIns {
    /// How many sign-ins.
    pub clients: usize,
    /// How many consents.
    pub consents: usize,
}

/// The asker, by which right, and whether for all participants.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The participant that asks.
    pub by: &'a Participant,
    /// By which right it gives and takes.
    pub authority: Authority<'a>,
    /// Whether it may do so for others.
    pub for_others: bool,
    /// The address from which it asks, if it asks from one.
    pub from: Option<IpAddr>,
}

impl Asker<'_> {
    fn sees(&self, participant: &str) -> bool {
        self.for_others || self.by.id.as_str() == participant
    }
}

fn disabled() -> Refusal {
    Refusal::new(
        RefusalCode::Unsupported,
        "signing in is not enabled at this gateway",
    )
    .hint("set `enabled = true` in [login], with `public_url` in [server], and restart it")
}

impl SignIn {
    /// A one-time code with which a participant signs in. The asker must hold what the participant
    /// holds, for as long as a sign-in lasts.
    ///
    /// # Errors
    /// If there is no such participant, if it may do more, or if too many codes wait.
    pub fn one_time_code(&self, asker: &Asker<'_>, name: &str) -> Result<OneTimeCode, Refusal> {
        let permit = self.home.audit().reserve_of(&asker.by.id)?;
        let permit = permit.from_address(asker.from);
        let end = self.make_code(asker, name);
        permit.write_change(
            (crate::LOGIN, name, None),
            asker.by.id.as_str(),
            "one-time code",
            &end,
        );
        end
    }

    fn make_code(&self, asker: &Asker<'_>, name: &str) -> Result<OneTimeCode, Refusal> {
        let now = self.now().ok_or_else(disabled)?;
        if !asker.sees(name) {
            let refusal = Refusal::new(
                RefusalCode::CapabilityViolation,
                format!("this needs the capability `{TOKENS}`"),
            );
            return Err(refusal.hint("without it you get codes for yourself alone"));
        }
        let subject = self.subject(now.config(), name, now.ms).ok_or_else(|| {
            let name = name.escape_debug();
            Refusal::new(
                RefusalCode::UnknownTarget,
                format!("there is no participant `{name}`"),
            )
            .hint("configure it in [participants.NAME], or issue it a token")
        })?;
        let mut given = Participant::clone(&subject);
        let ends_ms = now.ms.saturating_add(millis(now.login.longest));
        given.expires_ms = Some(given.expires_ms.map_or(ends_ms, |end| end.min(ends_ms)));
        asker.authority.may_give(now.config(), &given, now.ms)?;
        let code =
            self.one_time
                .lock()
                .issue(&bearer(name, &self.mark(&now, name)), random(), now.ms);
        let code = code.map_err(|why| Refusal::new(RefusalCode::Overloaded, why.to_string()))?;
        Ok(OneTimeCode {
            name: name.to_owned(),
            code,
            expires_ms: now.ms.saturating_add(ONE_TIME_MS),
        })
    }

    /// The clients that have signed in, by participant and name.
    #[must_use]
    pub fn signed_in(&self, asker: &Asker<'_>) -> Vec<SignedInClient> {
        let now_ms = unix_ms();
        let mut all: Vec<Family> = self.access.read(|state| {
            let valid =
                |family: &&Family| now_ms < family.expires_ms && asker.sees(&family.participant);
            state.families().filter(valid).cloned().collect()
        });
        all.sort_by(|one, other| {
            let key = |family: &Family| {
                (
                    family.participant.clone(),
                    family.client_name.clone(),
                    family.began_ms,
                )
            };
            key(one).cmp(&key(other))
        });
        all.into_iter().map(shown).collect()
    }

    /// The consents on record, by participant and client.
    #[must_use]
    pub fn consents(&self, asker: &Asker<'_>) -> Vec<GivenConsent> {
        self.access.read(|state| {
            let seen = state
                .consents()
                .filter(|consent| asker.sees(&consent.participant));
            seen.map(shown_consent).collect()
        })
    }

    /// Ends the sign-ins of a client, for one participant or all that the asker may speak for, and
    /// forgets the consents. Blocks on the disk.
    ///
    /// # Errors
    /// If there is nothing to end, if several clients have this beginning, if a participant may do
    /// more than the asker's token is good for, or if the journal cannot be written.
    pub fn revoke_client(
        &self,
        asker: &Asker<'_>,
        client: &str,
        participant: Option<&str>,
    ) -> Result<EndedSignIns, Refusal> {
        self.end(asker, client, participant, true)
    }

    /// Forgets the consents to a client, and ends the sign-ins that they gave. Blocks on the disk.
    ///
    /// # Errors
    /// As [`SignIn::revoke_client`].
    pub fn withdraw_consent(
        &self,
        asker: &Asker<'_>,
        client: &str,
        participant: Option<&str>,
    ) -> Result<EndedSignIns, Refusal> {
        self.end(asker, client, participant, false)
    }

    fn end(
        &self,
        asker: &Asker<'_>,
        client: &str,
        participant: Option<&str>,
        is_sign_in: bool,
    ) -> Result<EndedSignIns, Refusal> {
        let permit = self.home.audit().reserve_of(&asker.by.id)?;
        let permit = permit.from_address(asker.from);
        let what = if is_sign_in {
            "revoked"
        } else {
            "consent withdrawn"
        };
        let end = self.access.change(|journal| {
            let meant = |of: &str, digest: &str, uri: Option<&str>, id: &str| {
                let named = is_beginning(client, digest) || uri == Some(client) || id == client;
                named && asker.sees(of) && participant.is_none_or(|one| one == of)
            };
            let (families, consents): (Vec<Family>, Vec<Consent>) = journal.state(|state| {
                let families = state.families().filter(|family| {
                    meant(
                        &family.participant,
                        &family.client,
                        family.client_uri.as_deref(),
                        &family.id,
                    )
                });
                let families: Vec<Family> = families.cloned().collect();
                let of_family = |consent: &&Consent| {
                    let same = |family: &Family| {
                        (&family.participant, &family.client)
                            == (&consent.participant, &consent.client)
                    };
                    meant(&consent.participant, &consent.client, None, "")
                        || families.iter().any(same)
                };
                let consents = state.consents().filter(of_family).cloned().collect();
                (families, consents)
            });
            self.may_end(asker, &families, &consents)?;
            self.write_end(journal, asker.from, &families, &consents)?;
            Ok(EndedSignIns {
                clients: families.len(),
                consents: consents.len(),
            })
        });
        permit.write_change(
            (crate::LOGIN, client, None),
            asker.by.id.as_str(),
            what,
            &end,
        );
        end
    }

    fn may_end(
        &self,
        asker: &Asker<'_>,
        families: &[Family],
        consents: &[Consent],
    ) -> Result<(), Refusal> {
        let clients = families
            .iter()
            .map(|family| &family.client)
            .chain(consents.iter().map(|one| &one.client));
        let mut clients: Vec<&String> = clients.collect();
        clients.sort_unstable();
        clients.dedup();
        match clients.as_slice() {
            [_] => {}
            [] => {
                let refusal =
                    Refusal::new(RefusalCode::UnknownTarget, "no such client has signed in");
                return Err(refusal.hint("list them: portmoot clients ls"));
            }
            [..] => {
                let refusal = Refusal::new(
                    RefusalCode::Malformed,
                    "several clients have this beginning",
                );
                return Err(refusal.hint("give more digits"));
            }
        }
        let now_ms = unix_ms();
        let config = self.home.config();
        let participants = families.iter().map(|family| &family.participant);
        for participant in participants.chain(consents.iter().map(|one| &one.participant)) {
            // A token that is good for less ends no sign-in that is good for more, nor one of its
            // own participant.
            if let Some(subject) = self.subject(&config, participant, now_ms) {
                asker.authority.may_take(&config, &subject, now_ms)?;
            }
        }
        Ok(())
    }

    fn write_end(
        &self,
        journal: &Ledger<AccessState>,
        from: Option<IpAddr>,
        families: &[Family],
        consents: &[Consent],
    ) -> Result<(), Refusal> {
        let at_ms = unix_ms();
        let ended = families.iter().map(|family| AccessRecord::FamilyEnded {
            id: family.id.clone(),
            at_ms,
        });
        let withdrawn = consents
            .iter()
            .map(|consent| AccessRecord::ConsentWithdrawn {
                participant: consent.participant.clone(),
                client: consent.client.clone(),
                at_ms,
            });
        let records: Vec<AccessRecord> = ended.chain(withdrawn).collect();
        journal
            .append(&records)
            .map_err(|error| store::not_written(&error))?;
        for family in families {
            self.home
                .sign_ins_changed(&family.participant, family.opens());
            let permit = self.home.audit().reserve_or_count().from_address(from);
            let why = format!("revoked: {}", family.id);
            Self::record(
                permit,
                &family.participant,
                &family.client_name,
                RecordedVerdict::Admitted,
                &why,
            );
        }
        Ok(())
    }
}

/// Whether digits are enough to name a client, and the beginning of its digest.
fn is_beginning(digits: &str, digest: &str) -> bool {
    digits.len() >= NAMING_DIGITS_MIN && digest.starts_with(digits)
}

fn short(digest: &str) -> String {
    digest.chars().take(SHORT_DIGITS).collect()
}

fn shown(family: Family) -> SignedInClient {
    SignedInClient {
        client: short(&family.client),
        name: family.client_name,
        uri: family.client_uri,
        participant: family.participant,
        resource: family.resource,
        scopes: family.scopes,
        began_ms: family.began_ms,
        renewed_ms: family.renewed_ms,
        expires_ms: family.expires_ms,
    }
}

fn shown_consent(consent: &Consent) -> GivenConsent {
    GivenConsent {
        client: short(&consent.client),
        name: consent.client_name.clone(),
        participant: consent.participant.clone(),
        redirect_uri: consent.redirect_uri.clone(),
        resource: consent.resource.clone(),
        scopes: consent.scopes.clone(),
        remembered: consent.remembered,
        at_ms: consent.at_ms,
    }
}
