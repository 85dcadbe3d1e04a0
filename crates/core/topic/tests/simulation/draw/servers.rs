//! Servers that take their seats, and the configuration.

use std::sync::Arc;

use model::{Capabilities, LinkId, ParticipantId};
use topic::{Ended, UpstreamNames};

use crate::{
    books::{Books, participants::Served},
    names::{SERVERS, SERVING, id},
    numbers::{Event, RoomEffect},
    turn::Turn,
    world::World,
};

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
        let (handle, capabilities) = (self.number(), self.server_grant());
        let seated = self.books.servers.get(server).map(|served| served.link);
        let link = seated.unwrap_or_else(|| LinkId(self.number()));
        let hidden = self.books.serves(server);
        // A participant had the name before the server was configured.
        let mut turn = Turn::default();
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
            turn.tasks.revoked = Some(server.clone());
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
        let differs = self.books.asking.get(server) != Some(&capabilities);
        turn.changes = (seated.is_some() && differs && self.books.is_seen(server) && !hidden)
            .then(|| server.clone());
        turn.serving = Some(server.clone());
        self.books
            .asking
            .insert(server.clone(), capabilities.clone());
        self.books
            .servers
            .insert(server.clone(), Served { link, handle });
        let effects = self.live(
            Event::Serve {
                link,
                server,
                handle,
                capabilities,
            },
            turn,
        );
        let joined = effects
            .room
            .iter()
            .any(|effect| matches!(effect, RoomEffect::Joined(_)));
        assert_eq!(
            joined,
            seated.is_none() && !hidden,
            "only a server that others see joins"
        );
    }

    /// A server begins or ceases to run, or one that serves is reported.
    pub(crate) fn available(&mut self) {
        let (server, runs) = (self.any_server(), self.prng.one_in(2));
        let seen = self.books.servers.contains_key(&server) && !self.books.serves(&server);
        let differs = seen && runs == self.books.away.contains(&server);
        if differs {
            match runs {
                true => assert!(self.books.away.remove(&server)),
                false => assert!(self.books.away.insert(server.clone())),
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
        self.configures(&all);
    }

    pub(crate) fn configures(&mut self, all: &[UpstreamNames]) {
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
        let turn = Turn {
            dismissed,
            ..Turn::default()
        };
        let before = std::mem::replace(&mut self.books.configured, all.to_vec());
        let hidden =
            |id: &ParticipantId| before.iter().any(|names| names.id == *id && names.serves);
        let seen = |server: &&ParticipantId| !hidden(server) && !self.books.away.contains(*server);
        let leave = turn.dismissed.iter().filter(seen).count();
        let effects = self.live(Event::Configure { upstreams: all }, turn);
        let left = effects
            .room
            .iter()
            .filter(|effect| matches!(effect, RoomEffect::Left(_)))
            .count();
        assert_eq!(left, leave, "a server that is not configured leaves");
    }
}
