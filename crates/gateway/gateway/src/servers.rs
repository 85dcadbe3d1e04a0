//! Servers' events outside of calls: lists, notifications, questions to a session's owner, ends of
//! sessions.

use std::sync::Arc;

use lists::topic_manifest;
use model::{Form, LinkId, ListKind, Notice, ParticipantId, Refusal, RefusalCode};
use topic::{About, ListScope, OperationRef, PublicTarget, Quarantined, Subject};
use upstream::tasks::ServerTask;
use upstream::{Manifest, Question, Session, SessionEvent, SessionEvents};
use wire::{mcp::relay, rpc::Id};

use crate::judges;
use crate::live::{ConfiguredServer, Event, ServerQuestion};
use crate::proposals::describe;
use crate::tasks::{awaiting, book, notices};
use crate::{dispatch::Dispatch, incoming::Tag};

/// Passes what the sessions of a server send outside of calls to the topics in which the server
/// takes part.
pub struct Topics(pub Box<dyn Fn() -> Vec<Arc<Dispatch>> + Send + Sync>);

impl SessionEvents for Topics {
    fn event(&self, session: &Arc<Session>, event: SessionEvent<'_>) {
        let topics = self.0();
        match &event {
            SessionEvent::Question(question) => {
                if !topics
                    .iter()
                    .any(|dispatch| dispatch.session_question(session, question))
                {
                    let refusal =
                        Refusal::new(RefusalCode::Unsupported, "no client can be asked this");
                    question.refuse(&refusal);
                }
            }
            _ => topics
                .iter()
                .for_each(|dispatch| dispatch.session_event(session, &event)),
        }
    }

    fn judged_again(&self, server: &str) {
        for dispatch in self.0() {
            if let Some(server) = dispatch.server_named(server) {
                dispatch.list_shared(&server, &[]);
            }
        }
    }

    fn is_here(&self, link: LinkId) -> bool {
        let is_connected = |dispatch: &Arc<Dispatch>| {
            let (handle, is_busy) =
                dispatch.with(|topic| (topic.handle(link), topic.is_busy(link)));
            handle.is_some_and(|link| is_busy || link.outlet.is_connected())
        };
        self.0().iter().any(is_connected)
    }

    fn available(&self, server: &str, runs: bool) {
        let Ok(server) = &ParticipantId::new(server) else {
            return;
        };
        for dispatch in self.0() {
            dispatch.take(Event::Available { server, runs });
        }
    }
}

impl Dispatch {
    /// The configured servers that take part, in the order of the configuration.
    pub fn servers(&self) -> Vec<Arc<ConfiguredServer>> {
        self.with(|topic| {
            topic
                .servers()
                .filter_map(|server| server.handle.upstream().cloned())
                .collect()
        })
    }

    /// A configured server that takes part.
    pub fn server(&self, id: &ParticipantId) -> Option<Arc<ConfiguredServer>> {
        self.with(|topic| topic.server(id)?.handle.upstream().cloned())
    }

    /// The server with this name, if it takes part.
    pub(crate) fn server_named(&self, name: &str) -> Option<Arc<ConfiguredServer>> {
        self.server(&ParticipantId::new(name).ok()?)
    }

    /// The server of a session, if it takes part.
    fn server_of(&self, session: &Session) -> Option<Arc<ConfiguredServer>> {
        self.server_named(session.upstream())
    }

    /// The server of a link's request, and its own spelling of the target.
    pub fn route(
        &self,
        link: LinkId,
        target: PublicTarget<'_>,
    ) -> Option<(Arc<ConfiguredServer>, String)> {
        self.with(|topic| {
            let route = topic.lookup(link, target)?;
            let server = topic.server(route.upstream)?.handle;
            Some((Arc::clone(server.upstream()?), route.own.into_owned()))
        })
    }

    /// The link that owns a session, if it is in this topic.
    fn owner(&self, session: &Session) -> Option<LinkId> {
        let link = session.key().owner()?;
        self.with(|topic| topic.participant(link).is_some())
            .then_some(link)
    }

    /// Lists what a server has for callers without a session of their own. `announced` are the
    /// lists that the server itself called changed.
    pub(crate) fn list_shared(self: &Arc<Self>, server: &ConfiguredServer, announced: &[ListKind]) {
        let before = self.quarantined(server);
        self.list(|| {
            Some(listed(
                &server.id,
                ListScope::Shared,
                &server.manifests(),
                announced,
            ))
        });
        self.note_listed(server, &before);
    }

    /// The entries of a server's lists that the topic offers to no caller.
    pub(crate) fn quarantined(&self, server: &ConfiguredServer) -> Vec<Quarantined> {
        self.with(|topic| topic.quarantined(&server.id).to_vec())
    }

