//! What the bench programs share: flags, figures from `/proc`, reading an HTTP answer, the calls that are sent, and the
//! stage on which servers and load are started.

pub mod call;
pub mod calls;
pub mod flags;
pub mod isolation;
pub mod memory;
pub mod proc;
pub mod reply;
pub mod stage;
pub mod table;
