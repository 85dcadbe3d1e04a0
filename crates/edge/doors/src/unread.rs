//! Bytes that no client has read yet: they are on their participant's account until they are
//! written.

use std::sync::Arc;

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use platform::{Full, Share, Taken};

/// Messages up to this length, in bytes, are not entered in the account of bytes that wait. There
/// are no more of them than open calls and connections, which have bounds of their own and cost
/// more than that; a longer one pays two additions and a small piece of memory.
pub(crate) const UNCOUNTED_BYTES_MAX: usize = 4096;

/// Bytes with their place on an account.
struct Unread<T> {
    bytes: Bytes,
    /// Given back with the last of the bytes, wherever they are by then: HTTP keeps what it has not
    /// written.
    _taken: T,
}

impl<T> AsRef<[u8]> for Unread<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// These bytes; what was taken for them is given back once they are written or dropped.
pub(crate) fn with_place(bytes: Bytes, taken: impl Send + 'static) -> Bytes {
    Bytes::from_owner(Unread {
        bytes,
        _taken: taken,
    })
}

/// Bytes that were admitted before, on an account until they are written or dropped.
pub(crate) fn until_written(bytes: Bytes, account: &Arc<Share>) -> Bytes {
    match place_of(bytes.len(), account) {
        Some(taken) => with_place(bytes, taken),
        None => bytes,
    }
}

/// The place of so many bytes that were admitted before; a short message has none.
pub(crate) fn place_of(bytes: usize, account: &Arc<Share>) -> Option<Taken> {
    (bytes > UNCOUNTED_BYTES_MAX).then(|| account.taken_beyond(bytes))
}

/// Bytes that are on an account until they are written or dropped, if it has room for them.
///
/// # Errors
/// What is full.
pub(crate) fn admitted(bytes: Bytes, account: &Arc<Share>) -> Result<Bytes, Full> {
    if bytes.len() <= UNCOUNTED_BYTES_MAX {
        return Ok(bytes);
    }
    let taken = account.take(bytes.len())?;
    Ok(with_place(bytes, taken))
}

/// The refusal of an answer that has no room on its caller's account.
pub(crate) fn too_many() -> Refusal {
    Refusal::new(RefusalCode::Overloaded, "too many answers wait to be read")
        .hint("read the answers that you have asked for, then ask again")
}

#[cfg(test)]
mod tests {
    use platform::Shares;

    use super::*;

    #[test]
    fn bytes_are_on_an_account_until_the_last_part_of_them_is_dropped() {
        let account = Shares::new(1 << 20, 1 << 20).of("ann");
        let len = UNCOUNTED_BYTES_MAX + 1;
        let mut whole = admitted(Bytes::from(vec![b'x'; len]), &account).unwrap();
        let part = whole.split_to(10);
        drop(whole);
        assert_eq!((account.taken(), part.len()), (len, 10));
        drop(part);
        assert_eq!(account.taken(), 0);
        let short = until_written(Bytes::from_static(b"short"), &account);
        assert_eq!((account.taken(), &*short), (0, &b"short"[..]));
    }

    #[test]
    fn what_was_admitted_before_is_never_refused() {
        let account = Shares::new(10_000, 10_000).of("ann");
        let long = Bytes::from(vec![b'x'; 9_000]);
        let first = admitted(long.clone(), &account).unwrap();
        assert_eq!(admitted(long.clone(), &account).unwrap_err(), Full::Share);
        let second = until_written(long, &account);
        assert_eq!(account.taken(), 18_000);
        drop((first, second));
        assert_eq!(account.taken(), 0);
    }
}
