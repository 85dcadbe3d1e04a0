//! Tokens of a session whose person has signed in at another place, and their renewal.

use std::sync::Arc;

use oauth::Secret;
use oauth::person::{PersonTokens, SignInPlace};
use platform::Mutex;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;

use crate::home::{ConsoleSignIn, TokenBearer};
use crate::session::Session;
use crate::state::Console;

/// Time before the end of an access token at which it is renewed, in milliseconds; of a short one a
/// quarter of its time.
const RENEWED_BEFORE_MS: u64 = 60_000;
/// Time between two tries to renew, in milliseconds.
const RENEWAL_PAUSE_MS: u64 = 5_000;

/// The tokens that a place gave a person for its session. They are given up with it.
pub(crate) struct Account {
    /// The name of the place.
    pub(crate) place: String,
    at: Arc<dyn SignInPlace>,
    held: Mutex<Held>,
    /// Held by the one that renews.
    flight: Arc<tokio::sync::Mutex<()>>,
}

struct Held {
    tokens: Option<PersonTokens>,
    /// When it is renewed next, in Unix milliseconds; `None` if nobody knows.
    due_ms: Option<u64>,
    /// Until when the place is left alone, in Unix milliseconds.
    rests_until_ms: u64,
}

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Its token is its participant's.
    Good,
    /// It has ended.
    Over,
    /// Nobody can say now.
    Unsure,
}

/// The outcome of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
    Done,
    Refused,
    NotNow,
}

/// When tokens are renewed, in Unix milliseconds.
fn due_ms(tokens: &PersonTokens) -> Option<u64> {
    let quarter_ms = tokens.lifetime_ms.unwrap_or(u64::MAX) / 4;
    let before_ms = RENEWED_BEFORE_MS.min(quarter_ms);
    Some(tokens.expires_ms?.saturating_sub(before_ms))
}

impl Account {
    /// The tokens that a place has given.
    pub(crate) fn new(place: &str, at: Arc<dyn SignInPlace>, tokens: PersonTokens) -> Self {
        Self {
            place: place.to_owned(),
            at,
            held: Mutex::new(Held {
                due_ms: due_ms(&tokens),
                tokens: Some(tokens),
                rests_until_ms: 0,
            }),
            flight: Arc::default(),
        }
    }

    fn rests(&self, now_ms: u64) -> bool {
        now_ms < self.held.lock().rests_until_ms
    }

    fn is_due(&self, now_ms: u64) -> bool {
        let held = self.held.lock();
        let can_renew = (held.tokens.as_ref()).is_some_and(|tokens| tokens.refresh.is_some());
        can_renew && held.due_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }

    fn refresh(&self) -> Option<Secret> {
        self.held.lock().tokens.as_ref()?.refresh.clone()
    }

    fn take(&self, tokens: PersonTokens) {
        *self.held.lock() = Held {
            due_ms: due_ms(&tokens),
            tokens: Some(tokens),
            rests_until_ms: 0,
        };
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let tokens = self.held.lock().tokens.take();
        if let (Some(tokens), Ok(runtime)) = (tokens, Handle::try_current()) {
            let at = Arc::clone(&self.at);
            runtime.spawn(async move { at.give_up(tokens).await });
        }
    }
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
                let next_ms = home.now_ms().saturating_add(RENEWAL_PAUSE_MS);
                self.account.held.lock().rests_until_ms = next_ms;
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
        match self.home.bearer_of(bearer.as_deref(), session.from()).await {
            TokenBearer::Participant(name) if name == session.participant => Kept::Good,
            TokenBearer::Participant(_) | TokenBearer::Nobody(_) => Kept::Over,
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

#[cfg(test)]
mod tests {
    use oauth::person::Asked;

    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        for (lifetime_ms, due) in [
            (Some(600_000), Some(540_000)),
            (Some(8_000), Some(598_000)),
            (None, Some(540_000)),
        ] {
            let mut tokens = PersonTokens {
                access: Secret::new("a".to_owned()),
                refresh: None,
                expires_ms: Some(600_000),
                lifetime_ms,
                asked: Asked::Now,
            };
            assert_eq!(due_ms(&tokens), due, "{lifetime_ms:?}");
            tokens.expires_ms = None;
            assert_eq!(due_ms(&tokens), None);
        }
    }
}
