//! The vectors that the SDK shares with other languages, and what depending on it brings along.

mod tree;
mod vectors;
