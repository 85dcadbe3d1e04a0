//! Calls that move, unsent, from a session in which they wait to another session of their caller.

use std::sync::Arc;

use upstream::{CallNumber, Session};

use crate::{call::Call, dispatch::Dispatch};

/// Sends a call that waits in its session behind one whose server asks the caller by the caller's
/// next session. A call that runs with its proposer's account, or with another caller's, never waits
/// so: no server may ask about it.
pub(crate) fn to_next_session(dispatch: &Arc<Dispatch>, call: &Call) {
    let Some(from) = call.sessions.last().cloned() else {
        return;
    };
    let Some(server) = dispatch.server_named(from.upstream()) else {
        return;
    };
    let dispatch = Arc::clone(dispatch);
    let link = Arc::clone(&call.link);
    let id = call.id;
    let client = call.client().clone();
    let token = call.token();
    tokio::spawn(async move {
        let caller = link.caller_with(&client, token);
        // Without another session it goes on waiting where it is.
        if let Ok(next) = server.upstream.session(&caller).await {
            dispatch.proceed(id, move |_, call| move_unsent(call, &from, &next));
        }
    });
}

/// Lets the next session send a call, unless it was sent by now or depends on its first session.
fn move_unsent(call: &Call, from: &Session, next: &Arc<Session>) {
    if !call.may_move() {
        return;
    }
    let Some(unsent) = from.take_unsent(CallNumber::of(call.id)) else {
        return;
    };
    call.sessions.enter(next);
    next.adopt(unsent);
    // By now it may wait behind another such call.
    next.offer_deferred();
}
