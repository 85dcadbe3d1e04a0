//! Answers that no client reads: they are on an account, and their connections end.

use axum::routing::get;
use tokio::time::Instant;

use super::*;
use crate::http::WRITE_STALLED_MAX;

/// An answer that no pipe of a test takes whole.
const ANSWER_BYTES: usize = 1 << 20;
/// A share that has room for one such answer.
const HELD_BYTES: usize = ANSWER_BYTES + ANSWER_BYTES / 2;

impl Gateway {
    /// A gateway with a page that is an answer of the API, and with a small share of bytes.
    fn with_pages() -> Self {
        let registry = registry(GatewayLimits {
            held_bytes_max: HELD_BYTES,
            participant_held_bytes_max: HELD_BYTES,
            ..GatewayLimits::default()
        });
        let pages = Router::new()
            .route("/api/v1/long", get(|| async { "x".repeat(ANSWER_BYTES) }))
            .route("/api/v1/short", get(|| async { "short" }));
        let doors = Arc::new(Doors::new(Arc::clone(&registry), pages).unwrap());
        Self { doors, registry }
    }

    /// Bytes on the account of the local user.
    fn held(&self) -> usize {
        self.registry.held_of(&user(&self.registry).id).taken()
    }
}

#[tokio::test]
async fn an_unread_answer_is_on_its_callers_account_until_it_is_read() {
    let gateway = Gateway::with_pages();
    let mut client = gateway.connect();
    client.send("GET /api/v1/short", &[], "").await;
    assert_eq!((client.reply().await.status(), gateway.held()), (200, 0));
    client.send("GET /api/v1/long", &[], "").await;
    client.until("\r\n\r\n").await;
    assert_eq!(gateway.held(), ANSWER_BYTES);
    while client.read.len() < ANSWER_BYTES {
        assert!(client.more().await);
    }
    // The next answer comes after everything of the last one was written.
    client.read.clear();
    client.send("GET /api/v1/short", &[], "").await;
    assert_eq!((client.reply().await.status(), gateway.held()), (200, 0));
}

#[tokio::test]
async fn an_answer_without_room_is_refused_as_overloaded() {
    let gateway = Gateway::with_pages();
    let mut slow = gateway.connect();
    slow.send("GET /api/v1/long", &[], "").await;
    slow.until("\r\n\r\n").await;
    let mut other = gateway.connect();
    other.send("GET /api/v1/long", &[], "").await;
    let refused = other.reply().await;
    assert_eq!(refused.status(), 503, "{}", refused.head);
    assert!(
        refused.body.contains(r#""code":"overloaded""#),
        "{}",
        refused.body
    );
    // A client that leaves gives everything back.
    drop(slow);
    for _ in 0..1_000 {
        if gateway.held() == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    other.send("GET /api/v1/long", &[], "").await;
    assert_eq!(other.reply().await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_loses_its_connection() {
    let gateway = Gateway::with_pages();
    let (near, far) = duplex(PIPE_BYTES);
    let doors = Arc::clone(&gateway.doors);
    let served = tokio::spawn(async move { doors.connection(far).await });
    let mut client = Client {
        io: near,
        read: String::new(),
    };
    let began = Instant::now();
    client.send("GET /api/v1/long", &[], "").await;
    served.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), WRITE_STALLED_MAX.as_secs());
    assert_eq!(gateway.held(), 0);
    let mut rest = Vec::new();
    client.io.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() <= PIPE_BYTES, "{}", rest.len());
}
