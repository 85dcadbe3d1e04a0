//! Shell of a topic at its home: the real topic, whose records go into the shard's journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Capabilities, Digest, LinkId, Method, OperationId, Outcome, ParticipantId, ProposalState,
    TopicName,
};
use topic::{
    Configure, Decision, End, EndedProposal, Interest, Join, Joining, ListItem, ListScope, Logs,
    Now, Parked, PublicTarget, RequestEvent, Restore, Resume, Seating, ServerLists, Terms,
    TopicConfig, UpstreamNames,
};

use crate::line::{Line, Meaning};
use crate::numbers::{Change, Effect, Event, Topic};

/// The id of a request's proposal is that of the request and this.
pub(crate) const PROPOSAL: u64 = 1 << 32;
/// Ids of what the gateway carries out, and of callers that come back, are beyond this.
const OWN: u64 = 1 << 40;
const FAR_MS: u64 = 1 << 50;
const SHOWN: Digest = Digest([7; 32]);

const CALLER: LinkId = LinkId(1);
const REVIEWER: LinkId = LinkId(2);
const GATEWAY: LinkId = LinkId(100);
const SERVER: LinkId = LinkId(101);

/// A consequence of a step of the topic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Out {
    Store {
        proposal: u64,
        meaning: Meaning,
    },
    /// The caller of a request learns that it is held.
    Held {
        request: u64,
    },
    /// The caller of a request has its answer.
    Settled {
        request: u64,
    },
    /// The server gets the request of a proposal.
    Run {
        proposal: u64,
        operation: u64,
    },
}

/// The state of a request at the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Waits,
    Held,
    Settled,
}

pub(crate) struct Shell {
    topic: Topic,
    pub(crate) epoch: u64,
    next: u64,
    /// The requests of doors, each with its door.
    pub(crate) requests: BTreeMap<u64, (usize, Stage)>,
}

fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

fn op(number: u64) -> OperationId {
    OperationId(u128::from(number))
}

fn number(id: OperationId) -> u64 {
    id.0 as u64
}

fn caps(text: &str) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse([text]).unwrap())
}

fn terms(request: u64) -> Terms {
    Terms {
        by: id("bob"),
        method: Method::Known("tools/call"),
        context: Some("a".into()),
        to: [id("one")].into(),
        envelope: format!("e{request}").into(),
        digest: SHOWN,
        expires_ms: FAR_MS,
        expires_wall_ms: FAR_MS,
        bytes: 1,
        approvals: 1,
        extensions: 0,
        amendments: 0,
        plan: None,
    }
}

impl Shell {
    /// The topic as it is after a restart, from the lines of its journal; and the records that
    /// follow.
    pub(crate) fn restored(
        epoch: u64,
        lines: &[Line],
        approved_is_pending: bool,
    ) -> (Self, Vec<Out>) {
        let mut shell = Self::empty(epoch);
        let mut opened = BTreeSet::new();
        let mut states = BTreeMap::new();
        for line in lines {
            let (proposal, state) = match line.meaning {
                Meaning::Opened(proposal) => {
                    opened.insert(proposal);
                    continue;
                }
                Meaning::Approved(proposal) => (proposal, ProposalState::Running),
                Meaning::Rejected(proposal) => (proposal, ProposalState::Rejected),
                Meaning::Ended(proposal) => (proposal, ProposalState::Completed),
                Meaning::Change(_) | Meaning::Tokens(_) => continue,
            };
            states.insert(proposal, state);
        }
        let mut out = Vec::new();
        for proposal in opened {
            let mut state = states.get(&proposal).copied();
            if state == Some(ProposalState::Running) {
                out.push(Out::Store {
                    proposal,
                    meaning: Meaning::Ended(proposal),
                });
                state = Some(ProposalState::Failed);
            }
            if approved_is_pending && state == Some(ProposalState::Failed) {
                (state, out) = (None, Vec::new());
            }
            shell.restore(proposal, state);
        }
        (shell, out)
    }

    fn restore(&mut self, proposal: u64, state: Option<ProposalState>) {
        let end = state.map(|state| EndedProposal {
            state,
            reason: None,
            decided: None,
            fulfilment: None,
            answer: None,
        });
        let restore = Restore {
            proposal: op(proposal),
            terms: terms(proposal - PROPOSAL),
            content: proposal,
            held: true,
            public: Some("one_a"),
            approved_by: Vec::new(),
            end,
        };
        self.step(Event::Restore(restore));
    }

    fn empty(epoch: u64) -> Self {
        let names = [
            UpstreamNames::gateway(),
            UpstreamNames::new(id("one"), "one"),
        ];
        let config = TopicConfig::new(TopicName::new("main").unwrap(), names.to_vec());
        let mut shell = Self {
            topic: Topic::new(config),
            epoch,
            next: OWN,
            requests: BTreeMap::new(),
        };
        let (gateway, one) = (ParticipantId::gateway(), id("one"));
        let seats = [(GATEWAY, &gateway), (SERVER, &one)].map(|(link, server)| Seating {
            link,
            server,
            handle: link.0,
            capabilities: Arc::new(Capabilities::upstream()),
        });
        shell.step(Event::Configure(Configure {
            seats: seats.into(),
            ..Configure::servers(&names)
        }));
        let manifest = ServerLists {
            tools: vec![ListItem::from("a")],
            ..ServerLists::default()
        };
        shell.step(Event::Listed {
            server: &one,
            scope: ListScope::Shared,
            manifest,
            changed: &[],
        });
        shell.join(CALLER, "bob", "mcp/proposal:tools/*");
        shell.join(REVIEWER, "ann", "mcp/*");
        shell
    }

