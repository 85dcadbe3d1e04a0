//! Tests of people who sign in at an issuer: the way there and back, their tokens, and further proofs.

mod ends;
mod refused;
mod renewal;
mod signing_in;
mod site;
