//! The gateway's own console as a client of this authorization server: a public one, whose tokens are
//! asked for in this process and are never in a browser.

use auth::PublicUrl;
use identity::login::{CONSOLE_CLIENT, OWN_PLACE, console_callback};

use crate::client::{Client, ClientTrust};

/// The console as a client of a gateway at this address.
pub(crate) fn client(public_url: &PublicUrl) -> Client {
    Client {
        id: CONSOLE_CLIENT.to_owned(),
        name: "The gateway’s console".to_owned(),
        standing: ClientTrust::Configured,
        redirect_uris: vec![public_url.at(&console_callback(OWN_PLACE))],
    }
}
