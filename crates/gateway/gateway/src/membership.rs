//! Membership: links that join and leave, and configured servers.

use std::iter;
use std::sync::Arc;

use model::{Capabilities, LinkId, ListKind, ParticipantId, Refusal};
use topic::{Configure, Ended, Join, Joining, Seating, SharedLists, UpstreamNames};
use upstream::{Compiled, Environment, Manifest, Upstream, UpstreamSpec, dial_in::DialIn};

use crate::callers::Callers;
use crate::live::{ConfiguredServer, Event, Live, Server};
use crate::offer::{Offer, OwnLists};
use crate::servers::Topics;
use crate::{
    builtin, dial_in,
    dial_in::RoomOutbox,
    dispatch::{Dispatch, Step},
    link::{Link, Written},
    listen,
};
use lists::topic_manifest;
use topic::section::{BuiltIn, Sets};

impl Dispatch {
    /// Lets a link join with these capabilities.
    ///
    /// # Errors
    /// The topic's refusal: it is full, the name is a server's, or a newer link of the participant
    /// listens.
    pub fn join(
        self: &Arc<Self>,
        link: &Arc<Link>,
        capabilities: &Arc<Capabilities>,
        joining: Joining,
    ) -> Result<(), Refusal> {
        let participant = &link.participant.id;
        let audit = self.audit.account(participant);
        let queue = self.room.account(participant.account());
        // A link joins once.
        let _ = link.written.set(Written { audit, queue });
        let mut step = self.step(Event::Join(Join {
            link: link.id,
            handle: Arc::clone(link),
            participant,
            capabilities: Arc::clone(capabilities),
            rate: link.participant.rate,
            joining,
        }));
        let refused = step.refusal.take();
        step.carry_out();
        if let Some(refusal) = refused {
            return Err(*refusal);
        }
        if joining.listener.is_some() {
            dial_in::connected(self, participant);
        }
        self.warm(link);
        Ok(())
    }

    /// Lets a link leave. What it opened is cancelled.
    pub fn leave(self: &Arc<Self>, link: &Link) {
        self.take(Event::Leave { link: link.id });
    }

    /// Ends one link whose participant may not come in that way any more.
    pub fn end_link(self: &Arc<Self>, link: &Arc<Link>) {
        self.cut(link.id, room::Close::Revoked);
        self.leave(link);
        closed(self, link, Some(Ended::Revoked));
    }

    /// Ends the links of a participant that may not be here any more, withdraws its proposals, and
    /// cancels its tasks.
    pub fn revoke(self: &Arc<Self>, participant: &ParticipantId) {
        self.take(Event::Revoke { participant });
    }

    /// A name has another bearer from now on: nothing of the former one is the next one's.
    pub fn disown(self: &Arc<Self>, participant: &ParticipantId) {
        self.take(Event::Disown { participant });
    }

    /// Gives a participant what it may do now, or ends its links and withdraws its proposals if it
    /// may not be here. It need not be present.
    pub fn refresh(self: &Arc<Self>, participant: &ParticipantId) {
        loop {
            let standing = (self.standing)(participant);
            match &standing {
                None => self.revoke(participant),
                Some(now) if self.with(|topic| topic.capabilities(participant) == Some(now)) => {
                    return;
                }
                Some(now) => {
                    self.take(Event::Regrant {
                        participant,
                        capabilities: Arc::clone(now),
                    });
                }
            }
            // Of two changes at once the newer may be in force first: then the older must not replace
            // it, and this looks again.
            if (self.standing)(participant) == standing {
                return;
            }
        }
    }

    /// Configures the topic: its servers in this order (new ones join, missing ones leave, the others
    /// stay as they are), then the participants that serve, what all of them and the gateway's own
    /// participant list, and what the room keeps. It is one step of the topic: callers see the
    /// configuration of before or this one, whole, and are notified once.
    pub fn configure(
        self: &Arc<Self>,
        servers: &[Arc<Upstream>],
        serving: &[UpstreamSpec],
        offer: Offer<'_>,
    ) {
        let old = self.seated();
        let mut names = vec![UpstreamNames::gateway()];
        let mut all = Vec::new();
        for upstream in servers {
            names.push(names_of(upstream, offer));
            all.push(self.configured(upstream, &old));
        }
        for spec in serving {
            let server = &spec.config;
            let offered = offer.tools.cloned();
            names.push(UpstreamNames {
                offered,
                ..UpstreamNames::serving(server.name.clone(), &*server.prefix)
            });
            all.push(self.serving(spec, &old));
        }
        // Before the step: what is hidden after it and was not before is logged.
        let hidden: Vec<_> = all.iter().map(|server| self.quarantined(server)).collect();
        self.step_to(&names, &all, &old, offer).carry_out();
        // After the step, as these are about servers that the topic must have.
        for (server, hidden) in all.iter().zip(&hidden) {
            self.note_listed(server, hidden);
        }
        self.note_available();
        self.meet(&all, &old);
        // Some may be new: a request for what none has listed yet waits for them.
        self.starts.begin();
    }

