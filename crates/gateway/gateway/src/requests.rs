//! Requests of clients: admitted by the topic, recorded, and carried out by its effects.

use std::sync::Arc;

use model::{Answer, ListKind, Notice, OperationId, ParticipantId, Refusal, Target};
use platform::millis;
use topic::{
    About, Ask, Cause, End, Interest, Logs, OperationRef, Parked, PublicTarget, Receiver,
    RequestEvent, Resume, Subject, Verdict,
};
use upstream::Question;
use wire::mcp::{relay, result::without_approval};

use crate::by_rule::{answered, tighten};
use crate::call::{Call, CallTopic, Delivered, Reply};
use crate::incoming::{Incoming, Names, Parks, Tag, named};
use crate::link::{Link, Requester, Undelivered};
use crate::live::{Effect, Event, Live, ServerQuestion};
use crate::returns::{self, Return};
use crate::work::Work;
use store::recorder::RecordPermit;

use crate::dispatch::{Dispatch, Refused};
use crate::{called_tool, moving, record::Record, results, shadow_acts, skills, tasks, traces};

impl Dispatch {
    /// Takes a client's request. `reply` receives its answer.
    pub fn request(
        self: &Arc<Self>,
        by: Requester<'_>,
        mut incoming: Incoming,
        reply: Arc<dyn Reply>,
    ) -> Arc<Call> {
        let link = by.link;
        link.latest.note(by.bearer);
        let reply = called_tool::name_publicly(self, by, &mut incoming, reply);
        let back = match incoming.state.as_deref() {
            None => Ok(Return::None),
            Some(state) => returns::open(self, link, &incoming.request, state),
        };
        let id = match &back {
            Ok(Return::Paused { call, .. }) => *call,
            Ok(Return::None | Return::Server(_) | Return::Anew { .. } | Return::Proposal(_))
            | Err(_) => self.context.operation(),
        };
        if let Ok(back) = &back {
            back.restore(&mut incoming);
        }
        let interest = std::mem::take(&mut incoming.interest);
        let logs = incoming.logs;
        // What its caller comes back to has its span already.
        let is_first = matches!(
            back,
            Ok(Return::None | Return::Server(_) | Return::Anew { .. })
        );
        let in_headers = incoming.trace.take();
        let call = Call::new(id, by, incoming, Names::Public, reply);
        if is_first {
            traces::begin(self, &call, in_headers);
        }
        self.open_call(by, &call, back, interest, logs);
        call
    }

    /// Opens a call in the topic, or what its caller comes back to; records the verdict, and carries
    /// out what follows.
    fn open_call(
        self: &Arc<Self>,
        by: Requester<'_>,
        call: &Arc<Call>,
        back: Result<Return, Refusal>,
        interest: Interest,
        logs: Logs,
    ) {
        let link = by.link;
        let task = match &call.request.target {
            Some(Target::Task(id)) => tasks::relay::find(self, by, id),
            Some(Target::Tool(_) | Target::Prompt(_) | Target::Uri(_)) | None => None,
        };
        if let Some(named) = &task {
            call.task.set_about(&named.task);
        }
        let facts = task.as_ref().map(tasks::relay::Named::facts);
        let target = match &call.request.target {
            Some(Target::Uri(_)) if results::is_own(self, &link.participant.id, &call.request) => {
                Some(PublicTarget::Kept)
            }
            _ => named(&call.request).or(facts.as_ref().map(PublicTarget::Task)),
        };
        let comes_back = !matches!(back, Ok(Return::None | Return::Server(_)));
        // Handshakes, pings and lists name nothing: they are recorded only if they are refused.
        let is_recorded = target.is_some() || comes_back;
        let permit = match self.audit.reserve_on(link.audit()) {
            Ok(permit) => permit,
            Err(_) if !is_recorded => RecordPermit::none(),
            Err(refusal) => return self.turn_away(call, refusal, Cause::LogUnavailable),
        };
        let back = match back {
            Ok(back) => call
                .account_request()
                .map(|()| back)
                .map_err(|full| (full, Cause::Limit)),
            Err(refusal) => Err((refusal, Cause::Malformed)),
        };
        let back = match back {
            Ok(back) => back,
            Err((refusal, cause)) => {
                let verdict = Verdict::Refused(cause);
                self.count(&verdict);
                Record(self).request(permit, call, &verdict, None);
                return self.turn_away(call, refusal, cause);
            }
        };
        let event = match self.parked(back) {
            Some(parked) => Event::Resume(Resume {
                link: link.id,
                operation: call.id,
                tag: call.tag.clone(),
                parked,
                narrowing: by.narrowing(),
                call: Arc::clone(call),
            }),
            None => Event::Request(RequestEvent {
                link: link.id,
                operation: call.id,
                tag: call.tag.clone(),
                method: call.request.method.clone(),
                target,
                interest,
                logs,
                returns: call.parks != Parks::Words,
                narrowing: by.narrowing(),
                tightening: None,
                call: Arc::clone(call),
            }),
        };
        let (step, rule) = tighten::step_request(self, call, event);
        if let Some(verdict) = &step.verdict {
            self.count(verdict);
            traces::note_verdict(call, verdict);
            if target.is_some()
                && let Some(time) = self.context.overhead.begin(step.at)
            {
                let _ = call.time.set(time);
            }
            if is_recorded || matches!(verdict, Verdict::Refused(_)) {
                Record(self).request(permit, call, verdict, rule.as_ref());
            }
            // What its caller comes back to was looked at before.
            if self.shadow_sets.is_any() && is_recorded && !comes_back {
                shadow_acts::request(self, call, target, by.narrowing(), verdict);
            }
        }
        step.carry_out();
    }

