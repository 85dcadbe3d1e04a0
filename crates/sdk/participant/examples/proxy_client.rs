//! A client of an MCP server over HTTP, through the server's tool `proxy` if it has one: lists
//! everything, or calls one tool.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example proxy_client -- http://127.0.0.1:7070/mcp
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example proxy_client -- http://127.0.0.1:7070/mcp demo_echo '{"text": "hello"}'
//! ```
//!
//! The lists are those of one moment. A program that runs longer gives the methods of notifications
//! to `ProxyClient::notified`.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use client::{Flow, HttpLimits, HttpSpec, LinkError, LinkInbox, SendMeta, ServerLink};
use http::header::AUTHORIZATION;
use portmoot_participant::proxy::{ProxyClient, Requester};
use portmoot_participant::{CallError, ClientTls, RpcError, visible};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;

/// Time to the answer to a request.
const ANSWER: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = args
        .next()
        .ok_or("usage: proxy_client URL [TOOL [ARGUMENTS as JSON]]")?;
    let client = ProxyClient::detect(Session::open(url).await?).await?;
    println!(
        "{}",
        client
            .tool()
            .map_or("directly".to_owned(), |tool| format!("through `{tool}`"))
    );
    if let Some(tool) = args.next() {
        let arguments: Box<RawValue> =
            serde_json::from_str(&args.next().unwrap_or_else(|| "{}".into()))?;
        println!(
            "{}",
            visible::lines(client.call_tool(&tool, &arguments).await?.get())
        );
    } else {
        for list in [
            client.list_tools().await?,
            client.list_resources().await?,
            client.list_prompts().await?,
        ] {
            for one in &*list {
                println!("{:?} {}", one.list(), visible::line(one.key()));
            }
        }
    }
    client.requester().link.close().await;
    Ok(())
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Result<Bytes, CallError>>>>;

/// Requests that wait for their answers.
#[derive(Default)]
struct Answers(Waiting);

impl Answers {
    fn settle(&self, number: u64, outcome: Result<Bytes, CallError>) -> Flow {
        let waiting = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&number);
        match waiting.map(|waiting| waiting.send(outcome)) {
            Some(_) => Flow::Settled,
            None => Flow::Noise,
        }
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

impl LinkInbox for Answers {
    /// Takes answers. Notifications and questions of the server, which have a method, leave the
    /// request open.
    fn frame(&self, frame: Bytes, _about: Option<u64>) -> Flow {
        match serde_json::from_slice::<Answer<'_>>(&frame) {
            Ok(Answer {
                id: Some(number),
                result,
                error,
            }) if result.is_some() || error.is_some() => self.settle(number, Ok(frame.clone())),
            _ => Flow::Open,
        }
    }

    fn failed(&self, request: u64, error: LinkError) {
        let sent_nothing = matches!(
            error,
            LinkError::Unreachable(_) | LinkError::Untrusted(_) | LinkError::NotTls
        );
        let why = if sent_nothing {
            CallError::NotConnected
        } else {
            CallError::Lost
        };
        self.settle(request, Err(why));
    }

    fn closed(&self, _why: LinkError) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// A session of the legacy era: one handshake, then requests.
struct Session {
    link: ServerLink,
    answers: Arc<Answers>,
    next: AtomicU64,
}

impl Session {
    async fn open(url: String) -> Result<Self, Box<dyn Error>> {
        let mut headers = http::HeaderMap::new();
        if let Ok(token) = std::env::var("PORTMOOT_TOKEN") {
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse()?);
        }
        let spec = HttpSpec {
            authorize: None,
            name: "server".into(),
            url,
            headers,
            limits: HttpLimits::default(),
            tls: ClientTls::of_machine(),
        };
        let answers = Arc::new(Answers::default());
        let link = ServerLink::http(&spec, Arc::<Answers>::clone(&answers))?;
        let session = Self {
            link,
            answers,
            next: AtomicU64::new(1),
        };
        let info = json!({ "name": "proxy_client", "version": env!("CARGO_PKG_VERSION") });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let result = session
            .request("initialize", &to_raw_value(&params)?)
            .await?;
        let result: serde_json::Value = serde_json::from_str(result.get())?;
        let version = result
            .get("protocolVersion")
            .and_then(|version| version.as_str());
        session
            .link
            .set_version(version.ok_or("the handshake has no version")?);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        session
            .link
            .send(ready.to_string().into(), SendMeta::default())?;
        session.link.flush().await;
        Ok(session)
    }
}

impl Requester for Session {
    async fn request(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, CallError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (outcome, answer) = oneshot::channel();
        self.answers
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(number, outcome);
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{number},"method":{method:?},"params":{params}}}"#);
        self.link
            .send(frame.into(), SendMeta::request(number))
            .map_err(|_| CallError::Busy)?;
        let answer = tokio::time::timeout(ANSWER, answer)
            .await
            .map_err(|_| CallError::Timeout)?;
        let frame = answer.map_err(|_| CallError::Lost)??;
        match serde_json::from_slice(&frame) {
            Ok(Answer {
                error: Some(error), ..
            }) => Err(CallError::Answered(error)),
            Ok(Answer {
                result: Some(result),
                ..
            }) => Ok(result.to_owned()),
            _ => Err(CallError::Lost),
        }
    }
}
