//! Set-up without an editor: the real binary with a home directory of the test.

mod clients;
mod first_hour;
mod own;
mod registry;
mod watched;
