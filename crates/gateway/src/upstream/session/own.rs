//! Requests of the session's own: handshake, lists, subscriptions.

use std::time::{Duration, Instant};

use bytes::Bytes;
use client::SendMeta;
use http::HeaderMap;
use json::{Span, members, quote};
use model::Era;
use tokio::sync::oneshot;
use wire::mcp::{Params, Version, meta, task};
use wire::rpc::{Id, Message, Shape, request};

use super::super::fault::Fault;
use super::super::headers;
use super::Session;
use super::calls::{Open, Times, Waiter};

/// An answer that is waited for.
pub(in super::super) struct Pending {
    pub(in super::super) number: u64,
    answer: oneshot::Receiver<Result<Message, Fault>>,
    /// The answer, if it came while something else was waited for.
    early: Option<Result<Message, Fault>>,
}

impl Pending {
    /// The answer; may be waited for again after a timeout.
    pub(in super::super) async fn answer(&mut self) -> Result<Message, Fault> {
        match self.early.take() {
            Some(answer) => answer,
            None => (&mut self.answer).await.unwrap_or(Err(Fault::Answer("nobody answers".to_owned()))),
        }
    }

    /// Waits for the answer and leaves it for [`Pending::answer`]; whether the server has said no.
    pub(in super::super) async fn refused(&mut self) -> bool {
        let answer = self.answer().await;
        let refused = matches!(&answer, Ok(message) if message.shape() == Shape::Error);
        self.early = Some(answer);
        refused
    }
}

impl Session {
    /// Sends a request of ours in the given era; without a patience it stays open until it is called off.
    pub(in super::super) fn ask(
        &self,
        era: Era,
        method: &str,
        params: &[(&str, &[u8])],
        patience: Option<Duration>,
    ) -> Result<Pending, Fault> {
        let mut open = self.open();
        if let Some(fault) = &open.ended {
            return Err(fault.clone());
        }
        let number = open.number();
        let frame = request(&Id::number(number), method, Some(&self.params(era, params)));
        let headers = self.own_headers(era, &frame);
        let (waiter, answer) = oneshot::channel();
        let now = Instant::now();
        let times = patience.map(|patience| Times::new(now, patience, patience));
        open.insert(number, Open { waiter: Waiter::Own(waiter), times, sent: None });
        drop(open);
        if let Err(unsent) = self.send(frame, SendMeta { request: Some(number), headers, from: None }) {
            self.settle(number);
            return Err(Fault::Unsent(unsent));
        }
        self.timer.notify_one();
        Ok(Pending { number, answer, early: None })
    }

    /// The same, and the result; an error answer is a fault.
    pub(in super::super) async fn result(
        &self,
        era: Era,
        method: &str,
        params: &[(&str, &[u8])],
    ) -> Result<Message, Fault> {
        let patience = self.opening.spec.timeout(None);
        let answer = self.ask(era, method, params, Some(patience))?.answer().await?;
        match answer.shape() {
            Shape::Result => Ok(answer),
            Shape::Error | Shape::Request | Shape::Notification => {
                let what =
                    answer.error_object().map(|error| format!("error {}: {}", error.code, error.message));
                Err(Fault::Answer(what.unwrap_or_else(|| "an error".to_owned())))
            }
        }
    }

    /// Takes back a request of ours.
    pub(in super::super) fn take_back(&self, number: u64) {
        if self.settle(number).is_some() {
            self.call_off(number, "no longer needed");
        }
    }

    /// The params of a request of ours, with what the modern era wants in each.
    fn params(&self, era: Era, params: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = vec![b'{'];
        let mut add = |key: &str, raw: &[u8]| {
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(quote(key).as_bytes());
            out.push(b':');
            out.extend_from_slice(raw);
        };
        for (key, raw) in params {
            add(key, raw);
        }
        if era == Era::Modern {
            let version = Version::NEWEST.as_str();
            let identity = String::from_utf8_lossy(&self.opening.identity);
            let trio = format!(
                "{{\"{}\":\"{version}\",\"{}\":{{\"extensions\":{}}},\"{}\":{identity}}}",
                meta::PROTOCOL_VERSION,
                meta::CLIENT_CAPABILITIES,
                // Without it no server tells of tasks.
                task::ABILITIES,
                meta::CLIENT_INFO
            );
            add("_meta", trio.as_bytes());
        }
        out.push(b'}');
        out
    }

    fn own_headers(&self, era: Era, frame: &Bytes) -> Option<Box<HeaderMap>> {
        if era == Era::Legacy || !self.streams() {
            return None;
        }
        let message = Message::read(frame.clone()).ok()?;
        let params = Params::read(&message).ok()?;
        Some(Box::new(headers::mirror(&params, None, Version::NEWEST, &self.manifest())))
    }
}

/// A member of a raw object, raw.
pub(in super::super) fn member(object: &Bytes, key: &str) -> Option<Bytes> {
    let members = members(object, Span::all(object)).ok()?;
    let span = members.get(key)?.span;
    Some(object.slice(span.start..span.end))
}
