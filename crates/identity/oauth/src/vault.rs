//! Accounts and clients on disk: records of the journal whose secrets are sealed with a key from
//! elsewhere.
//!
//! The key is the operator's (`key_file`, `key_command`). The data directory alone gives away no
//! token. Each record is sealed for its server, the server's URL, the issuer and the participant:
//! one that was moved to another place does not open.

use auth::Sealer;
use platform::{random, unix_ms};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::Ledger;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::jwt::SigningKey;
use crate::kept_accounts::{AccountRecord, KeptAccounts, UpstreamAccount, UpstreamClient};
use crate::registration::{RegisteredClient, Use};
use crate::secret::Secret;
use crate::token::{ClientAuth, IssuedTokens, OAuthClient};
use std::sync::Arc;

const ACCOUNT: &str = "upstream_account";
const CLIENT: &str = "upstream_client";

/// Why nothing could be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// There is a journal and no key.
    #[error(
        "the gateway has no key to keep sign-ins with: set key_file or key_command in [server]"
    )]
    NoKey,
    /// The journal cannot be written.
    #[error("the journal cannot be written: {0}")]
    Journal(String),
}

/// Owner of a record: server, URL and participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPlace {
    /// The server's name.
    pub server: String,
    /// Its URL: an account is of no use at another one.
    pub url: String,
    /// The participant; `None` is the account that all share.
    pub participant: Option<String>,
}

impl AccountPlace {
    /// A name of the account that says nothing of it: 64 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        let participant = self.participant.as_deref();
        let whose = participant.map_or_else(|| "all".to_owned(), |name| format!("one {name}"));
        let text = [&*self.server, &self.url, &whose].join("\n");
        model::Digest(Sha256::digest(text).into()).to_string()
    }
}

/// An account as it is kept.
#[derive(Clone)]
pub struct Saved {
    /// Issuer of the tokens.
    pub issuer: String,
    /// The client to which they were issued.
    pub client: OAuthClient,
    /// Use for which that client was registered.
    pub usage: Use,
    /// Endpoint at which they are renewed.
    pub token_endpoint: String,
    /// Endpoint at which they are revoked.
    pub revocation_endpoint: Option<String>,
    /// The resource that they are for.
    pub resource: Option<String>,
    /// The scopes that were granted or, if the server did not say, asked for.
    pub scopes: Vec<String>,
    /// The tokens.
    pub tokens: IssuedTokens,
    /// When they were issued, Unix milliseconds.
    pub at_ms: u64,
}

impl Saved {
    /// A key that its participant has entered: no one issued it, it is renewed nowhere, and it does
    /// not expire.
    #[must_use]
    pub(crate) fn of_key(key: Secret) -> Self {
        let tokens = IssuedTokens {
            access: key,
            refresh: None,
            expires_ms: None,
            lifetime_ms: None,
            scopes: None,
            id_token: None,
        };
        Self {
            issuer: String::new(),
            client: OAuthClient {
                id: String::new(),
                auth: ClientAuth::None,
            },
            usage: Use::Native,
            token_endpoint: String::new(),
            revocation_endpoint: None,
            resource: None,
            scopes: Vec::new(),
            tokens,
            at_ms: unix_ms(),
        }
    }