    /// Takes that a server has listed: reviewers see definitions that were missing, and what the
    /// topic hides now and did not before is logged once.
    pub(crate) fn note_listed(self: &Arc<Self>, server: &ConfiguredServer, before: &[Quarantined]) {
        describe::of_server(self, &server.id);
        judges::of_server(self, &server.id);
        let hidden = self.quarantined(server);
        for one in hidden.iter().filter(|one| !before.contains(one)) {
            let server = server.id.as_str();
            let name = &*one.own;
            let reason = one.why.to_string();
            tracing::warn!(target: "portmoot::servers", server, list = ?one.list, name, reason, "not offered to callers");
        }
    }

    /// Lists what a server has for the links that use a modern caller's own session: what any of
    /// their sessions lists, or without one what the shared session does.
    fn list_for_users(
        self: &Arc<Self>,
        server: &ConfiguredServer,
        session: &Session,
        announced: &[ListKind],
    ) {
        for link in session.users() {
            if self.with(|topic| topic.participant(link).is_none()) {
                continue;
            }
            self.list(|| {
                let own = server.upstream.manifests_of(link);
                Some(if own.is_empty() {
                    let keeps_lists = self.link_keeps_lists(server, link);
                    Event::Detach {
                        link,
                        server: &server.id,
                        keeps_lists,
                    }
                } else {
                    listed(&server.id, ListScope::Link(link), &own, announced)
                })
            });
        }
    }

    /// Whether the lists of a link at a server stay its own while it has no session there.
    fn link_keeps_lists(&self, server: &ConfiguredServer, link: LinkId) -> bool {
        let caller = server
            .callers
            .as_ref()
            .and_then(|_| self.with(|topic| topic.participant(link).cloned()));
        caller.is_some_and(|caller| self.keeps_lists(server, &caller))
    }

