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
        let kept = kept
            .into_iter()
            .filter(|(who, saved)| who.is_some() == is_callers && site.takes(saved));
        let kept = kept.map(|(who, saved)| {
            let flight = flights.remove(&who);
            (who.clone(), Account::new(&site, who, Some(saved), flight))
        });
        let mut accounts: HashMap<_, _> = kept.collect();
        let others = flights
            .into_iter()
            .filter(|(who, _)| who.is_some() == is_callers);
        let other = |(who, flight): (Option<String>, _)| {
            (who.clone(), Account::new(&site, who, None, Some(flight)))
        };
        accounts.extend(others.map(other));
        let (exchanged, turns) = <_>::default();
        Self {
            accounts: Mutex::new(accounts),
            site,
            exchanged,
            turns,
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
        let participant = participant
            .filter(|_| self.is_of_callers())
            .map(str::to_owned);
        let mut accounts = self.accounts.lock();
        if accounts.len() >= SERVER_ACCOUNTS_MAX && !accounts.contains_key(&participant) {
            accounts.retain(|_, account| account.is_ready() || Arc::strong_count(account) > 1);
        }
        let new = || Account::new(&self.site, participant.clone(), None, None);
        Arc::clone(accounts.entry(participant.clone()).or_insert_with(new))
    }

    /// The account of a caller: of its access token alone, where that is exchanged.
    #[must_use]
    pub fn of_holder(&self, holder: Option<AccountHolder<'_>>) -> Arc<Account> {
        let participant = holder.map(|holder| holder.participant.as_str());
        let of_token = || {
            let exchanged = self.exchanged.lock();
            exchanged.get(participant?)?.get(&holder?.token?).cloned()
        };
        of_token().unwrap_or_else(|| self.of(participant))
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

    /// Takes the access token with which a participant came in. Accounts of tokens of it that have
    /// ended end with their sessions.
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
        exchanged.retain(|_, own| {
            ended.extend(
                own.extract_if(|_, account| account.has_ended(now_ms))
                    .map(|(_, account)| account),
            );
            !own.is_empty()
        });
        let own = exchanged.entry(checked.participant.to_owned()).or_default();
        if own.len() >= EXCHANGED_TOKENS_MAX {
            let first = own
                .iter()
                .min_by_key(|(_, account)| account.last_turn())
                .map(|(hash, _)| *hash);
            ended.extend(first.and_then(|first| own.remove(&first)));
        }
        let token = Secret::new(checked.token.to_owned());
        let account = Account::of_token(&self.site, checked.participant, token, checked.ends_ms);
        account.came(turn);
        own.insert(checked.hash, account);
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
        let state = |(who, account): (Option<String>, Arc<Account>)| {
            let mut state = account.state();
            if !matches!(state.state, "ready" | "refreshing" | "open")
                && logins.is_pending(&account)
            {
                state.state = "pending";
            }
            (who, state)
        };
        accounts.into_iter().map(state).collect()
    }
}

impl client::Accounts for AccountServer {
    fn account(&self, caller: Option<AccountHolder<'_>>) -> Arc<dyn Authorize> {
        Arc::new(SessionAccount::new(self.of_holder(caller)))
    }

    fn blocked(&self, caller: Option<AccountHolder<'_>>) -> Option<AccountFault> {
        match (self.is_of_callers(), caller) {
            // There is no shared session that could be blocked.
            (true, None) => None,
            (_, caller) => self.of_holder(caller).blocked(),
        }
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
        let discoveries = Semaphore::new(DISCOVERIES_MAX);
        let base_url = RwLock::new(base_url);
        let connects = Connects::default();
        let on_change = OnceLock::new();
        let services = Services {
            vault,
            audit,
            public_url,
            base_url,
            connects,
            on_change,
            discoveries,
        };
        let servers = RwLock::default();
        let flights = Mutex::default();
        Self {
            services: Arc::new(services),
            servers,
            flights,
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
        let known = servers.get(server.name).filter(|known| {
            known.site.config == *server.auth
                && known.site.tls == *server.tls
                && Some(known.site.url.clone()) == url::Url::parse(server.url).ok()
        });
        if let Some(known) = known.filter(|_| has_accounts) {
            return (Some(Arc::clone(known)), true);
        }
        let before = servers.remove(server.name);
        before.iter().for_each(|before| self.end(before));
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
        servers.extend(
            new.iter()
                .map(|new| (server.name.to_owned(), Arc::clone(new))),
        );
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
        (account.place() == place).then(|| ConnectRequest {
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
        for key in self
            .servers()
            .iter()
            .filter_map(|server| server.site.config.private_key.clone())
        {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Takes the token with which a participant came in, for the servers at which it is exchanged,
    /// and for no other purpose.
    pub fn came(&self, checked: CheckedToken<'_>) {
        for server in self
            .servers
            .read()
            .values()
            .filter(|server| server.exchanges())
        {
            server.came(checked, unix_ms());
        }
    }
}
