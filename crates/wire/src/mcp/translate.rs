//! Translation between the eras: plain lists, calls, reads and gets, and server descriptions.
//!
//! Each function takes a message of one era and gives its bytes, or edits over them, for the other. Questions
//! (`input_required` and requests from servers), subscriptions and tasks are not translated here.

mod answer;

mod request;
mod server_description;

pub use answer::{error, notification, result};
pub use request::{request_to_legacy, request_to_modern};
pub use server_description::{ServerDescription, discover, initialize};

#[cfg(test)]
mod tests;
