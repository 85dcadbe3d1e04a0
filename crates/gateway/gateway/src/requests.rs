//! Requests of clients: admitted by the topic, recorded, and carried out by its effects.

use std::sync::Arc;

use model::{Answer, ListKind, Notice, OperationId, ParticipantId, Refusal, Target};
use platform::millis;
use topic::{
    About, Ask, Cause, End, OperationRef, Parked, Receiver, RequestEvent, Resume, Subject, Verdict,
};
use upstream::Question;
use wire::mcp::{input, relay};

use crate::call::{Call, CallTopic, Delivered, Reply};
use crate::incoming::{Incoming, Names, Parks, Tag, named};
use crate::link::{Link, Requester, Undelivered};
use crate::live::{Effect, Event, Live, ServerQuestion};
use crate::returns::{self, Return};
use crate::work::Work;
use store::recorder::RecordPermit;

use crate::{
    apps, builtin,
    dispatch::{Dispatch, Refused},
    narrow_names,
    record::Record,
    results, sending, skills, tasks,
};

impl Dispatch {
    /// Takes a client's request. `reply` receives its answer.
    pub fn request(
        self: &Arc<Self>,
        by: Requester<'_>,
        mut incoming: Incoming,
        reply: Arc<dyn Reply>,
    ) -> Arc<Call> {
        let link = by.link;
        by.note_token();
        narrow_names::name_publicly(self, link, &mut incoming);
        // A call by the tool `proxy` is the request that it stands for from here on.
        let reply = builtin::unwrap(self, link, &mut incoming, reply);
        apps::name_publicly(self, by, &mut incoming);
        let back = returns::open(self, link, &incoming.request, incoming.state.as_deref());
        let id = match &back {
            Ok(Return::Paused { call, .. }) => *call,
            Ok(Return::None | Return::Server(_) | Return::Anew { .. } | Return::Proposal(_))
            | Err(_) => self.context.operation(),
        };
        let comes_back = !matches!(back, Ok(Return::None | Return::Server(_)));
        if let Ok(Return::Server(state)) = &back
            && let Some(request) = input::back_with_state(&incoming.request, state)
        {
            incoming.request = request;
        }
        if let Ok(Return::Anew { declined }) = &back {
            // What its server gets is the request as it was made first.
            incoming.declined = *declined;
            incoming.state = None;
            if let Some(request) = input::without_retry(&incoming.request) {
                incoming.request = request;
            }
        }
        let interest = std::mem::take(&mut incoming.interest);
        let logs = incoming.logs;
        let call = match &back {
            Ok(Return::Paused { round, .. }) => Call::returning(id, by, incoming, reply, *round),
            _ => Call::new(id, by, incoming, Names::Public, reply),
        };
        let task = match &call.request.target {
            Some(Target::Task(id)) => tasks::relay::find(self, link, id),
            Some(Target::Tool(_) | Target::Prompt(_) | Target::Uri(_)) | None => None,
        };
        if let Some(named) = &task {
            call.task.set_about(&named.task);
        }
        let served = task
            .as_ref()
            .map(|named| topic::PublicTarget::Task(named.facts()));
        let target = if results::is_own(self, &link.participant.id, &call.request) {
            Some(topic::PublicTarget::Kept)
        } else {
            named(&call.request).or(served)
        };
        // Handshakes, pings and lists name nothing: they are recorded only if they are refused.
        let is_recorded = target.is_some() || comes_back;
        let permit = match self.audit.reserve_on(link.audit()) {
            Ok(permit) => permit,
            Err(_) if !is_recorded => RecordPermit::none(),
            Err(refusal) => {
                let refusal = Box::new(refusal);
                let cause = Cause::LogUnavailable;
                self.run(Effect::Refuse {
                    call: Arc::clone(&call),
                    refusal,
                    cause,
                });
                return call;
            }
        };
        let back = back.map_err(|refusal| (refusal, Cause::Malformed));
        let back = match back.and_then(|back| {
            call.hold()
                .map_err(|full| (full, Cause::Limit))
                .map(|()| back)
        }) {
            Ok(back) => back,
            Err((refusal, cause)) => {
                let refusal = Box::new(refusal);
                let verdict = Verdict::Refused(cause);
                self.count(&verdict);
                Record::of(self).request(permit, &call, &verdict);
                self.run(Effect::Refuse {
                    call: Arc::clone(&call),
                    refusal,
                    cause,
                });
                return call;
            }
        };
        let link = link.id;
        let operation = call.id;
        let tag = call.tag.clone();
        let parked = match back {
            Return::None | Return::Server(_) | Return::Anew { .. } => None,
            Return::Proposal(proposal) => Some(Parked::Proposal {
                proposal,
                until_ms: self.hold_until_ms(),
            }),
            Return::Paused { round, answers, .. } => Some(Parked::Questions { round, answers }),
        };
        let event = match parked {
            Some(parked) => Event::Resume(Resume {
                link,
                operation,
                tag,
                parked,
                narrowing: by.narrowing(),
                call: Arc::clone(&call),
            }),
            None => {
                let method = call.request.method.clone();
                let returns = call.parks != Parks::Words;
                let call = Arc::clone(&call);
                let request = RequestEvent {
                    link,
                    operation,
                    tag,
                    method,
                    target,
                    interest,
                    logs,
                    returns,
                    narrowing: by.narrowing(),
                    call,
                };
                Event::Request(request)
            }
        };
        let step = self.step(event);
        if let Some(verdict) = &step.verdict {
            self.count(verdict);
            if is_recorded || matches!(verdict, Verdict::Refused(_)) {
                Record::of(self).request(permit, &call, verdict);
            }
        }
        step.carry_out();
        call
    }

