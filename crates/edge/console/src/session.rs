//! Sessions of browsers at the console: who has signed in, when it has last proved that, and what was
//! shown there in full.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use data_encoding::BASE64URL_NOPAD;
use html::{Cookies, Validity};
use identity::login::CONSOLE_SESSION_MS;
use oauth::person::PersonTokens;
use platform::{Mutex, random};
use subtle::ConstantTimeEq as _;

use crate::account::Account;
use crate::home::ConsoleHome;

/// A person that has shown a code or a token, or has signed in at another place.
pub(crate) struct Person {
    pub(crate) participant: String,
    pub(crate) bearer: Option<String>,
    /// Its tokens at the place at which it has signed in.
    pub(crate) account: Option<Arc<Account>>,
    /// The address of its browser.
    pub(crate) from: Option<IpAddr>,
    /// When it has proved who it is, in Unix milliseconds.
    pub(crate) proved_ms: u64,
}

/// Time without a request of the person after which a session ends, in milliseconds.
pub const CONSOLE_IDLE_MS: u64 = 3_600_000;
/// The most sessions.
pub const CONSOLE_SESSIONS_MAX: usize = 1_000;
/// The most sessions of a participant: a further one ends the one that was idle for longest.
pub const PARTICIPANT_SESSIONS_MAX: usize = 16;
/// The most sign-ins elsewhere of a session whose tokens end with it: a further one ends the oldest.
pub const REPLACED_SIGN_INS_MAX: usize = 32;
/// The most proposals of which a session remembers that they were shown in full.
const SHOWN_MAX: usize = 1_000;
/// The most edited arguments of which a session remembers that they were compared.
const COMPARED_MAX: usize = 16;

const COOKIE: &str = "console";
const PURPOSE: &str = "console-session";

/// Credentials of a session.
#[derive(Default)]
struct Credentials {
    /// Its token; the API judges it anew with every request.
    bearer: Option<String>,
    /// The tokens at the place where the person signed in.
    account: Option<Arc<Account>>,
    /// The tokens of its earlier sign-ins, the oldest first. A place may have one grant for all of
    /// them, which would end with the first.
    replaced: Vec<Arc<Account>>,
}

impl Credentials {
    /// Goes on with what the person has shown now.
    fn replace(&mut self, bearer: Option<String>, account: Option<Arc<Account>>) {
        self.bearer = bearer;
        match std::mem::replace(&mut self.account, account) {
            Some(before) if before.at.is_each_apart() => before.give_up(),
            before => self.replaced.extend(before),
        }
        if self.replaced.len() > REPLACED_SIGN_INS_MAX {
            self.replaced.remove(0).give_up();
        }
    }

    /// Gives all tokens up that other places have given.
    fn give_up(&mut self) {
        let all = self.replaced.drain(..).chain(self.account.take());
        all.for_each(|account| account.give_up());
    }
}

/// A browser in which a person has signed in.
pub(crate) struct Session {
    /// The participant, when it signed in.
    pub(crate) participant: String,
    credentials: Mutex<Credentials>,
    /// Stands in every form.
    pub(crate) form_token: String,
    /// Its name in the list of its participant's sessions; it opens nothing.
    pub(crate) label: String,
    /// The address from which the person signed in.
    from: Mutex<Option<IpAddr>>,
    since_ms: AtomicU64,
    last_ms: AtomicU64,
    proved_ms: AtomicU64,
    has_keys: AtomicBool,
    has_ended: AtomicBool,
    /// Ids and digests of proposals that were delivered with every value in full.
    shown: Mutex<HashSet<(String, String)>>,
    /// Ids of those that the API does not know of yet.
    news: Mutex<Vec<String>>,
    /// Marks of edited arguments that were compared, the oldest first.
    compared: Mutex<Vec<String>>,
    /// Numbers of the streams that are open, the oldest first.
    pub(crate) feeds: Mutex<Vec<u64>>,
}

