//! The protocol of a connection, by its first byte (proto-mcp v1.0, "Dual-Protocol Support").
//!
//! The document gives 0x00 to 0x1F to protobuf. A length of at most 32 MiB begins with 0x00 to
//! 0x02, which leaves line ends, tabs and TLS hellos to those that write them.

/// Protocol that a first byte begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// A frame of proto-mcp.
    Proto,
    /// JSON, which is written in lines.
    Json,
    /// A TLS hello.
    Tls,
    /// An HTTP request.
    Http,
    /// Nothing that the gateway reads.
    Unknown,
}

/// Looks at the first byte of a connection.
#[must_use]
pub fn sniff(first: u8) -> Sniffed {
    match first {
        0x00..=0x02 => Sniffed::Proto,
        // 0xEF begins the UTF-8 mark that some editors write.
        b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' | 0xEF => Sniffed::Json,
        0x16 => Sniffed::Tls,
        b'P' | b'G' | b'D' | b'O' | b'H' => Sniffed::Http,
        _ => Sniffed::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_meaning() {
        for first in 0..=u8::MAX {
            let expected = match first {
                0..=2 => Sniffed::Proto,
                9 | 10 | 13 | 32 | 0x5B | 0x7B | 0xEF => Sniffed::Json,
                0x16 => Sniffed::Tls,
                0x44 | 0x47 | 0x48 | 0x4F | 0x50 => Sniffed::Http,
                _ => Sniffed::Unknown,
            };
            assert_eq!(sniff(first), expected, "{first:#x}");
        }
    }
}
