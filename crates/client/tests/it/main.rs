//! Links to real processes and sockets, and the vectors that the SDK shares with other languages.

mod authorized;
mod guard;
mod http;
mod vectors;