    /// Whether it is a key, and no token of an issuer.
    #[must_use]
    pub fn is_key(&self) -> bool {
        self.issuer.is_empty()
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    access: Zeroizing<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh: Option<Zeroizing<String>>,
    expires_ms: Option<u64>,
    lifetime_ms: Option<u64>,
    scopes: Vec<String>,
    client: WrittenClient,
    usage: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    resource: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenClient {
    id: String,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<Zeroizing<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redirect_uris: Vec<String>,
}

/// Seals, writes and reads.
#[derive(Clone)]
pub struct Vault {
    sealer: Option<Sealer>,
    journal: Option<Ledger<KeptAccounts>>,
}

impl Vault {
    /// A vault over this journal. Without one nothing is kept, and no key is needed.
    #[must_use]
    pub fn new(key: Option<&[u8; 32]>, journal: Option<Ledger<KeptAccounts>>) -> Self {
        Self {
            sealer: key.map(|key| Sealer::new(key, None)),
            journal,
        }
    }

    /// Whether an account could be kept.
    ///
    /// # Errors
    /// [`VaultError::NoKey`].
    pub fn check(&self) -> Result<(), VaultError> {
        if self.journal.is_some() && self.sealer.is_none() {
            Err(VaultError::NoKey)
        } else {
            Ok(())
        }
    }

    /// Keeps an account, in place of the one before; done when it is on disk.
    ///
    /// # Errors
    /// [`VaultError`]; then the one before is kept.
    pub async fn keep(&self, place: &AccountPlace, saved: &Saved) -> Result<(), VaultError> {
        let tokens = &saved.tokens;
        let written = Written {
            access: Zeroizing::new(tokens.access.expose().to_owned()),
            refresh: tokens
                .refresh
                .as_ref()
                .map(|token| Zeroizing::new(token.expose().to_owned())),
            expires_ms: tokens.expires_ms,
            lifetime_ms: tokens.lifetime_ms,
            scopes: saved.scopes.clone(),
            client: WrittenClient::of(&saved.client),
            usage: saved.usage.as_str().to_owned(),
            token_endpoint: saved.token_endpoint.clone(),
            revocation_endpoint: saved.revocation_endpoint.clone(),
            resource: saved.resource.clone(),
        };
        let Some(sealed) = self.seal(ACCOUNT, &principal(place, &saved.issuer, ""), &written)?
        else {
            return Ok(());
        };
        self.write(AccountRecord::UpstreamAccount(UpstreamAccount {
            server: place.server.clone(),
            issuer: saved.issuer.clone(),
            participant: place.participant.clone(),
            sealed,
            at_ms: saved.at_ms,
        }))
        .await
    }

    /// Keeps that an account has ended.
    ///
    /// # Errors
    /// [`VaultError::Journal`].
    pub async fn end(&self, place: &AccountPlace) -> Result<(), VaultError> {
        let server = place.server.clone();
        let participant = place.participant.clone();
        self.write(AccountRecord::UpstreamAccountEnded {
            server,
            participant,
            at_ms: unix_ms(),
        })
        .await
    }

    /// The accounts at a server that open, with their participants. `key` signs for clients that
    /// have no secret.
    #[must_use]
    pub fn accounts(
        &self,
        server: &str,
        url: &str,
        key: Option<&Arc<SigningKey>>,
    ) -> Vec<(Option<String>, Saved)> {
        self.read(server, url, key, |_| true)
    }

    /// The account at this place, if it opens.
    #[must_use]
    pub fn account(&self, place: &AccountPlace, key: Option<&Arc<SigningKey>>) -> Option<Saved> {
        let is_its = |record: &UpstreamAccount| record.participant == place.participant;
        self.read(&place.server, &place.url, key, is_its)
            .pop()
            .map(|(_, saved)| saved)
    }

    fn read(
        &self,
        server: &str,
        url: &str,
        key: Option<&Arc<SigningKey>>,
        wanted: impl Fn(&UpstreamAccount) -> bool,
    ) -> Vec<(Option<String>, Saved)> {
        let (Some(journal), Some(_)) = (&self.journal, &self.sealer) else {
            return Vec::new();
        };
        let records: Vec<UpstreamAccount> =
            journal.state(|kept| kept.at(server).filter(|one| wanted(one)).cloned().collect());
        let open = |record: UpstreamAccount| {
            let place = AccountPlace {
                server: server.to_owned(),
                url: url.to_owned(),
                participant: record.participant.clone(),
            };
            let written: Written = self.open(
                ACCOUNT,
                &principal(&place, &record.issuer, ""),
                &record.sealed,
            )?;
            let tokens = IssuedTokens {
                access: Secret::new(take(written.access)),
                refresh: written.refresh.map(|token| Secret::new(take(token))),
                expires_ms: written.expires_ms,
                lifetime_ms: written.lifetime_ms,
                scopes: None,
                id_token: None,
            };
            let saved = Saved {
                issuer: record.issuer,
                client: written.client.read(key)?.client,
                usage: usage(&written.usage),
                token_endpoint: written.token_endpoint,
                revocation_endpoint: written.revocation_endpoint,
                resource: written.resource,
                scopes: written.scopes,
                tokens,
                at_ms: record.at_ms,
            };
            Some((record.participant, saved))
        };
        records.into_iter().filter_map(open).collect()
    }

    /// Keeps a client that was registered on the spot; `None` forgets it.
    ///
    /// # Errors
    /// [`VaultError`].
    pub async fn keep_client(
        &self,
        place: &AccountPlace,
        issuer: &str,
        how: Use,
        client: Option<&RegisteredClient>,
    ) -> Result<(), VaultError> {
        let sealed = match client {
            None => Some(String::new()),
            Some(registered) => {
                let written = WrittenClient {
                    expires_ms: registered.expires_ms,
                    redirect_uris: registered.redirect_uris.clone(),
                    ..WrittenClient::of(&registered.client)
                };
                self.seal(CLIENT, &principal(place, issuer, how.as_str()), &written)?
            }
        };
        let Some(sealed) = sealed else { return Ok(()) };
        self.write(AccountRecord::UpstreamClient(UpstreamClient {
            server: place.server.clone(),
            issuer: issuer.to_owned(),
            usage: how.as_str().to_owned(),
            sealed,
            at_ms: unix_ms(),
        }))
        .await
    }

    /// The clients that were registered for a server, with issuer and use.
    #[must_use]
    pub fn clients(&self, server: &str, url: &str) -> Vec<(String, Use, RegisteredClient)> {
        let (Some(journal), Some(_)) = (&self.journal, &self.sealer) else {
            return Vec::new();
        };
        let records: Vec<UpstreamClient> =
            journal.state(|kept| kept.clients_at(server).cloned().collect());
        let place = AccountPlace {
            server: server.to_owned(),
            url: url.to_owned(),
            participant: None,
        };
        let open = |record: UpstreamClient| {
            let principal = principal(&place, &record.issuer, &record.usage);
            let written: WrittenClient = self.open(CLIENT, &principal, &record.sealed)?;
            Some((record.issuer, usage(&record.usage), written.read(None)?))
        };
        records.into_iter().filter_map(open).collect()
    }

    /// `None` where nothing is kept.
    fn seal<T: Serialize>(
        &self,
        purpose: &str,
        principal: &str,
        written: &T,
    ) -> Result<Option<String>, VaultError> {
        if self.journal.is_none() {
            return Ok(None);
        }
        let sealer = self.sealer.as_ref().ok_or(VaultError::NoKey)?;
        let plain =
            serde_json::to_vec(written).map_err(|error| VaultError::Journal(error.to_string()))?;
        let plain = Zeroizing::new(plain);
        Ok(Some(sealer.seal(
            purpose,
            principal,
            u64::MAX,
            random(),
            &plain,
        )))
    }

    fn open<T: for<'d> Deserialize<'d>>(
        &self,
        purpose: &str,
        principal: &str,
        sealed: &str,
    ) -> Option<T> {
        let opened = self
            .sealer
            .as_ref()?
            .open(purpose, principal, unix_ms(), sealed)
            .ok()?;
        serde_json::from_slice(&Zeroizing::new(opened)).ok()
    }

    async fn write(&self, record: AccountRecord) -> Result<(), VaultError> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let (done, written) = oneshot::channel();
        journal.submit(&[record], move |end| drop(done.send(end)));
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(VaultError::Journal(error.to_string())),
            Err(_) => Err(VaultError::Journal("it has ended".to_owned())),
        }
    }
}

