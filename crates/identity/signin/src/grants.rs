//! Tokens: for a code, for a refresh token, and their end (OAuth 2.1 draft 13, section 3.2; RFC
//! 7009; RFC 9700, section 4.14).

use std::net::IpAddr;
use std::sync::Arc;

use auth::{ACCESS_TOKEN_PREFIX, AccessToken, FamilyId};
use identity::login::{CONSOLE_CLIENT, CONSOLE_SESSION_MS};
use identity::{AccessRecord, AccessState, Family, RenewedFamily};
use model::{ParticipantId, Refusal, RefusalCode};
use oauth::Secret;
use oauth::person::{Asked, PersonTokens};
use platform::{millis, random, unix_ms};
use serde_json::{Value, json};
use store::audit::RecordedVerdict;

use crate::client::ClientTrust;
use crate::codes::{CodeConsent, Redeemed, is_verifier};
use crate::params::FormParams;
use crate::refresh::{PresentedToken, RefreshToken, hash, judge};
use crate::request::{granted, resource};
use crate::service::{Now, SignIn};

/// An error of the token endpoint (RFC 6749, section 5.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenError {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) description: String,
    /// Seconds after which to try again.
    pub(crate) retry_after_secs: Option<u64>,
}

impl TokenError {
    fn new(code: &'static str, description: impl Into<String>) -> Self {
        let status = if code == "invalid_client" { 401 } else { 400 };
        Self {
            status,
            code,
            description: description.into(),
            retry_after_secs: None,
        }
    }

    pub(crate) fn busy(wait_ms: u64) -> Self {
        let retry_after_secs = Some(wait_ms.div_ceil(1000));
        Self {
            status: 429,
            retry_after_secs,
            ..Self::new("slow_down", "too many requests came from your address")
        }
    }

    fn unavailable(refusal: &Refusal) -> Self {
        Self {
            status: 503,
            ..Self::new("temporarily_unavailable", refusal.message.to_string())
        }
    }

    pub(crate) fn interrupted() -> Self {
        Self {
            status: 500,
            ..Self::new("server_error", "the request was interrupted")
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": self.code, "error_description": self.description })
    }
}

/// Whether a client that has signed its participant in at the same endpoint comes back for a scope
/// that it did not have.
fn steps_up(new: &Family, state: &AccessState) -> bool {
    let mut was_here = false;
    for before in state.families() {
        let is_same = before.participant == new.participant
            && before.client == new.client
            && before.resource == new.resource;
        if !is_same {
            continue;
        }
        if new.scopes.iter().all(|scope| before.scopes.contains(scope)) {
            return false;
        }
        was_here = true;
    }
    was_here
}

/// The sign-ins of a participant with which its clients open something.
fn open_families(state: &AccessState, participant: &str) -> usize {
    let own = state
        .families()
        .filter(|family| family.participant == participant);
    own.filter(|family| family.opens()).count()
}

fn invalid_grant(description: &str) -> TokenError {
    TokenError::new("invalid_grant", description)
}

/// Tokens that a client gets.
#[derive(Debug)]
pub(crate) struct Given {
    access: String,
    expires_in: u64,
    refresh: String,
    scopes: Vec<String>,
}

/// Tokens for a code, and when their participant was asked who it is, in Unix milliseconds.
pub(crate) struct Exchanged {
    pub(crate) given: Given,
    pub(crate) asked_ms: u64,
}

impl Given {
    /// The tokens, for a page of the gateway's own.
    pub(crate) fn for_page(self, now_ms: u64, asked: Asked) -> PersonTokens {
        let lifetime_ms = self.expires_in.saturating_mul(1_000);
        PersonTokens {
            access: Secret::new(self.access),
            refresh: Some(Secret::new(self.refresh)),
            expires_ms: Some(now_ms.saturating_add(lifetime_ms)),
            lifetime_ms: Some(lifetime_ms),
            asked,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let mut answer = json!({
            "access_token": self.access,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "refresh_token": self.refresh,
        });
        if !self.scopes.is_empty()
            && let Value::Object(answer) = &mut answer
        {
            answer.insert("scope".to_owned(), self.scopes.join(" ").into());
        }
        answer
    }
}

/// A family that was begun, with its first tokens.
struct Begun {
    family: FamilyId,
    given: Given,
}

/// A refresh token that a client presents.
struct Presented<'a> {
    client_id: &'a str,
    params: &'a FormParams,
    token: RefreshToken,
    /// The SHA-256 of its text.
    sha256: String,
}

impl SignIn {
    /// `POST /oauth/token`. `authorization` is whether the request authenticates its client by a
    /// header.
    pub(crate) async fn token(
        self: &Arc<Self>,
        now: Now,
        body: &[u8],
        authorization: bool,
        from: Option<IpAddr>,
    ) -> Result<Given, TokenError> {
        let given = self.token_of(now, body, authorization).await;
        if let Err(error) = &given
            && error.status < 500
        {
            self.refusals
                .act(from, unix_ms())
                .map_err(TokenError::busy)?;
        }
        given
    }

