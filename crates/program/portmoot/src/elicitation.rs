//! Elicitation forms: flat schemas, their fields, parsing of typed values (MCP 2025-11-25,
//! client/elicitation).

mod field;
mod schema;

#[cfg(test)]
mod tests;

pub(crate) use field::FormField;
pub(crate) use schema::fields;
