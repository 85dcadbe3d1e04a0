//! Requests that the session itself sends: handshake, lists, subscriptions, pings.

use std::time::{Duration, Instant};

use bytes::Bytes;
use client::SendMeta;
use http::{HeaderMap, HeaderName, HeaderValue};
use model::Coding;
use tokio::sync::oneshot;
use wire::mcp::Era;
use wire::mcp::relay::{EncodedRequest, OutgoingTrace};
use wire::mcp::{Version, gateways, meta};
use wire::rpc::{Id, Message, MessageKind, request};

use super::Session;
use super::pending::{Deadlines, PendingRequest, Waiter, WrittenRequest};
use crate::fault::Fault;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The answer to a request of the session, not yet received.
pub(crate) struct PendingAnswer {
    pub(crate) number: u64,
    answer: oneshot::Receiver<Result<Message, Fault>>,
    /// The answer, if [`PendingAnswer::is_refused`] has received it.
    received: Option<Result<Message, Fault>>,
}

impl PendingAnswer {
    /// Waits for the answer. May be called again after a timeout dropped an earlier wait.
    pub(crate) async fn answer(&mut self) -> Result<Message, Fault> {
        match self.received.take() {
            Some(answer) => answer,
            None => (&mut self.answer)
                .await
                .unwrap_or(Err(Fault::Answer("no answer".to_owned()))),
        }
    }

    /// Waits for the answer, keeps it for [`PendingAnswer::answer`], and returns whether it is an
    /// error.
    pub(crate) async fn is_refused(&mut self) -> bool {
        let answer = self.answer().await;
        let refused = matches!(&answer, Ok(message) if message.shape() == MessageKind::Error);
        self.received = Some(answer);
        refused
    }
}

/// A request of the session itself.
struct OwnRequest<'a> {
    era: Era,
    method: &'a str,
    /// The name, URI or task id in its params, if its method has one.
    target: Option<&'a str>,
    /// Members of its params, raw.
    params: &'a [(&'a str, &'a [u8])],
    /// Time that it waits for its answer; without, it stays open until it is cancelled.
    patience: Option<Duration>,
}

impl Session {
    /// Sends a request in the given era. Without `patience` it stays open until it is cancelled.
    pub(crate) fn request(
        &self,
        era: Era,
        method: &str,
        params: &[(&str, &[u8])],
        patience: Option<Duration>,
    ) -> Result<PendingAnswer, Fault> {
        self.request_about(era, method, None, params, patience)
    }

    /// Sends a request without params that is not sent again, whatever becomes of the session.
    pub(super) fn request_once(
        &self,
        era: Era,
        method: &str,
        patience: Duration,
    ) -> Result<PendingAnswer, Fault> {
        let request = OwnRequest {
            era,
            method,
            target: None,
            params: &[],
            patience: Some(patience),
        };
        self.open_request(request, false)
    }

    /// Sends a request with the target that its params name.
    pub(super) fn request_about(
        &self,
        era: Era,
        method: &str,
        target: Option<&str>,
        params: &[(&str, &[u8])],
        patience: Option<Duration>,
    ) -> Result<PendingAnswer, Fault> {
        let keeps = era == self.era() && self.may_resend(method);
        let request = OwnRequest {
            era,
            method,
            target,
            params,
            patience,
        };
        self.open_request(request, keeps)
    }

    /// Sends a request; it is kept to be sent again if `keeps`.
    fn open_request(&self, own: OwnRequest<'_>, keeps: bool) -> Result<PendingAnswer, Fault> {
        let mut pending = self.pending.lock();
        if let Some(fault) = &pending.ended {
            return Err(fault.clone());
        }
        let number = self.setup.environment.numbers.next();
        let params = self.params(own.era, own.method, own.params);
        let frame = request(&Id::number(number), own.method, Some(&params));
        let headers = self.headers_of(own.era, &frame, own.method, own.target, Version::NEWEST);
        let now = Instant::now();
        let (waiter, answer) = oneshot::channel();
        let answer = PendingAnswer {
            number,
            answer,
            received: None,
        };
        let written = WrittenRequest {
            encoded: EncodedRequest {
                coding: Coding::Json,
                frame,
            },
            headers,
        };
        let open = PendingRequest {
            waiter: Waiter::Own(waiter),
            deadlines: own
                .patience
                .map(|patience| Deadlines::new(now, patience, patience)),
            sent: keeps.then(|| written.clone()),
            questions: 0,
            garbled: false,
        };
        // Before it is sent: its answer may come at once.
        pending.requests.insert(number, open);
        if keeps && pending.awaiting_reopen.is_some() {
            pending.await_reopen(number, written);
        } else {
            // Not under the lock: the link may deliver something at once, which takes it.
            drop(pending);
            if let Err(unsent) = self.send_written(written, SendMeta::request(number)) {
                self.settle(number);
                return Err(Fault::Unsent(unsent));
            }
        }
        self.timer.notify_one();
        Ok(answer)
    }

