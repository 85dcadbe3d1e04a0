//! Writer: objects member by member and arrays element by element, into one buffer.

use crate::escape::{Buffer, put_joined, put_text};
use crate::{Span, StringSpan};

/// Room that [`object`] begins with, in bytes.
const ROOM_BYTES: usize = 128;

/// Writes an object into bytes of its own.
#[must_use]
pub fn object(members: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(ROOM_BYTES);
    Object::write(&mut out, members);
    out
}

/// An object that is being written: the closure that gets it adds the members, braces and commas
/// follow.
///
/// Keys and texts are escaped. Nothing checks that no key is added twice.
#[derive(Debug)]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    /// Appends an object to `out`, and returns what the closure returns.
    #[inline]
    pub fn write<T>(out: &'o mut Vec<u8>, members: impl FnOnce(&mut Self) -> T) -> T {
        out.put("{");
        let mut object = Self {
            out,
            is_empty: true,
        };
        let returned = members(&mut object);
        object.out.put("}");
        returned
    }

    /// Appends members without braces, for an object whose other parts the caller writes.
    #[inline]
    pub fn write_members(out: &'o mut Vec<u8>, members: impl FnOnce(&mut Self)) {
        members(&mut Self {
            out,
            is_empty: true,
        });
    }

    /// Whether no member was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Adds a string.
    #[inline]
    pub fn text(&mut self, key: &str, text: &str) -> &mut Self {
        put_text(self.key(key), text);
        self
    }

    /// Adds a string, and returns its place in the bytes.
    #[inline]
    pub fn placed_text(&mut self, key: &str, text: &str) -> StringSpan {
        place_text(self.key(key), text)
    }

    /// Adds JSON that was written before, and returns its place in the bytes.
    #[inline]
    pub fn placed_raw(&mut self, key: &str, raw: &[u8]) -> Span {
        let out = self.key(key);
        let start = out.len();
        out.extend_from_slice(raw);
        Span {
            start,
            end: out.len(),
        }
    }

    /// Adds a string, if there is one.
    #[inline]
    pub fn optional_text(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    /// Adds a string of several parts with a separator between them.
    #[inline]
    pub fn joined<'t>(
        &mut self,
        key: &str,
        parts: impl IntoIterator<Item = &'t str>,
        separator: &str,
    ) -> &mut Self {
        put_joined(self.key(key), parts, separator);
        self
    }

    /// Adds JSON that was written before.
    #[inline]
    pub fn raw(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.key(key).extend_from_slice(raw);
        self
    }

    /// Adds an integer.
    #[inline]
    pub fn number(&mut self, key: &str, number: impl itoa::Integer) -> &mut Self {
        self.key(key).put(itoa::Buffer::new().format(number));
        self
    }

    /// Adds `true` or `false`.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.key(key).put(if value { "true" } else { "false" });
        self
    }

    /// Adds `null`.
    pub fn null(&mut self, key: &str) -> &mut Self {
        self.key(key).put("null");
        self
    }

    /// Adds an object.
    #[inline]
    pub fn object(&mut self, key: &str, members: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        Object::write(self.key(key), members);
        self
    }

    /// Adds an array.
    #[inline]
    pub fn array(&mut self, key: &str, elements: impl FnOnce(&mut Array<'_>)) -> &mut Self {
        Array::write(self.key(key), elements);
        self
    }

    /// Adds an array of strings.
    pub fn texts<T: AsRef<str>>(
        &mut self,
        key: &str,
        texts: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        self.array(key, |array| {
            for text in texts {
                array.text(text.as_ref());
            }
        })
    }

    /// Appends a comma if needed, the key and a colon; returns the buffer for the value.
    #[inline(always)]
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.put(",");
        }
        self.is_empty = false;
        put_text(self.out, key);
        self.out.put(":");
        self.out
    }
}

/// An array that is being written: the closure that gets it adds the elements, brackets and commas
/// follow.
#[derive(Debug)]
pub struct Array<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Array<'o> {
    /// Appends an array to `out`.
    #[inline]
    pub(crate) fn write(out: &'o mut Vec<u8>, elements: impl FnOnce(&mut Self)) {
        out.put("[");
        let mut array = Self {
            out,
            is_empty: true,
        };
        elements(&mut array);
        array.out.put("]");
    }

    /// Adds a string.
    pub fn text(&mut self, text: &str) -> &mut Self {
        put_text(self.element(), text);
        self
    }

    /// Adds a string, and returns its place in the bytes.
    #[inline]
    pub fn placed_text(&mut self, text: &str) -> StringSpan {
        place_text(self.element(), text)
    }

    /// Adds JSON that was written before.
    pub fn raw(&mut self, raw: &[u8]) -> &mut Self {
        self.element().extend_from_slice(raw);
        self
    }

    /// Adds an object.
    pub fn object(&mut self, members: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        Object::write(self.element(), members);
        self
    }

    /// Appends a comma if needed; returns the buffer for the element.
    fn element(&mut self) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.put(",");
        }
        self.is_empty = false;
        self.out
    }
}

/// Appends a string and returns its place.
fn place_text(out: &mut Vec<u8>, text: &str) -> StringSpan {
    let start = out.len();
    put_text(out, text);
    let whole = Span {
        start,
        end: out.len(),
    };
    StringSpan::written(whole, text)
}
