//! Locks that count their acquisitions, for the build that measures how many locks a call takes.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

static LOCKS: AtomicU64 = AtomicU64::new(0);

/// The number of locks that the process has acquired so far.
pub fn locks() -> u64 {
    LOCKS.load(Ordering::Relaxed)
}

/// Counts one. A function of its own also in optimized builds: profilers count its calls, by
/// caller.
#[inline(never)]
fn acquired() {
    LOCKS.fetch_add(1, Ordering::Relaxed);
}

/// A `parking_lot::Mutex` that counts.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Acquires the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        acquired();
        self.0.lock()
    }

    /// Acquires the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        acquired();
        self.0.try_lock()
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A `parking_lot::RwLock` that counts.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Acquires the lock for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        acquired();
        self.0.read()
    }

    /// Acquires the lock for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        acquired();
        self.0.write()
    }
}
