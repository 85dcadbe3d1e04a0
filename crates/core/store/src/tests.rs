//! Test support: the simulated disk.

pub(crate) mod sim;