    /// The step by which the topic has these servers, with what they and the gateway's own
    /// participant list.
    fn step_to(
        self: &Arc<Self>,
        names: &[UpstreamNames],
        all: &[Arc<ConfiguredServer>],
        old: &[Seated],
        offer: Offer<'_>,
    ) -> Step<'_> {
        let gateway = ParticipantId::gateway();
        let own = self.own_lists_of(offer);
        // The topic takes lists that are as new as those that it has.
        let _listing = self.listing.lock();
        // Locked while the topic steps: no list of a caller is made of the gateway's lists of one
        // configuration and the servers' of the other (`manifests::Listed`).
        let mut shown = self.own_lists.write();
        // Callers with a limit of results see other definitions of tools.
        let is_same = shown.tools_list == own.tools_list && shown.results == own.results;
        let own_shared = SharedLists {
            server: &gateway,
            manifest: topic_manifest(&[Arc::clone(&own.manifest)]),
        };
        let shared = all.iter().map(|server| SharedLists {
            server: &server.id,
            manifest: topic_manifest(&server.manifests()),
        });
        *shown = own;
        self.step(Event::Configure(Configure {
            upstreams: names,
            seats: self.seatings(&gateway, all, old),
            lists: iter::once(own_shared).chain(shared).collect(),
            changed: if is_same { &[] } else { &[ListKind::Tools] },
            settings: Some(Box::new(
                self.settings()
                    .of_topic(offer.builtin.contains(&BuiltIn::Room)),
            )),
        }))
    }

    /// The server of the topic that is this upstream; the one that is there already, with the
    /// accounts of its callers, if it is the same.
    fn configured(&self, upstream: &Arc<Upstream>, old: &[Seated]) -> Arc<ConfiguredServer> {
        let id = upstream.spec().config.name.clone();
        let known = old
            .iter()
            .find(|known| Arc::ptr_eq(&known.server.upstream, upstream));
        let callers = known.and_then(|known| known.server.callers.clone());
        let callers = callers.or_else(|| {
            let accounts = self.context.accounts.server(id.as_str())?;
            upstream
                .has_callers_accounts()
                .then(|| Arc::new(Callers::new(accounts)))
        });
        Arc::new(ConfiguredServer {
            id,
            upstream: Arc::clone(upstream),
            dial_in: None,
            callers,
        })
    }

    /// The seats of the gateway's own participant and of all servers. A server that stays keeps its
    /// link.
    fn seatings<'a>(
        &self,
        gateway: &'a ParticipantId,
        all: &'a [Arc<ConfiguredServer>],
        old: &[Seated],
    ) -> Vec<Seating<'a, Live>> {
        let own = Seating {
            link: self.gateway_link.id,
            server: gateway,
            handle: Server::Gateway,
            capabilities: Arc::new(Capabilities::gateway()),
        };
        let servers = all.iter().map(|server| {
            let stays = old.iter().find(|known| {
                known.server.id == server.id && known.server.serves() == server.serves()
            });
            Seating {
                link: stays.map_or_else(|| self.context.link(), |known| known.link),
                server: &server.id,
                handle: Server::Upstream(Arc::clone(server)),
                capabilities: Arc::clone(&server.upstream.spec().config.capabilities),
            }
        });
        iter::once(own).chain(servers).collect()
    }

    /// Lets the topic know of every server whether it runs now.
    pub fn note_available(self: &Arc<Self>) {
        for server in self.servers() {
            let note = |runs| self.note_runs(&server.id, runs);
            server.upstream.report_available(note);
        }
    }

    fn note_runs(self: &Arc<Self>, server: &ParticipantId, runs: bool) {
        // Mostly the topic knows.
        if self.with(|topic| topic.is_away(server)) == runs {
            self.take(Event::Available { server, runs });
        }
    }

    /// Lists what every server lists now.
    pub fn list_servers(self: &Arc<Self>) {
        self.servers()
            .iter()
            .for_each(|server| self.list_shared(server, &[]));
    }

    /// Lists of the gateway's own participant by an offer.
    fn own_lists_of(&self, offer: Offer<'_>) -> OwnLists {
        let mut manifest = builtin::manifest(offer.builtin);
        manifest.compiled = Compiled::with(&self.context.fields);
        OwnLists {
            manifest: Arc::new(manifest),
            tools_list: offer.tools_list,
            sets: offer.sets.cloned().unwrap_or_default(),
            results: offer.results.cloned().unwrap_or_default(),
        }
    }

    /// The lists of the gateway's own participant.
    pub fn own_manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.own_lists.read().manifest)
    }

    /// Most bytes of a tool's result for this participant; `None` is without a limit.
    pub(crate) fn result_limit(&self, participant: &ParticipantId) -> Option<usize> {
        self.own_lists.read().results.of(participant)
    }

    /// The sets of tools in which callers may search.
    pub(crate) fn sets(&self) -> Arc<Sets> {
        Arc::clone(&self.own_lists.read().sets)
    }

    /// The server side of a participant that serves; the one that is there already if nothing about
    /// it has changed.
    fn serving(self: &Arc<Self>, spec: &UpstreamSpec, old: &[Seated]) -> Arc<ConfiguredServer> {
        let envelope_bytes_max = self.settings().limits.envelope_bytes_max;
        let mut known = old.iter().map(|known| &known.server);
        if let Some(same) = known.find(|known| known.serves() && *known.upstream.spec() == *spec) {
            if let Some(dialed) = &same.dial_in {
                dialed.limit_envelopes(envelope_bytes_max);
            }
            return Arc::clone(same);
        }
        let id = spec.config.name.clone();
        let outbox = Arc::new(RoomOutbox(Arc::downgrade(self)));
        let dialed = Arc::new(DialIn::new(id.clone(), envelope_bytes_max, outbox));
        let upstream = Upstream::start(spec.clone(), self.environment_of(&dialed));
        Arc::new(ConfiguredServer {
            id,
            upstream,
            dial_in: Some(dialed),
            callers: None,
        })
    }

    /// Services for the server side of a participant that serves: no process, account or definition
    /// is the gateway's to keep.
    fn environment_of(self: &Arc<Self>, dialed: &Arc<DialIn>) -> Environment {
        let topic = Arc::downgrade(self);
        Environment {
            accounts: None,
            guard: None,
            identity: lists::handshake::identity(),
            instance: Arc::clone(&self.context.instance),
            events: Arc::new(Topics(Box::new(move || {
                topic.upgrade().into_iter().collect()
            }))),
            dial_in: Some(Arc::clone(dialed)),
            numbers: Arc::clone(&self.context.numbers),
            stderr: Arc::default(),
            resolve: None,
            fields: Arc::clone(&self.context.fields),
            pins: None,
            starts: Arc::default(),
            kept: Arc::default(),
        }
    }

    /// Closes the server side of participants that serve no more, or with other settings; and asks
    /// those that are connected already what they list.
    fn meet(self: &Arc<Self>, all: &[Arc<ConfiguredServer>], old: &[Seated]) {
        for known in old.iter().map(|known| &known.server) {
            let stays =
                |server: &Arc<ConfiguredServer>| Arc::ptr_eq(&server.upstream, &known.upstream);
            if known.serves() && !all.iter().any(stays) {
                let upstream = Arc::clone(&known.upstream);
                tokio::spawn(async move { upstream.close().await });
            }
        }
        for server in all {
            // One that has a link was asked when it came.
            if let Some(dialed) = &server.dial_in
                && dialed.link().is_none()
            {
                dial_in::connected_to(self, server, dialed);
            }
        }
    }

    /// The configured servers and participants that serve, as the topic has them now.
    fn seated(&self) -> Vec<Seated> {
        self.with(|topic| {
            let seated = topic.servers().filter_map(|seat| {
                Some(Seated {
                    server: Arc::clone(seat.handle.upstream()?),
                    link: seat.link,
                })
            });
            seated.collect()
        })
    }

    /// Opens in the background what a client that has joined is likely to use: the servers that its
    /// participant used in the last days.
    fn warm(self: &Arc<Self>, link: &Arc<Link>) {
        let mut servers = self.servers();
        servers.retain(|server| server.upstream.is_warmed());
        for server in servers {
            let dispatch = Arc::downgrade(self);
            let link = Arc::clone(link);
            tokio::spawn(async move {
                server.upstream.warm(&link.caller()).await;
                let is_here = |dispatch: Arc<Self>| {
                    dispatch.with(|topic| topic.participant(link.id).is_some())
                };
                if !dispatch.upgrade().is_some_and(is_here) {
                    // It has left meanwhile.
                    server.upstream.release(link.id);
                }
            });
        }
    }
}

