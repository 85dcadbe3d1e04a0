//! Authorized links: whose token each request carries, and what faults of the account do to calls
//! and sessions.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use portmoot_client::{
    AccountFault, Authorization, Authorize, Authorizing, Challenge, Flow, HttpLimits, HttpSpec,
    LinkError, LinkInbox, SendMeta, ServerLink,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);

/// An account whose token is its stamp.
#[derive(Debug, Default)]
struct Scripted {
    stamp: AtomicU64,
    /// Answers in place of the next tokens; each request asks while there are some.
    answers: Mutex<VecDeque<Option<AccountFault>>>,
    is_void: AtomicBool,
    asked: AtomicU64,
}

impl Scripted {
    fn now(&self) -> Authorization {
        let stamp = self.stamp.load(Ordering::SeqCst);
        Authorization {
            stamp,
            header: Some(HeaderValue::from_str(&format!("Bearer t{stamp}")).unwrap()),
        }
    }
}

impl Authorize for Scripted {
    fn stamp(&self) -> u64 {
        if self.answers.lock().unwrap().is_empty() {
            self.stamp.load(Ordering::SeqCst)
        } else {
            0
        }
    }

    fn grant(&self) -> Authorizing<'_, Authorization> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::SeqCst);
            match self.answers.lock().unwrap().pop_front().flatten() {
                Some(fault) => Err(LinkError::Account(fault)),
                None => Ok(self.now()),
            }
        })
    }

    fn at_hand(&self) -> Option<Authorization> {
        (!self.is_void.load(Ordering::SeqCst)).then(|| self.now())
    }

    fn is_void(&self) -> bool {
        self.is_void.load(Ordering::SeqCst)
    }

    fn refused(&self, _: u64, _: usize, _: Challenge) -> Authorizing<'_, ()> {
        Box::pin(async { Err(LinkError::Account(AccountFault::LoginNeeded)) })
    }
}

struct Queue(mpsc::UnboundedSender<Result<u64, LinkError>>);

impl LinkInbox for Queue {
    fn frame(&self, _: Bytes, about: Option<u64>) -> Flow {
        self.0.send(Ok(about.unwrap())).unwrap();
        Flow::Settled
    }

    fn failed(&self, _: u64, error: LinkError) {
        self.0.send(Err(error)).unwrap();
    }

    fn closed(&self, _: LinkError) {}
}

/// A server that answers each POST with a stream that breaks after an event without an answer, and
/// with the answer on the stream by which it is resumed. It keeps the method and the token of each
/// request.
#[derive(Default)]
struct Server(Mutex<Vec<String>>);

impl Server {
    async fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = Arc::<Self>::default();
        let serving = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&serving);
                tokio::spawn(async move { server.serve(BufReader::new(stream)).await });
            }
        });
        (server, url)
    }

    /// Serves one request, and closes the connection.
    async fn serve(&self, mut stream: BufReader<TcpStream>) {
        let mut method = String::new();
        let mut token = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("authorization", value)) => value.clone_into(&mut token),
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None if line.is_empty() => break,
                None => line.split(' ').next().unwrap().clone_into(&mut method),
            }
        }
        stream.read_exact(&mut vec![0; length]).await.unwrap();
        let answer = match method.as_str() {
            "POST" => "id: 1\nretry: 1\ndata:\n\n",
            "GET" => "data: {}\n\n",
            _ => "",
        };
        self.0.lock().unwrap().push(format!("{method} {token}"));
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: s\r\nconnection: close\r\n\r\n";
        stream
            .write_all(format!("{head}{answer}").as_bytes())
            .await
            .unwrap();
    }

    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn link(
    url: &str,
    account: &Arc<Scripted>,
) -> (ServerLink, mpsc::UnboundedReceiver<Result<u64, LinkError>>) {
    let (sender, delivered) = mpsc::unbounded_channel();
    let spec = HttpSpec {
        authorize: Some(Arc::<Scripted>::clone(account)),
        name: "server".into(),
        url: url.to_owned(),
        headers: HeaderMap::new(),
        tls: tls::ClientTls::of_machine(),
        limits: HttpLimits::default(),
    };
    (
        ServerLink::http(&spec, Arc::new(Queue(sender))).unwrap(),
        delivered,
    )
}

/// Calls, and returns what becomes of it.
async fn call(
    link: &ServerLink,
    delivered: &mut mpsc::UnboundedReceiver<Result<u64, LinkError>>,
) -> Result<u64, LinkError> {
    link.send(Bytes::from_static(b"{}"), SendMeta::request(1))
        .unwrap();
    timeout(LIMIT, delivered.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_call_is_resumed_through_faults_of_its_account_that_pass() {
    let waits = || AccountFault::Waiting {
        why: "down".to_owned(),
        retry_after_ms: 1,
    };
    let broken = |why: &str| Err(LinkError::Broken(why.to_owned()));
    for (faults, expect) in [
        (vec![], Ok(1)),
        (vec![waits()], Ok(1)),
        (
            vec![
                waits(),
                AccountFault::Replaced,
                AccountFault::ScopesNeeded("x".to_owned()),
            ],
            Ok(1),
        ),
        (vec![waits(); 4], Ok(1)),
        (vec![waits(); 5], broken("the stream could not be resumed")),
        (
            vec![AccountFault::LoginNeeded],
            broken("the server wants a sign-in"),
        ),
        (
            vec![waits(), AccountFault::LoginLost],
            broken("the authorization server refused to renew the sign-in"),
        ),
    ] {
        let (server, url) = Server::start().await;
        let account = Arc::new(Scripted {
            stamp: AtomicU64::new(1),
            ..Scripted::default()
        });
        let (link, mut delivered) = link(&url, &account);
        // The first answer is for the call itself.
        account
            .answers
            .lock()
            .unwrap()
            .extend([None].into_iter().chain(faults.iter().cloned().map(Some)));
        assert_eq!(call(&link, &mut delivered).await, expect, "{faults:?}");
        let resumed = expect.is_ok().then(|| "GET Bearer t1".to_owned());
        let seen: Vec<String> = ["POST Bearer t1".to_owned()]
            .into_iter()
            .chain(resumed)
            .collect();
        assert_eq!(server.seen(), seen, "{faults:?}");
    }
}

#[tokio::test]
async fn a_session_ends_with_the_newest_token_of_its_own_sign_in() {
    for (newer, is_void, expect) in [(1, false, "t1"), (2, false, "t2"), (2, true, "t1")] {
        let (server, url) = Server::start().await;
        let account = Arc::new(Scripted {
            stamp: AtomicU64::new(1),
            ..Scripted::default()
        });
        let (link, mut delivered) = link(&url, &account);
        assert_eq!(call(&link, &mut delivered).await, Ok(1));
        let asked = account.asked.load(Ordering::SeqCst);
        account.stamp.store(newer, Ordering::SeqCst);
        account.is_void.store(is_void, Ordering::SeqCst);
        assert_eq!(link.is_void(), is_void);
        if is_void {
            // What is under way goes on in the name in which it began.
            assert_eq!(call(&link, &mut delivered).await, Ok(1));
            assert!(
                server
                    .seen()
                    .iter()
                    .all(|line| line.ends_with(" Bearer t1")),
                "{:?}",
                server.seen()
            );
        }
        link.close().await;
        assert_eq!(
            server.seen().last().unwrap(),
            &format!("DELETE Bearer {expect}"),
            "{newer} {is_void}"
        );
        assert_eq!(
            account.asked.load(Ordering::SeqCst),
            asked,
            "no token is asked for"
        );
    }
}
