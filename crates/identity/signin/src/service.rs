//! The authorization server of one gateway: its keys, what waits in memory, and what all its
//! endpoints begin with.

use std::net::IpAddr;
use std::sync::Arc;

use auth::{AccessTokens, Participant, PublicUrl, Sealer};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use html::SignedInPerson;
use identity::AccessJournal;
use identity::config::IdentityConfig;
use identity::login::{CONSOLE_CLIENT, LoginConfig};
use identity::sign_ins::{login_key, session_mark, subject};
use oauth::dialer::{AllowedAddresses, Dialer};
use platform::{Limiter, Mutex, random, unix_ms};
use store::audit::{AuditEntry, RecordedVerdict};
use store::recorder::{RecordPermit, Recorder, UNKNOWN_PARTICIPANT, entry};
use tokio::task::spawn_blocking;
use url::Url;

use crate::client::{Client, ClientIds, ClientLookup, UnknownClient, look_up};
use crate::codes::Codes;
use crate::console;
use crate::document::Documents;
use crate::one_time::OneTimeCodes;
use crate::refresh::RefreshTokens;
use crate::request::RequestTerms;

/// The kind under which sign-ins are recorded: consented, issued, refreshed, refused, revoked.
pub const LOGIN: &str = "portmoot/login";
/// Registrations of one address in a minute.
pub const REGISTRATIONS_PER_MINUTE: u32 = 10;
/// Documents that one address has the gateway fetch, in a minute.
pub const DOCUMENTS_PER_MINUTE: u32 = 10;
/// Codes that one address tries to sign in with, in a minute.
pub const TRIES_PER_MINUTE: u32 = 10;
/// Requests for tokens of one address that are refused, in a minute.
pub const REFUSALS_PER_MINUTE: u32 = 60;

/// The gateway, as its authorization server needs it.
pub trait Home: Send + Sync + 'static {
    /// The configuration of who may come in, as it is in force.
    fn config(&self) -> Arc<IdentityConfig>;
    /// The audit log.
    fn audit(&self) -> &Recorder;
    /// Puts the sign-ins of a participant in force as the journal has them now. `ended` is whether
    /// one has ended before its time: then everything that was opened with it ends too.
    fn sign_ins_changed(&self, participant: &str, ended: bool);
    /// Whether a participant of this name is known now.
    fn knows(&self, participant: &str) -> bool;
    /// The participant of a configured or issued token.
    fn bearer(&self, token: &str) -> Option<Arc<Participant>>;
}

/// The authorization server.
pub struct SignIn {
    pub(crate) home: Arc<dyn Home>,
    pub(crate) access: Arc<AccessJournal>,
    pub(crate) clients: ClientIds,
    pub(crate) refresh: RefreshTokens,
    pub(crate) tokens: AccessTokens,
    /// Seals forms and cookies.
    pub(crate) pages: Sealer,
    /// Tells sessions of browsers of this process from those of others.
    run: String,
    pub(crate) codes: Mutex<Codes>,
    pub(crate) one_time: Mutex<OneTimeCodes>,
    documents: Documents,
    pub(crate) registrations: Limiter,
    fetches: Limiter,
    pub(crate) tries: Limiter,
    pub(crate) refusals: Limiter,
}

/// Whose a code is: a participant's, as it is marked now. Names have no blanks.
pub(crate) fn bearer(name: &str, mark: &str) -> String {
    format!("{name} {mark}")
}

/// The time and the origin of an act that a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// In Unix milliseconds.
    pub(crate) ms: u64,
    /// The address from which the request came, if it came from one.
    pub(crate) from: Option<IpAddr>,
}

/// Configuration and time while one request is answered.
pub(crate) struct Now {
    config: Arc<IdentityConfig>,
    pub(crate) login: LoginConfig,
    pub(crate) public_url: PublicUrl,
    pub(crate) ms: u64,
    /// The address from which the request came, if it came from one.
    pub(crate) from: Option<IpAddr>,
}

impl Now {
    /// The time and the origin of what the request asks for.
    pub(crate) fn moment(&self) -> Moment {
        Moment {
            ms: self.ms,
            from: self.from,
        }
    }

    /// These, for a request that came from this address.
    pub(crate) fn asked_from(self, from: Option<IpAddr>) -> Self {
        Self { from, ..self }
    }

    pub(crate) fn config(&self) -> &IdentityConfig {
        &self.config
    }

    /// All scopes, and those that are granted when none are asked for.
    pub(crate) fn scopes(&self) -> (Vec<&str>, Vec<&str>) {
        let all = self.config.scopes.iter().map(|scope| scope.name.as_str());
        (all.collect(), self.config.baseline_scopes().collect())
    }
}

impl SignIn {
    /// The authorization server of a gateway; `None` if signing in was never enabled in its data
    /// directory.
    #[must_use]
    pub fn new(
        home: Arc<dyn Home>,
        access: Arc<AccessJournal>,
        dialer: Dialer,
    ) -> Option<Arc<Self>> {
        let key = access.read(login_key)?;
        Some(Arc::new(Self {
            home,
            access,
            clients: ClientIds::new(&key),
            refresh: RefreshTokens::new(&key),
            tokens: AccessTokens::new(&key),
            pages: Sealer::new(&key, None),
            run: URL_SAFE_NO_PAD.encode(random::<12>()),
            codes: Mutex::default(),
            one_time: Mutex::default(),
            documents: Documents::new(dialer),
            registrations: Limiter::new(REGISTRATIONS_PER_MINUTE),
            fetches: Limiter::new(DOCUMENTS_PER_MINUTE),
            tries: Limiter::new(TRIES_PER_MINUTE),
            refusals: Limiter::new(REFUSALS_PER_MINUTE),
        }))
    }