impl ConfiguredServer {
    /// Whether it is a participant that serves.
    pub fn serves(&self) -> bool {
        self.dial_in.is_some()
    }
}

/// A configured server, or a participant that serves, with its link in the topic.
struct Seated {
    server: Arc<ConfiguredServer>,
    link: LinkId,
}

/// Names of a configured server, with what an offer has of its tools.
fn names_of(upstream: &Upstream, offer: Offer<'_>) -> UpstreamNames {
    let config = &upstream.spec().config;
    let renamed = config
        .curation
        .iter()
        .flat_map(|curation| curation.renamed());
    UpstreamNames {
        own_lists: upstream.has_callers_accounts(),
        renamed: Arc::new(renamed.collect()),
        offered: offer.tools.cloned(),
        ..UpstreamNames::new(config.name.clone(), &*config.prefix)
    }
}

/// Ends what a link had whose end the topic has taken: its streams, and its sessions and
/// subscriptions at servers.
pub(crate) fn closed(dispatch: &Arc<Dispatch>, link: &Link, why: Option<Ended>) {
    link.outlet.close(why);
    dial_in::disconnected(dispatch, &link.participant.id, link.id);
    listen::release_link(dispatch, link.id);
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use model::{Answer, Form, Method, Payload, Request};
    use serde_json::Value;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::time::Instant;
    use upstream::config::{SecretText, StdioConfig, Transport};

    use super::*;
    use crate::call::{Call, Reply};
    use crate::envelopes::tests::Stage;
    use crate::incoming::Incoming;
    use crate::link::{Outlet, Respell, plain_client};

    /// The tools that a client sees whenever it is notified that they have changed.
    struct Watcher(
        std::sync::Weak<Dispatch>,
        LinkId,
        Arc<platform::Mutex<Vec<Vec<String>>>>,
    );

    impl Outlet for Watcher {
        fn list_changed(&self, list: ListKind) {
            let snapshot = self
                .0
                .upgrade()
                .unwrap()
                .with(|topic| topic.list_snapshot(self.1, None).unwrap());
            let names = snapshot
                .list(list)
                .iter()
                .map(|one| one.public.to_string())
                .collect();
            self.2
                .lock()
                .extend((list == ListKind::Tools).then_some(names));
        }
    }

    /// A server of this name and prefix within this process.
    pub(crate) async fn demo(name: &str) -> Arc<Upstream> {
        let upstream = start(name, Transport::Demo);
        upstream.settled().await;
        upstream
    }

    /// A server whose process never answers.
    fn mute(name: &str) -> Arc<Upstream> {
        let process = StdioConfig {
            command: "sleep".to_owned(),
            args: vec![SecretText::new("1000")],
            env: Vec::new(),
            cwd: None,
            confinement: Default::default(),
        };
        start(name, Transport::Stdio(process))
    }

    fn start(name: &str, transport: Transport) -> Arc<Upstream> {
        let config = upstream::config::ServerConfig {
            prefix: name.into(),
            name: ParticipantId::new(name).unwrap(),
            transport,
            era: upstream::config::EraChoice::Legacy,
            sessions: upstream::config::SessionSharing::Shared,
            placement: <_>::default(),
            timeouts: upstream::config::Timeouts::default(),
            capabilities: Arc::new(Capabilities::upstream()),
            enabled: true,
            validate: false,
            pins: Default::default(),
            start: upstream::config::Start::Always,
            idle_stop: upstream::config::IDLE_STOP,
            curation: None,
        };
        let environment = Environment {
            accounts: None,
            guard: None,
            identity: lists::handshake::identity(),
            instance: Arc::from("one"),
            events: Arc::new(Topics(Box::new(Vec::new))),
            dial_in: None,
            numbers: Arc::default(),
            stderr: Arc::default(),
            resolve: None,
            fields: Arc::default(),
            pins: None,
            starts: Arc::default(),
            kept: Arc::default(),
        };
        Upstream::start(
            UpstreamSpec {
                config,
                limits: upstream::config::ServerLimits::default(),
            },
            environment,
        )
    }

    #[tokio::test]
    async fn a_change_of_configuration_is_announced_once_and_as_a_whole() {
        let stage = Stage::new(&["mcp/*"]);
        let dispatch = &stage.dispatch;
        let ann = &stage.ann;
        let one = demo("one").await;
        let other = demo("other").await;
        dispatch.configure(&[Arc::clone(&one)], &[], Offer::default());
        let id = dispatch.context.link();
        let seen = Arc::default();
        let watcher = Watcher(Arc::downgrade(dispatch), id, Arc::clone(&seen));
        let link = Link::new(
            id,
            Arc::clone(&ann.participant),
            Form::Legacy,
            plain_client(),
            Arc::new(watcher),
        );
        let joining = Joining {
            notified: true,
            ..Joining::default()
        };
        dispatch
            .join(&link, &ann.participant.capabilities, joining)
            .unwrap();
        for (now, prefix) in [(&other, "other_"), (&one, "one_")] {
            dispatch.configure(&[Arc::clone(now)], &[], Offer::default());
            let announced = std::mem::take(&mut *seen.lock());
            let [names] = announced.as_slice() else {
                panic!("{announced:?}")
            };
            assert!(
                !names.is_empty() && names.iter().all(|name| name.starts_with(prefix)),
                "{names:?}"
            );
        }
    }

    /// A reply that passes on the names of the tools that it is answered with.
    struct Names(UnboundedSender<Vec<String>>);

    impl Reply for Names {
        fn settle(&self, _: &Call, answer: &Answer, _: &Respell<'_>) {
            let page: Value = serde_json::from_slice(answer.payload.body_bytes()).unwrap();
            let tools = page["tools"].as_array().unwrap().iter();
            let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
            self.0.send(names.collect()).unwrap();
        }

        fn refuse(&self, _: &Call, refusal: &Refusal) {
            panic!("{refusal}");
        }
    }

    /// The names of the tools that a link lists now. Blocks.
    fn tools(dispatch: &Arc<Dispatch>, link: &Arc<Link>) -> Vec<String> {
        list(dispatch, link).blocking_recv().unwrap()
    }

    /// The names of the tools that a link lists, once it is answered.
    fn list(dispatch: &Arc<Dispatch>, link: &Arc<Link>) -> UnboundedReceiver<Vec<String>> {
        let (send, names) = unbounded_channel();
        let request = Request {
            method: Method::Known("tools/list"),
            target: None,
            progress: None,
            payload: Payload::body(Form::Legacy, "{}"),
        };
        let incoming = Incoming::plain(request, None);
        dispatch.request(link.opener(), incoming, Arc::new(Names(send)));
        names
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_list_in_the_middle_of_a_reload_is_of_one_configuration() {
        let stage = Stage::new(&["mcp/*"]);
        let dispatch = &stage.dispatch;
        let ann = &stage.ann;
        let configurations = [
            (demo("one").await, &[BuiltIn::Room][..]),
            (
                demo("other").await,
                &[BuiltIn::Proxy, BuiltIn::SearchTools][..],
            ),
        ];
        let configure = |at: usize| {
            let (server, builtin) = &configurations[at];
            let offer = Offer {
                builtin,
                ..Offer::default()
            };
            dispatch.configure(&[Arc::clone(server)], &[], offer);
        };
        let whole = [0, 1].map(|at| {
            configure(at);
            tokio::task::block_in_place(|| tools(dispatch, ann))
        });
        assert!(whole.iter().all(|names| names.len() > 2), "{whole:?}");
        let is_over = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&is_over);
        let of = Arc::clone(dispatch);
        let by = Arc::clone(ann);
        let lists = tokio::task::spawn_blocking(move || {
            let mut seen = 0;
            while !stops.load(Ordering::Acquire) || seen < 50 {
                let names = tools(&of, &by);
                assert!(whole.contains(&names), "{names:?} is none of {whole:?}");
                seen += 1;
            }
        });
        for round in 0..100 {
            configure(round % 2);
        }
        is_over.store(true, Ordering::Release);
        lists.await.unwrap();
    }

    /// On a clock that goes on only while there is nothing to do.
    #[tokio::test(start_paused = true)]
    async fn servers_that_do_not_start_delay_the_first_list_no_longer_than_one() {
        let longest = Duration::from_millis(600);
        let stage = Stage::waiting(&["mcp/*"], longest);
        let dispatch = &stage.dispatch;
        let mute = ["a", "b", "c"].map(mute);
        let mut servers = mute.to_vec();
        servers.push(demo("quick").await);
        dispatch.configure(&servers, &[], Offer::default());
        let began = Instant::now();
        let names = list(dispatch, &stage.ann).recv().await.unwrap();
        let waited = began.elapsed();
        assert!(waited <= longest, "{waited:?}");
        assert!(mute.iter().all(|server| !server.has_settled()));
        assert!(names.iter().any(|name| name.starts_with("quick_")));
        for server in mute {
            server.close().await;
        }
    }
}
