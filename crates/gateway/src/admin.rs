//! Administration: tokens that are issued and revoked, capabilities that are granted and taken.

pub mod grants;
pub mod office;
pub mod tokens;
