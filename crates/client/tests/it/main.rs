//! What needs processes of its own.

mod guard;
