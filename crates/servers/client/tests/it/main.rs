//! Links to real processes and sockets.

mod authorized;
mod guard;
mod http;
