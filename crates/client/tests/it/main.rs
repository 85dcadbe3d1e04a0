//! Links to real processes and sockets.

mod guard;
mod http;
