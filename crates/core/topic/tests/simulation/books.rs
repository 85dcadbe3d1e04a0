//! Independent books of a simulated topic: they enter the effects of each step, and fail on a wrong
//! effect.

pub(crate) mod calls;
pub(crate) mod claims;
pub(crate) mod deals;
pub(crate) mod ends;
pub(crate) mod envelopes;
pub(crate) mod interests;
pub(crate) mod limits;
pub(crate) mod mirrors;
pub(crate) mod participants;
pub(crate) mod pauses;
pub(crate) mod questions;
pub(crate) mod replay;
pub(crate) mod room;
pub(crate) mod rulings;
pub(crate) mod standing;
pub(crate) mod tasks;
pub(crate) mod unpublished;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{Capabilities, LinkId, OperationId, ParticipantId};
use topic::UpstreamNames;

use crate::{
    numbers::{Effect, Effects},
    seen::{Tally, cause_of_ask, name, room_name},
    turn::Turn,
    variants,
};
use calls::{Call, Waiting};
use claims::ClaimBook;
use deals::Deal;
use envelopes::Log;
use interests::Ends;
use mirrors::Mirrors;
use participants::{Link, Served};
use questions::Question;
use room::Room;
use standing::Standing;
use tasks::{Task, TaskEnds};
use unpublished::Unpublished;

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) configured: Vec<UpstreamNames>,
    /// Callers' links.
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) servers: BTreeMap<ParticipantId, Served>,
    /// Servers that do not run, of those that others would see.
    pub(crate) away: BTreeSet<ParticipantId>,
    pub(crate) standing: BTreeMap<ParticipantId, Standing>,
    /// Participants that are paused.
    pub(crate) braked: BTreeSet<ParticipantId>,
    /// The capabilities of servers.
    pub(crate) asking: BTreeMap<ParticipantId, Arc<Capabilities>>,
    /// Open calls, the parked ones included.
    pub(crate) calls: BTreeMap<OperationId, Call>,
    /// Calls that wait with a proposal, by handle.
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    /// Handles of calls that were given back.
    pub(crate) returned: BTreeSet<u64>,
    pub(crate) questions: BTreeMap<OperationId, Question>,
    /// Decisions that are neither ruled nor refused, with their proposals.
    pub(crate) rulings: BTreeMap<u64, OperationId>,
    pub(crate) deals: BTreeMap<OperationId, Deal>,
    /// Approved proposals that the gateway is to carry out at these servers.
    pub(crate) to_execute: Vec<(OperationId, ParticipantId)>,
    pub(crate) claims: ClaimBook,
    pub(crate) room: Room,
    pub(crate) unpublished: Vec<Unpublished>,
    pub(crate) mirrors: Mirrors,
    pub(crate) ends: Ends,
    pub(crate) tasks: BTreeMap<OperationId, Task>,
    pub(crate) task_ends: TaskEnds,
    /// Tasks that were cancelled or forgotten.
    pub(crate) ended_tasks: BTreeSet<u64>,
    pub(crate) log: Log,
    /// Ids of envelopes whose proposals were rejected in this life of the topic, with their
    /// senders.
    pub(crate) rejected: BTreeMap<String, ParticipantId>,
    /// The gateway is about to stop.
    pub(crate) stopping: bool,
    /// Operations in the order of opening.
    pub(crate) opened: u64,
    pub(crate) now_ms: u64,
    pub(crate) wall_ms: u64,
    /// When participants left that may come back, and when this life of the topic began.
    pub(crate) left_ms: BTreeMap<ParticipantId, u64>,
    pub(crate) began_ms: Option<u64>,
    /// The count of each effect that was seen.
    pub(crate) tally: Tally,
}

impl Books {
    /// Enters the effects of one step, in order.
    pub(crate) fn enter(&mut self, effects: &Effects, turn: &Turn, now_ms: u64) {
        self.now_ms = now_ms;
        self.began_ms.get_or_insert(now_ms);
        self.give_up(turn);
        self.outlive(turn);
        self.mirrors.begin();
        self.ends = Ends::of(turn.leaving.iter().map(|(link, _)| *link));
        for effect in &effects.room {
            self.count(variants::room_effect(effect));
            self.count(room_name(effect));
            self.enter_room(effect, turn);
        }
        for effect in &effects.all {
            self.count(variants::effect(effect));
            self.count(name(effect));
            self.enter_one(effect, turn);
        }
        self.keep_end(turn);
        self.finish_participants(turn);
        self.finish_calls(turn);
        self.finish_claims();
        self.finish_tasks(turn);
        self.finish_questions(turn);
        self.finish_room(effects, turn);
        self.finish_unpublished(turn);
        self.finish_interests();
        self.check_deals();
        self.check_admitted();
        self.check_about();
        self.check_asks();
        self.check_limits();
    }

    pub(crate) fn count(&mut self, name: &'static str) {
        *self.tally.entry(name).or_default() += 1;
    }

