//! Accounts at servers as sessions see them: whose token is sent, and what a change of an account
//! ends.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use ::client::{
    AccountFault, AccountHolder, Accounts, Authorization, Authorize, Authorizing, Challenge,
    LinkError,
};
use http::{HeaderValue, Method};
use model::Digest;
use tokio::sync::watch;

use super::over_http::{Kind, Server};
use super::*;
use crate::config::HttpConfig;

/// Accounts whose tokens name their participant and its sign-in.
pub(crate) struct Scripted {
    are_of_callers: bool,
    are_of_tokens: bool,
    sign_ins: Mutex<HashMap<String, Arc<AtomicU64>>>,
    blocked: Mutex<HashSet<String>>,
    /// How often a session has looked whether it could open.
    pub(crate) looks: AtomicUsize,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Pass {
    who: String,
    sign_ins: Arc<AtomicU64>,
    at: u64,
}

impl Scripted {
    pub(crate) fn new(are_of_callers: bool) -> Arc<Self> {
        Arc::new(Self {
            are_of_callers,
            are_of_tokens: false,
            sign_ins: Mutex::default(),
            blocked: Mutex::default(),
            looks: AtomicUsize::new(0),
            changes: watch::Sender::new(0),
        })
    }

    /// Accounts of callers, each for one access token.
    fn by_token() -> Arc<Self> {
        let mut own = Arc::into_inner(Self::new(true)).unwrap();
        own.are_of_tokens = true;
        Arc::new(own)
    }

    fn who(&self, caller: Option<AccountHolder<'_>>) -> String {
        match caller.filter(|_| self.are_of_callers) {
            None => "all".to_owned(),
            Some(AccountHolder {
                participant,
                token: None,
            }) => participant.to_string(),
            Some(AccountHolder {
                participant,
                token: Some(Digest([first, ..])),
            }) => {
                format!("{participant}-by-{first}")
            }
        }
    }

    fn sign_ins(&self, who: &str) -> Arc<AtomicU64> {
        Arc::clone(self.sign_ins.lock().entry(who.to_owned()).or_default())
    }

    /// Another person signs in.
    fn sign_in(&self, who: &str) {
        self.sign_ins(who).fetch_add(1, Ordering::SeqCst);
    }

    /// Blocks an account, or ends that.
    pub(crate) fn block(&self, who: &str, is_blocked: bool) {
        let mut blocked = self.blocked.lock();
        if is_blocked {
            blocked.insert(who.to_owned())
        } else {
            blocked.remove(who)
        };
    }

    pub(crate) fn change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

impl Accounts for Scripted {
    fn account(&self, caller: Option<AccountHolder<'_>>) -> Arc<dyn Authorize> {
        let who = self.who(caller);
        let sign_ins = self.sign_ins(&who);
        Arc::new(Pass {
            who,
            at: sign_ins.load(Ordering::SeqCst),
            sign_ins,
        })
    }

    fn blocked(&self, caller: Option<AccountHolder<'_>>) -> Option<AccountFault> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.blocked
            .lock()
            .contains(&self.who(caller))
            .then_some(AccountFault::LoginNeeded)
    }

    fn are_of_callers(&self) -> bool {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.are_of_callers
    }

