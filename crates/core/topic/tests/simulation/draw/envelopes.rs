//! Envelopes to the room: admitted, withheld, or private.

use model::{KindRef, LinkId, OperationId, PROPOSAL};
use topic::{Cause, Say, Verdict};

use crate::{
    books::{
        envelopes::{DIRECT, Envelope, Fate, digest},
        room::Message,
    },
    names::{CALLERS, SERVERS, SERVING},
    numbers::{Effect, Effects, Event, Numbers},
    turn::Turn,
    world::World,
};

const KINDS: [&str; 8] = [
    "chat",
    "notes/x",
    "mcp/request:tools/call:a",
    "mcp/response:tools/call:a",
    "mcp/request:notifications/progress",
    "system/error",
    "presence/join",
    "mcp/request",
];

impl World {
    pub(crate) fn speaker(&mut self) -> LinkId {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        self.prng
            .pick(&links)
            .copied()
            .filter(|_| !self.prng.one_in(40))
            .unwrap_or(LinkId(9_999_999))
    }

    pub(crate) fn addressees(&mut self) -> Vec<String> {
        let mut all: Vec<&str> = CALLERS.to_vec();
        all.extend(SERVERS.map(|(name, _)| name));
        all.extend(["portmoot", "unknown", SERVING]);
        (0..self.prng.below(3))
            .map(|_| self.prng.any(&all).to_owned())
            .collect()
    }

    /// Envelopes without a task for the gateway.
    pub(crate) fn say(&mut self) {
        let link = self.speaker();
        let kind = self.prng.any(&KINDS).to_owned();
        let direct = OperationId((u128::from(DIRECT) << 64) + 5).to_string();
        let correlation = self.prng.one_in(3).then_some(direct);
        let id = format!("m{}", self.number());
        let to = self.addressees();
        let drawn = Envelope {
            link,
            id,
            kind,
            to,
            correlation,
            token: self.token(),
            tightening: self.tightening(),
        };
        if self.prng.one_in(6) {
            return self.mismatch(drawn);
        }
        self.sends(drawn, Turn::default(), topic::Intent::None);
    }

    /// Kind and payload differ.
    fn mismatch(&mut self, drawn: Envelope) {
        let played = drawn
            .to
            .iter()
            .filter(|to| self.is_played(to, false))
            .count();
        let key = self
            .books
            .owner(drawn.link)
            .map(|by| (by, drawn.id.clone()));
        let (fate, effects) = self.sends(drawn, Turn::default(), topic::Intent::Mismatch);
        let ignored = effects
            .all
            .iter()
            .any(|effect| matches!(effect, Effect::Ignore { .. }));
        let acts = fate == Fate::Published && played > 0;
        assert_eq!(
            ignored, acts,
            "a receiver that the gateway plays does not act on it"
        );
        self.books.log.acted.extend(key.filter(|_| acts));
    }

    /// Whether the gateway plays a receiver: a server, or of a held call a participant that serves.
    pub(crate) fn is_played(&self, name: &str, held: bool) -> bool {
        self.books
            .configured
            .iter()
            .any(|names| names.id.as_str() == name && (held || !names.serves))
    }

    /// Sends an envelope, and checks the effects before its receivers act.
    pub(crate) fn sends(
        &mut self,
        drawn: Envelope,
        turn: Turn,
        intent: topic::Intent<Numbers>,
    ) -> (Fate, Effects) {
        let (fate, _, effects) = self.sends_waiting(drawn, turn, intent);
        (fate, effects)
    }

    /// The same, with the message if the topic did not publish it at once.
    pub(crate) fn sends_waiting(
        &mut self,
        drawn: Envelope,
        mut turn: Turn,
        intent: topic::Intent<Numbers>,
    ) -> (Fate, Option<Message>, Effects) {
        let mut fate = self.books.fate(&drawn, self.now_ms);
        if fate == Fate::Published && turn.taken {
            fate = Fate::Withheld(Cause::Repeated);
        }
        let message = self.number();
        let except = self.books.excepted(&drawn);
        let Envelope {
            link,
            id,
            kind,
            to,
            correlation,
            token,
            tightening,
        } = drawn;
        if fate == Fate::Published {
            let proposes = KindRef::parse(&kind).unwrap().head() == PROPOSAL;
            let from = Some(link);
            if except.is_some() {
                self.books.count("not published to one");
            }
            turn.message = Some(Message {
                message,
                from,
                to: to.clone(),
                proposes,
                except,
            });
        }
        let waiting = turn.message.take_if(|_| turn.waits);
        let names: Vec<&str> = to.iter().map(String::as_str).collect();
        let correlation = correlation.as_deref();
        let bytes = 10;
        let proposal_digest = if kind.starts_with(PROPOSAL) {
            Some(&*id)
        } else {
            correlation
        }
        .map(digest);
        let say = Say {
            link,
            id: &id,
            kind: &kind,
            to: &names,
            correlation,
            proposal_digest,
            narrowing: token.as_ref(),
            tightening,
            message,
            bytes,
            intent,
        };
        let effects = self.live(Event::Say(say), turn);
        self.check_fate(fate, (link, &kind, message), &effects);
        (fate, waiting, effects)
    }

    fn check_fate(
        &mut self,
        fate: Fate,
        (link, kind, message): (LinkId, &str, u64),
        effects: &Effects,
    ) {
        let all = effects.all.as_slice();
        match (fate, &effects.verdict) {
            (Fate::Nothing, Some(Verdict::Refused(Cause::Moot))) => assert!(all.is_empty()),
            (Fate::Withheld(must), Some(Verdict::Refused(why))) => match all {
                [
                    Effect::Withhold {
                        handle,
                        message: own,
                        refusal,
                    },
                ] => {
                    assert_eq!((*own, effects.refusal.as_ref()), (message, Some(refusal)));
                    assert_eq!(
                        (*handle, *why),
                        (self.books.links[&link].handle, must),
                        "{kind}"
                    );
                    assert_eq!(refusal.retry_after_ms.is_some(), must == Cause::RateLimited);
                }
                other => panic!("{kind} must be withheld: {other:?}"),
            },
            (Fate::Private, Some(Verdict::Admitted { .. })) => {
                let by = &self.books.links[&link].participant;
                let serves = self.books.servers.get(by).filter(|_| self.books.serves(by));
                match all {
                    [
                        Effect::Receive {
                            handle,
                            server,
                            message: passed,
                        },
                    ] => {
                        let own = self.books.links[&link].handle;
                        assert_eq!((*handle, *passed), (own, message));
                        assert_eq!(*server, serves.map(|served| served.handle));
                    }
                    other => panic!("a private envelope is for the gateway alone: {other:?}"),
                }
                self.books.count("private");
            }
            (Fate::Own, Some(Verdict::Admitted { by, .. })) => {
                assert!(by.as_str().is_none());
                self.books.count("about own proposals");
            }
            (Fate::Published, Some(Verdict::Admitted { by, .. })) => {
                assert!(by.as_str().is_some());
                let sender = self.books.owner(link);
                let about = kind.starts_with("mcp/request:notifications/")
                    && sender.is_some_and(|sender| self.books.serves(&sender));
                let passed = all
                    .iter()
                    .filter(|effect| matches!(effect, Effect::Receive { .. }))
                    .count();
                assert_eq!(passed, usize::from(about));
            }
            other => panic!("{kind}: {other:?}"),
        }
    }
}