impl WrittenClient {
    fn of(client: &OAuthClient) -> Self {
        let (method, secret) = match &client.auth {
            ClientAuth::None => ("none", None),
            ClientAuth::Basic(secret) => ("client_secret_basic", Some(secret)),
            ClientAuth::Post(secret) => ("client_secret_post", Some(secret)),
            ClientAuth::PrivateKey(_) => ("private_key_jwt", None),
        };
        let secret = secret.map(|secret| Zeroizing::new(secret.expose().to_owned()));
        Self {
            id: client.id.clone(),
            method: method.to_owned(),
            secret,
            expires_ms: None,
            redirect_uris: Vec::new(),
        }
    }

    fn read(self, key: Option<&Arc<SigningKey>>) -> Option<RegisteredClient> {
        let secret = self.secret.map(|secret| Secret::new(take(secret)));
        let auth = match (self.method.as_str(), secret) {
            ("client_secret_basic", Some(secret)) => ClientAuth::Basic(secret),
            ("client_secret_post", Some(secret)) => ClientAuth::Post(secret),
            ("private_key_jwt", _) => ClientAuth::PrivateKey(Arc::clone(key?)),
            _ => ClientAuth::None,
        };
        Some(RegisteredClient {
            client: OAuthClient { id: self.id, auth },
            expires_ms: self.expires_ms,
            redirect_uris: self.redirect_uris,
        })
    }
}

fn take(mut text: Zeroizing<String>) -> String {
    std::mem::take(&mut *text)
}

fn usage(text: &str) -> Use {
    if text == Use::Web.as_str() {
        Use::Web
    } else {
        Use::Native
    }
}

