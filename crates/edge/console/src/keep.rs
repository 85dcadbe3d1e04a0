//! Checks of sessions: tokens are renewed before they end, and issuers are asked about them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use oauth::person::SignInPlace;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;

use crate::account::Account;
use crate::home::ConsoleSignIn;
use crate::kept::{Kept, look_at};
use crate::session::Session;
use crate::state::{Console, Visit};

/// Time between looks for sessions that have lapsed, in milliseconds.
pub const CONSOLE_SWEEP_MS: u64 = 60_000;

/// The outcome of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// The session has other tokens now.
    Done,
    Refused,
    NotNow,
}

/// One renewal, in a task of its own: the place may have replaced the token when the request that wanted
/// this is given up.
struct Task {
    console: Arc<Console>,
    session: Arc<Session>,
    account: Arc<Account>,
    /// The renewals before this one.
    renewals: u64,
    _flight: OwnedMutexGuard<()>,
}

impl Task {
    async fn run(self) -> Renewal {
        // Another one was quicker, or the person has signed in again.
        if self.account.renewals() != self.renewals || !self.session.has(&self.account) {
            return Renewal::Done;
        }
        let Some(refresh) = self.account.refresh() else {
            return Renewal::Refused;
        };
        let home = &self.console.home;
        if self.account.rests(home.now_ms()) {
            return Renewal::NotNow;
        }
        let Some(place) = self.place() else {
            return self.refused("is no place to sign in any more");
        };
        let resource = home.settings().resource();
        match place.renew(&refresh, &resource).await {
            Ok(tokens) => {
                if let Some(unwanted) = self.session.renewed(&self.account, tokens) {
                    place.give_up(unwanted).await;
                }
                Renewal::Done
            }
            Err(error) if error.is_refusal() => {
                self.refused("did not renew a sign-in at the console")
            }
            Err(_) => {
                self.account.rest(home.now_ms());
                Renewal::NotNow
            }
        }
    }

    /// The place as it is configured now. Another issuer of its name gets no token of the one before.
    fn place(&self) -> Option<Arc<dyn SignInPlace>> {
        let place = self.console.home.place(&self.account.place)?;
        (place.issuer() == self.account.at.issuer()).then_some(place)
    }

    /// Ends the session, unless its person has signed in again.
    fn refused(&self, why: &str) -> Renewal {
        if !self.session.has(&self.account) {
            return Renewal::Done;
        }
        self.console.home.record(&ConsoleSignIn {
            participant: Some(&self.session.participant),
            from: self.session.from(),
            is_refused: true,
            why: &format!("{} {why}", self.account.place),
        });
        self.console.sessions.end(&self.session);
        Renewal::Refused
    }
}

impl Console {
    /// Whether a session goes on: its token is renewed before it ends, its issuer is asked about it where
    /// it must be, and it is still the participant's. One that does not is ended.
    pub(crate) async fn keep(self: &Arc<Self>, session: &Arc<Session>) -> Kept {
        let kept = self.kept(session).await;
        if kept == Kept::Over {
            self.sessions.end(session);
        }
        if session.is_open(self.home.now_ms()) {
            kept
        } else {
            Kept::Over
        }
    }

    async fn kept(self: &Arc<Self>, session: &Arc<Session>) -> Kept {
        let account = session.account();
        let renewals = account.as_ref().map_or(0, |account| account.renewals());
        if let Some(account) = &account {
            self.begin_renewal(session, account);
        }
        match (look_at(&*self.home, session).await, account) {
            (Kept::Over, Some(account)) => match self.renew(session, &account, renewals).await {
                Renewal::Done => look_at(&*self.home, session).await,
                Renewal::Refused => Kept::Over,
                Renewal::NotNow => Kept::Unsure,
            },
            (kept, _) => kept,
        }
    }

    /// Renews the tokens of a session if they end soon. No request waits for that: they are still good.
    fn begin_renewal(self: &Arc<Self>, session: &Arc<Session>, account: &Arc<Account>) {
        // One that is under way is enough.
        let Ok(flight) = Arc::clone(&account.flight).try_lock_owned() else {
            return;
        };
        let now_ms = self.home.now_ms();
        if account.is_due(now_ms) && !account.rests(now_ms) {
            let task = self.task(session, account, account.renewals(), flight);
            tokio::spawn(task.run());
        }
    }

    /// Renews the tokens of a session, whose token is good no more. `renewals` are those before its token
    /// was looked at.
    async fn renew(
        self: &Arc<Self>,
        session: &Arc<Session>,
        account: &Arc<Account>,
        renewals: u64,
    ) -> Renewal {
        let flight = Arc::clone(&account.flight).lock_owned().await;
        let task = self.task(session, account, renewals, flight);
        tokio::spawn(task.run()).await.unwrap_or(Renewal::NotNow)
    }

    fn task(
        self: &Arc<Self>,
        session: &Arc<Session>,
        account: &Arc<Account>,
        renewals: u64,
        flight: OwnedMutexGuard<()>,
    ) -> Task {
        Task {
            console: Arc::clone(self),
            session: Arc::clone(session),
            account: Arc::clone(account),
            renewals,
            _flight: flight,
        }
    }

    /// Ends sessions that have lapsed, and sign-ins whose codes were not used in time.
    fn sweep(&self) {
        let now_ms = self.home.now_ms();
        self.sessions.sweep(now_ms);
        self.passes.sweep(now_ms);
    }

    /// Sweeps for as long as there is the console.
    pub(crate) fn keep_swept(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(swept(Arc::downgrade(self)));
        }
    }
}

async fn swept(console: Weak<Console>) {
    loop {
        tokio::time::sleep(Duration::from_millis(CONSOLE_SWEEP_MS)).await;
        match console.upgrade() {
            Some(console) => console.sweep(),
            None => return,
        }
    }
}

impl Visit {
    /// Whether its session goes on.
    pub(crate) async fn keep(&self) -> Kept {
        self.console.keep(&self.session).await
    }
}
