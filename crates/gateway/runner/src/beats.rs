//! Heartbeats as one hears them that is no node.

use cluster::Heartbeat;
use fabric::{Broadcasts, BusError, Mesh, SubjectError, SubjectName};

use crate::encoding::{Content, read_beat};

/// The subject of heartbeats below the cluster's.
///
/// # Errors
/// [`SubjectError`] when it would be none.
pub(crate) fn beats_below(root: &SubjectName) -> Result<SubjectName, SubjectError> {
    format!("{root}.hb").parse()
}

/// The heartbeats of all nodes below a subject, for [`heartbeat`].
///
/// # Errors
/// [`BusError`] when the bus cannot be listened to.
pub async fn heartbeats(mesh: &Mesh, root: &SubjectName) -> Result<Broadcasts, BusError> {
    let unfit = |why: SubjectError| BusError::Unavailable(why.to_string());
    let beats = beats_below(root).map_err(unfit)?;
    mesh.listen(&(&beats).into()).await
}

/// The heartbeat of a message, if this version can read it.
#[must_use]
pub fn heartbeat(content: &bytes::Bytes) -> Option<Heartbeat> {
    match read_beat(content) {
        Content::Read(beat) => Some(beat),
        Content::Later | Content::Damaged => None,
    }
}
