//! Buffers that strings are written into.

use smallvec::{Array, SmallVec};

/// A growing text: `Vec<u8>`, `String`, or bytes of which few need no allocation.
pub(crate) trait Buffer {
    /// Appends a text.
    fn put(&mut self, text: &str);
}

impl Buffer for Vec<u8> {
    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl<A: Array<Item = u8>> Buffer for SmallVec<A> {
    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl Buffer for String {
    #[inline]
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}
