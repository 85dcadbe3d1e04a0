//! Beginning of a connection: HTTP reads the preface of HTTP/2 in one piece, because it tells the
//! protocols apart by all of it only; frames of proto-mcp are kept from it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, ReadBuf};
use wire::proto::sniff::{Sniffed, sniff};

/// First bytes of a connection of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// First bytes of a connection, or the protocol that they show.
#[derive(Default)]
pub(super) enum Opening {
    /// Nothing was read.
    #[default]
    Unread,
    /// So many bytes of the preface, and nothing else.
    Preface(usize),
    /// Frames of proto-mcp.
    Frames(BytesMut),
    /// HTTP reads for itself.
    Over,
}

impl Opening {
    /// Reads as HTTP wants it.
    ///
    /// # Errors
    /// Errors of `inner`, and one if the connection is no HTTP: then [`Opening::Frames`] has what
    /// was read.
    pub(super) fn poll_read(
        &mut self,
        mut inner: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self {
                Self::Over => return inner.as_mut().poll_read(cx, into),
                Self::Frames(_) => {
                    return Poll::Ready(Err(io::Error::other("no HTTP, but proto-mcp")));
                }
                Self::Unread => {
                    let before = into.filled().len();
                    ready!(inner.as_mut().poll_read(cx, into))?;
                    let read = into.filled().get(before..).unwrap_or_default();
                    *self = Self::of(read);
                    if matches!(self, Self::Over) {
                        return Poll::Ready(Ok(()));
                    }
                    into.set_filled(before);
                }
                Self::Preface(read) => {
                    let mut next = [0];
                    let mut next = ReadBuf::new(&mut next);
                    ready!(inner.as_mut().poll_read(cx, &mut next))?;
                    let (known, rest) = PREFACE.split_at_checked(*read).unwrap_or_default();
                    if rest.len() > 1
                        && next
                            .filled()
                            .first()
                            .is_some_and(|next| rest.first() == Some(next))
                    {
                        *read += 1;
                        continue;
                    }
                    into.put_slice(known);
                    into.put_slice(next.filled());
                    *self = Self::Over;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    fn of(read: &[u8]) -> Self {
        match read.first() {
            Some(first) if sniff(*first) == Sniffed::Proto => Self::Frames(read.into()),
            Some(_) if read.len() < PREFACE.len() && PREFACE.starts_with(read) => {
                Self::Preface(read.len())
            }
            _ => Self::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    /// The bytes of one read, where bytes come one by one.
    async fn read(opening: &mut Opening, sent: &'static [u8]) -> io::Result<Vec<u8>> {
        let (mut near, mut far) = duplex(1);
        let writer = tokio::spawn(async move { far.write_all(sent).await });
        let mut bytes = [0; 64];
        let mut into = ReadBuf::new(&mut bytes);
        poll_fn(|cx| opening.poll_read(Pin::new(&mut near), cx, &mut into)).await?;
        drop(near);
        // What is not read is not written.
        drop(writer.await);
        Ok(into.filled().to_vec())
    }

    #[tokio::test]
    async fn the_preface_is_read_in_one_piece_and_nothing_else() {
        for (sent, first) in [
            (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0"[..], 24),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\nX", 23),
            (b"POST / HTTP/1.1\r\n", 2),
            (b"GET / HTTP/1.1\r\n", 1),
            (b"PRI", 3),
            (b"", 0),
        ] {
            let mut opening = Opening::default();
            assert_eq!(read(&mut opening, sent).await.unwrap(), sent[..first]);
            assert!(matches!(opening, Opening::Over));
        }
    }

    #[tokio::test]
    async fn frames_are_kept() {
        for sent in [&[0, 0, 0, 2, 8, 1][..], &[1], &[2, 0]] {
            let mut opening = Opening::default();
            read(&mut opening, sent).await.unwrap_err();
            assert!(matches!(&opening, Opening::Frames(read) if read[..] == sent[..1]));
            read(&mut opening, sent).await.unwrap_err();
        }
    }
}
