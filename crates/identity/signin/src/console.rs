//! The gateway's own console as a client of this authorization server: a public one, whose tokens are
//! asked for in this process and are never in a browser.

use auth::PublicUrl;
use identity::login::CONSOLE_CLIENT;

use crate::client::{Client, ClientTrust};

/// Time that a sign-in at the console lasts at most, in milliseconds.
pub const CONSOLE_SIGN_IN_MS: u64 = 12 * 3_600_000;
/// The name of this place. No issuer has it: it is the gateway's own.
pub const OWN_PLACE: &str = "portmoot";
/// The page to which it leads back: the console's for a place of this name.
const CALLBACK: &str = "/console/signed-in/portmoot";

/// The console as a client of a gateway at this address.
pub(crate) fn client(public_url: &PublicUrl) -> Client {
    Client {
        id: CONSOLE_CLIENT.to_owned(),
        name: "The gateway’s console".to_owned(),
        standing: ClientTrust::Configured,
        redirect_uris: vec![public_url.at(CALLBACK)],
    }
}
