//! Rules in force: what they decide, what they have spent, and how they are shown.

pub mod decided_by;
pub(crate) mod desk;
pub(crate) mod facts;
pub(crate) mod judge;
pub(crate) mod kept;
pub(crate) mod locked_case;
pub mod shown;
pub(crate) mod tighten;

#[cfg(test)]
pub(crate) mod tests;
