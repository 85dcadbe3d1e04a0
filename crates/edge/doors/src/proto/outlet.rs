//! Outlet of a proto-mcp client on a framed connection: changed lists, for clients that asked for
//! them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use gateway::Outlet;
use model::ListKind;
use topic::Ended;
use wire::proto::{PayloadKind, frame};

use crate::stream::Stream;

/// The way out for messages that answer no request. Their id is 0: requests count from 1.
pub(crate) struct FrameOutlet {
    out: Arc<Stream>,
    /// Whether the client asked for changed lists in its handshake.
    pub(crate) list_changed: AtomicBool,
}

impl FrameOutlet {
    /// An outlet that says nothing yet.
    pub(crate) fn new(out: &Arc<Stream>) -> Self {
        Self {
            out: Arc::clone(out),
            list_changed: AtomicBool::new(false),
        }
    }
}

impl Outlet for FrameOutlet {
    fn list_changed(&self, list: ListKind) {
        let kind = match list {
            ListKind::Tools => PayloadKind::ListToolsResponse,
            ListKind::Resources => PayloadKind::ListResourcesResponse,
            // The contract has no messages for them.
            ListKind::Templates | ListKind::Prompts | ListKind::Skills => return,
        };
        if !self.list_changed.load(Ordering::Relaxed) {
            return;
        }
        let key = Bytes::from_static(if list == ListKind::Tools {
            b"tools"
        } else {
            b"resources"
        });
        if let Some(frame) = frame::of_field(0, &kind.field(b""))
            && self.out.send_latest(key, frame).is_err()
        {
            tracing::info!("a client reads too slowly: its connection is closed");
        }
    }

    fn close(&self, _: Option<Ended>) {
        self.out.end();
    }
}
