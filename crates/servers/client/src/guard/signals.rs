//! Signals that a guard process or a keeper catches, as a descriptor to wait on.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};

/// Caught signals. Dropping it ends that; the signals are ignored from then on, unless another
/// catches them.
#[derive(Debug)]
pub(super) struct Signals {
    caught: UnixStream,
    registered: Vec<SigId>,
}

impl Signals {
    /// Catches these. The descriptor is readable after each of them.
    pub(super) fn catch(signals: &[i32]) -> io::Result<Self> {
        let (caught, written) = UnixStream::pair()?;
        caught.set_nonblocking(true)?;
        let register = |signal: &i32| pipe::register(*signal, written.try_clone()?);
        let registered = signals.iter().map(register).collect::<io::Result<_>>()?;
        Ok(Self { caught, registered })
    }

    /// Forgets those that have come.
    pub(super) fn clear(&self) {
        while (&self.caught)
            .read(&mut [0; 64])
            .is_ok_and(|bytes| bytes > 0)
        {}
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.caught.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            unregister(id);
        }
    }
}
