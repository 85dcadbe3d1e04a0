//! Connect requests: callers that have no account of their own yet, and the links at which a person
//! gives them one.
//!
//! A link is unguessable, good once, for ten minutes, and for one participant at one server. That a
//! browser is this participant's is established by the pages; this is only the book.

use std::collections::HashMap;

use model::LinkId;
use platform::{Mutex, random};

use crate::vault::AccountPlace;

/// Time that a connect request is good, milliseconds.
pub const CONNECT_MS: u64 = 600_000;
/// Connect requests of all participants. Beyond it, the next is refused.
pub const CONNECTS_MAX: usize = 1_000;
/// Connect requests of one participant at one server. Beyond it, the oldest is void.
pub const ACCOUNT_CONNECTS_MAX: usize = 3;
/// Client sessions that are notified of the end of one request. Others are not.
pub const CONNECT_SESSIONS_MAX: usize = 100;
/// Names of clients that are kept with one request. Others are not shown.
pub const CONNECT_CLIENTS_MAX: usize = 8;
/// The longest name of a client that is kept, characters.
pub const CLIENT_NAME_CHARS_MAX: usize = 100;

/// Notifies a session of the end of the request with this id.
pub type Completion = Box<dyn FnOnce(&str) + Send>;

/// There are too many connect requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many links to sign-in pages wait to be used")]
pub struct TooManyConnects;

/// A connect request.
#[derive(Debug, Clone)]
pub struct WaitingConnect {
    /// Its id.
    pub id: String,
    /// The place of the account that is asked for.
    pub place: AccountPlace,
    /// The scopes that the server named; empty leaves the choice to the configuration and to
    /// metadata.
    pub scopes: Vec<String>,
    /// The clients that asked, as they call themselves.
    pub clients: Vec<String>,
}

struct Open {
    request: WaitingConnect,
    begun_ms: u64,
    until_ms: u64,
    /// Whether a person has consented: the link is used up.
    is_used: bool,
    sessions: HashMap<LinkId, Completion>,
}

/// The connect requests that wait. They are in memory alone: a restart voids them.
#[derive(Default)]
pub struct Connects(Mutex<HashMap<String, Open>>);

impl Connects {
    /// The id of the request for the account at this place, made now unless one waits for the same
    /// scopes. `client` is the name of the client that asks; `session` is notified once the account
    /// is ready.
    ///
    /// # Errors
    /// [`TooManyConnects`].
    pub fn ask(
        &self,
        place: &AccountPlace,
        mut scopes: Vec<String>,
        client: &str,
        session: Option<(LinkId, Completion)>,
        now_ms: u64,
    ) -> Result<String, TooManyConnects> {
        scopes.sort_unstable();
        let mut all = self.0.lock();
        all.retain(|_, open| now_ms < open.until_ms);
        let own = |open: &Open| open.request.place == *place;
        let same = |open: &&Open| own(open) && !open.is_used && open.request.scopes == scopes;
        let id = match all.values().find(same) {
            Some(open) => open.request.id.clone(),
            None => {
                let mut mine: Vec<_> = all.values().filter(|open| own(open)).collect();
                mine.sort_unstable_by_key(|open| open.begun_ms);
                let late = (mine.len() + 1).saturating_sub(ACCOUNT_CONNECTS_MAX);
                let late: Vec<String> = mine
                    .iter()
                    .take(late)
                    .map(|open| open.request.id.clone())
                    .collect();
                late.iter().for_each(|id| drop(all.remove(id)));
                if all.len() >= CONNECTS_MAX {
                    return Err(TooManyConnects);
                }
                let id = data_encoding::HEXLOWER.encode(&random::<16>());
                let request = WaitingConnect {
                    id: id.clone(),
                    place: place.clone(),
                    scopes,
                    clients: Vec::new(),
                };
                let begun_ms = now_ms;
                let until_ms = now_ms.saturating_add(CONNECT_MS);
                let open = Open {
                    request,
                    begun_ms,
                    until_ms,
                    is_used: false,
                    sessions: HashMap::new(),
                };
                all.insert(id.clone(), open);
                id
            }
        };
        let Some(open) = all.get_mut(&id) else {
            return Err(TooManyConnects);
        };
        let client: String = client.chars().take(CLIENT_NAME_CHARS_MAX).collect();
        if open.request.clients.len() < CONNECT_CLIENTS_MAX
            && !open.request.clients.contains(&client)
        {
            open.request.clients.push(client);
        }
        if let Some((link, completion)) = session
            && (open.sessions.len() < CONNECT_SESSIONS_MAX || open.sessions.contains_key(&link))
        {
            open.sessions.insert(link, completion);
        }
        Ok(id)
    }

    /// The request with this id, if it can still be used.
    #[must_use]
    pub fn find(&self, id: &str, now_ms: u64) -> Option<WaitingConnect> {
        let all = self.0.lock();
        let open = all
            .get(id)
            .filter(|open| !open.is_used && now_ms < open.until_ms);
        open.map(|open| open.request.clone())
    }

