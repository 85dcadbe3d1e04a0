//! Lines of journals: bytes of the runner's user.

use bytes::Bytes;
use cluster::HomeLine;

/// The most bytes of a line: it must fit in one record, sealed and with its place.
pub const LINE_BYTES_MAX: usize = cluster::GROUP_BYTES_MAX;

/// A line of a journal, which the rules never read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardLine(pub Bytes);

impl HomeLine for ShardLine {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}
