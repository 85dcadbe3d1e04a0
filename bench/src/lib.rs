//! What the bench programs share: flags, figures from `/proc`, reading an HTTP answer, the calls
//! and envelopes that are sent, the crowd that hears them, and the stage on which servers and load
//! are started.

pub mod approvers;
pub mod call;
pub mod callgrind;
pub mod calls;
pub mod cluster;
pub mod collector;
pub mod consoles;
pub mod crowd;
pub mod envelope;
pub mod fan_floor;
pub mod fanout;
pub mod flags;
pub mod instruction_rows;
pub mod instructions;
pub mod isolation;
pub mod memory;
pub mod path_stages;
pub mod proc;
pub mod proto;
pub mod proto_calls;
pub mod reply;
pub mod resolve;
pub mod rule_costs;
pub mod rule_past;
pub mod scopes;
pub mod signers;
pub mod stage;
pub mod table;
pub mod training;
pub mod wires;
