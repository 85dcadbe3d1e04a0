//! Administration: issued tokens and granted capabilities.

pub mod grant_service;
pub mod grants;
pub mod identities;
pub mod journal;
pub mod token_service;
pub mod tokens;