    fn are_of_tokens(&self) -> bool {
        self.are_of_tokens
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Authorize for Pass {
    fn stamp(&self) -> u64 {
        if self.is_void() { 0 } else { self.at + 1 }
    }

    fn grant(&self) -> Authorizing<'_, Authorization> {
        Box::pin(async {
            self.at_hand()
                .ok_or(LinkError::Account(AccountFault::Replaced))
        })
    }

    fn at_hand(&self) -> Option<Authorization> {
        let header = HeaderValue::from_str(&format!("{}-{}", self.who, self.at)).unwrap();
        (!self.is_void()).then_some(Authorization {
            stamp: self.at + 1,
            header: Some(header),
        })
    }

    fn is_void(&self) -> bool {
        self.sign_ins.load(Ordering::SeqCst) != self.at
    }

    fn refused(&self, _: u64, _: usize, _: Challenge) -> Authorizing<'_, ()> {
        Box::pin(async { Err(LinkError::Account(AccountFault::LoginNeeded)) })
    }
}

async fn of(
    fixture: &Fixture,
    who: &str,
    link: u64,
    form: Form,
    client: &ClientProfile,
) -> Arc<Session> {
    let participant = &ParticipantId::new(who).unwrap();
    let caller = Caller {
        link: LinkId(link),
        participant,
        account: who,
        form,
        client,
        token: None,
    };
    fixture.upstream.session(&caller).await.unwrap()
}

fn over_http(server: &Server, accounts: &Arc<Scripted>, sessions: SessionSharing) -> Fixture {
    let url = SecretText::new(server.url.as_str());
    let tls = ::tls::ClientTls::of_machine();
    let http = HttpConfig {
        url,
        headers: Vec::new(),
        tls,
    };
    let config = ServerConfig {
        transport: Transport::Http(http),
        sessions,
        ..config(&[])
    };
    start_for(config, Some(Arc::<Scripted>::clone(accounts)), |_| {})
}

/// The tokens of the requests with this method, each once, in the order of their first.
fn tokens(server: &Server, method: &Method) -> Vec<String> {
    let mut tokens = Vec::new();
    for (seen, headers, _) in server.seen.lock().iter() {
        let token = headers["authorization"].to_str().unwrap().to_owned();
        if seen == method && !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    tokens
}

#[tokio::test]
async fn no_session_of_a_caller_goes_on_as_another_person() {
    let server = Server::start(Kind::Legacy).await;
    let accounts = Scripted::new(true);
    let fixture = over_http(&server, &accounts, SessionSharing::Auto);
    let ann = ParticipantId::new("ann").unwrap();
    let plain = client("{}");
    // A client session's, a modern client's, one without a link of the participant, and one with a
    // task.
    let link = of(&fixture, "ann", 1, Form::Legacy, &plain).await;
    let modern = of(&fixture, "ann", 2, Form::Modern, &plain).await;
    let held = of(
        &fixture,
        "ann",
        99,
        Form::Modern,
        &client(r#"{"roots":{}}"#),
    )
    .await;
    let with_task = of(&fixture, "ann", 3, Form::Legacy, &plain).await;
    let _task = with_task.hold();
    let bobs = of(&fixture, "bob", 4, Form::Legacy, &plain).await;
    let mut open = call(&link, "hang", &json!({}));
    until("the call has arrived", || {
        server.streams.lock().contains_key("hang")
    })
    .await;

    accounts.sign_in("ann");
    // Before the change is announced: no further call finds the session.
    let caller = Caller {
        link: LinkId(2),
        participant: &ann,
        account: "ann",
        form: Form::Modern,
        client: &plain,
        token: None,
    };
    assert!(fixture.upstream.open_session(&caller).is_none());
    fixture.upstream.account_changed(Some(&ann));
    let ended = [&link, &modern, &held, &with_task];
    until("all of them have ended", || {
        ended.iter().all(|session| !session.is_open())
    })
    .await;
    assert!(done(&mut open).await.is_err());
    assert!(bobs.is_open());
    until("each was ended at the server", || {
        server
            .seen
            .lock()
            .iter()
            .filter(|(method, ..)| *method == Method::DELETE)
            .count()
            == 4
    })
    .await;
    assert_eq!(
        tokens(&server, &Method::DELETE),
        ["ann-0"],
        "in the name in which they were opened"
    );
    let next = of(&fixture, "ann", 1, Form::Legacy, &plain).await;
    assert!(done(&mut call(&next, "echo", &json!({}))).await.is_ok());
    assert_eq!(
        server.seen("tools/call").last().unwrap()["authorization"],
        "ann-1"
    );
    // The end is none of the server's failures.
    assert_eq!(fixture.upstream.status().restarts, 0);
    fixture.upstream.close().await;
}

#[tokio::test]
async fn each_access_token_of_a_caller_has_a_session_of_its_own_where_tokens_are_exchanged() {
    let server = Server::start(Kind::Legacy).await;
    let ann = ParticipantId::new("ann").unwrap();
    let plain = client("{}");
    let caller = |link: u64, form: Form, first: u8| {
        let token = Some(Digest([first; 32]));
        Caller {
            link: LinkId(link),
            participant: &ann,
            account: "ann",
            form,
            client: &plain,
            token,
        }
    };
    let exchanging = over_http(&server, &Scripted::by_token(), SessionSharing::Auto);
    // Two clients on one link, as modern ones are, and one legacy client whose token changes.
    for (link, form) in [(1, Form::Modern), (2, Form::Legacy)] {
        let mut sessions = Vec::new();
        for first in [1, 2] {
            let session = exchanging
                .upstream
                .session(&caller(link, form, first))
                .await
                .unwrap();
            assert!(done(&mut call(&session, "echo", &json!({}))).await.is_ok());
            let sent = server.seen("tools/call").last().unwrap()["authorization"].clone();
            assert_eq!(sent, format!("ann-by-{first}-0"));
            sessions.push(session);
        }
        for (session, first) in sessions.iter().zip([1, 2]) {
            let found = exchanging
                .upstream
                .open_session(&caller(link, form, first))
                .unwrap();
            assert!(Arc::ptr_eq(&found, session));
        }
    }
    exchanging.upstream.close().await;
    // Elsewhere a renewed token is no reason for another session.
    let signed_in = over_http(&server, &Scripted::new(true), SessionSharing::Auto);
    let first = signed_in
        .upstream
        .session(&caller(1, Form::Legacy, 1))
        .await
        .unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &signed_in
            .upstream
            .session(&caller(1, Form::Legacy, 2))
            .await
            .unwrap()
    ));
    signed_in.upstream.close().await;
}

#[tokio::test]
async fn no_shared_session_goes_on_as_another_person() {
    let server = Server::start(Kind::Legacy).await;
    let accounts = Scripted::new(false);
    let fixture = over_http(&server, &accounts, SessionSharing::Auto);
    let first = shared(&fixture, Era::Legacy).await;
    let own = of(
        &fixture,
        "ann",
        7,
        Form::Legacy,
        &client(r#"{"elicitation":{}}"#),
    )
    .await;
    assert!(own.key().is_own());
    // A renewal, or other scopes: the session goes on.
    let listed = server.seen("tools/list").len();
    accounts.change();
    until("the lists are read again", || {
        server.seen("tools/list").len() > listed
    })
    .await;
    assert!(first.is_open() && own.is_open());
    accounts.sign_in("all");
    accounts.change();
    until("both have ended", || !first.is_open() && !own.is_open()).await;
    until("another one is open", || {
        fixture.upstream.open_shared(Form::Legacy).is_some()
    })
    .await;
    let second = shared(&fixture, Era::Legacy).await;
    assert!(done(&mut call(&second, "echo", &json!({}))).await.is_ok());
    assert_eq!(
        server.seen("tools/call").last().unwrap()["authorization"],
        "all-1"
    );
    assert_eq!(fixture.upstream.status().restarts, 0);
    fixture.upstream.close().await;
    until("it is ended at the server", || {
        tokens(&server, &Method::DELETE) == ["all-0", "all-1"]
    })
    .await;
}

#[tokio::test]
async fn a_blocked_account_is_waited_for_without_a_session() {
    let accounts = Scripted::new(true);
    let fixture = start_for(
        config(&["legacy"]),
        Some(Arc::<Scripted>::clone(&accounts)),
        |_| {},
    );
    let own = of(&fixture, "ann", 7, Form::Legacy, &client("{}")).await;
    assert_eq!(
        own.subscribe(LinkId(7), "ann", "test://a")
            .await
            .unwrap()
            .outcome,
        Outcome::Ok
    );
    accounts.block("ann", true);
    let _ = done(&mut call(&own, "crash", &json!({}))).await;
    let ended = Arc::downgrade(&own);
    drop(own);
    until("nothing holds the session", || ended.strong_count() == 0).await;
    let looks = accounts.looks.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(
        accounts.looks.load(Ordering::SeqCst),
        looks,
        "the account is not looked at again and again"
    );
    accounts.block("ann", false);
    accounts.change();
    until("it is open again", || {
        fixture.upstream.status().sessions == 1
    })
    .await;
    let again = of(&fixture, "ann", 7, Form::Legacy, &client("{}")).await;
    assert_eq!(report(&again).await["subscribed"], json!(["test://a"]));
    fixture.upstream.close().await;
}
