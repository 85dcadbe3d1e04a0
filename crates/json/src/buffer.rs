//! Buffers that JSON is written into.

use smallvec::{Array, SmallVec};

/// A growing text: `Vec<u8>`, `String`, or bytes of which few need no allocation.
pub trait Buffer {
    /// JSON that was written before, as this buffer takes it: `[u8]` or `str`.
    type Raw: ?Sized;

    /// Appends a text.
    fn put(&mut self, text: &str);

    /// Appends JSON that was written before.
    fn put_raw(&mut self, raw: &Self::Raw);
}

macro_rules! bytes {
    ($buffer:ty $(, $parameter:ident)?) => {
        impl$(<$parameter: Array<Item = u8>>)? Buffer for $buffer {
            type Raw = [u8];

            #[inline]
            fn put(&mut self, text: &str) {
                self.extend_from_slice(text.as_bytes());
            }

            #[inline]
            fn put_raw(&mut self, raw: &[u8]) {
                self.extend_from_slice(raw);
            }
        }
    };
}

bytes!(Vec<u8>);
bytes!(SmallVec<A>, A);

impl Buffer for String {
    type Raw = str;

    #[inline]
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }

    #[inline]
    fn put_raw(&mut self, raw: &str) {
        self.push_str(raw);
    }
}
