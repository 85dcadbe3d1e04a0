//! Buffers that JSON is written into.

use smallvec::SmallVec;

/// A growing text: `Vec<u8>`, `String`, or bytes of which few need no allocation.
pub trait Buffer: sealed::Sealed {
    /// JSON that was written before, as this buffer takes it: `[u8]` or `str`.
    type Raw: ?Sized;

    /// An empty buffer with room for so many bytes.
    fn with_room(bytes: usize) -> Self;

    /// Appends a text.
    fn put(&mut self, text: &str);

    /// Appends JSON that was written before.
    fn put_raw(&mut self, raw: &Self::Raw);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for Vec<u8> {}
    impl Sealed for String {}
    impl<const N: usize> Sealed for smallvec::SmallVec<[u8; N]> where [u8; N]: smallvec::Array<Item = u8> {}
}

impl Buffer for Vec<u8> {
    type Raw = [u8];

    fn with_room(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn put_raw(&mut self, raw: &[u8]) {
        self.extend_from_slice(raw);
    }
}

impl<const N: usize> Buffer for SmallVec<[u8; N]>
where
    [u8; N]: smallvec::Array<Item = u8>,
{
    type Raw = [u8];

    fn with_room(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn put_raw(&mut self, raw: &[u8]) {
        self.extend_from_slice(raw);
    }
}

impl Buffer for String {
    type Raw = str;

    fn with_room(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    #[inline]
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }

    #[inline]
    fn put_raw(&mut self, raw: &str) {
        self.push_str(raw);
    }
}
