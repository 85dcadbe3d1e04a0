//! One client of proto-mcp that reads everything on one stream: a pipe, a socket, a WebSocket.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use gateway::Link;
use model::{Refusal, RefusalCode};
use telemetry::trace::CallerTrace;
use wire::proto::{Content, PayloadKind, ProtoEnvelope, frame};

use super::client::{Client, Disposition};
use super::outlet::FrameOutlet;
use super::reply::{self, FrameReply};
use crate::duplex::drain;
use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::reply::Owed;
use crate::stream::Stream;

/// A client as its connection begins.
pub(crate) struct ProtoArrival {
    /// Its participant and its topic.
    pub(crate) visitor: Visitor,
    /// The gateway as the client names it.
    pub(crate) host: Option<Arc<str>>,
    /// The address from which it comes.
    pub(crate) address: Option<IpAddr>,
    /// The trace that the headers of its connection name, if they name one.
    pub(crate) trace: Option<Box<CallerTrace>>,
}

/// A client whose answers go to one stream.
pub(crate) struct Session {
    client: Client,
    out: Arc<Stream>,
    outlet: Arc<FrameOutlet>,
}

impl Session {
    /// Joins the topic. A client that it rejects is answered on the stream, which then ends.
    pub(crate) async fn begin(
        links: &ClientLinks,
        arrival: ProtoArrival,
        out: &Arc<Stream>,
    ) -> Option<Self> {
        let outlet = Arc::new(FrameOutlet::new(out));
        // What is listed by then is no change for it.
        arrival.visitor.dispatch.wait_for_servers().await;
        let ProtoArrival {
            visitor,
            host,
            address,
            trace,
        } = arrival;
        match Client::join(links, visitor, host, Arc::<FrameOutlet>::clone(&outlet)) {
            Ok(client) => Some(Self {
                client: Client {
                    address,
                    trace,
                    ..client
                },
                out: Arc::clone(out),
                outlet,
            }),
            Err(refusal) => {
                reply::refuse(out, 0, &refusal, "");
                out.end();
                None
            }
        }
    }

    /// Takes a message.
    pub(crate) async fn take(&mut self, message: &Bytes) {
        let Ok(ProtoEnvelope { id, content }) = ProtoEnvelope::read(message) else {
            return self
                .out
                .answer(frame::of_field(0, &reply::unreadable()).unwrap_or_default());
        };
        match content {
            Content::Ping => self
                .out
                .answer(frame::of_field(id, b"").unwrap_or_default()),
            Content::Unknown => {
                self.refuse(
                    id,
                    &Refusal::new(
                        RefusalCode::Unsupported,
                        "the gateway does not know this payload",
                    ),
                );
            }
            Content::Payload(kind, field) => self.payload(id, kind, field).await,
        }
    }

    /// Refuses a message that is too long to be read.
    pub(crate) fn refuse_long(&self, bytes: u64) {
        let why = format!("the message has {bytes} bytes, which is beyond the limit");
        self.refuse(0, &Refusal::new(RefusalCode::TooLarge, why));
    }

    /// The client has closed its side: its open requests are answered within a bound, then it
    /// leaves.
    pub(crate) async fn end(self) {
        let (dispatch, link): (_, &Arc<Link>) = (&self.client.visitor.dispatch, &self.client.link);
        drain(dispatch, &[link], &self.out).await;
        dispatch.leave(link);
    }

    async fn payload(&mut self, id: u64, kind: PayloadKind, field: Bytes) {
        // Their answers could not be kept apart.
        if self.client.is_open(id) {
            let why = format!("a request with the id {id} is open");
            return self.refuse(id, &Refusal::new(RefusalCode::Malformed, why));
        }
        let taken = self.client.take(Some(id), kind, field).await;
        // The message may have been the handshake.
        self.outlet
            .list_changed
            .store(self.client.declared.list_changed, Ordering::Relaxed);
        match taken {
            Ok(Disposition::Answered(field)) => self
                .out
                .answer(frame::of_field(id, &field).unwrap_or_default()),
            Ok(Disposition::Request(incoming, wanted)) => {
                let schemas = self.client.schemas();
                let reply = FrameReply {
                    sink: Owed::by(&self.out),
                    id,
                    schemas,
                    wanted,
                };
                let by = self.client.requester();
                let dispatch = &self.client.visitor.dispatch;
                dispatch.request(by, *incoming, Arc::new(reply));
            }
            Err(refusal) => {
                reply::refuse(&self.out, id, &refusal, kind.method().unwrap_or_default())
            }
        }
    }

    /// Refuses what is no request of a method.
    fn refuse(&self, id: u64, refusal: &Refusal) {
        reply::refuse(&self.out, id, refusal, "");
    }
}