    /// Goes on with a call after a wait: in order with all that the topic has decided about the call
    /// meanwhile, and not at all if it is over.
    pub(crate) fn proceed(
        self: &Arc<Self>,
        operation: OperationId,
        rest: impl FnOnce(&Arc<Self>, &Arc<Call>) + Send + 'static,
    ) {
        let dispatch = Arc::clone(self);
        let work = Work::new(move |call| rest(&dispatch, call));
        // The topic drops the work of a call that is over. What it owns is dropped with this clone
        // then, and not under the topic's lock.
        let _outlives_the_step = work.clone();
        self.take(Event::Proceed { operation, work });
    }

    /// When the caller of a call that is held from now on is answered for now.
    pub(crate) fn hold_until_ms(&self) -> u64 {
        self.context
            .now_ms()
            .saturating_add(millis(self.settings.limits.hold))
    }

    /// Cancels the request that a client gave this name.
    pub fn cancel(self: &Arc<Self>, link: &Link, tag: Tag) {
        self.take(Event::Cancel {
            link: link.id,
            which: OperationRef::Tag(tag),
        });
    }

    /// Cancels a call whose caller has gone, unless its caller waits with another request than this.
    pub fn abandon(self: &Arc<Self>, call: &Call) {
        self.take(Event::Cancel {
            link: call.link.id,
            which: OperationRef::Request {
                operation: call.id,
                round: call.round,
            },
        });
    }

    /// Cancels a call whose caller reads too slowly. This is a step from inside an effect: the topic
    /// learns here that what it decided could not be carried out.
    pub(crate) fn end_overrun(self: &Arc<Self>, call: &Call, sent: Result<(), Undelivered>) {
        match sent {
            Err(Undelivered::Overrun) => self.abandon(call.reply().request()),
            Err(Undelivered::OtherForm) | Ok(()) => {}
        }
    }

    /// Notifies a client that a list may have changed.
    pub(crate) fn announce_list(self: &Arc<Self>, list: ListKind, to: Receiver<Live>) {
        match to {
            Receiver::Call(call) => self.end_overrun(&call, call.reply().list_changed(list)),
            Receiver::Link(link) => link.outlet.list_changed(list),
        }
    }