impl Session {
    fn new(person: Person, now_ms: u64) -> Self {
        Self {
            participant: person.participant,
            credentials: Mutex::new(Credentials {
                bearer: person.bearer,
                account: person.account,
                replaced: Vec::new(),
            }),
            form_token: BASE64URL_NOPAD.encode(&random::<24>()),
            label: BASE64URL_NOPAD.encode(&random::<12>()),
            from: Mutex::new(person.from),
            since_ms: AtomicU64::new(now_ms),
            last_ms: AtomicU64::new(now_ms),
            proved_ms: AtomicU64::new(person.proved_ms),
            has_keys: AtomicBool::new(true),
            has_ended: AtomicBool::new(false),
            shown: Mutex::default(),
            news: Mutex::default(),
            compared: Mutex::default(),
            feeds: Mutex::default(),
        }
    }

    /// Ends it, and gives up the tokens of its person.
    fn finish(&self) {
        let mut credentials = self.credentials.lock();
        self.has_ended.store(true, Ordering::Relaxed);
        credentials.give_up();
    }

    /// Whether it is open at this time; one that is not has ended.
    fn goes_on(&self, now_ms: u64) -> bool {
        let is_open = self.is_open(now_ms);
        if !is_open {
            self.finish();
        }
        is_open
    }

    /// Whether it is open at this time.
    pub(crate) fn is_open(&self, now_ms: u64) -> bool {
        let idle_ms = now_ms.saturating_sub(self.last_ms());
        !self.has_ended.load(Ordering::Relaxed)
            && idle_ms < CONSOLE_IDLE_MS
            && now_ms.saturating_sub(self.since_ms()) < CONSOLE_SESSION_MS
    }

    /// Its token; none for the local user of a gateway whose callers need none.
    pub(crate) fn bearer(&self) -> Option<String> {
        self.credentials.lock().bearer.clone()
    }

    /// The tokens at the place where the person signed in.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        self.credentials.lock().account.clone()
    }

    /// Whether its token is of this account.
    pub(crate) fn has(&self, account: &Arc<Account>) -> bool {
        let credentials = self.credentials.lock();
        (credentials.account.as_ref()).is_some_and(|own| Arc::ptr_eq(own, account))
    }

    /// Goes on with what its person has shown now.
    pub(crate) fn take(&self, person: Person) {
        let mut credentials = self.credentials.lock();
        credentials.replace(person.bearer, person.account);
        if self.has_ended.load(Ordering::Relaxed) {
            credentials.give_up();
        }
        drop(credentials);
        self.note_proof(person.proved_ms);
    }

    /// Goes on with renewed tokens of an account; returns them if that was given up meanwhile.
    #[must_use]
    pub(crate) fn renewed(
        &self,
        account: &Arc<Account>,
        tokens: PersonTokens,
    ) -> Option<PersonTokens> {
        let mut credentials = self.credentials.lock();
        let bearer = tokens.access.expose().to_owned();
        let unwanted = account.take(tokens);
        // Its person may have signed in again meanwhile: then they end with the session.
        let own = credentials.account.as_ref();
        if unwanted.is_none() && own.is_some_and(|own| Arc::ptr_eq(own, account)) {
            credentials.bearer = Some(bearer);
        }
        unwanted
    }

    /// When its person has signed in, in Unix milliseconds.
    pub(crate) fn since_ms(&self) -> u64 {
        self.since_ms.load(Ordering::Relaxed)
    }

    /// When its person has last asked for something, in Unix milliseconds.
    pub(crate) fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Relaxed)
    }

    /// The address from which its person has signed in.
    pub(crate) fn from(&self) -> Option<IpAddr> {
        *self.from.lock()
    }

    /// Milliseconds since its person has proved who it is.
    pub(crate) fn unproved_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.proved_ms.load(Ordering::Relaxed))
    }

    /// Notes that its person has proved at this time who it is.
    pub(crate) fn note_proof(&self, at_ms: u64) {
        self.proved_ms.fetch_max(at_ms, Ordering::Relaxed);
    }

    /// Whether a form of one of its pages has this token.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        self.form_token.as_bytes().ct_eq(token.as_bytes()).into()
    }

    /// Whether single keys decide.
    pub(crate) fn has_keys(&self) -> bool {
        self.has_keys.load(Ordering::Relaxed)
    }

    /// Turns single keys on or off.
    pub(crate) fn set_keys(&self, on: bool) {
        self.has_keys.store(on, Ordering::Relaxed);
    }

    /// Notes that a proposal was delivered with every value in full.
    pub(crate) fn note_shown(&self, id: &str, digest: &str) {
        let mut shown = self.shown.lock();
        // Whatever is forgotten is shown once more before an approval.
        if shown.len() >= SHOWN_MAX {
            shown.clear();
        }
        if shown.insert((id.to_owned(), digest.to_owned())) {
            let mut news = self.news.lock();
            if news.len() < SHOWN_MAX {
                news.push(id.to_owned());
            }
        }
    }

    /// The proposals that were noted as shown since the last time.
    pub(crate) fn newly_shown(&self) -> Vec<String> {
        std::mem::take(&mut *self.news.lock())
    }

    /// Notes that a text with this mark was delivered to be confirmed: arguments, compared with the
    /// proposed ones, or a rule.
    pub(crate) fn note_compared(&self, mark: String) {
        let mut compared = self.compared.lock();
        if compared.len() >= COMPARED_MAX {
            compared.remove(0);
        }
        compared.push(mark);
    }

    /// Whether a text with this mark was.
    pub(crate) fn was_compared(&self, mark: &str) -> bool {
        self.compared.lock().iter().any(|one| one == mark)
    }

    /// Whether a proposal with this digest was delivered with every value in full.
    pub(crate) fn was_shown(&self, id: &str, digest: &str) -> bool {
        let key = (id.to_owned(), digest.to_owned());
        self.shown.lock().contains(&key)
    }
}

