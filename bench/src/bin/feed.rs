//! A room server as it is mostly written, but written well: axum, for each connection a queue and a
//! task that writes it, the queue drained into `feed` and then one `flush`. It looks at each
//! envelope as the gateway does. `feed axum PORT`.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::mpsc::{Sender, channel};

/// Messages that may wait for one connection.
const QUEUE_LEN: usize = 4096;

#[derive(Deserialize)]
struct Wish {
    topic: String,
}

/// What is looked at; reading it checks the syntax of the whole.
#[derive(Deserialize)]
struct Head<'e> {
    kind: &'e str,
}

/// Who hears in one topic, by number.
type Hearers = Mutex<HashMap<u64, Sender<Utf8Bytes>>>;

#[derive(Default)]
struct Rooms {
    next: Mutex<u64>,
    topics: Mutex<HashMap<String, Arc<Hearers>>>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let port: u16 = std::env::args()
        .nth(2)
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let router = Router::new()
        .route("/ws", get(enter))
        .with_state(Arc::<Rooms>::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(
        listener.tap_io(|socket| socket.set_nodelay(true).expect("a socket")),
        router,
    )
    .await
}

async fn enter(
    State(rooms): State<Arc<Rooms>>,
    Query(wish): Query<Wish>,
    up: WebSocketUpgrade,
) -> Response {
    up.on_upgrade(move |socket| serve(rooms, wish.topic, socket))
}

async fn serve(rooms: Arc<Rooms>, topic: String, socket: WebSocket) {
    let number = {
        let mut next = rooms.next.lock().expect("a number");
        *next += 1;
        *next
    };
    let room = Arc::clone(
        rooms
            .topics
            .lock()
            .expect("the topics")
            .entry(topic)
            .or_default(),
    );
    let (mut sink, mut stream) = socket.split();
    let (queue, mut queued) = channel::<Utf8Bytes>(QUEUE_LEN);
    room.lock().expect("the hearers").insert(number, queue);
    let writer = tokio::spawn(async move {
        while let Some(first) = queued.recv().await {
            let mut next = Some(first);
            while let Some(text) = next {
                if sink.feed(Message::Text(text)).await.is_err() {
                    return;
                }
                next = queued.try_recv().ok();
            }
            if sink.flush().await.is_err() {
                return;
            }
        }
    });
    while let Some(Ok(message)) = stream.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let admitted = serde_json::from_str::<Head>(&text).is_ok_and(|head| {
            ["mcp/request:*", "mcp/proposal:*", "chat"]
                .into_iter()
                .any(|c| admits(c, head.kind))
        });
        if admitted {
            // Whoever has no room any more is dropped.
            room.lock()
                .expect("the hearers")
                .retain(|_, queue| queue.try_send(text.clone()).is_ok());
        }
    }
    room.lock().expect("the hearers").remove(&number);
    writer.abort();
}

fn admits(capability: &str, kind: &str) -> bool {
    match capability.strip_suffix('*') {
        Some(prefix) => kind.starts_with(prefix),
        None => kind == capability,
    }
}
