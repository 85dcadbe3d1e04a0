//! People who sign in for the gateway's own pages, at an issuer or at its own authorization server.

mod id_token;
mod issuer;
mod place;

pub use issuer::{METADATA_MS, PageClient, PageIssuer, PageSpec};
pub use place::{
    Asked, AskingClient, Awaited, BegunPerson, PersonError, PersonSignIn, PersonTokens, PersonWish,
    SignInPlace,
};
