//! Changes of what is in force: configuration, tokens, grants and their expiry.

use std::sync::{Arc, Weak, atomic::Ordering};
use std::time::Duration;

use model::{ParticipantId, TopicName};
use notify::NotifyClient;
use oauth::Configured;
use platform::unix_ms;
use tls::ClientTls;
use tokio::sync::{Notify, watch};
use upstream::config::{OpenApiConfig, ServerConfig, Transport};
use upstream::{Environment, SessionEvents, Upstream, UpstreamSpec};

use super::Registry;
use crate::in_force::{Concerned, InForce};
use crate::pins::Pins;
use config::Config;
use gateway::{Dispatch, Offer, ResultLimits, Settings, Topic, Topics};
use identity::AccessJournal;
use topic::section::TopicSection;

/// Longest sleep between two looks for what has expired.
const EXPIRY_MAX: Duration = Duration::from_secs(5);

impl Registry {
    /// Takes over a new configuration: servers that did not change keep running, and participants
    /// that may not enter a topic any more leave it. No change of tokens and grants is made
    /// meanwhile, so that none is overwritten by older ones.
    pub fn reload(self: &Arc<Self>, config: Config, access: &AccessJournal) {
        let swapped = access.undisturbed(|| {
            let _applying = self.applying.lock();
            let config = Arc::new(config);
            // Before any participant has the rights of the new configuration: those of issuers get
            // theirs when `bearers` take it over.
            let topics = self.topics();
            for dispatch in topics {
                self.pause_rules(&config, &dispatch);
            }
            self.start_servers(&config, None);
            self.bearers.take_over(&config.identity);
            let swapped = self.swap(|_| {
                let standing = access.standing(&config.identity);
                InForce::new(config, standing)
            });
            self.open_topics();
            swapped
        });
        self.follow(swapped, Concerned::Everybody);
    }

    /// Starts what the configuration with which the registry starts has.
    pub(super) fn open(self: &Arc<Self>) {
        let _applying = self.applying.lock();
        let config = self.config();
        self.start_servers(&config, None);
        self.bearers.take_over(&config.identity);
        self.open_topics();
    }

    /// Takes over the configuration in force once more, after a server was disabled or enabled; the
    /// one of this name starts anew.
    pub(super) fn apply_again(self: &Arc<Self>, renewed: Option<&str>) {
        let _applying = self.applying.lock();
        self.start_servers(&self.config(), renewed);
        self.open_topics();
        self.moved();
    }

    /// Ends all that a participant has open, in every topic.
    pub(super) fn end_links_of(&self, ended: &ParticipantId) {
        for dispatch in self.topics() {
            let links = dispatch.with(Topic::links);
            let own = links
                .into_iter()
                .filter(|(_, _, participant)| participant == ended);
            own.for_each(|(_, link, _)| dispatch.end_link(&link));
        }
    }

    /// Gives one participant or all what they may do now, in every topic, whether they are present
    /// or have left proposals or tasks behind.
    pub(super) fn refresh(&self, changed: Option<&ParticipantId>) {
        self.moved();
        for dispatch in self.topics() {
            let concerned =
                changed.map_or_else(|| callers(&dispatch), |changed| vec![changed.clone()]);
            concerned
                .iter()
                .for_each(|participant| dispatch.refresh(participant));
            self.close_wires(&dispatch, changed);
        }
    }

    /// Ends the links of one participant or all that came in on a wire which is closed to them now.
    pub(super) fn close_wires(&self, dispatch: &Arc<Dispatch>, changed: Option<&ParticipantId>) {
        if !self.now().limits_wires {
            return;
        }
        for (_, link, participant) in dispatch.with(Topic::links) {
            let is_meant = changed.is_none_or(|changed| *changed == participant);
            if is_meant && !self.may_use(&participant, link.wire) {
                dispatch.end_link(&link);
            }
        }
    }

    /// Moves the epoch and looks anew for the next expiry.
    pub(super) fn moved(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.renewed.notify_one();
        // Others may decide than before.
        self.context.notifications.look_again();
    }

    /// Receives whenever a token, a grant or a sign-in has expired.
    pub(crate) fn expired(&self) -> watch::Receiver<()> {
        self.expired.subscribe()
    }

    /// Refreshes every participant whenever a token or grant expires.
    pub(super) fn watch_expiries(self: &Arc<Self>) {
        tokio::spawn(expiries(Arc::downgrade(self), Arc::clone(&self.renewed)));
    }

