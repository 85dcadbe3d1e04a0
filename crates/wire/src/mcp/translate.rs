//! Translation between the eras: plain lists, calls, reads and gets.
//!
//! Each function takes a message of one era and gives its bytes, or edits over them, for the other. Questions
//! (`input_required` and requests from servers), subscriptions and tasks are not translated here.

mod answer;
mod request;

pub(super) use answer::{error, result};
pub(super) use request::{request_to_legacy, request_to_modern};

#[cfg(test)]
mod tests;
