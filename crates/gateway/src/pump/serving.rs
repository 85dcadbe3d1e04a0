//! Participants of this topic that serve (`serves = true`): where their requests go out and their answers come in, and
//! how long what they offer stays listed. Must not know what is asked.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{LinkId, ParticipantId};
use platform::MutexGuard;
use topic::View;
use upstream::config::ServerConfig;
use upstream::dial_in::{Absence, DialIn, Outbox, Receipt, RecentRequests};
use upstream::{Manifest, QuestionId, Session, SessionEvents, Upstream, UpstreamSpec};
use wire::mcp::ListKind;
use wire::mcpx::Envelope;
use wire::rpc::Message;

use super::{Pump, Seat};
use crate::caller::Caller;
use crate::config::Limits;
use crate::greeting;
use crate::operation::decline;

const RESPONSE: &str = "mcp/response:";
const NOTICE: &str = "mcp/request:notifications/";

/// What of the pump a served participant and its sessions reach.
struct Way(Weak<Pump>);

impl Outbox for Way {
    fn stamp(&self) -> (String, String) {
        self.0.upgrade().map(|pump| pump.stamp()).unwrap_or_default()
    }

    fn send(&self, link: LinkId, envelope: &[u8]) {
        if let Some(pump) = self.0.upgrade() {
            pump.whisper(link, envelope);
        }
    }
}

impl SessionEvents for Way {
    fn notice(&self, session: &Arc<Session>, method: &str, frame: Bytes) {
        if let Some(pump) = self.0.upgrade() {
            pump.tell(session, method, &frame);
        }
    }

    fn question(&self, session: &Arc<Session>, question: QuestionId, _: Message) {
        decline(session, question);
    }

    fn changed(&self, session: &Arc<Session>, told: &[ListKind]) {
        if let Some(pump) = self.0.upgrade() {
            pump.changed(session, told);
            pump.opened(session);
        }
    }

    fn ended(&self, session: &Arc<Session>) {
        if let Some(pump) = self.0.upgrade() {
            pump.ended(session);
        }
    }
}

impl Seat {
    /// What is listed of it: what it offered last, unless it has been away for too long.
    pub(super) fn manifests(&self) -> Vec<Arc<Manifest>> {
        match &self.served {
            Some(served) if !served.is_listed() => Vec::new(),
            Some(_) | None => self.upstream.manifests(),
        }
    }
}

impl Pump {
    /// The seats of those who serve here; who served before as it does now keeps what it has.
    pub(super) fn serving(&self, servers: &[ServerConfig], limits: &Limits, old: &[Seat]) -> Vec<Seat> {
        let seat = |server: &ServerConfig| {
            let spec = UpstreamSpec::new(server.clone(), &limits.servers());
            let kept = old.iter().find(|seat| seat.served.is_some() && *seat.upstream.spec() == spec);
            if let Some(kept) = kept {
                return kept.clone();
            }
            let (id, mail) = (server.name.clone(), Arc::new(Way(self.this.clone())));
            let late = Arc::clone(self.late().entry(id.clone()).or_default());
            let served = Arc::new(DialIn::new(id.clone(), limits.envelope_bytes_max, mail, late));
            let environment = upstream::Environment {
                guard: None,
                identity: greeting::identity_raw(),
                events: Arc::new(Way(self.this.clone())),
                dial_in: Some(Arc::<DialIn>::clone(&served)),
            };
            let link = old.iter().find(|seat| seat.id == id && seat.served.is_some()).map(|seat| seat.link);
            let link = link.unwrap_or_else(|| self.ground.link());
            Seat { id, link, upstream: Upstream::start(spec, environment), served: Some(served) }
        };
        servers.iter().map(seat).collect()
    }

    /// Whoever serves and is here already is asked what it has; who serves no more, or otherwise, is let go.
    pub(super) fn meet(&self, seats: &[Seat], old: &[Seat]) {
        for gone in old.iter().filter(|seat| seat.served.is_some()) {
            if !seats.iter().any(|seat| Arc::ptr_eq(&seat.upstream, &gone.upstream)) {
                let upstream = Arc::clone(&gone.upstream);
                tokio::spawn(async move { upstream.close().await });
            }
        }
        for seat in seats {
            let Some(served) = seat.served.as_ref().filter(|served| served.link().is_none()) else {
                continue;
            };
            // Nothing keeps it from being asked at once if it is here.
            seat.upstream.reset_backoff();
            if let Some(link) = served.connect_existing(|| self.with(|topic| topic.listener(&seat.id))) {
                self.gone(link);
            }
        }
    }