/// All sessions, by their random ids. A restart ends them.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], Arc<Session>>>);

impl Sessions {
    /// Opens a session; returns its cookie.
    pub(crate) fn open(&self, home: &dyn ConsoleHome, person: Person, now_ms: u64) -> String {
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| session.goes_on(now_ms));
        make_room(&mut sessions, &person.participant);
        let session = Arc::new(Session::new(person, now_ms));
        enter(&mut sessions, home, session, now_ms)
    }

    /// Goes on with a session whose participant has signed in again; returns its new cookie. Forms that
    /// were filled in before stay good, the cookie of before does not.
    pub(crate) fn renew(
        &self,
        home: &dyn ConsoleHome,
        session: &Arc<Session>,
        person: Person,
        now_ms: u64,
    ) -> String {
        *session.from.lock() = person.from;
        session.take(person);
        session.since_ms.store(now_ms, Ordering::Relaxed);
        Self::touch(session, now_ms);
        let mut sessions = self.0.lock();
        sessions.retain(|_, one| !Arc::ptr_eq(one, session));
        enter(&mut sessions, home, Arc::clone(session), now_ms)
    }

    /// The session of a browser that sends these `Cookie` headers.
    pub(crate) fn find(
        &self,
        home: &dyn ConsoleHome,
        cookies: &[&str],
        now_ms: u64,
    ) -> Option<Arc<Session>> {
        let id = sealed_id(home, cookies, now_ms)?;
        let mut sessions = self.0.lock();
        let session = sessions.get(&id)?;
        if session.goes_on(now_ms) {
            return Some(Arc::clone(session));
        }
        sessions.remove(&id);
        None
    }

    /// The open sessions of a participant, the newest first.
    pub(crate) fn of(&self, participant: &str, now_ms: u64) -> Vec<Arc<Session>> {
        let sessions = self.0.lock();
        let own = sessions
            .values()
            .filter(|session| session.participant == participant && session.is_open(now_ms));
        let mut own: Vec<Arc<Session>> = own.map(Arc::clone).collect();
        own.sort_by_key(|session| std::cmp::Reverse(session.since_ms()));
        own
    }

    /// Ends the sessions that have lapsed.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.0.lock().retain(|_, session| session.goes_on(now_ms));
    }

    /// Notes a request of the person itself.
    pub(crate) fn touch(session: &Session, now_ms: u64) {
        session.last_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Ends a session, for all its pages and streams.
    pub(crate) fn end(&self, ended: &Arc<Session>) {
        ended.finish();
        self.0
            .lock()
            .retain(|_, session| !Arc::ptr_eq(session, ended));
    }

    /// The `Set-Cookie` header that takes the cookie from a browser.
    pub(crate) fn end_cookie(home: &dyn ConsoleHome) -> String {
        Cookies::of_host(home.sealer()).end(COOKIE)
    }
}

