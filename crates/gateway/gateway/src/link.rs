//! Link of a participant to a topic, and its outlet: the way out for what belongs to none of its
//! requests.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use auth::{Bearer, Participant, Wire};
use bytes::Bytes;
use model::{Coding, Digest, Form, LinkId, ListKind, Narrowing, Notice, OperationId, Request};
use platform::{Mutex, Share};
use room::Socket;
use topic::Ended;
use upstream::{Caller, ClientProfile};
use wire::mcp::method;

use crate::client_words::ClientWords;
use crate::mailbox::Mailbox;

/// One link of a participant.
pub struct Link {
    /// Its id in the topic.
    pub id: LinkId,
    /// The participant.
    pub participant: Arc<Participant>,
    /// The form of its payloads.
    pub form: Form,
    /// Coding in which its client writes and reads messages.
    pub coding: Coding,
    /// Declaration of its client in the handshake. A modern client declares it with each request.
    pub client: ClientProfile,
    /// The wire on which its participant came in.
    pub wire: Wire,
    /// The address from which it was opened, if it is one connection.
    address: OnceLock<IpAddr>,
    /// Name and version of its client in words.
    client_words: OnceLock<ClientWords>,
    /// Its sending side.
    pub outlet: Arc<dyn Outlet>,
    /// The mailbox of effects for it.
    pub(crate) mailbox: Mailbox,
    /// The access token of its latest request.
    pub(crate) latest: LatestToken,
    /// Its participant's share of the bytes that wait, from its join on.
    pub held: OnceLock<Arc<Share>>,
    /// Its participant's shares of what its topic writes to, from its join on.
    pub(crate) written: OnceLock<Written>,
}

/// The caller of one request: its link, and the access token that the request came with. Requests
/// on one link may come with several tokens, also at once.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// The link.
    pub link: &'a Arc<Link>,
    /// The token's bearer, if the request came with an access token.
    pub(crate) bearer: Option<&'a Arc<Bearer>>,
    /// The address from which the request came.
    pub(crate) address: Option<IpAddr>,
}

impl<'a> Requester<'a> {
    /// The narrowing of the participant's capabilities by the token.
    pub fn narrowing(self) -> Option<&'a Narrowing> {
        self.bearer?.narrowing.as_ref()
    }

    /// The caller of a request that came from this address.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self {
            address: address.or(self.address),
            ..self
        }
    }
}

/// The access token of a link's latest request, if an issuer has signed one for the link. What the
/// gateway does at servers without a request (it opens sessions, and finds those that are open) it
/// does with this one, as servers may exchange it.
#[derive(Debug, Default)]
pub(crate) struct LatestToken {
    /// Whether there ever was one: all other links take no lock.
    is_used: AtomicBool,
    bearer: Mutex<Option<Arc<Bearer>>>,
}

impl LatestToken {
    /// Enters the token of a request as the latest.
    pub(crate) fn note(&self, bearer: Option<&Arc<Bearer>>) {
        let bearer = bearer.filter(|bearer| bearer.token.is_some());
        if bearer.is_none() && !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut latest = self.bearer.lock();
        if latest.as_ref().map(Arc::as_ptr) != bearer.map(Arc::as_ptr) {
            *latest = bearer.cloned();
        }
        self.is_used.store(true, Ordering::Release);
    }

    fn get(&self) -> Option<Arc<Bearer>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.bearer.lock().clone()
    }
}

/// A participant's shares of what its topic writes to.
pub(crate) struct Written {
    /// The audit log, if there is one.
    pub(crate) audit: Option<Arc<Share>>,
    /// The room's queue.
    pub(crate) queue: Arc<Share>,
}

/// The sending side of a link. Without methods of its own it sends nothing and asks its client
/// nothing.
pub trait Outlet: Send + Sync {
    /// Sends a notification.
    fn notify(&self, _notice: &Passed<'_>) {}
    /// Sends a server's question to the client.
    ///
    /// # Errors
    /// Why the client cannot get it.
    fn ask(&self, _question: &Questioned<'_>) -> Result<(), Undelivered> {
        Err(Undelivered::OtherForm)
    }
    /// Withdraws a question from the client.
    fn withdraw_question(&self, _number: u64) {}
    /// Notifies that a list may have changed.
    fn list_changed(&self, _list: ListKind) {}
    /// Ends the link's streams. `why` is set if the topic ended the link.
    fn close(&self, _why: Option<Ended>) {}
    /// Whether a client is there beside its requests, as far as the gateway can know.
    fn is_connected(&self) -> bool {
        true
    }
    /// The link's socket in the room.
    fn socket(&self) -> Option<&Arc<Socket>> {
        None
    }
}

/// A notification on its way to a client.
#[derive(Debug, Clone, Copy)]
pub struct Passed<'a> {
    /// The notification.
    pub notice: &'a Notice,
    /// The public URI of its resource, if the server spells it otherwise.
    pub public: Option<&'a str>,
    /// The resource or task that it is about. A newer notification about it makes this one stale.
    pub about: Option<&'a str>,
}

impl Passed<'_> {
    /// Whether clients of this form know the notification; those that the protocol does not define
    /// are for all.
    pub(crate) fn suits(&self, form: Form) -> bool {
        let own = self.notice.payload.form == form;
        own || method::lookup(self.notice.method.as_str()).is_none_or(|known| known.is_in(form))
    }
}