    async fn token_of(
        self: &Arc<Self>,
        now: Now,
        body: &[u8],
        authorization: bool,
    ) -> Result<Given, TokenError> {
        let params = FormParams::parse(body)
            .ok_or_else(|| TokenError::new("invalid_request", "the form is too long"))?;
        if let Some(name) = params.repeated() {
            return Err(TokenError::new(
                "invalid_request",
                format!("{name} is there twice"),
            ));
        }
        if authorization
            || params.get("client_secret").is_some()
            || params.get("client_assertion").is_some()
        {
            return Err(TokenError::new(
                "invalid_client",
                "clients have no secrets here: send client_id alone",
            ));
        }
        let Some(client_id) = params.get("client_id") else {
            return Err(TokenError::new("invalid_client", "client_id is missing"));
        };
        if client_id == CONSOLE_CLIENT {
            let why = "that client asks in the gateway itself alone";
            return Err(TokenError::new("invalid_client", why));
        }
        let client_id = client_id.to_owned();
        let params = params.clone();
        let acted = match params.get("grant_type") {
            Some("authorization_code") => {
                let exchange = move |me: &Self| Ok(me.exchange(&now, &client_id, &params)?.given);
                self.blocking(exchange).await
            }
            Some("refresh_token") => {
                self.blocking(move |me| me.renew(&now, &client_id, &params))
                    .await
            }
            Some(_) => {
                let why = "grant_type must be authorization_code or refresh_token";
                return Err(TokenError::new("unsupported_grant_type", why));
            }
            None => return Err(TokenError::new("invalid_request", "grant_type is missing")),
        };
        acted.unwrap_or_else(|| Err(TokenError::interrupted()))
    }

    /// Tokens for a code. Blocks on the disk.
    pub(crate) fn exchange(
        &self,
        now: &Now,
        client_id: &str,
        params: &FormParams,
    ) -> Result<Exchanged, TokenError> {
        let code = params
            .get("code")
            .ok_or_else(|| TokenError::new("invalid_request", "code is missing"))?;
        let redeemed = self.codes.lock().redeem(code, now.ms);
        let grant = match redeemed {
            Redeemed::Fresh(grant) => grant,
            Redeemed::Again(family) => {
                if let Some(family) = family {
                    self.end_family(family, "code used twice", now);
                }
                self.record_refusal(now, None, None, "invalid_grant: a code was used twice");
                return Err(invalid_grant("the code was used before"));
            }
            Redeemed::Unknown => {
                self.record_refusal(now, None, None, "invalid_grant: a code that is not known");
                return Err(invalid_grant("the code is not known, or too old"));
            }
        };
        self.check_exchange(now, client_id, params, &grant)
            .inspect_err(|error| {
                let why = format!("{}: {}", error.code, error.description);
                self.record_refusal(
                    now,
                    Some(&grant.participant),
                    Some(&grant.request.client_name),
                    &why,
                );
            })?;
        let begun = self.begin(now, &grant)?;
        // The code may have come again while the family was written.
        if self.codes.lock().gave(code, begun.family) {
            self.end_family(begun.family, "code used twice", now);
            return Err(invalid_grant("the code was used twice"));
        }
        Ok(Exchanged {
            given: begun.given,
            asked_ms: grant.asked_ms,
        })
    }

