//! Heartbeats, for programs that are no node.

use cluster::Heartbeat;
use fabric::{Broadcasts, BusError, ClusterSubjects, Mesh};

use crate::encoding::{Content, read_beat};

/// The heartbeats of all nodes of a cluster, for [`heartbeat`].
///
/// # Errors
/// [`BusError`] when the bus cannot be listened to.
pub async fn heartbeats(mesh: &Mesh, subjects: &ClusterSubjects) -> Result<Broadcasts, BusError> {
    mesh.listen(&subjects.heartbeats().into()).await
}

/// The heartbeat of a message, if this version can read it.
#[must_use]
pub fn heartbeat(content: &bytes::Bytes) -> Option<Heartbeat> {
    match read_beat(content) {
        Content::Read(beat) => Some(beat),
        Content::Later | Content::Damaged => None,
    }
}