/// The public spelling of a server's URI, if it differs.
pub type Respell<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A server's question on its way to a client.
#[derive(Clone, Copy)]
pub struct Questioned<'a> {
    /// The question's id.
    pub operation: OperationId,
    /// The number by which the client answers.
    pub number: u64,
    /// The question as its server wrote it.
    pub request: &'a Request,
    /// The public spelling of the server's URIs.
    pub respell: &'a Respell<'a>,
}

/// Why something did not reach a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// The client reads too slowly: its stream is full, or has ended.
    Overrun,
    /// The client's form has no such message.
    OtherForm,
}

impl Link {
    /// A link that has not joined yet.
    pub fn new(
        id: LinkId,
        participant: Arc<Participant>,
        form: Form,
        client: ClientProfile,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Self> {
        let wire = if outlet.socket().is_some() {
            Wire::Ws
        } else {
            Wire::Mcp
        };
        Arc::new(Self::with(id, participant, form, client, wire, outlet))
    }

    /// A link that has yet to join, of a client of proto-mcp: nothing of it is known but what its
    /// calls say.
    pub fn of_proto(
        id: LinkId,
        participant: Arc<Participant>,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Self> {
        let form = Form::Legacy;
        let client = plain_client();
        let link = Self::with(id, participant, form, client, Wire::Proto, outlet);
        Arc::new(Self {
            coding: Coding::Proto,
            ..link
        })
    }

    fn with(
        id: LinkId,
        participant: Arc<Participant>,
        form: Form,
        client: ClientProfile,
        wire: Wire,
        outlet: Arc<dyn Outlet>,
    ) -> Self {
        let mailbox = Mailbox::default();
        let held = OnceLock::new();
        let written = OnceLock::new();
        let latest = LatestToken::default();
        latest.note(participant.bearer.as_ref());
        Self {
            id,
            participant,
            form,
            coding: Coding::Json,
            client,
            wire,
            address: OnceLock::new(),
            client_words: OnceLock::new(),
            outlet,
            mailbox,
            latest,
            held,
            written,
        }
    }

    /// The caller of a request that came with the access token of this participant, the link's own.
    pub fn requester<'a>(self: &'a Arc<Self>, participant: &'a Participant) -> Requester<'a> {
        Requester {
            link: self,
            bearer: participant.bearer.as_ref(),
            address: self.address(),
        }
    }

    /// Notes the address from which its one connection came.
    pub fn came_from(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            // It has one connection.
            let _ = self.address.set(address);
        }
    }

    /// The address from which its one connection came.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address.get().copied()
    }

    /// Name and version of a client that declares this, in words. Those of the first one are kept.
    pub(crate) fn words_of<'a>(&'a self, client: &ClientProfile) -> Option<Cow<'a, str>> {
        let info = client.client_info.as_ref()?;
        let known = self.client_words.get_or_init(|| ClientWords::of(info));
        if known.info == *info {
            return known.words.as_deref().map(Cow::Borrowed);
        }
        ClientWords::of(info)
            .words
            .map(|words| Cow::Owned(words.into()))
    }

    /// The caller of a request on a wire whose connections have one access token, with which the
    /// link was opened.
    pub fn opener(self: &Arc<Self>) -> Requester<'_> {
        self.requester(&self.participant)
    }

    /// The access token of an issuer with which its caller requested last.
    pub(crate) fn latest_token(&self) -> Option<Arc<Bearer>> {
        self.latest.get()
    }

    /// Its participant's share of the room's queue, once it has joined.
    pub fn queued(&self) -> Option<&Arc<Share>> {
        self.written.get().map(|written| &written.queue)
    }

    /// Its participant's share of the audit log, if there is one and it has joined.
    pub(crate) fn audit(&self) -> Option<&Arc<Share>> {
        self.written.get()?.audit.as_ref()
    }

    /// Whether its client's protocol has tasks. proto-mcp 1.0 has no message for them.
    pub(crate) fn has_tasks(&self) -> bool {
        self.wire != Wire::Proto
    }

    /// This link as a server's session knows its callers, with its latest token.
    pub(crate) fn caller(&self) -> Caller<'_> {
        self.caller_with(
            &self.client,
            self.latest.get().and_then(|bearer| bearer.token),
        )
    }

    /// The caller of a request that declares this client and came with this token.
    pub(crate) fn caller_with<'a>(
        &'a self,
        client: &'a ClientProfile,
        token: Option<Digest>,
    ) -> Caller<'a> {
        Caller {
            link: self.id,
            participant: &self.participant.id,
            account: self.participant.id.account(),
            form: self.form,
            client,
            token,
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Link")
            .field(&self.id)
            .field(&self.participant.id)
            .finish()
    }
}

/// Declaration of a client that declares nothing.
pub fn plain_client() -> ClientProfile {
    ClientProfile {
        capabilities: Bytes::from_static(b"{}"),
        client_info: None,
        version: wire::mcp::Version::NEWEST_LEGACY,
    }
}

/// The outlet of a link that no client reads.
#[derive(Debug)]
pub(crate) struct NoOutlet;

impl Outlet for NoOutlet {}

/// The outlet of a participant's WebSocket: what its room sends goes through the socket, and it is
/// asked nothing.
pub struct RoomOutlet(pub Arc<Socket>);

impl Outlet for RoomOutlet {
    fn socket(&self) -> Option<&Arc<Socket>> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests;
