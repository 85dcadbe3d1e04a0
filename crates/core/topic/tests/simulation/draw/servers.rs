//! Servers that take their seats, and the configuration.

use std::sync::Arc;

use model::{Capabilities, LinkId, ParticipantId};
use topic::{
    Configure, Ended, RingLimits, Seating, ServerLists, SharedLists, TopicSettings, UpstreamNames,
};

use crate::{
    books::{Books, limits::LIMITS, participants::Served},
    names::{SERVERS, SERVING, id},
    numbers::{Event, RoomEffect},
    turn::Turn,
    world::World,
};

/// A server that takes its seat: its name, handle and capabilities.
type Seat = (ParticipantId, u64, Arc<Capabilities>);

impl World {
    pub(crate) fn server_grant(&mut self) -> Arc<Capabilities> {
        Arc::new(if self.prng.one_in(5) {
            Capabilities::default()
        } else {
            Capabilities::upstream()
        })
    }

    /// A server takes its seat, or gets another handle.
    pub(crate) fn reserve(&mut self) {
        let server = self.any_server();
        self.serve(&server);
    }

    pub(crate) fn serve(&mut self, server: &ParticipantId) {
        let handle = self.number();
        let capabilities = self.server_grant();
        let configured = self.books.configured.clone();
        let seats = vec![(server.clone(), handle, capabilities)];
        self.reload(&configured, seats, Vec::new(), None);
    }

    /// Enters a server that takes its seat, or gets another handle, in the books.
    fn seat(&mut self, turn: &mut Turn, seat: &Seat) -> LinkId {
        let (server, handle, capabilities) = seat;
        let seated = self.books.servers.get(server).map(|served| served.link);
        let link = seated.unwrap_or_else(|| LinkId(self.number()));
        let hidden = self.books.serves(server);
        // A participant had the name before the server was configured.
        if seated.is_none() && !hidden {
            let leaving = self.books.links_of(server);
            if !leaving.is_empty() {
                self.books.count("name of a participant became a server's");
            }
            turn.leaving
                .extend(leaving.into_iter().map(|link| (link, Some(Ended::Revoked))));
            if let Some(standing) = self.books.standing.get_mut(server) {
                standing.granted = None;
            }
            turn.tasks.revoked.insert(server.clone());
            self.books.judge_deals(server);
            self.books.wear(server);
        }
        if !hidden {
            self.books
                .standing
                .entry(server.clone())
                .or_default()
                .granted = Some(capabilities.clone());
        }
        let differs = self.books.asking.get(server) != Some(capabilities);
        if seated.is_some() && differs && self.books.is_seen(server) && !hidden {
            turn.changes.insert(server.clone());
        }
        turn.serving.push(server.clone());
        self.books
            .asking
            .insert(server.clone(), capabilities.clone());
        let handle = *handle;
        self.books
            .servers
            .insert(server.clone(), Served { link, handle });
        link
    }

    /// A server begins or ceases to run, or one that serves is reported.
    pub(crate) fn available(&mut self) {
        let server = self.any_server();
        let runs = self.prng.one_in(2);
        let seen = self.books.servers.contains_key(&server) && !self.books.serves(&server);
        let differs = seen && runs == self.books.away.contains(&server);
        if differs {
            if runs {
                assert!(self.books.away.remove(&server))
            } else {
                assert!(self.books.away.insert(server.clone()))
            }
            self.books.count(if runs {
                "server came back"
            } else {
                "server went down"
            });
        }
        let available = differs.then(|| (server.clone(), runs));
        let effects = self.live(
            Event::Available {
                server: &server,
                runs,
            },
            Turn {
                available,
                ..Turn::default()
            },
        );
        assert_eq!(effects.room.len(), usize::from(differs));
        assert!(effects.all.is_empty(), "calls, lists and questions go on");
    }

