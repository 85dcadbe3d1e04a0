//! Requests of a room to a server, as far as the gateway answers them itself: handshake, ping, lists.

use std::sync::Arc;

use model::{Form, ListKind};
use wire::mcp::list::{Hints, render};
use wire::mcp::method;

use crate::builtin::not_in_room;
use crate::call::{Call, Names};
use crate::delivery;
use crate::dispatch::Dispatch;
use crate::handshake;
use crate::live::ConfiguredServer;

/// The methods that servers carry out for a room.
const CARRIED_OUT: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];

/// What becomes of a request of a room.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// Its server carries it out.
    Server,
    /// The gateway answers for the server.
    Initialize,
    Ping,
    List(ListKind),
    /// Rooms do not have this.
    Unknown,
}

/// Answers a call of a room for its server, unless the server must carry it out; true if it was answered. An approved proposal
/// is always carried out by the server.
pub(crate) fn answer_hosted(dispatch: &Arc<Dispatch>, call: &Arc<Call>, server: &ConfiguredServer) -> bool {
    let approved = call.delivered.get().is_some_and(|delivered| delivered.proposal.is_some());
    if call.names == Names::Public || approved {
        return false;
    }
    let method = call.request.method.as_str();
    let body = match way(method) {
        Way::Server => return false,
        Way::Initialize => {
            let manifest = server.upstream.manifest_in(Form::ENVELOPE);
            handshake::of_server(server.id.as_str(), &manifest.capabilities)
        }
        Way::Ping => b"{}".to_vec(),
        Way::List(list) => {
            let manifest = server.upstream.manifest_in(Form::ENVELOPE);
            let items = manifest.list(list).items.iter().map(|item| (item, None));
            render(list, items, None, &[], Hints::Legacy)
        }
        Way::Unknown => {
            delivery::fail(dispatch, call, not_in_room(method));
            return true;
        }
    };
    delivery::answer_body(dispatch, call, body);
    true
}

fn way(method: &str) -> Way {
    match method {
        "initialize" => Way::Initialize,
        "ping" => Way::Ping,
        name if CARRIED_OUT.contains(&name) => Way::Server,
        name => method::lookup(name).and_then(|known| known.list).map_or(Way::Unknown, Way::List),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_carry_out_calls_and_the_gateway_answers_the_rest() {
        for (method, expected) in [
            ("tools/call", Way::Server),
            ("completion/complete", Way::Server),
            ("initialize", Way::Initialize),
            ("ping", Way::Ping),
            ("tools/list", Way::List(ListKind::Tools)),
            ("resources/templates/list", Way::List(ListKind::Templates)),
            ("resources/subscribe", Way::Unknown),
            ("tasks/get", Way::Unknown),
            ("no/such", Way::Unknown),
        ] {
            assert_eq!(way(method), expected, "{method}");
        }
    }
}
