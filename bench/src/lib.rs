//! What the bench programs share: flags, figures from `/proc`, reading an HTTP answer, the calls and envelopes that
//! are sent, the crowd that hears them, and the stage on which servers and load are started.

pub mod call;
pub mod calls;
pub mod crowd;
pub mod envelope;
pub mod fan_floor;
pub mod fanout;
pub mod flags;
pub mod isolation;
pub mod memory;
pub mod proc;
pub mod reply;
pub mod stage;
pub mod table;
pub mod wires;
