//! Interpreter of effects: the one `match` on [`Effect`] of the whole program.

use std::sync::Arc;

use topic::{Effect as Any, Receiver};

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::link::{Passed, Undelivered};
use crate::live::{Effect, Server};
use crate::proposals::{announce, answer, decide, journal, open};
use crate::record::Record;
use crate::{builtin, delivery, dial_in, envelopes, listen, membership, questions};

/// Carries out one effect.
pub(crate) fn run(dispatch: &Arc<Dispatch>, effect: Effect) {
    match effect {
        Any::NotJoined { handle, refusal, cause: _ } => handle.reject(*refusal),
        Any::Closed { link: _, handle, why } => membership::closed(dispatch, &handle, why),
        Any::Withhold { handle, message, refusal, cause: _ } => {
            envelopes::withhold(dispatch, &handle, &message, &refusal);
        }
        Any::Hear { link, server, message } => dial_in::receive(dispatch, link, server.as_ref(), &message),
        Any::Ignore { link: _, from, message, by, why } => {
            envelopes::ignored(dispatch, &from, &message, &by, why);
        }
        Any::Deliver { operation: _, call, link, server, own, proposal } => {
            delivery::note(&call, &server, link, proposal.as_ref().map(|proposal| proposal.id));
            match &server {
                Server::Gateway => builtin::serve(dispatch, &call),
                Server::Upstream(server) => {
                    if !envelopes::answer_hosted(dispatch, &call, server) {
                        delivery::to_server(dispatch, &call, server, own, proposal.as_deref());
                    }
                }
            }
        }
        Any::Hold { operation: _, call, to, server, own } => open::held(dispatch, &call, &to, &server, own),
        Any::Park { call, proposal } => answer::park(dispatch, &call, &proposal),
        Any::Report { call, proposal } => answer::report(dispatch, &call, &proposal),
        Any::Settle { operation: _, call, answer, proposal } => match proposal {
            Some(proposal) => answer::settle(dispatch, &call, answer, &proposal),
            None => delivery::settle(dispatch, &call, answer),
        },
        Any::Refuse { operation: _, call, refusal, cause } => {
            if call.delivered.get().is_some() {
                Record::of(dispatch).ended(&call, cause);
            }
            call.end();
            call.reply().refuse(&call, &refusal);
        }
        Any::Drop { call } => {
            call.end();
            call.reply().abandon(&call);
        }
        Any::Cancel { call } => call.cancel_at_server("the client cancelled the request"),
        Any::Ask { operation, question, link, to } => questions::ask(dispatch, operation, &question, link, &to),
        Any::SettleAsk { question, answer } => questions::settle(&question, answer),
        Any::RefuseAsk { question, refusal, cause: _ } => question.question.refuse(&refusal),
        Any::CancelAsk { operation, to } => match to {
            Receiver::Call(call) => call.reply().withdraw_question(&call, operation),
            Receiver::Link(link) => link.outlet().withdraw_question(operation),
        },
        Any::Notify { to, notice, public, about } => {
            let passed = Passed { notice: &notice, public: public.as_deref(), about: about.as_deref() };
            match to {
                Receiver::Call(call) => overrun(dispatch, &call, call.reply().notify(&call, &passed)),
                Receiver::Link(link) => link.outlet().notify(&passed),
            }
        }
        Any::ListChanged { list, to } => {
            for receiver in to {
                match receiver {
                    Receiver::Call(call) => overrun(dispatch, &call, call.reply().list_changed(&call, list)),
                    Receiver::Link(link) => link.outlet().list_changed(list),
                }
            }
        }
        Any::Unsubscribe { handle, server, own } => listen::unsubscribe(dispatch, &handle, &server, &own),
        Any::Unwatch { handle, tasks } => listen::unwatch(dispatch, &handle, &tasks),
        Any::Store { proposal, content, record } => journal::store(dispatch, proposal, content, record),
        Any::Proposed { proposal } => announce::proposed(dispatch, &proposal),
        Any::NotProposed { proposal, by, content, held, refusal, cause } => {
            announce::not_proposed(dispatch, proposal, &by, &content, held, &refusal, cause);
        }
        Any::Approved { proposal, servers } => announce::approved(dispatch, &proposal, &servers),
        Any::Concluded { proposal } => announce::concluded(dispatch, &proposal),
        Any::Relay { message, to } => announce::relay(dispatch, &message, &to),
        Any::Ruled { ruling } => ruling.finish(Ok(())),
        Any::RefuseDecision { proposal, content, by, ruling, answered, refusal, cause } => {
            let refused = decide::Refused { proposal, content, by, ruling, answered, refusal, cause };
            decide::refused(dispatch, refused);
        }
    }
}

/// Cancels a call whose caller reads too slowly.
pub(crate) fn overrun(dispatch: &Arc<Dispatch>, call: &Call, sent: Result<(), Undelivered>) {
    match sent {
        Err(Undelivered::Overrun) => dispatch.abandon(call),
        Err(Undelivered::OtherForm) | Ok(()) => {}
    }
}
