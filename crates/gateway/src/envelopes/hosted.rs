//! Requests of a room to a server, as far as the gateway answers them itself: handshake, ping, lists.

use std::sync::Arc;

use model::Form;

use crate::call::{Call, Names};
use crate::{builtin::for_server, delivery, dispatch::Dispatch, live::ConfiguredServer};

/// The methods that servers carry out for a room.
const CARRIED_OUT: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];

/// Answers a call of a room for its server, unless the server must carry it out; true if it was answered. An approved proposal
/// is always carried out by the server.
pub(crate) fn answer_hosted(dispatch: &Arc<Dispatch>, call: &Arc<Call>, server: &ConfiguredServer) -> bool {
    let approved = call.delivered.get().is_some_and(|delivered| delivered.proposal.is_some());
    let method = call.request.method.as_str();
    if call.names == Names::Public || approved || CARRIED_OUT.contains(&method) {
        return false;
    }
    let manifest = server.upstream.manifest_in(Form::ENVELOPE);
    delivery::finish(dispatch, call, for_server(server.id.as_str(), &manifest, method));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_carry_out_calls_and_the_gateway_answers_the_rest() {
        let manifest = upstream::Manifest::default();
        for (method, expected) in [
            ("initialize", Some("protocolVersion")),
            ("ping", Some("{}")),
            ("tools/list", Some("tools")),
            ("resources/templates/list", Some("resourceTemplates")),
            ("resources/subscribe", None),
            ("tasks/get", None),
            ("no/such", None),
        ] {
            assert!(!CARRIED_OUT.contains(&method), "{method}");
            let body = for_server("one", &manifest, method).ok().map(|body| String::from_utf8(body).unwrap());
            assert_eq!(body.is_some(), expected.is_some(), "{method}");
            assert!(body.unwrap_or_default().contains(expected.unwrap_or_default()), "{method}");
        }
        assert!(["tools/call", "completion/complete"].iter().all(|method| CARRIED_OUT.contains(method)));
    }
}
