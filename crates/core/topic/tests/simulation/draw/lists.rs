//! Lists of servers, and sessions of one link's own.

use model::{ListKind, ParticipantId};
use topic::{ListItem, ListScope, ServerLists, Withholding};

use crate::{
    names::{BUILT_IN, NAMES, TEMPLATES, URIS},
    numbers::Event,
    turn::Turn,
    world::World,
};

impl World {
    fn items(&mut self, from: &[&str]) -> Vec<ListItem> {
        let count = self.prng.below(4);
        let items = (0..count).map(|_| {
            let own = self.prng.any(from).into();
            ListItem {
                own,
                digest: self.prng.below(2) as u64,
                withheld: Withholding::None,
                app: None,
            }
        });
        items.collect()
    }

    pub(crate) fn manifest(&mut self, builtin: bool) -> ServerLists {
        if builtin {
            let tools = BUILT_IN
                .iter()
                .filter(|_| !self.prng.one_in(6))
                .map(|name| ListItem::from(*name))
                .collect();
            return ServerLists {
                tools,
                ..ServerLists::default()
            };
        }
        let tools = self.items(&NAMES);
        // They follow from the tools, so that they take nothing from what is drawn besides.
        let uri = |tool: &ListItem| {
            URIS.iter()
                .cycle()
                .nth(tool.own.len())
                .copied()
                .unwrap_or_default()
        };
        let skills = tools.iter().map(|tool| ListItem {
            digest: tool.digest,
            ..ListItem::from(uri(tool))
        });
        ServerLists {
            skills: skills.collect(),
            tools,
            prompts: self.items(&NAMES),
            resources: self.items(&URIS),
            templates: self.items(&TEMPLATES),
        }
    }

    pub(crate) fn list(&mut self, server: &ParticipantId) {
        let manifest = self.manifest(server.as_str() == model::GATEWAY);
        let scope = ListScope::Shared;
        let changed = &[];
        self.live(
            Event::Listed {
                server,
                scope,
                manifest,
                changed,
            },
            Turn::default(),
        );
    }

    pub(crate) fn listed(&mut self) {
        let server = &self.any_server();
        let builtin = server.as_str() == model::GATEWAY;
        let link = self.any_link();
        let scope = if self.prng.one_in(3) {
            ListScope::Link(link)
        } else {
            ListScope::Shared
        };
        let manifest = self.manifest(builtin);
        let changed = if self.prng.one_in(4) {
            &[ListKind::Tools, ListKind::Resources][..]
        } else {
            &[]
        };
        if scope == ListScope::Link(link)
            && !builtin
            && self.books.servers.contains_key(server)
            && let Some(own) = self.books.links.get_mut(&link)
        {
            own.attached.insert(server.clone());
        }
        self.live(
            Event::Listed {
                server,
                scope,
                manifest,
                changed,
            },
            Turn::default(),
        );
    }

    pub(crate) fn session(&mut self) {
        let link = self.any_link();
        let server = &self.any_server();
        let attaches = self.prng.one_in(2);
        let here = self.books.servers.contains_key(server);
        if let Some(own) = self.books.links.get_mut(&link) {
            match attaches {
                true if here => drop(own.attached.insert(server.clone())),
                true => {}
                false => drop(own.attached.remove(server)),
            }
        }
        let event = if attaches {
            Event::Attach { link, server }
        } else {
            Event::Detach {
                link,
                server,
                keeps_lists: false,
            }
        };
        self.live(event, Turn::default());
    }
}
