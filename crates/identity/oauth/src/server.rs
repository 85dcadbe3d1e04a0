//! Accounts at one server, and of all servers: what sessions ask for tokens, and what the API and
//! pages act on.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use client::{AccountFault, AccountHolder, Authorize};
use model::Digest;
use platform::{Mutex, RwLock, unix_ms};
use tls::ClientTls;
use tokio::sync::{Semaphore, watch};

use crate::account::session::SessionAccount;
use crate::account::{Account, AccountState, Flight};
use crate::config::{AccountOwner as Whose, AuthConfig, AuthorizationKind};
use crate::connect::{Connects, WaitingConnect};
use crate::jwt::SigningKey;
use crate::logins::Logins;
use crate::secret::Secret;
use crate::site::{DISCOVERIES_MAX, Services, Site};
use crate::vault::Vault;
use store::recorder::Recorder;

/// Accounts at one server: of the participants that were here since the start, and those that are
/// kept.
pub const SERVER_ACCOUNTS_MAX: usize = 100_000;

/// The flights of accounts, by participant.
type Flights = HashMap<Option<String>, Flight>;

/// Access tokens of one participant that are exchanged at one server at a time. Of more the one
/// that was used longest ago ends.
pub const EXCHANGED_TOKENS_MAX: usize = 1_000;

/// One server with its accounts.
pub struct AccountServer {
    /// The server.
    pub site: Arc<Site>,
    accounts: Mutex<HashMap<Option<String>, Arc<Account>>>,
    /// Accounts of single access tokens, where these are exchanged, by participant and the token's
    /// SHA-256.
    exchanged: Mutex<HashMap<String, HashMap<Digest, Arc<Account>>>>,
    /// Number of times that callers came with tokens that are exchanged.
    turns: AtomicU64,
}

/// An access token that was checked, and whose it is.
#[derive(Clone, Copy)]
pub struct CheckedToken<'a> {
    /// The participant.
    pub participant: &'a str,
    /// The token.
    pub token: &'a str,
    /// Its SHA-256.
    pub hash: Digest,
    /// When it ends, Unix milliseconds.
    pub ends_ms: u64,
}

impl AccountServer {
    /// A server with the accounts that are kept, and those of the configuration before that ask for
    /// tokens now.
    fn new(site: Site, mut flights: Flights) -> Self {
        let site = Arc::new(site);
        let url = site.url.as_str();
        let kept = site
            .services
            .vault
            .accounts(&site.name, url, site.config.private_key.as_ref());
        let is_callers = site.config.account == Whose::Caller;
        let mut accounts = HashMap::new();
        for (who, saved) in kept {
            // The configuration may have had shared accounts before, or callers' own.
            if who.is_some() != is_callers || !site.takes(&saved) {
                continue;
            }
            let flight = flights.remove(&who);
            let account = Account::new(&site, who.clone(), Some(saved), flight);
            accounts.insert(who, account);
        }
        // What is left asks for a token of an account that is not kept.
        for (who, flight) in flights {
            if who.is_some() == is_callers {
                let account = Account::new(&site, who.clone(), None, Some(flight));
                accounts.insert(who, account);
            }
        }
        Self {
            accounts: Mutex::new(accounts),
            site,
            exchanged: Mutex::default(),
            turns: AtomicU64::new(0),
        }
    }

    /// Ends the use of this configuration, and returns the flights of the accounts that ask for
    /// tokens now. No other begins.
    fn end(&self) -> Flights {
        self.site.replace();
        let accounts = self.accounts.lock();
        accounts
            .iter()
            .filter_map(|(who, account)| Some((who.clone(), account.flight()?)))
            .collect()
    }