    /// Starts the servers of a configuration that do not run as it has them, and closes those that
    /// it has no more.
    fn start_servers(self: &Arc<Self>, config: &Config, renewed: Option<&str>) {
        let me = Arc::downgrade(self);
        let topics = Topics(Box::new(move || {
            me.upgrade().map_or_else(Vec::new, |me| me.topics())
        }));
        let events: Arc<dyn SessionEvents> = Arc::new(topics);
        let mut old = std::mem::take(&mut *self.upstreams.write());
        let mut upstreams = Vec::new();
        for server in config.servers.iter().filter(|server| server.enabled) {
            let server = &self.in_force_of(server);
            let (accounts, unchanged) = self.accounts_of(config, server);
            let unchanged = unchanged && renewed != Some(server.name.as_str());
            let same = |(known, _): &(_, _)| unchanged && known == server;
            if let Some(at) = old.iter().position(same) {
                upstreams.push(old.swap_remove(at));
                continue;
            }
            let environment = Environment {
                accounts: accounts.map(|accounts| accounts as Arc<dyn client::Accounts>),
                guard: self.guard.clone(),
                identity: lists::handshake::identity(),
                instance: Arc::clone(&self.context.instance),
                events: Arc::clone(&events),
                dial_in: None,
                numbers: Arc::clone(&self.context.numbers),
                stderr: Arc::default(),
                resolve: self.references.clone(),
                fields: Arc::clone(&self.context.fields),
                pins: Some(Arc::<Pins>::clone(&self.pins)),
                starts: Arc::clone(&self.starts),
                kept: Arc::clone(&self.kept),
            };
            let spec = UpstreamSpec {
                config: server.clone(),
                limits: config.limits.servers,
            };
            upstreams.push((server.clone(), Upstream::start(spec, environment)));
        }
        *self.upstreams.write() = upstreams;
        let has_accounts = |server: &&ServerConfig| {
            matches!(
                server.transport,
                Transport::Http(_) | Transport::Sse(_) | Transport::OpenApi(_)
            ) || server.transport.has_callers_key()
        };
        let names: Vec<&str> = config
            .servers
            .iter()
            .filter(has_accounts)
            .map(|server| server.name.as_str())
            .collect();
        self.accounts.retain(&names);
        // The end of a server can take seconds: the new configuration does not wait for it.
        for (_, gone) in old {
            tokio::spawn(async move { gone.close().await });
        }
    }

    /// The accounts at a server, and whether they are configured as they were.
    fn accounts_of(
        &self,
        config: &Config,
        server: &ServerConfig,
    ) -> (Option<Arc<oauth::AccountServer>>, bool) {
        let auth = config.auth.iter().find(|(name, _)| *name == server.name);
        match (&server.transport, auth) {
            (
                Transport::Http(http)
                | Transport::Sse(http)
                | Transport::OpenApi(OpenApiConfig { http, .. }),
                Some((name, auth)),
            ) => {
                let name = name.as_str();
                let url = http.url.expose();
                let tls = &http.tls;
                self.accounts.configure(&Configured {
                    name,
                    url,
                    tls,
                    auth,
                })
            }
            // What has each caller's key and no URL of HTTP: no other program gets the keys.
            (_, Some((name, auth))) if server.transport.has_callers_key() => {
                let name = name.as_str();
                let url = &server.place_of_keys();
                let tls = &ClientTls::of_machine();
                self.accounts.configure(&Configured {
                    name,
                    url,
                    tls,
                    auth,
                })
            }
            _ => (None, true),
        }
    }

    fn open_topics(self: &Arc<Self>) {
        let config = self.config();
        let gone: Vec<Arc<Dispatch>> = {
            let is_gone = |name: &TopicName| {
                !config
                    .identity
                    .topics
                    .iter()
                    .any(|topic| topic.name == *name)
            };
            let mut topics = self.topics.write();
            topics
                .extract_if(|name, _| is_gone(name))
                .map(|(_, gone)| gone)
                .collect()
        };
        let opened = |topic: &TopicSection| self.topic(&topic.name);
        let kept: Vec<_> = config
            .identity
            .topics
            .iter()
            .filter_map(|topic| Some((topic, opened(topic)?)))
            .collect();
        // First: a client that is notified of a change in a topic may enter a new one at once.
        for topic in config
            .identity
            .topics
            .iter()
            .filter(|topic| opened(topic).is_none())
        {
            let dispatch = self.open_topic(self.settings_of(&config, topic));
            self.configure_topic(&config, topic, &dispatch);
            // Before any caller can enter it.
            if self.is_branch {
                self.follow_topic(&config, &dispatch);
            } else {
                dispatch.restore();
                dispatch.put_rules_in_force(config.rules_of(&topic.name));
                dispatch.put_approver_in_force(config.approver_of(&topic.name));
            }
            self.topics
                .write()
                .insert(topic.name.clone(), Arc::clone(&dispatch));
            // What changed meanwhile did not reach it.
            dispatch.note_available();
            dispatch.list_servers();
        }
        for (topic, dispatch) in kept {
            self.configure_topic(&config, topic, &dispatch);
            if self.is_branch {
                self.follow_topic(&config, &dispatch);
                continue;
            }
            dispatch.put_rules_in_force(config.rules_of(&topic.name));
            dispatch.put_approver_in_force(config.approver_of(&topic.name));
        }
        let routes = &self.context.notifications;
        routes.put_in_force(&config.notifications, |route| {
            NotifyClient::new(route.way.clone(), self.guard.clone())
        });
        for dispatch in gone {
            dispatch.pause_rules(&[]);
            // First its servers leave, so that callers learn why their calls end.
            dispatch.configure(&[], &[], Offer::default());
            dispatch.drop_rules();
            dispatch.put_approver_in_force(None);
            callers(&dispatch)
                .iter()
                .for_each(|participant| dispatch.revoke(participant));
        }
    }