    /// Configuration and time now; `None` while signing in is disabled.
    pub(crate) fn now(&self) -> Option<Now> {
        let config = self.home.config();
        let login = config.login.clone()?;
        let public_url = config.public_url.clone()?;
        Some(Now {
            config,
            login,
            public_url,
            ms: unix_ms(),
            from: None,
        })
    }

    /// The client of this id. Its document is fetched unless it is kept.
    pub(crate) async fn client(
        &self,
        id: &str,
        now: &Now,
        from: Option<IpAddr>,
    ) -> Result<Client, UnknownClient> {
        if id == CONSOLE_CLIENT {
            return Ok(console::client(&now.public_url));
        }
        match look_up(id, &now.login, &self.clients)? {
            ClientLookup::Found(client) => Ok(client),
            ClientLookup::Document(url) => {
                if self.fetches.act(from, now.ms).is_err() {
                    let why = "too many documents were asked for from your address: wait a minute";
                    return Err(UnknownClient::Document(why.to_owned()));
                }
                self.documents
                    .client(&url, &now.login, &reach(&now.public_url))
                    .await
            }
        }
    }

    /// The participant of this name that may be signed in now.
    pub(crate) fn subject(
        &self,
        config: &IdentityConfig,
        name: &str,
        now_ms: u64,
    ) -> Option<Arc<Participant>> {
        let found = self.access.read(|state| subject(config, state, name))?;
        found
            .expires_ms
            .is_none_or(|end| now_ms < end)
            .then_some(found)
    }

    /// A participant that signs in at the pages now.
    pub(crate) fn person(&self, now: &Now, name: String) -> SignedInPerson {
        let mark = self.mark(now, &name);
        SignedInPerson::new(name, mark, now.ms)
    }

    /// Uses a one-time code; the participant to which it was given, if that still has the name.
    pub(crate) fn redeem(&self, now: &Now, typed: &str) -> Option<String> {
        let bearer = self.one_time.lock().redeem(typed, now.ms)?;
        let (name, mark) = bearer.split_once(' ')?;
        (mark == self.mark(now, name)).then(|| name.to_owned())
    }

    /// Mark of a participant now.
    pub(crate) fn mark(&self, now: &Now, name: &str) -> String {
        let mark = self
            .access
            .read(|state| session_mark(now.config(), state, name));
        format!("{} {mark}", self.run)
    }

    /// Whether a participant that has signed in still is: it is the same one, and nothing was
    /// revoked since.
    pub(crate) fn is_signed_in(&self, now: &Now, person: &SignedInPerson) -> bool {
        now.ms < person.until_ms
            && person.mark == self.mark(now, &person.name)
            && self.subject(now.config(), &person.name, now.ms).is_some()
    }

    /// Does what blocks on the disk, off the runtime; `None` if it was interrupted.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let me = Arc::clone(self);
        spawn_blocking(move || act(&me)).await.ok()
    }

    /// Records an act of a participant for a client.
    pub(crate) fn record(
        permit: RecordPermit,
        participant: &str,
        client: &str,
        verdict: RecordedVerdict,
        why: &str,
    ) {
        let to = [client];
        permit.write(&AuditEntry {
            to: &to,
            why: Some(why),
            ..entry(None, participant, LOGIN, verdict)
        });
    }

    /// Records that something was refused, also to those of whom nothing is known. Of a flood, only
    /// the first are written.
    pub(crate) fn record_refusal(
        &self,
        now: &Now,
        participant: Option<&str>,
        client: Option<&str>,
        why: &str,
    ) {
        let permit = self.home.audit().reserve_or_count();
        let permit = permit.from_address(now.from);
        let to: Vec<&str> = client.into_iter().collect();
        let from = participant.unwrap_or(UNKNOWN_PARTICIPANT);
        let refused = entry(None, from, LOGIN, RecordedVerdict::Refused);
        self.home.audit().write_counted(
            permit,
            &AuditEntry {
                to: &to,
                why: Some(why),
                ..refused
            },
        );
    }
}

impl Now {
    /// Calls a function with the terms by which requests are read.
    pub(crate) fn with_terms<T>(&self, use_them: impl FnOnce(&RequestTerms<'_>) -> T) -> T {
        let (scopes, baseline) = self.scopes();
        use_them(&RequestTerms {
            public_url: &self.public_url,
            scopes: &scopes,
            baseline: &baseline,
        })
    }
}

/// Reach of the documents of clients: public addresses, and those of this machine only for a
/// gateway that is itself reached on this machine alone.
fn reach(public_url: &PublicUrl) -> AllowedAddresses {
    Url::parse(public_url.as_str()).map_or_else(
        |_| AllowedAddresses::public(),
        |url| AllowedAddresses::of(&url, &[]),
    )
}
