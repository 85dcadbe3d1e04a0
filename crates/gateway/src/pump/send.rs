//! The last step of a request on its way in: its params, in the era and under the name of the session that takes it.
//!
//! Must not know how the topic decides.

use std::sync::Arc;

use model::{Refusal, RefusalCode};
use wire::mcp::{Params, Target};
use wire::rpc::Message;

use crate::operation::Operation;
use crate::spell;
use crate::stream::Stream;
use crate::upstream::{CallSink, Hello, Outgoing, Session};

/// The params of a request; what is wrong with them is answered here.
pub(super) fn read<'m>(message: &'m Message, out: &Stream) -> Option<Params<'m>> {
    Params::read(message).inspect_err(|malformed| out.answer(malformed.answer())).ok()
}

/// Sends a request in the era of the session that takes it.
pub(super) fn translate(
    operation: &Arc<Operation>,
    session: &Arc<Session>,
    own: Option<&str>,
    params: &Params<'_>,
    hello: &Hello,
) {
    match spell::for_session(params.message(), operation.caller.era(), session.era(), hello) {
        None => send(operation, session, own, params),
        Some(message) => match Params::read(&message) {
            Ok(params) => send(operation, session, own, &params),
            Err(_) => operation.refuse(&untranslated()),
        },
    }
}

pub(super) fn untranslated() -> Refusal {
    Refusal::new(RefusalCode::Internal, "the request could not be translated")
}

fn send(operation: &Arc<Operation>, session: &Arc<Session>, own: Option<&str>, params: &Params<'_>) {
    let mut edit = params.edit();
    if let Some(own) = own {
        edit.set_target(own);
    }
    let target = own.or_else(|| params.target().map(Target::text));
    operation.goes_to(session);
    let from = operation.caller.participant().id.as_str();
    let sink: Arc<dyn CallSink> = Arc::<Operation>::clone(operation);
    match session.call(Outgoing { params, edit, target, from }, sink) {
        Ok(ticket) => operation.is_sent(ticket),
        Err(refusal) => operation.done(Err(refusal)),
    }
}
