//! Printing of the program: results, messages, failures with their exit codes, questions at the
//! terminal.
//!
//! - [`output`]: results on stdout, messages on stderr, as text or JSON, with or without colours.
//! - [`failure`], [`exit`]: why a command failed, and with which code the program ends.
//! - [`prompt`]: questions to the person at the terminal.
//! - [`timestamp`], [`address`]: times and addresses as people write and read them.

pub mod address;
mod chat_output;
pub mod exit;
pub mod failure;
pub mod output;
pub mod prompt;
mod setup_failure;
pub mod timestamp;