    /// What each who serves or has served here was asked. Only the configuration names them.
    fn late(&self) -> MutexGuard<'_, HashMap<ParticipantId, Arc<RecentRequests>>> {
        self.late.lock()
    }

    /// Somebody begins to hear: if it serves, it is asked what it has.
    pub(super) fn arrived(&self, id: &ParticipantId, link: LinkId) {
        if let Some((seat, served)) = self.served(id) {
            seat.upstream.reset_backoff();
            served.connected(link);
        }
    }

    /// Somebody has left: if it served, its open calls end now, and its tools stay listed for a while.
    pub(super) fn gone(&self, link: LinkId) {
        let seats = self.seats();
        let left = |seat: &Seat| {
            let served = seat.served.as_ref()?;
            Some((seat.id.clone(), Arc::clone(served), served.disconnected(link)?))
        };
        let Some((id, served, mut parting)) = seats.iter().find_map(left) else { return };
        let (pump, away) = (self.this.clone(), self.away);
        tokio::spawn(async move {
            let absence = loop {
                tokio::time::sleep(away).await;
                match served.grace_period_over(parting) {
                    Absence::Renewed(again) => parting = again,
                    absence => break absence,
                }
            };
            let Some(pump) = pump.upgrade().filter(|_| absence == Absence::Expired) else { return };
            let here = pump.served(&id).is_some_and(|(_, now)| Arc::ptr_eq(&now, &served));
            if here {
                pump.listed(&id, View::Shared, &[], &[]);
            }
        });
    }

    /// Whether an envelope is between one who serves and whoever asked it: then nobody else hears it.
    pub(super) fn is_private(&self, caller: &Caller, envelope: &Envelope) -> bool {
        let Some(about) = envelope.correlation_id().filter(|_| is_about_calls(envelope)) else {
            return false;
        };
        let id = &caller.participant().id;
        match self.served(id) {
            Some((_, served)) => served.is_private(caller.link(), envelope),
            // It serves no more; what it was asked is private all the same.
            None => self.late().get(id).is_some_and(|late| late.contains(about)),
        }
    }

    /// An envelope was said by somebody who may serve, or who may say that it is somebody else's answer.
    pub(super) fn overheard(&self, caller: &Caller, envelope: &Envelope) {
        if !is_about_calls(envelope) {
            return;
        }
        let from = &caller.participant().id;
        let own = self.served(from).filter(|(_, served)| served.link() == Some(caller.link()));
        let heard = own.map_or(Receipt::Unrelated, |(_, served)| served.receive(envelope));
        let about = envelope.correlation_id().filter(|_| envelope.kind().starts_with(RESPONSE));
        match (heard, about) {
            (Receipt::Rejected(why), _) => self.misled(caller, envelope, from, &why),
            (Receipt::Unrelated, Some(about)) => {
                let seats = self.seats();
                let asked =
                    |seat: &&Seat| seat.served.as_ref().is_some_and(|served| served.is_pending(about));
                if let Some(seat) = seats.iter().find(asked).filter(|seat| seat.id != *from) {
                    self.misled(caller, envelope, &seat.id, "it answers what another was asked");
                }
            }
            (Receipt::Unrelated | Receipt::Accepted, _) => {}
        }
    }

    fn misled(&self, caller: &Caller, envelope: &Envelope, host: &ParticipantId, why: &str) {
        self.record_ignored(caller, envelope, &[host.as_str()], &format!("mismatch: {why}"));
        tracing::info!(
            participant = %caller.participant().id, kind = envelope.kind(), why,
            "what was said counts for nothing"
        );
    }

    /// The seat of a participant that serves.
    fn served(&self, id: &ParticipantId) -> Option<(Seat, Arc<DialIn>)> {
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.served.is_some() && seat.id == *id)?;
        Some((seat.clone(), Arc::clone(seat.served.as_ref()?)))
    }

    /// Those who serve here, as upstreams.
    pub fn servers(&self) -> Vec<Arc<Upstream>> {
        let seats = self.seats();
        seats.iter().filter(|seat| seat.served.is_some()).map(|seat| Arc::clone(&seat.upstream)).collect()
    }
}

/// Whether an envelope is of a kind by which a server answers or tells of its calls.
fn is_about_calls(envelope: &Envelope) -> bool {
    envelope.kind().starts_with(RESPONSE) || envelope.kind().starts_with(NOTICE)
}