    /// The account of a participant here, or the one that all share: as the configuration has it.
    #[must_use]
    pub fn of(&self, participant: Option<&str>) -> Arc<Account> {
        let who = match participant {
            Some(participant) if self.is_of_callers() => Some(participant.to_owned()),
            Some(_) | None => None,
        };
        let mut accounts = self.accounts.lock();
        if let Some(known) = accounts.get(&who) {
            return Arc::clone(known);
        }
        if accounts.len() >= SERVER_ACCOUNTS_MAX {
            // Nothing is lost with one that has no token and no user.
            accounts.retain(|_, account| account.is_ready() || Arc::strong_count(account) > 1);
        }
        let new = Account::new(&self.site, who.clone(), None, None);
        accounts.insert(who, Arc::clone(&new));
        new
    }

    /// The account of a caller: of its access token alone, where that is exchanged.
    #[must_use]
    pub fn of_holder(&self, holder: Option<AccountHolder<'_>>) -> Arc<Account> {
        let Some(holder) = holder else {
            return self.of(None);
        };
        match self.of_token(holder) {
            Some(account) => account,
            None => self.of(Some(holder.participant.as_str())),
        }
    }

    /// The account of a caller's access token, if that is exchanged.
    fn of_token(&self, holder: AccountHolder<'_>) -> Option<Arc<Account>> {
        let token = holder.token?;
        let exchanged = self.exchanged.lock();
        let of_participant = exchanged.get(holder.participant.as_str())?;
        of_participant.get(&token).cloned()
    }

    /// The SHA-256 of the access token with which a participant came last, where these are
    /// exchanged.
    #[must_use]
    pub fn latest_token(&self, participant: &str) -> Option<Digest> {
        let exchanged = self.exchanged.lock();
        let own = exchanged.get(participant)?.iter();
        own.max_by_key(|(_, account)| account.last_turn())
            .map(|(hash, _)| *hash)
    }

    /// Whether callers' access tokens are exchanged here.
    #[must_use]
    pub fn exchanges(&self) -> bool {
        self.site.config.kind == AuthorizationKind::Exchange && self.is_of_callers()
    }

    /// Records the access token with which a participant came in. Accounts of tokens of it that
    /// have ended end with their sessions.
    fn came(&self, checked: CheckedToken<'_>, now_ms: u64) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let mut exchanged = self.exchanged.lock();
        if let Some(known) = exchanged
            .get(checked.participant)
            .and_then(|own| own.get(&checked.hash))
        {
            return known.came(turn);
        }
        // A new token is rare: what has ended is looked for now, of all participants.
        let mut ended = Vec::new();
        exchanged.retain(|_, accounts| {
            let gone = accounts.extract_if(|_, account| account.has_ended(now_ms));
            ended.extend(gone.map(|(_, account)| account));
            !accounts.is_empty()
        });
        let accounts = exchanged.entry(checked.participant.to_owned()).or_default();
        if accounts.len() >= EXCHANGED_TOKENS_MAX {
            let unused_longest = accounts
                .iter()
                .min_by_key(|(_, account)| account.last_turn())
                .map(|(hash, _)| *hash);
            ended.extend(unused_longest.and_then(|hash| accounts.remove(&hash)));
        }
        let token = Secret::new(checked.token.to_owned());
        let account = Account::of_token(&self.site, checked.participant, token, checked.ends_ms);
        account.came(turn);
        accounts.insert(checked.hash, account);
        // Not under the lock: others are notified.
        drop(exchanged);
        for account in ended {
            account.end();
            self.site.changed(account.participant.as_deref());
        }
    }

    /// Takes a participant's accounts out. The next that is asked for is a new one.
    fn take(&self, participant: &str) -> Vec<Arc<Account>> {
        let kept = self.accounts.lock().remove(&Some(participant.to_owned()));
        let exchanged = self
            .exchanged
            .lock()
            .remove(participant)
            .unwrap_or_default();
        kept.into_iter().chain(exchanged.into_values()).collect()
    }

    /// Whether each caller has an account of its own.
    #[must_use]
    pub fn is_of_callers(&self) -> bool {
        self.site.config.account == Whose::Caller
    }

