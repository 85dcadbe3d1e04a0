//! Streamable HTTP as a link: every message is a POST, its answer a JSON body or an event stream.
//!
//! Owns which requests are open and the stream that belongs to no request. One task per message; a request's task is
//! its life, so that stopping it closes its stream.

pub(crate) mod connect;
mod core;
pub(crate) mod endpoint;
mod exchange;
pub(crate) mod peer;
pub(crate) mod socket;
mod spec;
pub(crate) mod stream;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::time::timeout;

use self::core::Core;
use crate::contract::{Bounds, Inbox, LinkFailure, SendMeta, Unsent};
use peer::Peer;
pub use spec::{HttpLimits, HttpSpec};

/// A Streamable HTTP server.
#[derive(Debug)]
pub(crate) struct HttpLink(Arc<Core>);

impl HttpLink {
    pub(crate) fn new(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkFailure> {
        let peer = Peer::new(spec)?;
        Ok(Self(Arc::new(Core::new(peer, inbox))))
    }

    pub(crate) fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), Unsent> {
        let core = &self.0;
        if core.closed.load(Ordering::SeqCst) {
            return Err(Unsent::Closed);
        }
        if frame.len() > core.peer.limits.frame_bytes_max {
            return Err(Unsent::TooLarge);
        }
        let Some(request) = meta.request else {
            if core.notes.fetch_add(1, Ordering::SeqCst) >= core.peer.limits.requests_max {
                core.notes.fetch_sub(1, Ordering::SeqCst);
                return Err(Unsent::Busy);
            }
            tokio::spawn(exchange::note(Arc::clone(core), frame, meta.headers));
            return Ok(());
        };
        let mut open = core.open();
        if open.requests.len() >= core.peer.limits.requests_max {
            return Err(Unsent::Busy);
        }
        // Spawned under the lock: the task finds its own entry when it ends.
        let exchange = exchange::request(Arc::clone(core), request, frame, meta.headers);
        // Boxed, because tokio moves a task's future four times.
        let task = tokio::spawn(Box::pin(exchange));
        open.requests.insert(request, task.abort_handle());
        Ok(())
    }

    pub(crate) fn cancel(&self, request: u64) {
        if let Some(task) = self.0.open().requests.remove(&request) {
            task.abort();
        }
    }

    pub(crate) fn set_version(&self, version: &str) {
        self.0.peer.set_version(version);
    }

    pub(crate) fn forget_session(&self) {
        self.0.peer.forget_session();
        if let Some(listen) = self.0.open().listen.take() {
            listen.abort();
        }
    }

    pub(crate) fn listen(&self) {
        let mut open = self.0.open();
        if open.listen.is_none() && !self.0.closed.load(Ordering::SeqCst) {
            open.listen = Some(tokio::spawn(exchange::listen(Arc::clone(&self.0))).abort_handle());
        }
    }

    pub(crate) async fn close(&self, bounds: Bounds) {
        let first = !self.0.closed.load(Ordering::SeqCst);
        self.0.end(LinkFailure::Closed);
        if first && self.0.peer.has_session() {
            let _ = timeout(bounds.eof, self.0.peer.delete()).await;
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.0.end(LinkFailure::Closed);
    }
}
