//! Streamable HTTP links: connections that are kept, closed and refused, and requests that are
//! cancelled.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use portmoot_client::{Flow, HttpLimits, HttpSpec, LinkError, LinkInbox, SendMeta, ServerLink};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

const LIMIT: Duration = Duration::from_secs(20);

/// What a link has delivered.
#[derive(Debug, PartialEq)]
enum Delivered {
    Answer(u64),
    Failed(u64, LinkError),
    Closed(LinkError),
}

struct Queue(mpsc::UnboundedSender<Delivered>);

impl LinkInbox for Queue {
    fn frame(&self, _: Bytes, about: Option<u64>) -> Flow {
        self.0.send(Delivered::Answer(about.unwrap())).unwrap();
        Flow::Settled
    }

    fn failed(&self, request: u64, error: LinkError) {
        self.0.send(Delivered::Failed(request, error)).unwrap();
    }

    fn closed(&self, why: LinkError) {
        let _ = self.0.send(Delivered::Closed(why));
    }
}

fn link(url: String, limits: HttpLimits) -> (ServerLink, mpsc::UnboundedReceiver<Delivered>) {
    let (sender, delivered) = mpsc::unbounded_channel();
    let spec = HttpSpec {
        authorize: None,
        name: "server".into(),
        url,
        headers: http::HeaderMap::new(),
        tls: tls::ClientTls::of_machine(),
        limits,
    };
    (
        ServerLink::http(&spec, Arc::new(Queue(sender))).unwrap(),
        delivered,
    )
}

async fn next(delivered: &mut mpsc::UnboundedReceiver<Delivered>) -> Delivered {
    timeout(LIMIT, delivered.recv()).await.unwrap().unwrap()
}

/// An HTTP server that answers requests whose body is `{}` and leaves others open.
struct Server {
    url: String,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Connections accepted.
    accepted: AtomicUsize,
    /// Requests that are left open.
    held: AtomicUsize,
    /// Connections closed, by either side.
    closed: AtomicUsize,
    /// The numbers in the notifications, in the order of their arrival.
    notes: std::sync::Mutex<Vec<usize>>,
}

