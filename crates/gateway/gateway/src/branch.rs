//! Topic of a branch: a process that makes *plain* calls itself, while another one, the home, has the
//! topic's proposals, its rules and its room.
//!
//! A call is plain if its caller may make it without a decision, and nothing of it must be known at
//! the home: no rule could take something of it, no pause holds it, no limit counts it, nothing of its
//! result is kept. All others go to the home.

use std::sync::Arc;
use std::time::Duration;

use model::{Form, LinkId, ParticipantId, Target};
use rules::{CallRule, RuleDecision};
use topic::{Brake, Interest};
use upstream::{ClientProfile, config::Placement};
use wire::mcp::task::{self, TaskWish};

use crate::dispatch::Dispatch;
use crate::incoming::Incoming;
use crate::ledgers::TopicLedgers;
use crate::link::{Requester, plain_client};
use crate::live::{ConfiguredServer, Event};

impl Dispatch {
    /// Whether a branch makes this call itself.
    pub fn is_plain(self: &Arc<Self>, by: Requester<'_>, incoming: &Incoming) -> bool {
        let Some(Target::Tool(name)) = &incoming.request.target else {
            return false;
        };
        let is_complete = incoming.request.method.facts().calls_tool()
            && by.bearer.is_none()
            && incoming.state.is_none()
            && incoming.round == 0
            && incoming.wish == TaskWish::None
            && incoming.interest == Interest::None;
        is_complete
            && !self.branch_knowledge.tighten()
            && !self.shadow_sets.is_any()
            && self.result_limit(&by.link.participant.id).is_none()
            && self.is_at_every_node(by, incoming, name)
    }

    /// Whether a tool that its caller may call without a decision is of a server that each node calls.
    fn is_at_every_node(
        self: &Arc<Self>,
        by: Requester<'_>,
        incoming: &Incoming,
        tool: &str,
    ) -> bool {
        let Some(server) = &self.plain_server(by.link.id, tool) else {
            return false;
        };
        let name = server.upstream.spec().name();
        let account = self.context.accounts.server(name);
        // Its tokens are renewed by the home, and so it is signed out there.
        if account.is_some_and(|account| !account.of(None).is_empty()) {
            return false;
        }
        let client = incoming.client.as_ref().unwrap_or(&by.link.client);
        if !is_asked_here(server, by.link.form) && can_be_asked(client) {
            return false;
        }
        let is_for_all = server.upstream.is_for_every_node(by.link.form);
        if is_for_all.is_none() && self.branch_knowledge.begins_to_find_out(name, by.link.form) {
            find_out(self, server, by);
        }
        is_for_all.unwrap_or_default()
    }

    /// The server of a tool that a link without a narrowing may call without a decision.
    fn plain_server(&self, link: LinkId, tool: &str) -> Option<Arc<ConfiguredServer>> {
        let known = self.branch_knowledge.plain_server(link, tool);
        known.or_else(|| {
            self.with(|topic| {
                let server = topic.plain_server(link, tool)?;
                let server = server.upstream()?;
                self.branch_knowledge.note_plain(link, tool, server);
                Some(Arc::clone(server))
            })
        })
    }

    /// Whether its calls are shown to participants that listen to its room.
    #[must_use]
    pub fn shows_calls(&self) -> bool {
        self.with(topic::Topic::shows_calls)
    }

    /// Takes over what the journal has now of pauses and rules, which the home writes. `configured`
    /// are the rules of the configuration.
    pub fn follow(self: &Arc<Self>, ledgers: &TopicLedgers, configured: &[CallRule]) {
        let name = self.name().as_str();
        let learned = ledgers.rules.state(|kept| kept.of_topic(name).learned());
        let learned = learned.iter().map(|rule| &**rule);
        let mut all = configured.iter().chain(learned);
        let tighten = all.any(|rule| rule.decision != RuleDecision::Approve);
        // Under the lock: no request is stepped by what was known before.
        self.with(|_| self.branch_knowledge.note(tighten));
        self.follow_brakes(ledgers);
    }

    fn follow_brakes(self: &Arc<Self>, ledgers: &TopicLedgers) {
        let kept = ledgers.brakes_of(self.name());
        let known: Vec<ParticipantId> =
            self.with(|topic| topic.brakes().map(|(id, _)| id.clone()).collect());
        let over = known.into_iter().filter(|id| !kept.contains_key(id));
        let over: Vec<(ParticipantId, Option<Brake>)> = over.map(|id| (id, None)).collect();
        let in_force = kept.into_iter().map(|(id, brake)| (id, Some(brake)));
        for (participant, brake) in over.into_iter().chain(in_force) {
            self.take(Event::Brake {
                participant: &participant,
                brake,
            });
        }
    }
}

/// Opens the session by which it is known whether each node may call a server for such callers. Until
/// then the home calls it.
fn find_out(dispatch: &Arc<Dispatch>, server: &Arc<ConfiguredServer>, by: Requester<'_>) {
    let (server, link) = (Arc::clone(server), Arc::clone(by.link));
    let dispatch = Arc::clone(dispatch);
    tokio::spawn(async move {
        let client = plain_client();
        let caller = link.caller_with(&client, None);
        if let Err(refusal) = server.upstream.session(&caller).await {
            tracing::debug!(why = %refusal.message, "the home calls a server alone");
            tokio::time::sleep(FIND_OUT_PAUSE).await;
        }
        let name = server.upstream.spec().name();
        dispatch.branch_knowledge.has_found_out(name, link.form);
    });
}

/// Whether a server asks a client of this form on the way of its call alone, so that the answer finds
/// this node. A modern client answers by another request; a server with sessions asks beside calls too.
fn is_asked_here(server: &ConfiguredServer, form: Form) -> bool {
    form == Form::Legacy && server.upstream.spec().config.placement == Placement::Auto
}

/// The pause after a session that cannot be opened, before it is tried for further calls.
const FIND_OUT_PAUSE: Duration = Duration::from_secs(5);

/// Whether a server may ask something of this client, or of its user.
fn can_be_asked(client: &ClientProfile) -> bool {
    client.can_be_asked() || task::declares(&client.capabilities)
}