    fn join(&mut self, link: LinkId, name: &str, grant: &str) {
        let joining = Joining {
            promotes: true,
            ..Joining::default()
        };
        let (participant, capabilities) = (&id(name), caps(grant));
        let join = Join {
            link,
            handle: link.0,
            participant,
            capabilities,
            rate: None,
            joining,
        };
        self.step(Event::Join(join));
    }

    fn step(&mut self, event: Event<'_>) -> Vec<Effect> {
        self.topic.step(Now::default(), event).all.into_vec()
    }

    /// A door's request, or one that comes again.
    pub(crate) fn request(&mut self, door: usize, request: u64, proposal: Option<u64>) -> Vec<Out> {
        if let Some((_, stage)) = self.requests.get(&request) {
            return match stage {
                Stage::Waits => Vec::new(),
                Stage::Held => vec![Out::Held { request }],
                Stage::Settled => vec![Out::Settled { request }],
            };
        }
        self.requests.insert(request, (door, Stage::Waits));
        let effects = match proposal {
            None => self.step(Event::Request(RequestEvent {
                link: CALLER,
                operation: op(request),
                tag: None,
                method: Method::Known("tools/call"),
                target: Some(PublicTarget::Tool("one_a")),
                interest: Interest::None,
                logs: Logs::OfLink,
                returns: true,
                narrowing: None,
                tightening: None,
                call: request,
            })),
            Some(proposal) => {
                self.next += 1;
                let (proposal, operation) = (op(proposal), op(self.next));
                let parked = Parked::Proposal {
                    proposal,
                    until_ms: FAR_MS,
                };
                self.step(Event::Resume(Resume {
                    link: CALLER,
                    operation,
                    tag: None,
                    parked,
                    narrowing: None,
                    call: request,
                }))
            }
        };
        self.follow(effects)
    }

    pub(crate) fn decide(&mut self, proposal: u64, approves: bool) -> Vec<Out> {
        let decision = if approves {
            Decision::Approve {
                shown: SHOWN,
                current: Some(SHOWN),
            }
        } else {
            Decision::Reject { reason: None }
        };
        let effects = self.step(Event::Decide {
            proposal: op(proposal),
            by: &id("ann"),
            outside: None,
            narrowing: None,
            decision,
            fulfilment: None,
            amended: None,
            ruling: 1,
        });
        self.follow(effects)
    }

    pub(crate) fn written(&mut self, proposal: u64, stored: bool) -> Vec<Out> {
        let effects = self.step(Event::Written {
            proposal: op(proposal),
            stored,
        });
        self.follow(effects)
    }

    /// The server has answered.
    pub(crate) fn answered(&mut self, operation: u64) -> Vec<Out> {
        let end = End::Answered {
            outcome: Outcome::Ok,
            answer: 1,
        };
        let effects = self.step(Event::Answer {
            link: SERVER,
            operation: op(operation),
            end,
        });
        self.follow(effects)
    }

    pub(crate) fn state(&self, proposal: u64) -> Option<ProposalState> {
        self.topic.proposal(op(proposal)).map(|view| view.state)
    }

    fn follow(&mut self, effects: Vec<Effect>) -> Vec<Out> {
        let mut out = Vec::new();
        for effect in effects {
            match effect {
                Effect::Hold { call, .. } => {
                    let effects = self.step(Event::Propose {
                        proposal: op(call + PROPOSAL),
                        terms: Box::new(terms(call)),
                        content: call + PROPOSAL,
                        held: op(call),
                        park_ms: FAR_MS,
                    });
                    out.extend(self.follow(effects));
                }
                Effect::Store {
                    proposal, record, ..
                } => {
                    let proposal = number(proposal);
                    let meaning = meaning(proposal, &record);
                    out.push(Out::Store { proposal, meaning });
                }
                Effect::Proposed { proposal } => {
                    out.extend(self.reply(number(proposal.id) - PROPOSAL, Stage::Held));
                }
                Effect::Deliver {
                    call,
                    proposal: Some(proposal),
                    ..
                } => {
                    out.push(Out::Run {
                        proposal: number(proposal.id),
                        operation: call,
                    });
                }
                Effect::Approved { proposal, servers } => {
                    for server in servers {
                        self.next += 1;
                        let effects = self.step(Event::Execute {
                            proposal: proposal.id,
                            operation: op(self.next),
                            server: &server,
                            call: self.next,
                        });
                        out.extend(self.follow(effects));
                    }
                }
                Effect::Settle { call, .. }
                | Effect::Refuse { call, .. }
                | Effect::Report { call, .. } => {
                    out.extend(self.reply(call, Stage::Settled));
                }
                _ => {}
            }
        }
        out
    }

    fn reply(&mut self, request: u64, stage: Stage) -> Option<Out> {
        let (_, known) = self.requests.get_mut(&request)?;
        *known = stage;
        Some(match stage {
            Stage::Settled => Out::Settled { request },
            _ => Out::Held { request },
        })
    }
}

fn meaning(proposal: u64, record: &Change) -> Meaning {
    match record {
        Change::Opened => Meaning::Opened(proposal),
        Change::Decided {
            state: ProposalState::Running,
            ..
        } => Meaning::Approved(proposal),
        Change::Decided { .. } => Meaning::Rejected(proposal),
        Change::Ended { .. } => Meaning::Ended(proposal),
        other => panic!("{other:?}"),
    }
}