/// Principal for which a record is sealed: each text after its length, so that no two places are
/// spelled alike.
fn principal(place: &AccountPlace, issuer: &str, usage: &str) -> String {
    let participant = place.participant.as_deref();
    let who = if participant.is_some() {
        "participant"
    } else {
        "shared"
    };
    let parts = [
        place.server.as_str(),
        &place.url,
        issuer,
        who,
        participant.unwrap_or_default(),
        usage,
    ];
    parts
        .iter()
        .map(|part| format!("{}:{part}", part.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use store::JournalWriter;

    use super::*;

    fn place(server: &str, url: &str, participant: Option<&str>) -> AccountPlace {
        AccountPlace {
            server: server.to_owned(),
            url: url.to_owned(),
            participant: participant.map(str::to_owned),
        }
    }

    fn saved(access: &str) -> Saved {
        Saved {
            issuer: "https://idp.example".to_owned(),
            client: OAuthClient {
                id: "me".to_owned(),
                auth: ClientAuth::Basic(Secret::new("canary-c".to_owned())),
            },
            usage: Use::Native,
            token_endpoint: "https://idp.example/token".to_owned(),
            revocation_endpoint: None,
            resource: None,
            scopes: vec!["read".to_owned()],
            tokens: IssuedTokens {
                access: Secret::new(access.to_owned()),
                refresh: Some(Secret::new("canary-r".to_owned())),
                expires_ms: Some(7),
                lifetime_ms: Some(5),
                scopes: None,
                id_token: None,
            },
            at_ms: 1,
        }
    }

    #[tokio::test]
    async fn an_account_opens_at_its_place_with_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(folder.path()).unwrap();
        let journal: Ledger<KeptAccounts> = journal.ledger().unwrap();
        let vault = Vault::new(Some(&[1; 32]), Some(journal.clone()));
        let url = "https://mcp.example/mcp";
        vault
            .keep(&place("jira", url, None), &saved("canary-a1"))
            .await
            .unwrap();
        vault
            .keep(&place("jira", url, Some("ann")), &saved("canary-a2"))
            .await
            .unwrap();
        let registered = RegisteredClient {
            client: saved("").client,
            expires_ms: Some(9),
            redirect_uris: vec!["http://127.0.0.1:5/callback".to_owned()],
        };
        let at = place("jira", url, None);
        vault
            .keep_client(&at, "https://idp.example", Use::Native, Some(&registered))
            .await
            .unwrap();

        let found = vault.accounts("jira", url, None);
        let names: Vec<_> = found
            .iter()
            .map(|(who, one)| (who.as_deref(), one.tokens.access.expose()))
            .collect();
        assert_eq!(names, [(None, "canary-a1"), (Some("ann"), "canary-a2")]);
        assert_eq!(vault.clients("jira", url).len(), 1);
        // Another URL, another server, another key: nothing opens.
        assert!(
            vault
                .accounts("jira", "https://evil.example/mcp", None)
                .is_empty()
        );
        assert!(vault.clients("jira", "https://evil.example/mcp").is_empty());
        assert!(vault.accounts("docs", url, None).is_empty());
        let other = Vault::new(Some(&[2; 32]), Some(journal.clone()));
        assert!(
            other.accounts("jira", url, None).is_empty() && other.clients("jira", url).is_empty()
        );
        // A record under another participant's name does not open either.
        let stolen = journal.state(|kept| {
            kept.at("jira")
                .find(|one| one.participant.is_some())
                .cloned()
                .unwrap()
        });
        let moved = UpstreamAccount {
            participant: Some("bob".to_owned()),
            ..stolen
        };
        journal
            .append(&[AccountRecord::UpstreamAccount(moved)])
            .unwrap();
        assert_eq!(vault.accounts("jira", url, None).len(), 2);

        vault.end(&place("jira", url, Some("ann"))).await.unwrap();
        vault
            .keep_client(&at, "https://idp.example", Use::Native, None)
            .await
            .unwrap();
        assert_eq!(
            (
                vault.accounts("jira", url, None).len(),
                vault.clients("jira", url).len()
            ),
            (1, 0)
        );
        drop((vault, other, journal));
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            let bytes = std::fs::read(file.path()).unwrap();
            assert!(
                !bytes.windows(7).any(|window| window == b"canary-"),
                "{}",
                file.path().display()
            );
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_without_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::new(
            None,
            Some(
                JournalWriter::open(folder.path())
                    .unwrap()
                    .ledger()
                    .unwrap(),
            ),
        );
        assert_eq!(vault.check(), Err(VaultError::NoKey));
        assert_eq!(
            vault.keep(&place("jira", "u", None), &saved("a")).await,
            Err(VaultError::NoKey)
        );
        assert!(vault.accounts("jira", "u", None).is_empty());
        let memory = Vault::new(None, None);
        assert_eq!(
            (
                memory.check(),
                memory.keep(&place("jira", "u", None), &saved("a")).await
            ),
            (Ok(()), Ok(()))
        );
    }
}
