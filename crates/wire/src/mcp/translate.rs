//! Translation between the eras of what is a plain list, call, read or get, and of what servers say about themselves.
//!
//! Each function takes a message of one era and gives its bytes, or edits over them, for the other. Questions
//! (`input_required` and requests from servers), subscriptions and tasks are not translated here.
//! It must not know sessions.

mod answer;
mod greeting;
mod request;

pub use answer::{error, notification, result};
pub use greeting::{Greeting, discover, initialize};
pub use request::{request_to_legacy, request_to_modern};

#[cfg(test)]
mod tests;
