//! Checks of sessions: tokens are renewed before they end, and issuers are asked about them.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use crate::account::Account;
use crate::home::{ConsoleSignIn, TokenBearer};
use crate::session::Session;
use crate::state::{Console, Visit};

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Its token is its participant's.
    Good,
    /// It has ended.
    Over,
    /// Its issuer cannot say now.
    Unsure,
}

/// The outcome of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
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
    /// The access token that is renewed.
    before: Option<String>,
    _flight: OwnedMutexGuard<()>,
}

impl Task {
    async fn run(self) -> Renewal {
        // Another one was quicker.
        if self.session.bearer() != self.before {
            return Renewal::Done;
        }
        let Some(refresh) = self.account.refresh() else {
            return Renewal::Refused;
        };
        let home = &self.console.home;
        if self.account.rests(home.now_ms()) {
            return Renewal::NotNow;
        }
        let resource = home.settings().resource();
        match self.account.at.renew(&refresh, &resource).await {
            Ok(tokens) => {
                self.session.set_bearer(tokens.access.expose().to_owned());
                self.account.take(tokens);
                Renewal::Done
            }
            Err(error) if error.is_refusal() => {
                let why = format!(
                    "{} did not renew a sign-in at the console",
                    self.account.place
                );
                home.record(&ConsoleSignIn {
                    participant: Some(&self.session.participant),
                    from: self.session.from(),
                    is_refused: true,
                    why: &why,
                });
                Renewal::Refused
            }
            Err(_) => {
                self.account.rest(home.now_ms());
                Renewal::NotNow
            }
        }
    }
}

impl Console {
    /// Whether a session goes on: its token is renewed before it ends, its issuer is asked about it where
    /// it must be, and it is still the participant's.
    pub(crate) async fn keep(self: &Arc<Self>, session: &Arc<Session>) -> Kept {
        let before = session.bearer();
        let account = session.account();
        if let Some(account) = &account
            && account.is_due(self.home.now_ms())
            && self.renew(session, account, before).await == Renewal::Refused
        {
            return Kept::Over;
        }
        let before = session.bearer();
        match (self.look_at(session).await, account) {
            (Kept::Over, Some(account)) => match self.renew(session, &account, before).await {
                Renewal::Done => self.look_at(session).await,
                Renewal::Refused => Kept::Over,
                Renewal::NotNow => Kept::Unsure,
            },
            (kept, _) => kept,
        }
    }

    /// Whether the token of a session is its participant's now.
    async fn look_at(&self, session: &Session) -> Kept {
        let bearer = session.bearer();
        // It was good before: bad tokens of others at its address do not count for it.
        match self.home.bearer_of(bearer.as_deref(), None).await {
            TokenBearer::Participant(name) if name == session.participant => Kept::Good,
            TokenBearer::Participant(_) | TokenBearer::Unknown(_) => Kept::Over,
            TokenBearer::Unsure => Kept::Unsure,
        }
    }

    async fn renew(
        self: &Arc<Self>,
        session: &Arc<Session>,
        account: &Arc<Account>,
        before: Option<String>,
    ) -> Renewal {
        let task = Task {
            console: Arc::clone(self),
            session: Arc::clone(session),
            account: Arc::clone(account),
            before,
            _flight: Arc::clone(&account.flight).lock_owned().await,
        };
        tokio::spawn(task.run()).await.unwrap_or(Renewal::NotNow)
    }
}

impl Visit {
    /// Whether its session goes on.
    pub(crate) async fn keep(&self) -> Kept {
        self.console.keep(&self.session).await
    }
}
