//! Administration: issued tokens and granted capabilities.

pub mod grant_service;
pub mod token_service;