    /// Lists what is read meanwhile: no other lists are.
    fn list<'e>(self: &Arc<Self>, read: impl FnOnce() -> Option<Event<'e>>) {
        let step = {
            let _listing = self.listing.lock();
            read().map(|event| self.step(event))
        };
        if let Some(step) = step {
            step.carry_out();
        }
    }

    /// Takes an event of a session. A question goes to one topic only:
    /// [`Dispatch::session_question`].
    pub(crate) fn session_event(
        self: &Arc<Self>,
        session: &Arc<Session>,
        event: &SessionEvent<'_>,
    ) {
        match event {
            SessionEvent::Notice(notice) => self.session_notice(session, notice.clone()),
            SessionEvent::Withdrawn(id) => self.session_withdrawn(session, id.clone()),
            SessionEvent::Changed(announced) => self.session_changed(session, announced),
            SessionEvent::Ended => self.session_ended(session),
            SessionEvent::Question(_) | SessionEvent::State => {}
        }
    }

    /// Takes a notification of a session that belongs to no call.
    fn session_notice(self: &Arc<Self>, session: &Arc<Session>, notice: Notice) {
        let Some(server) = self.server_of(session) else {
            return;
        };
        match notice.method.as_str() {
            "notifications/resources/updated" => {
                let Some(own) = relay::updated_uri(&notice) else {
                    return;
                };
                let subject = Subject::Resource {
                    own: &own,
                    session: session.key().owner(),
                };
                self.notice(&server.id, subject, notice);
            }
            "notifications/tasks/status" | "notifications/tasks" => {
                notices::state(self, session, notice)
            }
            "notifications/progress" => notices::progress(self, session, notice),
            method => match self.owner(session) {
                Some(owner) => {
                    let notice = book::rename_notice(self, session, notice);
                    self.notice(&server.id, Subject::Session(owner), notice);
                }
                None => tracing::debug!(
                    server = session.upstream(),
                    method,
                    "a notification for no caller"
                ),
            },
        }
    }

    /// Takes a question of a server to the owner of its session; false if the owner is not in this
    /// topic or cannot be asked.
    pub(crate) fn session_question(
        self: &Arc<Self>,
        session: &Arc<Session>,
        question: &Question,
    ) -> bool {
        let Some(server) = self.server_of(session) else {
            return false;
        };
        let task = book::related(self, session, &question.request().payload);
        let form = |owner: &LinkId| self.with(|topic| topic.handle(*owner).map(|link| link.form));
        let owner = session
            .key()
            .owner()
            .filter(|owner| form(owner) == Some(session.era()));
        if let Some(link) = owner {
            // A server may ask as soon as the session is open, before it has listed anything.
            self.take(Event::Attach {
                link,
                server: &server.id,
            });
        }
        let about = match &task {
            Some(task) => self.about_task(session, task, owner),
            None => owner.map(About::Session),
        };
        let Some(about) = about else { return false };
        let question = question.clone();
        let session = Arc::downgrade(session);
        self.ask(
            ServerQuestion {
                question,
                session,
                server: server.id.clone(),
                task,
            },
            about,
        );
        true
    }

    /// The subject of a question that belongs to a task: it goes where the task's result is awaited,
    /// else to the owner of the session. `None` if neither is there and the gateway cannot await the
    /// result for the holder.
    fn about_task(
        self: &Arc<Self>,
        session: &Session,
        task: &Arc<ServerTask>,
        owner: Option<LinkId>,
    ) -> Option<About> {
        let is_awaited = book::awaited(self, task).is_some();
        if !is_awaited && owner.is_none() {
            // An owner of the other form cannot be asked.
            if session.key().owner().is_some() {
                return None;
            }
            awaiting::begin_for_holder(self, task)?;
        }
        Some(About::Task {
            task: task.operation,
            session: owner,
        })
    }

    /// Withdraws a question that its server has withdrawn.
    fn session_withdrawn(self: &Arc<Self>, session: &Session, id: Id) {
        let Ok(server) = ParticipantId::new(session.upstream()) else {
            return;
        };
        let Some(link) = self.with(|topic| Some(topic.server(&server)?.link)) else {
            return;
        };
        let which = OperationRef::Tag(Tag::of_server(session.instance(), id));
        self.take(Event::Cancel { link, which });
    }

    /// Takes new lists of a session, and passes on which log messages its owner wants: the session
    /// may be new.
    fn session_changed(self: &Arc<Self>, session: &Arc<Session>, announced: &[ListKind]) {
        let Some(server) = self.server_of(session) else {
            return;
        };
        match self.owner(session) {
            // Unless it has ended meanwhile.
            Some(owner) => self.list(|| {
                let open = session.is_open().then(|| session.manifest())?;
                Some(listed(
                    &server.id,
                    ListScope::Link(owner),
                    &[open],
                    announced,
                ))
            }),
            None if session.key().is_own() => self.list_for_users(&server, session, announced),
            None => self.list_shared(&server, announced),
        }
        self.note_callers_list(&server, session);
        let owner = self.owner(session);
        let dispatch = Arc::downgrade(self);
        let session = Arc::clone(session);
        tokio::spawn(async move {
            if let (Some(dispatch), Some(owner)) = (dispatch.upgrade(), owner) {
                dispatch.pass_level(&session, owner).await;
            }
        });
    }

    /// Lets a session know of the log level that a link has set, if it has set one.
    pub(crate) async fn pass_level(&self, session: &Session, link: LinkId) {
        let level = self.with(|topic| topic.level(link));
        if level.is_some_and(|level| session.want_level(link, level, true)) {
            session.pass_level().await;
        }
    }

    /// Takes the end of a session: its owner sees the shared lists again, or those of the session's
    /// successor, and its tasks are lost.
    fn session_ended(self: &Arc<Self>, session: &Session) {
        notices::lose(self, session);
        let Some(server) = self.server_of(session) else {
            return;
        };
        let Some(owner) = self.owner(session) else {
            return self.list_for_users(&server, session, &[]);
        };
        let link = self.with(|topic| topic.handle(owner));
        let (ended, succeeded) = {
            let _listing = self.listing.lock();
            let keeps_lists = self.link_keeps_lists(&server, owner);
            let ended = self.step(Event::Detach {
                link: owner,
                server: &server.id,
                keeps_lists,
            });
            // It may have been opened, and listed, before this end was noticed.
            let successor = link.and_then(|link| server.upstream.open_session(&link.caller()));
            let successor = successor.filter(|successor| successor.key().owner() == Some(owner));
            let manifest = successor.map(|successor| successor.manifest());
            let relist =
                |manifest| self.step(listed(&server.id, ListScope::Link(owner), &[manifest], &[]));
            (ended, manifest.map(relist))
        };
        ended.carry_out();
        if let Some(succeeded) = succeeded {
            succeeded.carry_out();
        }
    }
}

impl ConfiguredServer {
    /// Lists of the server to a participant: as [`ConfiguredServer::manifests`], but for one that
    /// has an account there.
    pub fn manifests_for(&self, participant: &ParticipantId) -> Vec<Arc<Manifest>> {
        match &self.callers {
            Some(_) => vec![self.manifest_for(participant, Form::ENVELOPE)],
            None => self.manifests(),
        }
    }

    /// Lists of the server to all: the last manifest in each era; nothing of a participant that has
    /// been away for too long; of a server at which each caller has an account, those that callers
    /// without one see.
    pub fn manifests(&self) -> Vec<Arc<Manifest>> {
        match &self.dial_in {
            Some(dial_in) if !dial_in.is_listed() => Vec::new(),
            Some(_) | None => match &self.callers {
                Some(callers) => vec![callers.shown()],
                None => self.upstream.manifests(),
            },
        }
    }
}

/// The event by which a server lists what these manifests have.
pub(crate) fn listed<'a>(
    server: &'a ParticipantId,
    scope: ListScope,
    manifests: &[Arc<Manifest>],
    announced: &'a [ListKind],
) -> Event<'a> {
    Event::Listed {
        server,
        scope,
        manifest: topic_manifest(manifests),
        changed: announced,
    }
}