    /// Sends a request and waits for its answer, which may be an error.
    pub(crate) async fn ask(
        &self,
        era: Era,
        method: &str,
        params: &[(&str, &[u8])],
        patience: Duration,
    ) -> Result<Message, Fault> {
        self.request(era, method, params, Some(patience))?
            .answer()
            .await
    }

    /// Sends a request and waits for its result; an error answer is a fault.
    pub(crate) async fn request_result(
        &self,
        era: Era,
        method: &str,
        params: &[(&str, &[u8])],
    ) -> Result<Message, Fault> {
        let patience = self.setup.spec.timeout(None);
        let answer = self.ask(era, method, params, patience).await?;
        result(&answer)?;
        Ok(answer)
    }

    /// Cancels a request of the session itself.
    pub(crate) fn cancel_own(&self, number: u64) {
        if self.settle(number).is_some() {
            self.send_cancellation(number, "no longer needed");
        }
    }

    /// The params of a request; a modern request carries version, capabilities and identity in
    /// `_meta`. A gateway is asked which gateways its lists came through.
    fn params(&self, era: Era, method: &str, params: &[(&str, &[u8])]) -> Vec<u8> {
        let is_of_gateway = method.ends_with("/list")
            && self
                .handshake()
                .is_some_and(|shaken| shaken.gateways.is_some());
        let instance = is_of_gateway.then_some(&*self.setup.environment.instance);
        json::object(|object| {
            for (key, raw) in params {
                object.raw(key, raw);
            }
            if era == Era::Legacy && is_of_gateway {
                object.raw("_meta", &gateways::added(None, instance));
            }
            if era == Era::Modern {
                object.object("_meta", |meta| {
                    meta.text(meta::PROTOCOL_VERSION, Version::NEWEST.as_str());
                    // A server sends task notifications only to clients that declare the extension,
                    // and lists what the others need.
                    meta.object(meta::CLIENT_CAPABILITIES, |able| {
                        able.raw("extensions", &self.extensions);
                    });
                    meta.raw(meta::CLIENT_INFO, &self.setup.environment.identity);
                    if is_of_gateway {
                        meta.texts(gateways::KEY, instance);
                    }
                });
            }
        })
    }

    /// The headers that mirror a modern request over Streamable HTTP; `None` elsewhere.
    pub(super) fn headers_of(
        &self,
        era: Era,
        frame: &Bytes,
        method: &str,
        target: Option<&str>,
        version: Version,
    ) -> Option<Box<HeaderMap>> {
        if !era.is_stateless() || !self.over_http() {
            return None;
        }
        let manifest = self.manifest();
        Some(Box::new(
            manifest.mirror_headers(frame, method, target, version),
        ))
    }
}

/// Adds the trace of a request to its headers, where frameworks of HTTP servers look for it.
pub(super) fn trace_headers(
    headers: Option<Box<HeaderMap>>,
    trace: &OutgoingTrace<'_>,
) -> Option<Box<HeaderMap>> {
    let written = [
        (TRACEPARENT, trace.traceparent),
        (TRACESTATE, trace.tracestate),
    ];
    let mut headers = headers;
    for (name, text) in written {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.get_or_insert_default().insert(name, value);
        }
    }
    headers
}

/// The raw result of an answer; an error answer is a fault.
pub(crate) fn result(answer: &Message) -> Result<Bytes, Fault> {
    if answer.shape() == MessageKind::Result
        && let Some(span) = answer.body_span()
    {
        return Ok(answer.frame().slice(span.start..span.end));
    }
    let why = match answer.error_object() {
        Some(error) => format!("error {}: {}", error.code, error.message),
        None => "no result".to_owned(),
    };
    Err(Fault::Answer(why))
}
