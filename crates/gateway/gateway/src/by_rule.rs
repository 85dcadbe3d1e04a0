//! Rules in force: what they decide, what they have spent, how they are shown, and what
//! they would have decided.

pub(crate) mod answered;
pub mod by_hand;
pub mod decided_by;
pub(crate) mod desk;
pub(crate) mod evidence;
pub(crate) mod facts;
pub(crate) mod judge;
pub(crate) mod kept;
pub(crate) mod locked_case;
pub mod offers;
pub mod past;
pub(crate) mod recorded;
pub mod shadow;
pub(crate) mod shadowed_case;
pub mod shown;
pub(crate) mod tighten;
pub(crate) mod tool_facts;
pub mod tried;

#[cfg(test)]
pub(crate) mod tests;
