//! Links of MCP clients: how they join, how sessions are found and resumed, and how they end.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use auth::Participant;
use control::{CallerLinks, Registry};
use gateway::{Dispatch, Joining, Link};
use model::{Form, ParticipantId, Refusal, RefusalCode, TopicName};
use platform::{Mutex, MutexGuard, unix_ms};
use store::{Entry, JournalWriter, Ledger, StoreError};
use tokio::sync::{Notify, oneshot};
use upstream::ClientProfile;
use wire::mcp::Version;

use crate::keep_alive::KeepAlive;
use crate::outlet::{Home, Joined, Visitor};
use crate::sessions::kept::{EndedSessions, KeptSessions, SessionRecord};
use crate::sessions::{Mark, Opened, SESSION_ID_SECS, Session, Sessions, open_id, seal_id};
use crate::stream::Stream;

/// Time between two looks for idle links.
const SWEEP: Duration = Duration::from_secs(5);
/// A shared link whose participant sends no requests ends after this time.
const SHARED_IDLE: Duration = Duration::from_secs(300);
/// Ended sessions in one record of the journal.
const RECORD_MARKS_MAX: usize = 1024;

/// The links of all MCP clients.
pub(crate) struct ClientLinks {
    /// Configuration, tokens and topics in force.
    pub(crate) registry: Arc<Registry>,
    /// The sessions over HTTP.
    pub(crate) sessions: Sessions,
    modern: SharedLinks,
    unary: SharedLinks,
    /// The event streams of all clients.
    pub(crate) keep_alive: Arc<KeepAlive>,
    /// Ended sessions in the journal, if the gateway keeps one.
    kept: Option<Ledger<KeptSessions>>,
    /// A link was revoked: its session's end goes to the journal at once.
    revoked: Arc<Notify>,
}

impl ClientLinks {
    /// No links. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the journal has a record of sessions that cannot be read.
    pub(crate) fn start(registry: Arc<Registry>) -> Result<Arc<Self>, StoreError> {
        let kept = registry
            .journal
            .as_ref()
            .map(JournalWriter::ledger::<KeptSessions>)
            .transpose()?;
        let ended: Vec<(String, Mark)> = kept.as_ref().map_or_else(Vec::new, |kept| {
            let owned = |(by, mark): (&str, &str)| (by.to_owned(), Mark::of(mark));
            kept.state(|kept| kept.marks(unix_ms()).map(owned).collect())
        });
        let ended = ended.iter().map(|(by, mark)| (&**by, *mark));
        let sessions = Sessions::new(ended, &registry);
        let keep_alive = KeepAlive::new(&registry);
        let modern = <_>::default();
        let unary = <_>::default();
        let revoked = Arc::default();
        let links = Arc::new(Self {
            registry,
            sessions,
            modern,
            unary,
            keep_alive,
            kept,
            revoked,
        });
        tokio::spawn(sweep(Arc::downgrade(&links), Arc::clone(&links.revoked)));
        Ok(links)
    }

    /// Milliseconds on the gateway's clock.
    pub(crate) fn now_ms(&self) -> u64 {
        self.registry.context.now_ms()
    }

    /// A link whose client reads everything on one stream (pipes, the 2024-11-05 pair). Its door
    /// lets it leave.
    ///
    /// # Errors
    /// Why the topic rejects it.
    pub(crate) fn join_on(
        &self,
        stream: &Arc<Stream>,
        visitor: &Visitor,
        client: ClientProfile,
    ) -> Result<Arc<Link>, Refusal> {
        let home = Home::on(client.version.era(), stream, self.now_ms(), &self.revoked);
        self.join(&home, visitor, client)
    }

    /// The modern link of a participant over HTTP.
    ///
    /// # Errors
    /// Why the topic rejects it.
    pub(crate) fn modern(&self, visitor: &Visitor) -> Result<Arc<Joined>, Refusal> {
        self.modern.find_or_enter(visitor, self.now_ms(), || {
            self.join_http(visitor, modern_client())
        })
    }