    fn enter_one(&mut self, effect: &Effect, turn: &Turn) {
        match effect {
            Effect::Closed { handle, why } => self.closed(*handle, *why, turn),
            Effect::Withhold { .. } | Effect::Receive { .. } | Effect::Ignore { .. } => {}
            Effect::Deliver {
                call,
                link,
                server,
                own,
                logs,
                proposal,
            } => {
                let proposal = proposal.as_ref().map(|view| view.id);
                self.delivered(*call, (*link, *server), own.as_deref(), proposal, turn);
                self.check_logs(*call, *logs);
            }
            Effect::Hold {
                call,
                to,
                server,
                own,
            } => {
                assert_eq!(self.servers[to].handle, *server);
                self.held(*call, own.as_deref(), turn);
            }
            Effect::Park { call, proposal } => self.parked(*call, proposal.id, turn),
            Effect::Pause {
                call,
                round,
                questions,
            } => self.paused(*call, *round, questions),
            Effect::Return { call, by } => self.came_back(*call, *by, turn),
            Effect::Proceed { call, .. } => assert!(self.may_proceed(self.by_handle(*call))),
            Effect::Report { call, proposal } => self.reported(*call, proposal),
            Effect::Settle {
                call,
                answer,
                proposal,
            } => {
                self.settled(*call, *answer, proposal.as_deref(), turn);
            }
            Effect::Refuse { call, cause, .. } => self.refused(*call, *cause, turn),
            Effect::Drop { call } => self.dropped(*call, turn),
            Effect::Cancel { call } => self.cancelled(*call),
            Effect::Ask {
                operation,
                question,
                link,
                to,
            } => {
                self.asked(*operation, *question, *link, to, turn);
            }
            Effect::SettleAsk { question, answer } => self.settled_ask(*question, *answer, turn),
            Effect::RefuseAsk { question, refusal } => {
                self.refused_ask(*question, cause_of_ask(refusal), turn)
            }
            Effect::CancelAsk { operation, to } => self.cancelled_ask(*operation, to),
            Effect::Notify { to, .. } => self.knows(to),
            Effect::ListChanged { list, to } => self.list_changed(*list, to),
            Effect::Unsubscribe {
                handle,
                server,
                own,
            } => self.unsubscribed(*handle, *server, own),
            Effect::Unwatch { handle, tasks } => self.unwatched(*handle, tasks),
            Effect::CancelTask { task } => assert!(self.task_ends.cancelled.insert(*task)),
            Effect::ForgetTask { task } => assert!(self.task_ends.forgotten.insert(*task)),
            Effect::LoseTask { task } => assert!(self.task_ends.lost.insert(*task)),
            Effect::Store {
                proposal,
                content,
                record,
            } => self.store(*proposal, *content, record, turn),
            Effect::Proposed { proposal } => self.proposed(proposal, turn),
            Effect::NotProposed {
                proposal,
                by,
                content,
                held,
                ..
            } => {
                self.not_proposed(*proposal, by, (*content, *held), turn);
            }
            Effect::Rejected { by, envelope, .. } => {
                assert_eq!(
                    self.rejected.get(&**envelope),
                    Some(by),
                    "{envelope} was not rejected"
                );
            }
            Effect::Remind { handle, proposal } => self.reminded(*handle, proposal, turn),
            Effect::Counted(counted) => self.counted(counted, turn),
            Effect::Claimed { proposal } => self.claimed(proposal),
            Effect::Extended {
                proposal,
                by,
                ruling,
            } => self.extended(proposal, by, *ruling, turn),
            Effect::Amended { proposal, ruling } => self.amended(proposal, *ruling, turn),
            Effect::Expiring { proposal } => self.expiring(proposal),
            Effect::Approved { proposal, servers } => self.approved(proposal, servers, turn),
            // Plans have a world of their own.
            Effect::StepDue { .. } => panic!("no plan is proposed here"),
            Effect::Concluded { proposal } => self.concluded(proposal, turn),
            Effect::Relay { message, to } => self.relayed(*message, to),
            Effect::Ruled { ruling } => self.ruled(*ruling, turn),
            Effect::RefuseDecision(refused) => self.refused_decision(refused, turn),
        }
    }

    /// Enters a crash: all links are gone, and all open operations are over.
    pub(crate) fn forget(&mut self) {
        self.links.clear();
        self.servers.clear();
        self.away.clear();
        self.calls.clear();
        self.waiting.clear();
        self.questions.clear();
        self.rulings.clear();
        self.claims = ClaimBook::default();
        self.to_execute.clear();
        self.standing
            .values_mut()
            .for_each(|own| (own.bucket, own.worn) = (None, None));
        self.tasks.clear();
        self.room = Room::default();
        self.unpublished.clear();
        self.mirrors = Mirrors::default();
        self.log = Log::default();
        self.rejected.clear();
        self.left_ms.clear();
        self.began_ms = None;
        self.stopping = false;
    }
}