    /// The accounts, the shared one first, then by participant.
    #[must_use]
    pub fn all(&self, logins: &Logins) -> Vec<(Option<String>, AccountState)> {
        let mut accounts: BTreeMap<_, _> = self.accounts.lock().clone().into_iter().collect();
        // Of a participant's exchanges the latest is shown.
        for (participant, own) in &*self.exchanged.lock() {
            let latest = own.values().max_by_key(|account| account.last_turn());
            accounts.extend(latest.map(|latest| (Some(participant.clone()), Arc::clone(latest))));
        }
        let mut all = Vec::with_capacity(accounts.len());
        for (who, account) in accounts {
            let mut state = account.state();
            if !matches!(state.state, "ready" | "refreshing" | "open")
                && logins.is_pending(&account)
            {
                state.state = "pending";
            }
            all.push((who, state));
        }
        all
    }
}

impl client::Accounts for AccountServer {
    fn account(&self, caller: Option<AccountHolder<'_>>) -> Arc<dyn Authorize> {
        Arc::new(SessionAccount::new(self.of_holder(caller)))
    }

    fn blocked(&self, caller: Option<AccountHolder<'_>>) -> Option<AccountFault> {
        // There is no shared session that could be blocked.
        if self.is_of_callers() && caller.is_none() {
            return None;
        }
        self.of_holder(caller).blocked()
    }

    fn are_of_callers(&self) -> bool {
        self.is_of_callers()
    }

    fn are_of_tokens(&self) -> bool {
        self.exchanges()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.site.changes()
    }
}

/// A server as the configuration has it.
pub struct Configured<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its URL; of a process one that no other process has.
    pub url: &'a str,
    /// Authorities that are trusted there, and the certificate that is shown.
    pub tls: &'a ClientTls,
    /// Its accounts.
    pub auth: &'a AuthConfig,
}

/// A connect request as a page shows it.
#[derive(Debug, Clone)]
pub struct ConnectRequest {
    /// Its id.
    pub id: String,
    /// The account that is asked for.
    pub account: Arc<Account>,
    /// The scopes that the server named; empty leaves the choice to the configuration and to
    /// metadata.
    pub scopes: Vec<String>,
    /// The clients that asked, as they call themselves.
    pub clients: Vec<String>,
}

/// The servers with accounts.
pub struct ServerAccounts {
    services: Arc<Services>,
    servers: RwLock<BTreeMap<String, Arc<AccountServer>>>,
    /// By server: what asked for tokens when its configuration ended.
    flights: Mutex<HashMap<String, Flights>>,
    /// Sign-ins under way.
    pub logins: Logins,
}

impl ServerAccounts {
    /// Accounts in this vault. `base_url` is the gateway's address on this machine, empty while it
    /// does not listen; `public_url` the one for others.
    #[must_use]
    pub fn new(
        vault: Vault,
        audit: Recorder,
        public_url: Option<String>,
        base_url: String,
    ) -> Self {
        Self {
            services: Arc::new(Services {
                vault,
                audit,
                public_url,
                base_url: RwLock::new(base_url),
                connects: Connects::default(),
                on_change: OnceLock::new(),
                token_uses: OnceLock::new(),
                discoveries: Semaphore::new(DISCOVERIES_MAX),
            }),
            servers: RwLock::default(),
            flights: Mutex::default(),
            logins: Logins::default(),
        }
    }

