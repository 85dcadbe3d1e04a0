//! Services for all crates that are no protocol's: locks, shares of what is bounded, files, the
//! wall clock, randomness.
//!
//! The pure crates (`model`, `json`, `topic`, `wire`, `auth`) must not depend on this one; time and
//! randomness reach them as arguments.
//!
//! - [`Mutex`], [`RwLock`]: `parking_lot`'s. With the feature `count_locks` they count acquisitions
//!   (`locks`).
//! - [`Shares`]: what many participants share, with a share for each.
//! - [`Histogram`]: durations, counted in buckets.
//! - [`Limiter`]: acts of each source address in a minute.
//! - [`unix_ms`], [`millis`]: the wall clock. [`steady_ms`]: a clock that goes on in sleep.
//! - [`open_regular`], [`replace_file`]: files that no one can make the program wait for, and that
//!   are whole or absent.
//! - [`random`]: bytes of the operating system.
//! - [`hide_memory`]: no core file, no other process that reads secrets. [`UnusedMemory`]: given
//!   back to the system. [`resident_bytes`]: what is resident.

mod clock;
#[cfg(feature = "count_locks")]
mod counted;
mod files;
mod histogram;
mod limiter;
mod memory;
mod random;
mod shares;

pub use clock::{millis, steady_ms, unix_ms};
#[cfg(feature = "count_locks")]
pub use counted::{Mutex, RwLock, locks};
pub use files::{open_regular, replace_file};
pub use histogram::{Histogram, HistogramCounts};
pub use limiter::{ADDRESSES_MAX, Limiter};
pub use memory::{UnusedMemory, hide_memory, resident_bytes};
pub use parking_lot::{Condvar, MutexGuard, RwLockReadGuard};
#[cfg(not(feature = "count_locks"))]
pub use parking_lot::{Mutex, RwLock};
pub use random::random;
pub use shares::{Full, SHARE_OF_POOL, Share, Shares, Taken, default_share};
