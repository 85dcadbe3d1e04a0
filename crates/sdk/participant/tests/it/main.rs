//! The vectors that the SDK shares with other languages, and what depending on it brings along.

mod rules;
mod tree;
mod vectors;