impl Server {
    /// `answers_max` is how many requests a connection takes; then the server closes it without a
    /// word.
    async fn start(answers_max: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                let counts = Arc::clone(&shared);
                tokio::spawn(async move {
                    serve(&counts, BufReader::new(stream), answers_max).await;
                    counts.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, counts }
    }

    fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    fn closed(&self) -> usize {
        self.counts.closed.load(Ordering::SeqCst)
    }

    fn held(&self) -> usize {
        self.counts.held.load(Ordering::SeqCst)
    }
}

async fn until(what: &str, check: impl Fn() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !check() {
        assert!(Instant::now() < limit, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn serve(counts: &Counts, mut stream: BufReader<TcpStream>, answers_max: usize) {
    for _ in 0..answers_max {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        if let Some(number) = body.strip_prefix(b"note ") {
            let number = std::str::from_utf8(number).unwrap().parse().unwrap();
            counts.notes.lock().unwrap().push(number);
            stream
                .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
            continue;
        }
        if body != b"{}" {
            counts.held.fetch_add(1, Ordering::SeqCst);
            // Returns when the client closes the connection.
            let _ = stream.read(&mut [0]).await;
            return;
        }
        let answer =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer).await.unwrap();
    }
}

fn send(link: &ServerLink, number: u64, body: &'static str) {
    link.send(
        Bytes::from_static(body.as_bytes()),
        SendMeta::request(number),
    )
    .unwrap();
}

#[tokio::test]
async fn requests_in_a_row_share_a_connection_that_is_not_idle_for_long() {
    let server = Server::start(usize::MAX).await;
    let (link, mut delivered) = link(server.url.clone(), HttpLimits::default());
    for number in 0..10 {
        send(&link, number, "{}");
        assert_eq!(next(&mut delivered).await, Delivered::Answer(number));
    }
    assert_eq!(server.accepted(), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    send(&link, 10, "{}");
    assert_eq!(next(&mut delivered).await, Delivered::Answer(10));
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_costs_no_request() {
    let server = Server::start(1).await;
    let (link, mut delivered) = link(server.url.clone(), HttpLimits::default());
    for number in 0..20 {
        send(&link, number, "{}");
        assert_eq!(next(&mut delivered).await, Delivered::Answer(number));
        until("the server has closed it", || {
            server.closed() > usize::try_from(number).unwrap()
        })
        .await;
        // Time for the runtime to be notified.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(server.accepted(), 20);
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let server = Server::start(usize::MAX).await;
    let limits = HttpLimits {
        idle_connections_max: 2,
        ..HttpLimits::default()
    };
    let (link, mut delivered) = link(server.url.clone(), limits);
    for number in 0..8 {
        send(&link, number, "{}");
    }
    for _ in 0..8 {
        assert!(matches!(next(&mut delivered).await, Delivered::Answer(_)));
    }
    until("the others are closed", || {
        server.accepted() - server.closed() <= 2
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_request_closes_its_connection_and_no_other() {
    let server = Server::start(usize::MAX).await;
    let (link, mut delivered) = link(server.url.clone(), HttpLimits::default());
    // The task of the first request takes the second.
    send(&link, 1, "{}");
    assert_eq!(next(&mut delivered).await, Delivered::Answer(1));
    send(&link, 2, "[2]");
    send(&link, 3, "[3]");
    until("both requests are open", || server.held() == 2).await;
    link.cancel(1);
    link.cancel(2);
    until("the connection is closed", || server.closed() == 1).await;
    send(&link, 4, "{}");
    assert_eq!(next(&mut delivered).await, Delivered::Answer(4));
    assert_eq!(server.closed(), 1);
    drop(link);
    assert_eq!(
        next(&mut delivered).await,
        Delivered::Closed(LinkError::Closed)
    );
    assert_eq!(
        delivered.recv().await,
        None,
        "a cancelled or ended request was delivered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_arrive_in_the_order_in_which_they_were_sent() {
    let server = Server::start(usize::MAX).await;
    let (link, _delivered) = link(server.url.clone(), HttpLimits::default());
    for number in 0..300 {
        link.send(Bytes::from(format!("note {number}")), SendMeta::default())
            .unwrap();
    }
    link.flush().await;
    assert_eq!(
        *server.counts.notes.lock().unwrap(),
        (0..300).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn more_requests_than_the_limit_are_rejected() {
    let server = Server::start(usize::MAX).await;
    let limits = HttpLimits {
        requests_max: 2,
        ..HttpLimits::default()
    };
    let (link, mut delivered) = link(server.url.clone(), limits);
    send(&link, 1, "[1]");
    send(&link, 2, "{}");
    let third = || link.send(Bytes::from_static(b"{}"), SendMeta::request(3));
    assert_eq!(third(), Err(portmoot_client::SendError::Busy));
    assert_eq!(next(&mut delivered).await, Delivered::Answer(2));
    until("the second request is closed", || third().is_ok()).await;
    assert_eq!(next(&mut delivered).await, Delivered::Answer(3));
}

#[tokio::test]
async fn a_server_that_does_not_listen_is_unreachable_and_its_url_is_not_repeated() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret", listener.local_addr().unwrap());
    drop(listener);
    let (link, mut delivered) = link(url, HttpLimits::default());
    send(&link, 1, "{}");
    let refused = "Connection refused (os error 111)".to_owned();
    assert_eq!(
        next(&mut delivered).await,
        Delivered::Failed(1, LinkError::Unreachable(refused))
    );
}

#[tokio::test]
async fn connecting_takes_no_longer_than_its_limit() {
    // The kernel answers no more connections than the backlog holds.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
    }
    let limits = HttpLimits {
        connect: Duration::from_millis(200),
        ..HttpLimits::default()
    };
    let (link, mut delivered) = link(format!("http://{address}/mcp"), limits);
    send(&link, 1, "{}");
    let late = "connecting took too long".to_owned();
    assert_eq!(
        next(&mut delivered).await,
        Delivered::Failed(1, LinkError::Unreachable(late))
    );
}

#[tokio::test]
async fn a_session_waits_until_its_stream_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limits = HttpLimits {
        listen: LIMIT,
        ..HttpLimits::default()
    };
    let (link, _delivered) = link(
        format!("http://{}/mcp", listener.local_addr().unwrap()),
        limits,
    );
    let mut listening = link.listen();
    let mut stream = tokio::select! {
        biased;
        () = &mut listening => panic!("the stream was not answered"),
        accepted = listener.accept() => accepted.unwrap().0,
    };
    let mut request = [0; 4];
    tokio::select! {
        biased;
        () = &mut listening => panic!("the stream was not answered"),
        read = stream.read_exact(&mut request) => { read.unwrap(); }
    }
    assert_eq!(&request, b"GET ");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        .await
        .unwrap();
    timeout(LIMIT, listening).await.unwrap();
}

#[tokio::test]
async fn a_session_waits_for_its_stream_no_longer_than_its_limit() {
    let server = Server::start(usize::MAX).await;
    let limits = HttpLimits {
        listen: Duration::from_millis(20),
        ..HttpLimits::default()
    };
    let (link, _delivered) = link(server.url.clone(), limits);
    timeout(LIMIT, link.listen()).await.unwrap();
    until("the request for the stream arrives", || server.held() == 1).await;
}