    fn check_exchange(
        &self,
        now: &Now,
        client_id: &str,
        params: &FormParams,
        grant: &CodeConsent,
    ) -> Result<(), TokenError> {
        let request = &grant.request;
        if request.client_id != client_id {
            return Err(invalid_grant("the code was given to another client"));
        }
        // OAuth 2.1 does not ask for it any more; a client that sends it must send the same.
        if params
            .get("redirect_uri")
            .is_some_and(|uri| uri != request.redirect_uri)
        {
            return Err(invalid_grant(
                "redirect_uri is not the one of the authorization request",
            ));
        }
        let verifier = params.get("code_verifier");
        let verifier = verifier
            .ok_or_else(|| TokenError::new("invalid_request", "code_verifier is missing"))?;
        if !is_verifier(verifier, &request.challenge) {
            return Err(invalid_grant(
                "code_verifier does not fit the code_challenge",
            ));
        }
        if params.get("resource").is_some()
            && resource(params, &now.public_url).as_ref() != Some(&request.resource)
        {
            return Err(TokenError::new(
                "invalid_target",
                "resource is not the one of the authorization request",
            ));
        }
        let is_known = self
            .subject(now.config(), &grant.participant, now.ms)
            .is_some();
        if !is_known || grant.mark != self.mark(now, &grant.participant) {
            return Err(invalid_grant("the participant is not known any more"));
        }
        Ok(())
    }

    /// A new family, on disk before its tokens are given.
    fn begin(&self, now: &Now, grant: &CodeConsent) -> Result<Begun, TokenError> {
        let request = &grant.request;
        let participant = &grant.participant;
        let family = FamilyId(u128::from_be_bytes(random()));
        let first = self.refresh.text(&self.refresh.first(family, random()));
        let mut longest_ms = millis(now.login.longest);
        if request.client_id == CONSOLE_CLIENT {
            longest_ms = longest_ms.min(CONSOLE_SESSION_MS);
        }
        let ends_ms = now.ms.saturating_add(longest_ms);
        let record = Family {
            id: family.to_string(),
            participant: participant.clone(),
            client: identity::client_digest(&request.client_id),
            client_name: request.client_name.clone(),
            client_uri: match request.standing {
                ClientTrust::Registered => None,
                _ => Some(request.client_id.clone()),
            },
            resource: request.resource.clone(),
            scopes: request.scopes.clone(),
            sha256: hash(&first),
            before: None,
            began_ms: now.ms,
            renewed_ms: now.ms,
            expires_ms: now
                .ms
                .saturating_add(millis(now.login.refresh))
                .min(ends_ms),
            ends_ms,
        };
        let permit = self.permit(now, participant)?;
        let given = self.given(now, &record, first, &record.scopes);
        let mut why = format!("issued: {family}");
        let written = self.access.change(|journal| {
            if journal.state(|state| steps_up(&record, state)) {
                why = format!("stepped up: {family}: {}", record.scopes.join(" "));
            }
            let before = journal.state(|state| open_families(state, participant));
            let open = before + usize::from(record.opens());
            let records = [AccessRecord::FamilyBegun(record)];
            journal
                .append(&records)
                .map_err(|error| store::not_written(&error))?;
            // Another one of the participant's may have made way for it.
            let after = journal.state(|state| open_families(state, participant));
            self.home.sign_ins_changed(participant, after < open);
            Ok(())
        });
        written.map_err(|refusal| TokenError::unavailable(&refusal))?;
        Self::record(
            permit,
            participant,
            &request.client_name,
            RecordedVerdict::Admitted,
            &why,
        );
        Ok(Begun { family, given })
    }

    fn permit(
        &self,
        now: &Now,
        participant: &str,
    ) -> Result<store::recorder::RecordPermit, TokenError> {
        let id = ParticipantId::new(participant)
            .map_err(|_| invalid_grant("the participant is not known"))?;
        self.home
            .audit()
            .reserve_of(&id)
            .map(|permit| permit.from_address(now.from))
            .map_err(|refusal| TokenError::unavailable(&refusal))
    }

    fn given(&self, now: &Now, family: &Family, refresh: String, scopes: &[String]) -> Given {
        let lifetime_ms = millis(now.login.access).min(family.ends_ms.saturating_sub(now.ms));
        let token = AccessToken {
            family: FamilyId::parse(&family.id).unwrap_or(FamilyId(0)),
            resource: family.resource.clone(),
            scopes: scopes.to_vec(),
            expires_ms: now.ms.saturating_add(lifetime_ms),
        };
        let access = self.tokens.seal(&token, random());
        Given {
            access,
            expires_in: lifetime_ms / 1000,
            refresh,
            scopes: scopes.to_vec(),
        }
    }