    /// Servers come, go, and change places and prefixes. The caller that serves may become a
    /// server, or nothing.
    pub(crate) fn configure(&mut self) {
        let mut all = vec![UpstreamNames::gateway()];
        for (name, prefix) in SERVERS {
            if !self.prng.one_in(6) {
                all.push(UpstreamNames::new(id(name), prefix));
            }
        }
        match self.prng.below(6) {
            0 => all.push(UpstreamNames::new(id(SERVING), SERVING)),
            1 => {}
            _ => all.push(UpstreamNames::serving(id(SERVING), SERVING)),
        }
        let at = self.prng.below(all.len());
        all.rotate_left(at);
        // What else comes with the configuration is drawn beside.
        std::mem::swap(&mut self.prng, &mut self.beside);
        let mut seats = Vec::new();
        let mut lists = Vec::new();
        for names in all.iter().filter(|names| !names.builtin) {
            if self.prng.one_in(2) {
                let handle = self.number();
                let capabilities = self.server_grant();
                seats.push((names.id.clone(), handle, capabilities));
            }
            if self.prng.one_in(2) {
                lists.push((names.id.clone(), self.manifest(false)));
            }
        }
        let kept = self.prng.one_in(3).then(|| self.draw_kept());
        std::mem::swap(&mut self.prng, &mut self.beside);
        self.reload(&all, seats, lists, kept);
    }

    pub(crate) fn configures(&mut self, all: &[UpstreamNames]) {
        self.reload(all, Vec::new(), Vec::new(), None);
    }

    /// Another configuration as a whole: servers come and go, take their seats and list, and the
    /// room keeps more or less.
    fn reload(
        &mut self,
        all: &[UpstreamNames],
        mut seats: Vec<Seat>,
        lists: Vec<(ParticipantId, ServerLists)>,
        kept: Option<RingLimits>,
    ) {
        let stays = |books: &Books, server: &ParticipantId| {
            all.iter()
                .any(|names| names.id == *server && names.serves == books.serves(server))
        };
        let dismissed: Vec<ParticipantId> = self
            .books
            .servers
            .keys()
            .filter(|server| !stays(&self.books, server))
            .cloned()
            .collect();
        // The books have one seat for each name: rules/serving.rs has what leaves and comes at once.
        seats.retain(|(server, ..)| !dismissed.contains(server));
        let mut turn = Turn {
            dismissed,
            ..Turn::default()
        };
        let before = std::mem::replace(&mut self.books.configured, all.to_vec());
        let hidden =
            |id: &ParticipantId| before.iter().any(|names| names.id == *id && names.serves);
        let seen = |server: &&ParticipantId| !hidden(server) && !self.books.away.contains(*server);
        let dismissed = turn.dismissed.iter().filter(seen).count();
        let mut joins = 0;
        let mut revoked = 0;
        let mut links = Vec::new();
        for seat in &seats {
            let joined = !self.books.servers.contains_key(&seat.0) && !self.books.serves(&seat.0);
            joins += usize::from(joined);
            revoked += usize::from(joined && self.books.is_here(&seat.0));
            links.push(self.seat(&mut turn, seat));
        }
        if let Some(kept) = kept {
            self.books.keeps(kept);
        }
        if !seats.is_empty() && !lists.is_empty() && !turn.dismissed.is_empty() {
            self.books.count("reloaded as a whole");
        }
        let seats = seats.iter().zip(links);
        let seats = seats.map(|((server, handle, capabilities), link)| Seating {
            link,
            server,
            handle: *handle,
            capabilities: Arc::clone(capabilities),
        });
        let lists = lists.iter().map(|(server, manifest)| SharedLists {
            server,
            manifest: manifest.clone(),
        });
        let configure = Configure {
            upstreams: all,
            seats: seats.collect(),
            lists: lists.collect(),
            changed: &[],
            settings: kept.map(|kept| {
                Box::new(TopicSettings {
                    limits: LIMITS,
                    kept,
                    ..TopicSettings::default()
                })
            }),
        };
        let effects = self.live(Event::Configure(configure), turn);
        let count = |which: fn(&RoomEffect) -> bool| {
            effects.room.iter().filter(|effect| which(effect)).count()
        };
        let left = count(|effect| matches!(effect, RoomEffect::Left(_)));
        assert_eq!(
            left,
            dismissed + revoked,
            "a server that is not configured leaves"
        );
        let joined = count(|effect| matches!(effect, RoomEffect::Joined(_)));
        assert_eq!(joined, joins, "only a server that others see joins");
    }
}
