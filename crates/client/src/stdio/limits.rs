//! Bounds on what a child may cost. It must not know where they are kept.

/// Bounds of one child's pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdioLimits {
    /// Bytes that may wait for the child to read them.
    pub queue_bytes_max: usize,
    /// Messages that may wait for the child to read them.
    pub queue_len_max: usize,
    /// Length of a line on its stdout, in bytes.
    pub line_bytes_max: usize,
    /// Length of a line on its stderr that is logged, in bytes; the rest is cut.
    pub stderr_line_bytes_max: usize,
    /// Lines of its stderr that are logged in a second; the rest is counted.
    pub stderr_lines_per_second: u32,
    /// Bytes of its stdout in a second that may be no messages; then it is not read for the rest of that second. A short
    /// line counts as 256 bytes, an overlong one as the longest.
    pub noise_bytes_per_second: usize,
}

impl Default for StdioLimits {
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