    /// Uses a request up; false if it was used before, or is too old.
    #[must_use]
    pub fn use_up(&self, id: &str, now_ms: u64) -> bool {
        let mut all = self.0.lock();
        let open = all
            .get_mut(id)
            .filter(|open| !open.is_used && now_ms < open.until_ms);
        open.map(|open| open.is_used = true).is_some()
    }

    /// Ends a request without a sign-in: the person refused.
    pub fn drop_request(&self, id: &str) {
        self.0.lock().remove(id);
    }

    /// Ends the requests for an account that is ready now, however its tokens came, and notifies
    /// the sessions that asked.
    pub fn completed(&self, place: &AccountPlace) {
        let ended: Vec<Open> = {
            let mut all = self.0.lock();
            all.extract_if(|_, open| open.request.place == *place)
                .map(|(_, open)| open)
                .collect()
        };
        for open in ended {
            open.sessions
                .into_values()
                .for_each(|completion| completion(&open.request.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn at(participant: &str) -> AccountPlace {
        let (server, url) = ("jira".to_owned(), "https://mcp.example/mcp".to_owned());
        AccountPlace {
            server,
            url,
            participant: Some(participant.to_owned()),
        }
    }

    fn ask(
        connects: &Connects,
        place: &AccountPlace,
        client: &str,
        now_ms: u64,
    ) -> Result<String, TooManyConnects> {
        connects.ask(place, Vec::new(), client, None, now_ms)
    }

    #[test]
    fn concurrent_calls_share_a_request_and_a_used_one_is_void() {
        let connects = Connects::default();
        let ann = at("ann");
        let bob = at("bob");
        let first = ask(&connects, &ann, "Editor", 0).unwrap();
        assert_eq!(ask(&connects, &ann, "Desk", 1).as_ref(), Ok(&first));
        assert_ne!(ask(&connects, &bob, "Editor", 1).as_ref(), Ok(&first));
        assert_eq!(
            (first.len(), connects.find(&first, 1).unwrap().clients),
            (32, vec!["Editor".to_owned(), "Desk".to_owned()])
        );
        assert!(
            connects.use_up(&first, 2) && !connects.use_up(&first, 3),
            "once"
        );
        assert!(connects.find(&first, 3).is_none());
        let second = ask(&connects, &ann, "Editor", 4).unwrap();
        assert_ne!(first, second);
        assert!(
            connects.find(&second, CONNECT_MS + 3).is_some(),
            "until its time is over"
        );
        assert!(connects.find(&second, CONNECT_MS + 4).is_none());
        assert!(!connects.use_up(&second, CONNECT_MS + 4));
        assert!(connects.find("", 0).is_none());
    }

    #[test]
    fn requests_are_bounded_for_an_account_and_for_all() {
        let connects = Connects::default();
        let ann = at("ann");
        let ids: Vec<String> = (0..=ACCOUNT_CONNECTS_MAX as u64)
            .map(|at| {
                let id = ask(&connects, &ann, "c", at).unwrap();
                assert!(connects.use_up(&id, at));
                id
            })
            .collect();
        assert_eq!(
            connects.0.lock().len(),
            ACCOUNT_CONNECTS_MAX,
            "the oldest made room"
        );
        assert!(!connects.0.lock().contains_key(&ids[0]));
        for number in ACCOUNT_CONNECTS_MAX..CONNECTS_MAX {
            ask(&connects, &at(&number.to_string()), "c", 9).unwrap();
        }
        assert_eq!(
            ask(&connects, &at("one more"), "c", 9),
            Err(TooManyConnects)
        );
        assert!(
            ask(&connects, &ann, "c", 9).is_ok(),
            "one of its own made room"
        );
        assert!(ask(&connects, &at("one more"), "c", 9 + CONNECT_MS).is_ok());
    }

    #[test]
    fn the_sessions_that_asked_are_notified_once() {
        let connects = Connects::default();
        let ann = at("ann");
        let bob = at("bob");
        let notified = Arc::<AtomicUsize>::default();
        let ask = |place: &AccountPlace, link: u64, client: &str| {
            let count = Arc::clone(&notified);
            let completion: Completion =
                Box::new(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
            connects
                .ask(
                    place,
                    Vec::new(),
                    client,
                    Some((LinkId(link), completion)),
                    0,
                )
                .unwrap()
        };
        for number in 0..2 * CONNECT_SESSIONS_MAX as u64 {
            let id = ask(
                &ann,
                number,
                &format!("{number}{}", "x".repeat(CLIENT_NAME_CHARS_MAX)),
            );
            let clients = connects.find(&id, 0).unwrap().clients;
            assert!(clients.len() <= CONNECT_CLIENTS_MAX);
            assert!(
                clients
                    .iter()
                    .all(|name| name.chars().count() == CLIENT_NAME_CHARS_MAX)
            );
        }
        ask(&ann, 1, "again");
        let bobs = ask(&bob, 1, "c");
        connects.completed(&ann);
        connects.completed(&ann);
        assert_eq!(notified.load(Ordering::SeqCst), CONNECT_SESSIONS_MAX);
        assert!(connects.find(&bobs, 0).is_some());
    }
}