    /// The link of a participant's calls over gRPC, which have no session and hear of nothing but
    /// their answers.
    ///
    /// # Errors
    /// Why the topic rejects it.
    pub(crate) fn unary(&self, visitor: &Visitor) -> Result<Arc<Joined>, Refusal> {
        self.unary.find_or_enter(visitor, self.now_ms(), || {
            let Visitor {
                dispatch,
                participant,
            } = visitor;
            self.make_room(&participant.id, dispatch);
            let bounds = self.registry.bounds(&participant.id);
            let home = Home::new(Form::Modern, bounds, self.now_ms(), &self.revoked);
            let outlet = Arc::<Home>::clone(&home);
            let id = self.registry.context.link();
            let link = Link::of_proto(id, Arc::clone(participant), outlet);
            self.registry.join(
                dispatch,
                &link,
                Joining {
                    promotes: true,
                    ..Joining::default()
                },
            )?;
            Ok(Joined {
                dispatch: Arc::clone(dispatch),
                link,
                home,
            })
        })
    }

    /// Ends the shared links of guests whose connection has ended: no other connection is theirs.
    pub(crate) fn leave_shared(&self, guests: &[Arc<Participant>]) {
        for shared in [&self.modern, &self.unary] {
            shared.take(guests).iter().for_each(|link| link.leave());
        }
    }