    /// Accounts of which nothing is kept, without an audit log.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(
            Vault::new(None, None),
            Recorder::default(),
            None,
            String::new(),
        )
    }

    /// Services that all servers share.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Takes over a server from the configuration. One that has not changed keeps its accounts.
    /// Returns it, unless its requests need no tokens; the flag says whether it is as it was.
    pub fn configure(&self, server: &Configured<'_>) -> (Option<Arc<AccountServer>>, bool) {
        let has_accounts = match server.auth.kind {
            AuthorizationKind::None | AuthorizationKind::Headers => false,
            AuthorizationKind::OAuth
            | AuthorizationKind::Key
            | AuthorizationKind::ClientCredentials
            | AuthorizationKind::Exchange => true,
        };
        let mut servers = self.servers.write();
        if has_accounts
            && let Some(known) = servers.get(server.name)
            && known.site.config == *server.auth
            && known.site.tls == *server.tls
            && Some(&known.site.url) == url::Url::parse(server.url).ok().as_ref()
        {
            return (Some(Arc::clone(known)), true);
        }
        let before = servers.remove(server.name);
        if let Some(before) = &before {
            self.end(before);
        }
        if !has_accounts {
            return (None, before.is_none());
        }
        let site = Site::new(
            server.name,
            server.url,
            server.auth.clone(),
            server.tls,
            &self.services,
        );
        let flights = self.flights.lock().remove(server.name).unwrap_or_default();
        let new = site.map(|site| Arc::new(AccountServer::new(site, flights)));
        if let Some(new) = &new {
            servers.insert(server.name.to_owned(), Arc::clone(new));
        }
        (new, false)
    }

    /// Forgets the servers that are not among these.
    pub fn retain(&self, names: &[&str]) {
        self.servers.write().retain(|name, server| {
            let stays = names.contains(&name.as_str());
            if !stays {
                self.end(server);
            }
            stays
        });
    }

    /// Ends the use of a server as it was configured. The next configuration of its name waits for
    /// what asks for tokens now.
    fn end(&self, server: &AccountServer) {
        let flights = server.end();
        if !flights.is_empty() {
            self.flights
                .lock()
                .entry(server.site.name.clone())
                .or_default()
                .extend(flights);
        }
    }

    /// A server, if its requests may need tokens.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<Arc<AccountServer>> {
        self.servers.read().get(name).cloned()
    }

    /// All of them, by name.
    #[must_use]
    pub fn servers(&self) -> Vec<Arc<AccountServer>> {
        self.servers.read().values().cloned().collect()
    }

    /// A connect request that can be used: its server is still configured, at the same URL.
    #[must_use]
    pub fn connect_request(&self, id: &str) -> Option<ConnectRequest> {
        let WaitingConnect {
            id,
            place,
            scopes,
            clients,
        } = self.services.connects.find(id, unix_ms())?;
        let account = self.server(&place.server)?.of(place.participant.as_deref());
        if account.place() != place {
            return None;
        }
        Some(ConnectRequest {
            id,
            account,
            scopes,
            clients,
        })
    }

    /// Ends all accounts of a participant whose name has another bearer from now on, and revokes
    /// their tokens in the background. Must be called inside a runtime.
    pub fn end_all_of(&self, participant: &str, by: &str) {
        for server in self.servers() {
            let taken = server.take(participant);
            if !taken.is_empty() {
                server.site.changed(Some(participant));
            }
            for account in taken {
                let by = by.to_owned();
                tokio::spawn(async move {
                    if let Err(error) = account.sign_out(&by).await {
                        tracing::warn!(%error, "an account of a participant that is no more could not be ended");
                    }
                });
            }
        }
    }

    /// The keys with which the gateway signs as a client, each once.
    #[must_use]
    pub fn keys(&self) -> Vec<Arc<SigningKey>> {
        let mut keys: Vec<Arc<SigningKey>> = Vec::new();
        for server in self.servers() {
            if let Some(key) = &server.site.config.private_key
                && !keys.contains(key)
            {
                keys.push(Arc::clone(key));
            }
        }
        keys
    }

    /// Records the token with which a participant came in, for the servers at which it is
    /// exchanged, and for no other purpose.
    pub fn came(&self, checked: CheckedToken<'_>) {
        for server in self.servers.read().values() {
            if server.exchanges() {
                server.came(checked, unix_ms());
            }
        }
    }
}