    fn open_topic(self: &Arc<Self>, settings: Settings) -> Arc<Dispatch> {
        let registry = Arc::downgrade(self);
        let name = settings.topic.name.clone();
        let of = name.clone();
        let in_shadow = Weak::clone(&registry);
        let standing = Box::new(move |id: &_| registry.upgrade()?.standing(id, &name));
        let context = Arc::clone(&self.context);
        let audit = self.audit.clone();
        // A branch writes nothing of its topics.
        let ledgers = self.ledgers.clone().filter(|_| !self.is_branch);
        let dispatch = Dispatch::open(settings, context, audit, ledgers, standing);
        let shadow = move |id: &_| in_shadow.upgrade()?.shadow(id, &of);
        dispatch.ask_shadow_sets(Box::new(shadow));
        dispatch
    }

    /// Configures a topic, in which no rules decide until they are put in force.
    fn configure_topic(&self, config: &Config, topic: &TopicSection, dispatch: &Arc<Dispatch>) {
        let upstreams = self.upstreams();
        let named = |id: &ParticipantId| {
            upstreams
                .iter()
                .find(|one| one.spec().config.name == *id)
                .cloned()
        };
        let servers: Vec<Arc<Upstream>> = topic.servers.iter().filter_map(named).collect();
        let spec = |server: &ServerConfig| UpstreamSpec {
            config: server.clone(),
            limits: config.limits.servers,
        };
        let serving: Vec<_> = config.serving_in(topic).map(spec).collect();
        let results = ResultLimits {
            own: config.result_limits.iter().cloned().collect(),
            others: topic.result_bytes_max,
        };
        let results = Arc::new(results);
        let offer = Offer {
            results: Some(&results),
            builtin: &topic.builtin,
            tools_list: topic.tools_list,
            tools: topic.tools.as_ref(),
            sets: Some(&config.sets),
        };
        self.pause_rules(config, dispatch);
        dispatch.take_settings(self.settings_of(config, topic));
        let participants = config.identity.participants.iter();
        let shadows =
            participants.filter_map(|one| Some((one.participant.id.clone(), one.shadow.clone()?)));
        dispatch.put_shadow_sets(shadows.collect());
        dispatch.configure(&servers, &serving, offer);
    }

    /// Has no rule decide until those of this configuration are put in force. In a branch none ever does.
    fn pause_rules(&self, config: &Config, dispatch: &Arc<Dispatch>) {
        if !self.is_branch {
            dispatch.pause_rules(config.rules_of(dispatch.name()));
        }
    }

    /// The settings that a configuration has for one of its topics.
    fn settings_of(&self, config: &Config, topic: &TopicSection) -> Settings {
        Settings {
            topic: topic.clone(),
            limits: config.limits.topics,
            is_branch: self.is_branch,
        }
    }
}

/// The participants of a topic that are no servers: those that are present, and those that have
/// left proposals or tasks behind.
fn callers(dispatch: &Dispatch) -> Vec<ParticipantId> {
    dispatch.with(|topic| {
        let present = topic
            .participants()
            .into_iter()
            .filter(|one| !one.serves)
            .map(|one| one.person.id);
        let left_behind = topic.proposers().chain(topic.task_holders());
        let left_behind = left_behind.chain(topic.approvers());
        let mut all: Vec<ParticipantId> = present.chain(left_behind.cloned()).collect();
        all.sort_unstable();
        all.dedup();
        all
    })
}

async fn expiries(registry: Weak<Registry>, renewed: Arc<Notify>) {
    let mut since_ms = unix_ms();
    loop {
        let Some(next_ms) = registry
            .upgrade()
            .map(|registry| registry.now().next_expiry(since_ms))
        else {
            return;
        };
        let wait = next_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(unix_ms())));
        tokio::select! {
            () = tokio::time::sleep(wait.map_or(EXPIRY_MAX, |wait| wait.min(EXPIRY_MAX))) => {}
            () = renewed.notified() => {}
        }
        let Some(registry) = registry.upgrade() else {
            return;
        };
        registry.kept.turn_day();
        // Before the look: what expires meanwhile is found by the next one.
        let now_ms = unix_ms();
        let next_ms = registry.now().next_expiry(since_ms);
        if next_ms.is_some_and(|at_ms| at_ms <= unix_ms()) {
            registry.refresh(None);
            registry.expired.send_replace(());
        }
        since_ms = now_ms;
    }
}

#[cfg(test)]
mod tests;
