//! Interpreter of effects: the one `match` on [`Effect`] of the whole program.

use std::sync::Arc;

use topic::Receiver;

use crate::dispatch::Dispatch;
use crate::incoming::Names;
use crate::judges;
use crate::link::Passed;
use crate::live::{Effect, Server};
use crate::proposals::{announce, answer, decide, hold, journal, plans};
use crate::record::Record;
use crate::tasks::{book, notices};
use crate::traces::SpanEnd;
use crate::{
    builtin, connect, delivery, dial_in, envelopes, listen, membership, questions, sending, traces,
};

/// Carries out one effect, in the mailbox of its addressee: what is done here for a call or a link is
/// done by one thread at a time.
pub(crate) fn run(dispatch: &Arc<Dispatch>, effect: Effect) {
    match effect {
        Effect::Closed { handle, why } => membership::closed(dispatch, &handle, why),
        Effect::Withhold {
            handle,
            message,
            refusal,
        } => {
            envelopes::withhold(dispatch, &handle, &message, &refusal);
        }
        Effect::Receive {
            handle,
            server,
            message,
        } => dial_in::receive(dispatch, handle.id, server.as_ref(), &message),
        Effect::Ignore {
            from,
            message,
            by,
            why,
        } => {
            envelopes::ignored(dispatch, &from, &message, &by, why);
        }
        Effect::Deliver {
            call,
            link,
            server,
            own,
            logs,
            proposal,
        } => {
            let asked = own.as_deref();
            delivery::note(
                dispatch,
                &call,
                &server,
                link,
                asked,
                logs,
                proposal.as_deref(),
            );
            match server {
                Server::Gateway => builtin::serve(dispatch, &call),
                Server::Upstream(server) => {
                    // Most of what rooms ask of servers the gateway answers.
                    let is_answered = call.names == Names::Own
                        && builtin::answer_hosted(dispatch, &call, &server);
                    if !is_answered {
                        sending::to_server(dispatch, &call, server, own, proposal.as_deref());
                    }
                }
            }
        }
        Effect::Hold {
            call,
            to,
            server,
            own,
        } => hold::held(dispatch, &call, &to, &server, own),
        Effect::Park { call, proposal } => {
            traces::end(dispatch, &call, SpanEnd::Parked);
            answer::park(dispatch, &call, &proposal);
        }
        Effect::Pause {
            call,
            round,
            questions,
        } => questions::pause(dispatch, &call, round, &questions),
        Effect::Return { call, by } => call.come_back(by),
        Effect::Proceed { call, work } => work.carry_out(&call),
        Effect::Report { call, proposal } => answer::report(dispatch, &call, &proposal),
        Effect::Settle {
            call,
            answer,
            proposal,
        } => {
            traces::end(dispatch, &call, SpanEnd::Answered(&answer));
            match proposal {
                Some(proposal) => answer::settle(dispatch, &call, answer, &proposal),
                None => delivery::settle(dispatch, &call, answer),
            }
            if let Some(overhead) = call.overhead() {
                dispatch.context.overhead.enter(overhead);
            }
        }
        Effect::Refuse {
            call,
            refusal,
            cause,
        } => {
            traces::end(dispatch, &call, SpanEnd::Refused(&refusal));
            // One that was never delivered is on record with its verdict.
            if call.delivered.get().is_some() {
                Record(dispatch).ended(&call, cause);
            }
            if !connect::answer(dispatch, &call, &refusal) {
                call.reply().refuse(&refusal);
            }
        }
        Effect::Drop { call } => {
            traces::end(dispatch, &call, SpanEnd::Cancelled);
            call.reply().abandon();
        }
        Effect::Cancel { call } => call.cancel_at_server("the client cancelled the request"),
        Effect::Ask {
            operation,
            question,
            link,
            to,
        } => questions::ask(dispatch, operation, &question, link, &to),
        Effect::SettleAsk { question, answer } => questions::settle(&question, answer),
        Effect::RefuseAsk { question, refusal } => question.question.refuse(&refusal),
        Effect::CancelAsk { operation, to } => {
            let number = dispatch.context.question_number(operation);
            match to {
                Receiver::Call(call) => call.reply().withdraw_question(number),
                Receiver::Link(link) => link.outlet.withdraw_question(number),
            }
        }
        Effect::Notify {
            to,
            notice,
            public,
            about,
        } => {
            let passed = Passed {
                notice: &notice,
                public: public.as_deref(),
                about: about.as_deref(),
            };
            match to {
                Receiver::Call(call) if passed.suits(call.link.form) => {
                    dispatch.end_overrun(&call, call.reply().notify(&passed));
                }
                Receiver::Link(link) if passed.suits(link.form) => link.outlet.notify(&passed),
                // The client's revision has no such notification.
                Receiver::Call(_) | Receiver::Link(_) => {}
            }
        }
        Effect::ListChanged { list, to } => dispatch.announce_list(list, to),
        Effect::Unsubscribe {
            handle,
            server,
            own,
        } => listen::unsubscribe(dispatch, &handle, &server, &own),
        Effect::Unwatch { handle, tasks } => listen::unwatch(dispatch, &handle, &tasks),
        Effect::CancelTask { task } => book::cancel(task),
        Effect::ForgetTask { task } => task.release(),
        Effect::LoseTask { task } => notices::lost(dispatch, &task),
        Effect::Store {
            proposal,
            content,
            record,
        } => journal::store(dispatch, proposal, content, *record),
        Effect::Proposed { proposal } => {
            announce::proposed(dispatch, &proposal);
            judges::one(dispatch, proposal.id);
        }
        Effect::NotProposed {
            proposal,
            by,
            content,
            held,
            refusal,
            cause,
        } => {
            announce::not_proposed(dispatch, proposal, &by, &content, held, &refusal, cause);
        }
        Effect::Rejected {
            by,
            envelope,
            refusal,
        } => {
            announce::no_proposal(dispatch, &by, &envelope, &refusal.to_string());
        }
        Effect::Remind { handle, proposal } => announce::remind(dispatch, &handle, &proposal),
        Effect::Counted(counted) => announce::counted(dispatch, &counted),
        Effect::Claimed { proposal } => announce::claimed(dispatch, &proposal),
        Effect::Extended {
            proposal,
            by,
            ruling,
        } => announce::extended(dispatch, &proposal, &by, &ruling),
        Effect::Amended { proposal, ruling } => announce::amended(dispatch, &proposal, &ruling),
        Effect::Expiring { proposal } => announce::expiring(dispatch, &proposal),
        Effect::Approved { proposal, servers } => {
            judges::approved(dispatch, proposal.id);
            announce::approved(dispatch, &proposal, &servers);
        }
        Effect::StepDue { proposal } => plans::step_due(dispatch, &proposal),
        Effect::Concluded { proposal } => {
            judges::conclude(dispatch, proposal.id);
            dispatch.showings.forget(proposal.id);
            announce::concluded(dispatch, &proposal);
        }
        Effect::Relay { message, to } => announce::relay(dispatch, &message, &to),
        Effect::Ruled { ruling } => ruling.finish(Ok(())),
        Effect::RefuseDecision(refused) => decide::refused(dispatch, refused),
    }
}
