//! Links to real processes and sockets, and the vectors that the SDK shares with other languages.

mod guard;
mod http;
mod vectors;