    /// Opens a legacy session over HTTP, and returns its id.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn open_session(
        &self,
        visitor: &Visitor,
        client: ClientProfile,
    ) -> Result<String, Refusal> {
        let sealer = &self.registry.context.sealer;
        let id = seal_id(
            sealer,
            visitor.participant.id.as_str(),
            visitor.dispatch.name(),
            &client,
        );
        self.begin_session(&id, visitor, client)?;
        Ok(id)
    }

    /// A participant's session by its id. A session that this process does not know is resumed if
    /// the gateway made its id (before a restart, or before the session was evicted).
    pub(crate) fn find_session(&self, visitor: &Visitor, id: &str) -> Option<Arc<Session>> {
        if let Some(session) = self
            .sessions
            .find(id, &visitor.participant.id, self.now_ms())
        {
            return Arc::ptr_eq(&session.joined.dispatch, &visitor.dispatch).then_some(session);
        }
        if self.sessions.was_closed(id) {
            return None;
        }
        let sealer = &self.registry.context.sealer;
        let client = open_id(
            sealer,
            visitor.participant.id.as_str(),
            visitor.dispatch.name(),
            id,
        )?;
        self.begin_session(id, visitor, client).ok()
    }

    /// Ends a session because its client wants it. The receiver learns when that is in the journal, and
    /// in a cluster in force at every node.
    pub(crate) fn close_session(&self, session: &Session) -> oneshot::Receiver<()> {
        if let Some(session) = self.sessions.close(session) {
            end(&session);
        }
        self.write_ended()
    }

    /// Ends all sessions of which the journal says that they have ended.
    pub(crate) fn follow_all(&self) {
        let Some(kept) = &self.kept else { return };
        let ended: Vec<(String, Mark)> = kept.state(|kept| {
            let all = kept.marks(unix_ms());
            all.map(|(by, mark)| (by.to_owned(), Mark::of(mark)))
                .collect()
        });
        for (by, mark) in ended {
            for session in self.sessions.end_elsewhere(&by, [mark].into_iter()) {
                end(&session);
            }
        }
    }

    /// Ends the sessions of which these entries say that they have ended: another process has written
    /// them.
    pub(crate) fn follow(&self, entries: &[Entry]) {
        for entry in entries {
            match entry.record_of::<KeptSessions>() {
                None => {}
                Some(Ok(SessionRecord::SessionsEnded(ended))) => {
                    let by = ended.by.as_deref().unwrap_or_default();
                    let marks = ended.marks.iter().map(|mark| Mark::of(mark));
                    for session in self.sessions.end_elsewhere(by, marks) {
                        end(&session);
                    }
                }
                Some(Err(why)) => tracing::error!(%why, "an entry about sessions cannot be read"),
            }
        }
    }

    /// Ends all sessions. The receiver learns when the journal has those that ended for good
    /// before.
    pub(crate) fn end_all(&self) -> oneshot::Receiver<()> {
        self.sessions
            .take_all()
            .iter()
            .for_each(|session| end(session));
        self.write_ended()
    }

    fn begin_session(
        &self,
        id: &str,
        visitor: &Visitor,
        client: ClientProfile,
    ) -> Result<Arc<Session>, Refusal> {
        // First, so that a client that the topic rejects evicts no session.
        let joined = self.join_http(visitor, client)?;
        let link = Arc::clone(&joined.link);
        let Opened { session, evicted } = self.sessions.open(id, joined);
        evicted.iter().for_each(|session| end(session));
        // There is no room, or another request has resumed this session first.
        if session
            .as_ref()
            .is_none_or(|session| !Arc::ptr_eq(&session.joined.link, &link))
        {
            visitor.dispatch.leave(&link);
        }
        session.ok_or_else(|| {
            Refusal::new(RefusalCode::Overloaded, "too many sessions are open")
                .hint("close sessions with DELETE")
        })
    }

    /// Makes room for a participant that is going to join: of guests, one that does nothing makes
    /// way for one that comes.
    pub(crate) fn make_room(&self, participant: &ParticipantId, dispatch: &Arc<Dispatch>) {
        if participant.is_guest() && self.registry.is_full_of_guests(dispatch) {
            self.sessions
                .evict_guest(dispatch, self.now_ms())
                .iter()
                .for_each(|session| end(session));
        }
    }

    fn join_http(&self, visitor: &Visitor, client: ClientProfile) -> Result<Joined, Refusal> {
        self.make_room(&visitor.participant.id, &visitor.dispatch);
        let form = client.version.era();
        let bounds = self.registry.bounds(&visitor.participant.id);
        let home = Home::new(form, bounds, self.now_ms(), &self.revoked);
        let link = self.join(&home, visitor, client)?;
        Ok(Joined {
            dispatch: Arc::clone(&visitor.dispatch),
            link,
            home,
        })
    }

    /// Joins a link in the form of its client's revision.
    fn join(
        &self,
        home: &Arc<Home>,
        visitor: &Visitor,
        client: ClientProfile,
    ) -> Result<Arc<Link>, Refusal> {
        let id = self.registry.context.link();
        let participant = Arc::clone(&visitor.participant);
        let form = client.version.era();
        let link = Link::new(id, participant, form, client, Arc::<Home>::clone(home));
        // A modern client gets notifications on its listen requests, and questions in results.
        let notified = form == Form::Legacy;
        let pauses = form == Form::Modern;
        let joining = Joining {
            promotes: true,
            notified,
            pauses,
            ..Joining::default()
        };
        self.registry.join(&visitor.dispatch, &link, joining)?;
        Ok(link)
    }

    fn sweep(&self) {
        let now_ms = self.now_ms();
        let idle = self.registry.limits().session_idle;
        self.sessions
            .sweep(now_ms, idle)
            .iter()
            .for_each(|session| end(session));
        for shared in [&self.modern, &self.unary] {
            // The participant's next link must not join before this one has left.
            let _alone = shared.join_alone();
            shared.sweep(now_ms).iter().for_each(|link| link.leave());
        }
    }

    /// Writes down which sessions have ended for good since the last time. The receiver learns when
    /// that is durable.
    fn write_ended(&self) -> oneshot::Receiver<()> {
        let (done, wait) = oneshot::channel();
        let Some(kept) = &self.kept else {
            return wait;
        };
        // Without room now they are written the next time.
        let Ok(place) = kept.reserve() else {
            return wait;
        };
        let ended = self.sessions.take_unwritten();
        if ended.is_empty() {
            return wait;
        }
        let at_ms = unix_ms();
        let until_ms = at_ms + SESSION_ID_SECS * 1000;
        let record = |by: &str, some: &[Mark]| {
            let marks = some.iter().map(Mark::to_string).collect();
            let by = Some(by.to_owned());
            SessionRecord::SessionsEnded(EndedSessions {
                marks,
                by,
                at_ms,
                until_ms,
            })
        };
        let of = |(by, marks): (Box<str>, Vec<Mark>)| {
            marks
                .chunks(RECORD_MARKS_MAX)
                .map(|some| record(&by, some))
                .collect::<Vec<_>>()
        };
        let records: Vec<SessionRecord> = ended.into_iter().flat_map(of).collect();
        place.submit(&records, move |written| {
            if let Err(error) = written {
                tracing::error!(%error, "ended sessions could not be written down: they may be resumed after a restart");
            }
            let _ = done.send(());
        });
        wait
    }
}

