//! Memory of this process: hidden from others, because secrets are in it, and given back to the
//! system after a flood.

/// Has the kernel write no core file of this process, and keep its memory from other processes of
/// the same user: they cannot attach to it, nor read `/proc/PID/mem`, `environ`, `maps` or `fd`,
/// which belong to root from now on. Programs that this one starts are as they always are. On
/// Linux; elsewhere nothing changes.
///
/// # Errors
/// The answer of the kernel if it refuses.
pub fn hide_memory() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// The resident memory of this process, in bytes. A look takes microseconds. On Linux; `None`
/// elsewhere.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let read = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = read.split(' ').nth(1)?.parse().ok()?;
    let page_bytes = u64::try_from(rustix::param::page_size()).ok()?;
    Some(pages.saturating_mul(page_bytes))
}

/// The growth of unused memory since the last look from which on it is given back, in bytes.
const GROWN_BYTES: u64 = 4 << 20;

/// Memory that the allocator keeps although the program has freed it.
///
/// The allocator of glibc gives back the end of a heap alone, so that what a flood of connections
/// took stays with the process for ever: some bytes that live longer lie behind it.
#[derive(Debug, Default)]
pub struct UnusedMemory {
    /// The least since unused memory was last given back, in bytes: it counts as unused from then
    /// on too.
    known: u64,
}

impl UnusedMemory {
    /// Gives unused memory back if it has grown by 4 MiB since the last time. To be called now and
    /// then.
    ///
    /// A look takes microseconds, and giving back about a millisecond for each 100 MiB. Only with
    /// glibc on Linux; other allocators give memory back by themselves.
    pub fn give_back(&mut self) {
        let unused = unused_bytes();
        self.known = self.known.min(unused);
        if unused >= self.known.saturating_add(GROWN_BYTES) {
            trim();
            self.known = unused_bytes();
        }
    }
}

/// The bytes that the allocator keeps free; beyond 4 GiB it counts from 0 again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no library wraps this function of glibc")]
fn unused_bytes() -> u64 {
    // SAFETY: `mallinfo` has no conditions: it reads counters under the allocator's own locks.
    let counters = unsafe { libc::mallinfo() };
    u64::from(counters.fordblks.cast_unsigned())
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no library wraps this function of glibc")]
fn trim() {
    // SAFETY: `malloc_trim` has no conditions: it takes the allocator's own locks and touches only
    // what is free.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn unused_bytes() -> u64 {
    0
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use super::UnusedMemory;

    #[test]
    #[cfg(target_os = "linux")]
    fn resident_memory_grows_with_what_is_written() {
        let before = super::resident_bytes().unwrap();
        let written = vec![1_u8; 64 << 20];
        let after = super::resident_bytes().unwrap();
        assert!(
            after >= before + (32 << 20),
            "{before} {after} {}",
            written.len()
        );
    }

    #[test]
    fn the_kernel_dumps_no_hidden_memory() {
        super::hide_memory().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn what_a_flood_took_is_given_back_once_it_is_over() {
        // The resident memory of this process without that of files, in bytes.
        let own_bytes = || {
            let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: Vec<u64> = sizes
                .split_whitespace()
                .map(|pages| pages.parse().unwrap())
                .collect();
            (pages[1] - pages[2]) * rustix::param::page_size() as u64
        };
        let mut unused = UnusedMemory::default();
        unused.give_back();
        let before = own_bytes();
        // Small pieces between which some stay: the end of the heap is in use.
        let mut pieces: Vec<Vec<u8>> = (0..20_000).map(|_| vec![1; 2_000]).collect();
        unused.give_back();
        let grown = own_bytes() - before;
        assert!(grown > 32 << 20, "{grown}");
        let mut number = 0;
        pieces.retain(|_| {
            number += 1;
            number % 1_000 == 0
        });
        unused.give_back();
        let kept = own_bytes().saturating_sub(before);
        assert!(kept < grown / 4, "{kept} of {grown}");
        assert_eq!(pieces.len(), 20);
    }
}