    /// Tokens for a refresh token. Blocks on the disk.
    pub(crate) fn renew(
        &self,
        now: &Now,
        client_id: &str,
        params: &FormParams,
    ) -> Result<Given, TokenError> {
        let Some(text) = params.get("refresh_token") else {
            let why = "refresh_token is missing";
            return Err(TokenError::new("invalid_request", why));
        };
        let Some(token) = self.refresh.open(text) else {
            return Err(self.unknown_refresh_token(now));
        };
        let id = token.family.to_string();
        let presented = Presented {
            client_id,
            params,
            token,
            sha256: hash(text),
        };
        let mut outcome = None;
        // One at a time: of two requests with one token, the second finds the family renewed.
        let changed = self.access.change(|journal| {
            let Some(family) = journal.state(|state| state.family(&id).cloned()) else {
                return Ok(());
            };
            if family.expires_ms <= now.ms {
                return Ok(());
            }
            let write = |record: AccessRecord| {
                let written = journal.append(&[record]);
                written.map_err(|error| TokenError::unavailable(&store::not_written(&error)))
            };
            outcome = Some(self.renewed(now, &presented, &family, write));
            Ok(())
        });
        changed.map_err(|refusal| TokenError::unavailable(&refusal))?;
        match outcome {
            Some(renewed) => renewed,
            None => Err(self.unknown_refresh_token(now)),
        }
    }

    fn unknown_refresh_token(&self, now: &Now) -> TokenError {
        let why = "invalid_grant: a refresh token that is not known";
        self.record_refusal(now, None, None, why);
        invalid_grant("the refresh token is not known, or too old: sign in again")
    }

    /// Renews a family by a token of it that a client presents. `write` writes a record of it.
    fn renewed(
        &self,
        now: &Now,
        presented: &Presented<'_>,
        family: &Family,
        write: impl Fn(AccessRecord) -> Result<(), TokenError>,
    ) -> Result<Given, TokenError> {
        let params = presented.params;
        // Before all else, whichever client presents it.
        let grace_ms = millis(now.login.grace);
        let judged = judge(family, &presented.sha256, grace_ms, now.ms);
        if judged == PresentedToken::Reused {
            let why = "reuse: a refresh token was used again, and its sign-in has ended";
            self.end_presented(now, family, why, write)?;
            return Err(invalid_grant(
                "the refresh token was used before: sign in again",
            ));
        }
        if identity::client_digest(presented.client_id) != family.client {
            let error = invalid_grant("the refresh token was given to another client");
            return Err(self.refused(now, family, error));
        }
        if params.get("resource").is_some()
            && resource(params, &now.public_url).as_ref() != Some(&family.resource)
        {
            let why = "resource is not the one of the authorization request";
            let error = TokenError::new("invalid_target", why);
            return Err(self.refused(now, family, error));
        }
        let participant = &family.participant;
        if self.subject(now.config(), participant, now.ms).is_none() {
            let why = "revoked: the participant is not known any more";
            self.end_presented(now, family, why, write)?;
            return Err(invalid_grant("the participant is not known any more"));
        }
        let scopes = self
            .narrowed(now, params, family)
            .map_err(|error| self.refused(now, family, error))?;
        let next = self.refresh.text(&self.refresh.next(&presented.token));
        let permit = self.permit(now, participant)?;
        let why = match judged {
            PresentedToken::Newest => {
                let expires_ms = now
                    .ms
                    .saturating_add(millis(now.login.refresh))
                    .min(family.ends_ms);
                write(AccessRecord::FamilyRenewed(RenewedFamily {
                    id: family.id.clone(),
                    sha256: hash(&next),
                    at_ms: now.ms,
                    expires_ms,
                }))?;
                format!("refreshed: {}", family.id)
            }
            // The same successor as before follows from the token: nothing changes.
            PresentedToken::Before => format!("refreshed again: {}", family.id),
            PresentedToken::Reused => return Err(TokenError::interrupted()),
        };
        Self::record(
            permit,
            participant,
            &family.client_name,
            RecordedVerdict::Admitted,
            &why,
        );
        Ok(self.given(now, family, next, &scopes))
    }

    /// Ends the family of a token that is presented.
    fn end_presented(
        &self,
        now: &Now,
        family: &Family,
        why: &str,
        write: impl Fn(AccessRecord) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        write(AccessRecord::FamilyEnded {
            id: family.id.clone(),
            at_ms: now.ms,
        })?;
        self.home
            .sign_ins_changed(&family.participant, family.opens());
        let permit = self.home.audit().reserve_or_count().from_address(now.from);
        Self::record(
            permit,
            &family.participant,
            &family.client_name,
            RecordedVerdict::Refused,
            &format!("{why}: {}", family.id),
        );
        Ok(())
    }

