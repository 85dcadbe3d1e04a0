//! Elicitation forms: the flat schemas of MCP, their fields, and what a person may type into them. Pure; must not know the
//! terminal. Source: MCP 2025-11-25, client/elicitation.

mod field;
mod schema;

#[cfg(test)]
mod tests;

pub(crate) use field::Field;
pub(crate) use schema::fields;
