//! Limits of a stdio link.

/// Limits of one child's pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdioLimits {
    /// Bytes that may wait until the child reads them.
    pub queue_bytes_max: usize,
    /// Messages that may wait until the child reads them.
    pub queue_len_max: usize,
    /// Length of a line of its stdout, in bytes.
    pub line_bytes_max: usize,
    /// Length of a line of its stderr in the log, in bytes; the rest is cut.
    pub stderr_line_bytes_max: usize,
    /// Lines of its stderr that are logged in a second; further ones are counted.
    pub stderr_lines_per_second: u32,
    /// Bytes of its stdout in a second that are not messages. Beyond this the link does not read for the rest of the
    /// second. A short line counts as 256 bytes, an overlong one as `line_bytes_max`.
    pub noise_bytes_per_second: usize,
}

impl Default for StdioLimits {
    /// 16 MiB and 4096 messages in the queue, lines of 16 MiB, 100 lines of stderr of 4 KiB a second, 4 MiB of noise a
    /// second.
    fn default() -> Self {
        Self {
            queue_bytes_max: 16 << 20,
            queue_len_max: 4096,
            line_bytes_max: 16 << 20,
            stderr_line_bytes_max: 4096,
            stderr_lines_per_second: 100,
            noise_bytes_per_second: 4 << 20,
        }
    }
}
