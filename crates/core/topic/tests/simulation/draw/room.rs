//! Answers in the room, messages of the gateway, and the replay of both.

use model::{KindRef, OperationId, Outcome};
use topic::{Audience, Configure, Cursor, Intent, Reach, RingLimits, TopicSettings};

use crate::{
    books::{
        deals::{Deal, Fulfilment},
        envelopes::{Envelope, Fate},
        limits::LIMITS,
        room::Message,
    },
    names::{CALLERS, id},
    numbers::{Effect, Event},
    turn::{RoomAnswer, Turn},
    world::World,
};

impl World {
    /// Mostly an answer to an envelope that fulfils a proposal, of a participant that it names.
    pub(crate) fn answer_in_room(&mut self) {
        let fulfilled: Vec<Deal> = self
            .books
            .deals
            .values()
            .filter(|deal| deal.fulfilment.is_some())
            .cloned()
            .collect();
        let mut link = self.speaker();
        let mut correlation = format!("f{}", self.next / 2);
        let mut to = self.addressees();
        let mut own = "a".to_owned();
        if let Some(deal) = self.prng.pick(&fulfilled).cloned() {
            let Fulfilment { envelope, by, .. } = deal.fulfilment.clone().unwrap();
            correlation = envelope;
            own = deal.own.clone().unwrap_or_default();
            let named = self
                .books
                .links
                .iter()
                .find(|(_, link)| deal.to.contains(&link.participant));
            link = named
                .map(|(link, _)| *link)
                .filter(|_| !self.prng.one_in(5))
                .unwrap_or(link);
            if !self.prng.one_in(4) {
                to = vec![by.to_string()];
                to.extend(self.prng.one_in(2).then(|| deal.by.to_string()));
            }
        }
        if self.prng.one_in(10) {
            own = "other".to_owned();
        }
        let kind = format!("mcp/response:tools/call:{own}");
        let id = format!("a{}", self.number());
        let outcome = if self.prng.one_in(4) {
            Outcome::Error
        } else {
            Outcome::Ok
        };
        let token = self.token();
        self.responds(
            Envelope {
                link,
                id,
                kind,
                to,
                correlation: Some(correlation),
                token,
                tightening: None,
            },
            outcome,
        );
    }

    fn responds(&mut self, drawn: Envelope, outcome: Outcome) {
        let answer = self.number();
        let request = drawn.correlation.clone().unwrap();
        let from = self.books.owner(drawn.link);
        let intrudes = from
            .as_ref()
            .is_some_and(|from| self.books.log.intrudes(from, &request, &drawn.to));
        let counts = self.answered(&drawn, &request).filter(|_| !intrudes);
        let published = self.books.peek(&drawn, self.now_ms) == Fate::Published;
        let runs = counts.filter(|id| {
            published && self.books.deals[id].is_running() && self.books.deals[id].writing.is_none()
        });
        let room_answer = runs.map(|proposal| RoomAnswer {
            proposal,
            outcome,
            answer,
        });
        let turn = Turn {
            room_answer,
            ..Turn::default()
        };
        let (_, effects) = self.sends(drawn, turn, Intent::Answer { outcome, answer });
        let ignored = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::Ignore { .. }));
        assert_eq!(ignored, published && intrudes);
        let ends = runs.is_some_and(|id| !self.books.deals[&id].held);
        let stored = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::Store { .. }));
        assert_eq!(
            stored, ends,
            "an answer of a participant that was asked is the outcome"
        );
        if ends {
            self.books.count("completed in the room");
        }
    }

    /// The proposal that an envelope answers.
    fn answered(&self, drawn: &Envelope, request: &str) -> Option<OperationId> {
        let from = self.books.owner(drawn.link)?;
        let fulfilled = self.books.deals.iter().filter(|(_, deal)| deal.is_known());
        let fulfilled = fulfilled.filter_map(|(id, deal)| Some((*id, deal.fulfilment.as_ref()?)));
        let mut all: Vec<_> = fulfilled
            .filter(|(_, own)| own.envelope == request)
            .collect();
        // If several participants use one id, the answer is for the one that it names.
        if all.len() > 1 {
            all.retain(|(_, own)| drawn.to.iter().any(|to| to == own.by.as_str()));
        }
        let only = all.into_iter().min_by_key(|(_, own)| own.order)?.0;
        let deal = &self.books.deals[&only];
        let kind = KindRef::parse(&drawn.kind).unwrap();
        let same = kind.method() == Some(deal.method)
            && (kind.context().is_none() || kind.context() == deal.own.as_deref());
        (same && (deal.to.is_empty() || deal.to.contains(&from))).then_some(only)
    }

    pub(crate) fn announce(&mut self) {
        let message = self.number();
        let to = self.addressees();
        let kind = self.prng.any(&[
            "mcp/request:tools/call:a",
            "mcp/proposal:tools/call:a",
            "mcp/response:x",
        ]);
        let except = self.prng.one_in(3).then(|| id(self.prng.any(&CALLERS)));
        let reach = except.clone().map_or(Reach::Listeners, Reach::Except);
        let names: Vec<&str> = to.iter().map(String::as_str).collect();
        let audience = Audience::new(None, &names, kind, reach);
        let proposes = kind.starts_with("mcp/proposal:");
        let own = Message {
            message,
            from: None,
            to,
            proposes,
            except,
        };
        let turn = Turn {
            message: Some(own),
            ..Turn::default()
        };
        self.live(
            Event::Announce {
                message,
                bytes: 10,
                audience,
            },
            turn,
        );
    }

    pub(crate) fn draw_kept(&mut self) -> RingLimits {
        let history = self.prng.any(&[0, 0, 3, 8]);
        RingLimits {
            history,
            readable: self.prng.one_in(3),
        }
    }

    pub(crate) fn keep(&mut self) {
        let kept = self.draw_kept();
        self.books.keeps(kept);
        let configured = self.books.configured.clone();
        let keep = Configure {
            settings: Some(Box::new(TopicSettings {
                limits: LIMITS,
                kept,
                ..TopicSettings::default()
            })),
            ..Configure::servers(&configured)
        };
        let effects = self.live(Event::Configure(keep), Turn::default());
        assert!(effects.all.is_empty() && effects.room.is_empty());
        assert_eq!(self.topic.kept(), kept);
    }

    pub(crate) fn read(&mut self) {
        let participant = id(self.prng.any(&CALLERS));
        let from = self.prng.below(self.books.room.published.len() + 2);
        let replay = self.topic.messages(
            &participant,
            Cursor {
                epoch: self.life,
                offset: from as u64,
            },
        );
        self.books.check_reading(&participant, from, &replay);
    }
}