    /// Takes a client's answer to the question of this number.
    pub fn answer_question(self: &Arc<Self>, link: &Link, number: u64, answer: Answer) {
        let operation = self.context.numbered(number);
        let end = End::Answered {
            outcome: answer.outcome,
            answer,
        };
        self.take(Event::Answer {
            link: link.id,
            operation,
            end,
        });
    }

    /// Takes a server's notification.
    pub(crate) fn notice(
        self: &Arc<Self>,
        server: &ParticipantId,
        subject: Subject<'_>,
        notice: Notice,
    ) {
        let level = relay::log_level(&notice).and_then(|level| level.parse().ok());
        self.take(Event::Notice {
            server,
            subject,
            level,
            notice,
        });
    }

    /// Takes a server's question.
    pub(crate) fn ask(self: &Arc<Self>, asked: ServerQuestion, about: About) {
        let server = asked.server.clone();
        let question = &asked.question;
        let tag = Tag::of_server(question.instance(), question.id().clone());
        let operation = self.context.operation();
        let method = question.request().method.clone();
        let tag = Some(tag);
        let question = Arc::new(asked);
        self.take(Event::Ask(Ask {
            server: &server,
            operation,
            tag,
            about,
            method,
            question,
        }));
    }
}

/// What a server sends about a call becomes an event of the call's topic.
impl CallTopic for Dispatch {
    fn noticed(self: Arc<Self>, call: &Call, delivered: &Delivered, notice: Notice) {
        let notice = match call.session() {
            // Only 2025-11-25 has messages that belong to tasks.
            Some(session) if session.era() != call.request.payload.form => {
                let payload = wire::mcp::task::unrelated(&notice.payload);
                Notice {
                    payload: payload.unwrap_or_else(|| notice.payload.clone()),
                    ..notice
                }
            }
            Some(session) => tasks::book::rename_notice(&self, &session, notice),
            None => notice,
        };
        self.notice(&delivered.server, Subject::Call(call.id), notice);
    }

    fn asked(self: Arc<Self>, call: &Call, delivered: &Delivered, question: Question) {
        let on = call.session();
        let session = on.as_ref().map(Arc::downgrade).unwrap_or_default();
        let task = call.task.asking().cloned();
        let asked = ServerQuestion {
            question,
            session,
            server: delivered.server.clone(),
            task,
        };
        self.ask(asked, About::Call(call.id));
        if let Some(on) = on {
            on.offer_deferred();
        }
    }

    fn deferred(self: Arc<Self>, call: &Call) {
        sending::send_elsewhere(&self, call);
    }

    fn ended(self: Arc<Self>, call: &Call, delivered: &Delivered, end: Result<Answer, Refusal>) {
        let end = match skills::as_pinned(&self, call, delivered, end.as_ref().ok()) {
            Ok(()) => end,
            Err(refusal) => Err(refusal),
        };
        let end = end.and_then(|answer| {
            tasks::relay::become_task(&self, call, delivered, &answer)?;
            Ok(answer)
        });
        let topic = self.lock_for("Answer");
        // While the caller is away, the answer waits on its account. Asked under the lock of the
        // step, as the caller may be answered for now, or come back, until then.
        let end = end.and_then(|answer| {
            if Call::counts(&answer) && topic.is_paused(call.id) {
                call.hold_answer(&answer)?;
            }
            Ok(answer)
        });
        let end = match end {
            Ok(answer) => End::Answered {
                outcome: answer.outcome,
                answer,
            },
            Err(refusal) => End::Failed(Box::new(refusal)),
        };
        let answer = Event::Answer {
            link: delivered.link,
            operation: call.id,
            end,
        };
        self.step_locked(topic, answer, Refused::ByEffect)
            .carry_out();
    }
}
