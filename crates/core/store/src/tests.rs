//! Test support: the simulated disk, and an owner of records.

pub(crate) mod names;
pub(crate) mod sim;