/// Enters a session under a new id; returns the cookie with that.
fn enter(
    sessions: &mut HashMap<[u8; 32], Arc<Session>>,
    home: &dyn ConsoleHome,
    session: Arc<Session>,
    now_ms: u64,
) -> String {
    let id: [u8; 32] = random();
    sessions.insert(id, session);
    let validity = Validity {
        now_ms,
        valid_ms: CONSOLE_SESSION_MS,
    };
    Cookies::of_host(home.sealer()).set(COOKIE, PURPOSE, &id, random(), validity)
}

fn sealed_id(home: &dyn ConsoleHome, cookies: &[&str], now_ms: u64) -> Option<[u8; 32]> {
    Cookies::of_host(home.sealer())
        .open(cookies, COOKIE, PURPOSE, now_ms)?
        .try_into()
        .ok()
}

/// Ends sessions so that a participant may have one more: its own that was idle for longest, else
/// the one of all.
fn make_room(sessions: &mut HashMap<[u8; 32], Arc<Session>>, participant: &str) {
    let own = |session: &Session| session.participant == participant;
    let count = sessions.values().filter(|session| own(session)).count();
    let is_full = sessions.len() >= CONSOLE_SESSIONS_MAX;
    if count < PARTICIPANT_SESSIONS_MAX && !is_full {
        return;
    }
    let oldest = sessions
        .iter()
        .filter(|(_, session)| count == 0 || own(session))
        .min_by_key(|(_, session)| session.last_ms())
        .map(|(id, _)| *id);
    if let Some(ended) = oldest.and_then(|id| sessions.remove(&id)) {
        ended.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::tests_support::TestHome;

    fn person(participant: String, bearer: Option<String>) -> Person {
        Person {
            participant,
            bearer,
            account: None,
            from: None,
            proved_ms: 0,
        }
    }

    fn cookie(set: &str) -> &str {
        set.split(';').next().unwrap()
    }

    #[test]
    fn a_session_ends_by_time_idleness_and_at_once() {
        let home = TestHome::default();
        let sessions = Sessions::default();
        let set = sessions.open(&home, person("ann".to_owned(), None), 0);
        assert!(set.starts_with("__Host-pm_console="), "{set}");
        assert!(set.contains("HttpOnly; SameSite=Strict; Secure"), "{set}");
        let find = |now_ms| sessions.find(&home, &[cookie(&set)], now_ms);
        let session = find(CONSOLE_IDLE_MS - 1).unwrap();
        assert!(find(CONSOLE_IDLE_MS).is_none(), "it was idle");
        assert!(find(1).is_none(), "and does not come back");
        assert!(session.has_token(&session.form_token));
        assert!(!session.has_token(""));
        let set = sessions.open(&home, person("ann".to_owned(), None), 0);
        let find = |now_ms| sessions.find(&home, &[cookie(&set)], now_ms);
        for at in 1..=12 {
            Sessions::touch(&find(at * 3_500_000).unwrap(), at * 3_500_000);
        }
        let session = find(CONSOLE_SESSION_MS - 1).unwrap();
        Sessions::touch(&session, CONSOLE_SESSION_MS - 1);
        assert!(
            !session.is_open(CONSOLE_SESSION_MS),
            "twelve hours are over"
        );
        let set = sessions.open(&home, person("ann".to_owned(), None), 0);
        let session = sessions.find(&home, &[cookie(&set)], 1).unwrap();
        sessions.end(&session);
        assert!(!session.is_open(1));
        assert!(sessions.find(&home, &[cookie(&set)], 1).is_none());
        assert!(
            sessions
                .find(&home, &["__Host-pm_console=forged"], 1)
                .is_none()
        );
    }

    #[test]
    fn a_session_that_goes_on_after_a_sign_in_has_another_cookie_and_its_forms() {
        let home = TestHome::default();
        let sessions = Sessions::default();
        let first = sessions.open(&home, person("ann".to_owned(), Some("t".to_owned())), 0);
        let find = |set: &str, now_ms| sessions.find(&home, &[cookie(set)], now_ms);
        let session = find(&first, 1).unwrap();
        let now_ms = CONSOLE_IDLE_MS - 1;
        let again = Person {
            proved_ms: now_ms,
            ..person("ann".to_owned(), Some("u".to_owned()))
        };
        let second = sessions.renew(&home, &session, again, now_ms);
        assert!(find(&first, now_ms).is_none(), "the cookie of before");
        let after = find(&second, now_ms).unwrap();
        assert!(Arc::ptr_eq(&session, &after) && after.unproved_ms(now_ms) == 0);
        assert_eq!(after.bearer().as_deref(), Some("u"));
        assert!(find(&second, now_ms + CONSOLE_IDLE_MS - 1).is_some());
    }

    #[test]
    fn a_further_session_of_a_participant_ends_its_oldest() {
        let home = TestHome::default();
        let sessions = Sessions::default();
        let bob = sessions.open(&home, person("bob".to_owned(), None), 0);
        let sets: Vec<String> = (0..PARTICIPANT_SESSIONS_MAX as u64)
            .map(|at| sessions.open(&home, person("ann".to_owned(), None), 1 + at))
            .collect();
        let find = |set: &str| sessions.find(&home, &[cookie(set)], 100);
        assert!(find(&sets[0]).is_some());
        sessions.open(&home, person("ann".to_owned(), None), 50);
        assert!(find(&sets[0]).is_none());
        assert!(find(&sets[1]).is_some());
        assert!(find(&bob).is_some());
    }

    #[test]
    fn a_full_table_ends_the_session_that_was_idle_for_longest() {
        let home = TestHome::default();
        let sessions = Sessions::default();
        let first = sessions.open(&home, person("0".to_owned(), None), 0);
        for at in 1..CONSOLE_SESSIONS_MAX as u64 {
            sessions.open(&home, person(at.to_string(), None), at);
        }
        assert!(sessions.find(&home, &[cookie(&first)], 2_000).is_some());
        sessions.open(&home, person("new".to_owned(), None), 2_000);
        assert!(sessions.find(&home, &[cookie(&first)], 2_000).is_none());
        assert_eq!(sessions.0.lock().len(), CONSOLE_SESSIONS_MAX);
    }

    #[test]
    fn what_was_shown_is_bound_to_its_digest() {
        let session = Session::new(person("ann".to_owned(), None), 0);
        session.note_shown("p", "d");
        session.note_shown("p", "d");
        assert_eq!(session.newly_shown(), ["p"], "once for a digest");
        assert!(session.newly_shown().is_empty());
        assert!(session.was_shown("p", "d"));
        assert!(!session.was_shown("p", "e"));
        assert!(!session.was_shown("q", "d"));
        (0..SHOWN_MAX).for_each(|at| session.note_shown(&at.to_string(), "d"));
        assert!(session.shown.lock().len() <= SHOWN_MAX);
    }
}