    /// Refuses a request that the topic does not see.
    fn turn_away(self: &Arc<Self>, call: &Arc<Call>, refusal: Refusal, cause: Cause) {
        self.run(Effect::Refuse {
            call: Arc::clone(call),
            refusal: Box::new(refusal),
            cause,
        });
    }

    /// The parked operation in the topic to which a caller comes back, if that is there.
    fn parked(&self, back: Return) -> Option<Parked<Live>> {
        match back {
            Return::None | Return::Server(_) | Return::Anew { .. } => None,
            Return::Proposal(proposal) => Some(Parked::Proposal {
                proposal,
                until_ms: self.hold_until_ms(),
            }),
            Return::Paused { round, answers, .. } => Some(Parked::Questions { round, answers }),
        }
    }

    /// Goes on with a call after a wait: in order with all that the topic has decided about the call
    /// meanwhile, and not at all if it is over.
    pub(crate) fn proceed(
        self: &Arc<Self>,
        operation: OperationId,
        rest: impl FnOnce(&Arc<Self>, &Arc<Call>) + Send + 'static,
    ) {
        let dispatch = Arc::clone(self);
        let work = Work::new(move |call| {
            call.note_wait();
            rest(&dispatch, call);
        });
        // The topic drops the work of a call that is over. What it owns is dropped with this clone
        // then, and not under the topic's lock.
        let _outlives_the_step = work.clone();
        self.take(Event::Proceed { operation, work });
    }

    /// When the caller of a call that is held from now on is answered for now.
    pub(crate) fn hold_until_ms(&self) -> u64 {
        self.context
            .now_ms()
            .saturating_add(millis(self.settings().limits.hold))
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
        let Some(operation) = self.context.questioned(number) else {
            return;
        };
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
            notice: Arc::new(notice),
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

/// Turns each message of a server about a call into an event of the call's topic.
impl CallTopic for Dispatch {
    fn noticed(self: Arc<Self>, call: &Call, delivered: &Delivered, notice: Notice) {
        let notice = match call.sessions.last() {
            // Only 2025-11-25 has messages that belong to tasks.
            Some(session) if session.era() != call.request.payload.form => {
                let payload = wire::mcp::task::unrelated(&notice.payload);
                Notice {
                    payload: payload.unwrap_or_else(|| notice.payload.clone()),
                    ..notice
                }
            }
            Some(session) => tasks::book::rename_notice(&self, session, notice),
            None => notice,
        };
        self.notice(&delivered.server, Subject::Call(call.id), notice);
    }

    fn asked(self: Arc<Self>, call: &Call, delivered: &Delivered, question: Question) {
        let on = call.sessions.last();
        let session = on.map(Arc::downgrade).unwrap_or_default();
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
        moving::to_next_session(&self, call);
    }

    fn ended(self: Arc<Self>, call: &Call, delivered: &Delivered, end: Result<Answer, Refusal>) {
        traces::ended_at_server(&self, call, delivered, &end);
        let end = end.and_then(|answer| {
            let answer = without_approval(answer);
            if call.request.method.as_str() == "skills/get" {
                skills::as_pinned(&self, call, delivered, &answer)?;
            }
            if call.task.asks() {
                tasks::relay::become_task(&self, call, delivered, &answer)?;
            }
            Ok(answer)
        });
        if let Ok(answer) = &end {
            answered::take(&self, call, delivered, answer);
        }
        let topic = self.lock_for("Answer");
        // While the caller is away, the answer waits on its account. Asked under the lock of the
        // step, as the caller may be answered for now, or come back, until then.
        let end = end.and_then(|answer| {
            if Call::is_long(&answer) && topic.is_paused(call.id) {
                call.account_answer(&answer)?;
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