impl CallerLinks for ClientLinks {
    fn of(&self, (dispatch, participant): &control::Visitor) -> Result<Arc<Link>, Refusal> {
        let visitor = Visitor {
            dispatch: Arc::clone(dispatch),
            participant: Arc::clone(participant),
        };
        Ok(Arc::clone(&self.modern(&visitor)?.link))
    }
}

/// Links of one kind in all topics: one for all requests of a participant in a topic.
#[derive(Default)]
struct SharedLinks {
    table: Mutex<HashMap<(TopicName, ParticipantId), Arc<Joined>>>,
    joining: Mutex<()>,
}

impl SharedLinks {
    /// The link of a participant, which `join` makes if there is none.
    fn find_or_enter(
        &self,
        visitor: &Visitor,
        now_ms: u64,
        join: impl FnOnce() -> Result<Joined, Refusal>,
    ) -> Result<Arc<Joined>, Refusal> {
        if let Some(known) = self.find(visitor, now_ms) {
            return Ok(known);
        }
        let _alone = self.join_alone();
        if let Some(known) = self.find(visitor, now_ms) {
            return Ok(known);
        }
        let link = Arc::new(join()?);
        self.enter(&link);
        Ok(link)
    }

    /// The link of a participant. Notes the sign of life.
    fn find(&self, visitor: &Visitor, now_ms: u64) -> Option<Arc<Joined>> {
        let Visitor {
            dispatch,
            participant,
        } = visitor;
        let links = self.table.lock();
        let known = links.get(&(dispatch.name().clone(), participant.id.clone()))?;
        let is_usable = Arc::ptr_eq(&known.dispatch, dispatch) && known.home.liveness.touch(now_ms);
        is_usable.then(|| Arc::clone(known))
    }

    /// Keeps others from joining meanwhile, so that a participant has one link of the kind.
    fn join_alone(&self) -> MutexGuard<'_, ()> {
        self.joining.lock()
    }

    /// Enters a link that has joined.
    fn enter(&self, link: &Arc<Joined>) {
        let key = (
            link.dispatch.name().clone(),
            link.link.participant.id.clone(),
        );
        self.table.lock().insert(key, Arc::clone(link));
    }

    /// Takes out the links of these participants. They have yet to leave.
    fn take(&self, guests: &[Arc<Participant>]) -> Vec<Arc<Joined>> {
        if guests.is_empty() {
            return Vec::new();
        }
        let mut links = self.table.lock();
        let keys = guests.iter().flat_map(|one| {
            one.topics
                .iter()
                .map(|topic| (topic.clone(), one.id.clone()))
        });
        keys.filter_map(|key| links.remove(&key)).collect()
    }

    /// Takes out the links that have ended or are idle. The latter have yet to leave.
    fn sweep(&self, now_ms: u64) -> Vec<Arc<Joined>> {
        let mut expired = Vec::new();
        self.table.lock().retain(|_, link| {
            let liveness = &link.home.liveness;
            let is_over = !link.is_busy() && liveness.expire(now_ms, SHARED_IDLE);
            if is_over {
                expired.push(Arc::clone(link));
            }
            !is_over && !liveness.has_ended()
        });
        expired
    }
}

/// A modern client, before its first request: it declares what it can with each.
pub(crate) fn modern_client() -> ClientProfile {
    ClientProfile {
        version: Version::NEWEST,
        ..gateway::plain_client()
    }
}

/// Lets the link of a session leave, and ends its streams.
fn end(session: &Session) {
    session.joined.leave();
    session.end_streams();
}

async fn sweep(links: Weak<ClientLinks>, revoked: Arc<Notify>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = revoked.notified() => {}
        }
        let Some(links) = links.upgrade() else { return };
        links.sweep();
        drop(links.write_ended());
    }
}

#[cfg(test)]
mod tests;
