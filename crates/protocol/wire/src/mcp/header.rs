//! Request headers of Streamable HTTP since 2026-07-28, and their agreement with the body.
//!
//! Works over a function that gives a header's value by its lower-case name, so that no HTTP
//! library is needed here. **That function must give all values of a repeated header joined with
//! `, `**, else one of them could go unseen.

mod check;
mod schema;
mod value;

pub use check::{
    METHOD, NAME, Opening, PROTOCOL_VERSION, check, check_body, check_params, classify, supported,
};
pub use schema::{HeaderParam, HeaderType, annotations};
pub use value::{compute, decode, encode, standard};

#[cfg(test)]
mod tests;