    /// Records the refusal of a token of this family, and returns it.
    fn refused(&self, now: &Now, family: &Family, error: TokenError) -> TokenError {
        let why = format!("{}: {}", error.code, error.description);
        let (participant, client) = (&family.participant, &family.client_name);
        self.record_refusal(now, Some(participant), Some(client), &why);
        error
    }

    /// The scopes of a new access token: those of the family, or fewer if the client asks for
    /// fewer.
    fn narrowed(
        &self,
        now: &Now,
        params: &FormParams,
        family: &Family,
    ) -> Result<Vec<String>, TokenError> {
        // A family that was given no scopes has none to leave out.
        let asked = match params.get("scope") {
            Some(asked) if !family.scopes.is_empty() => asked,
            _ => return Ok(family.scopes.clone()),
        };
        let known = now.with_terms(|terms| granted(Some(asked), terms));
        let fewer: Vec<String> = known
            .into_iter()
            .filter(|scope| family.scopes.contains(scope))
            .collect();
        if fewer.is_empty() {
            return Err(TokenError::new(
                "invalid_scope",
                "the scope is not among those that were granted",
            ));
        }
        Ok(fewer)
    }

    /// Ends a family. A failure to write is logged: its tokens then stay valid, as records say.
    fn end_family(&self, family: FamilyId, why: &str, now: &Now) {
        let id = family.to_string();
        let ended = self.access.change(|journal| {
            let Some(family) = journal.state(|state| state.family(&id).cloned()) else {
                return Ok(None);
            };
            let records = [AccessRecord::FamilyEnded {
                id: id.clone(),
                at_ms: now.ms,
            }];
            journal
                .append(&records)
                .map_err(|error| store::not_written(&error))?;
            self.home
                .sign_ins_changed(&family.participant, family.opens());
            Ok(Some(family))
        });
        if let Ok(Some(family)) = ended {
            let permit = self.home.audit().reserve_or_count().from_address(now.from);
            let why = format!("reuse: {why}: {id}");
            Self::record(
                permit,
                &family.participant,
                &family.client_name,
                RecordedVerdict::Refused,
                &why,
            );
        }
    }

    /// `POST /oauth/revoke`. A token that is not known is no error (RFC 7009, section 2.2).
    pub(crate) async fn revoke(self: &Arc<Self>, now: Now, body: &[u8]) -> Result<(), TokenError> {
        let params = FormParams::parse(body)
            .ok_or_else(|| TokenError::new("invalid_request", "the form is too long"))?;
        let token = params
            .get("token")
            .ok_or_else(|| TokenError::new("invalid_request", "token is missing"))?;
        let family = if token.starts_with(ACCESS_TOKEN_PREFIX) {
            self.tokens
                .open(token, now.ms)
                .ok()
                .map(|token| token.family)
        } else {
            self.refresh.open(token).map(|token| token.family)
        };
        let Some(family) = family else { return Ok(()) };
        let client = params.get("client_id").map(identity::client_digest);
        let revoked = self
            .blocking(move |me| me.revoke_family(family, client.as_deref(), &now))
            .await;
        match revoked {
            Some(Ok(())) => Ok(()),
            Some(Err(refusal)) if refusal.code == RefusalCode::Forbidden => Err(TokenError::new(
                "invalid_client",
                refusal.message.to_string(),
            )),
            Some(Err(refusal)) => Err(TokenError::unavailable(&refusal)),
            None => Err(TokenError::interrupted()),
        }
    }

    pub(crate) fn revoke_family(
        &self,
        family: FamilyId,
        by: Option<&str>,
        now: &Now,
    ) -> Result<(), Refusal> {
        let id = family.to_string();
        self.access.change(|journal| {
            let Some(known) = journal.state(|state| state.family(&id).cloned()) else {
                return Ok(());
            };
            if by.is_some_and(|by| by != known.client) {
                return Err(Refusal::new(
                    RefusalCode::Forbidden,
                    "the token was given to another client",
                ));
            }
            let permit = self.home.audit().reserve_or_count().from_address(now.from);
            let records = [AccessRecord::FamilyEnded {
                id: id.clone(),
                at_ms: now.ms,
            }];
            journal
                .append(&records)
                .map_err(|error| store::not_written(&error))?;
            self.home
                .sign_ins_changed(&known.participant, known.opens());
            let why = format!("revoked by the client: {id}");
            Self::record(
                permit,
                &known.participant,
                &known.client_name,
                RecordedVerdict::Admitted,
                &why,
            );
            Ok(())
        })
    }
}
