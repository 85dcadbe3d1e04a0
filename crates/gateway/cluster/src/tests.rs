#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)] // all of it is a test

mod chain;
mod compaction;
mod groups;
mod heartbeats;
mod members;
mod renewals;
mod takeovers;

use model::TopicName;

use crate::{
    ALONE_MS, Admission, AppendResult, CLOCKS_APART_MS, CUT_OFF_MS, HEARTBEAT_MS, HomeEffect,
    HomeEvent, HomeLine, HomeMessage, HomeRecord, Homes, HomesConfig, LastMessage, NoAdmission,
    NodeId, NodeLife, NodeTime, NotStored, RENEWAL_MS, SILENCE_MS, Shard, ShardSubject, Slot,
    StepDownCause, StoredMessage, TICK_MS,
};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Text(&'static str);

impl HomeLine for Text {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

type Effect = HomeEffect<Text>;

fn node(name: &str, life: u64) -> NodeId {
    let directory = name.len() as u64;
    let incarnation = NodeLife { directory, life };
    NodeId {
        name: name.into(),
        incarnation,
    }
}

fn topic() -> Shard {
    Shard::Topic(TopicName::new("main").unwrap())
}

/// A small cluster: all frames come at once, and the log answers at once, unless it is away.
struct Cluster {
    nodes: Vec<Homes<Text>>,
    walls_ms: Vec<u64>,
    /// Nodes that hear nothing of others.
    cut: Vec<bool>,
    /// Nodes that do not reach the log.
    away: Vec<bool>,
    /// Whether the log takes nothing.
    full: bool,
    /// Whether it removes what it should.
    purges: bool,
    /// The messages that a look lacks.
    stale: usize,
    /// Shards whose reads wait, and the answers to those.
    holds: Vec<Shard>,
    held: Vec<(usize, HomeEvent<Text>)>,
    now_ms: u64,
    stream: Vec<StoredMessage<Text>>,
    seen: Vec<(usize, Effect)>,
}

impl Cluster {
    fn new(names: &[&str]) -> Self {
        let topics = vec![TopicName::new("main").unwrap()];
        let config = |name: &&str| HomesConfig::new(node(name, 1), topics.clone());
        Self {
            nodes: names.iter().map(|name| Homes::new(config(name))).collect(),
            walls_ms: vec![1_000_000; names.len()],
            cut: vec![false; names.len()],
            away: vec![false; names.len()],
            full: false,
            purges: true,
            stale: 0,
            holds: Vec::new(),
            held: Vec::new(),
            now_ms: 0,
            stream: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// A cluster whose nodes are members, with homes.
    fn grown(names: &[&str]) -> Self {
        let mut cluster = Self::new(names);
        cluster.pass(2 * SILENCE_MS);
        assert!(
            cluster
                .nodes
                .iter()
                .all(|one| one.members().count() == names.len())
        );
        cluster
    }

    fn time(&self, at: usize) -> NodeTime {
        NodeTime {
            steady_ms: self.now_ms,
            wall_ms: self.walls_ms[at] + self.now_ms,
        }
    }

    fn step(&mut self, at: usize, event: HomeEvent<Text>) {
        let time = self.time(at);
        for effect in self.nodes[at].step(time, event) {
            self.seen.push((at, effect.clone()));
            self.carry(at, effect);
        }
    }

    fn spread(&mut self, at: usize, event: &HomeEvent<Text>) {
        for other in 0..self.nodes.len() {
            if other != at && !self.cut[at] && !self.cut[other] {
                self.step(other, event.clone());
            }
        }
    }

    fn carry(&mut self, at: usize, effect: Effect) {
        match effect {
            HomeEffect::Publish(beat) => self.spread(at, &HomeEvent::Beat(beat)),
            HomeEffect::Spread(stored) => self.spread(at, &HomeEvent::Spread(stored)),
            _ if self.away[at] => {}
            HomeEffect::Look { shard, request } => {
                let known = self.stream.len().saturating_sub(self.stale);
                let messages = self.stream.iter().take(known);
                let messages = messages.filter(|one| one.subject.shard == shard);
                let last = messages.max_by_key(|one| (one.subject.epoch, one.sequence));
                let last = last.map(|last| LastMessage {
                    head: last.head(),
                    sequence: last.sequence,
                    fenced: matches!(last.message.record, HomeRecord::Fenced { .. }),
                });
                self.step(
                    at,
                    HomeEvent::Looked {
                        shard,
                        request,
                        last,
                    },
                );
            }
            HomeEffect::Read {
                shard,
                request,
                after,
            } => {
                let messages = self.stream.iter().filter(|one| one.subject.shard == shard);
                let messages = messages
                    .filter(|one| one.sequence > after)
                    .cloned()
                    .collect();
                let is_held = self.holds.contains(&shard);
                let event = HomeEvent::Read {
                    shard,
                    request,
                    messages,
                };
                if is_held {
                    self.held.push((at, event));
                } else {
                    self.step(at, event);
                }
            }
            HomeEffect::Append {
                subject,
                expected,
                id,
                message,
            } => {
                let result = self.append(&subject, expected, message);
                let shard = subject.shard;
                self.step(at, HomeEvent::Appended { shard, id, result });
            }
            HomeEffect::Purge {
                shard,
                before,
                end,
                end_sequence,
                ..
            } => {
                let is_end =
                    |one: &StoredMessage<Text>| one.head() == end && one.sequence == end_sequence;
                assert!(self.stream.iter().any(is_end), "the snapshot is whole");
                if self.purges {
                    let is_left = |one: &StoredMessage<Text>| {
                        one.subject.shard != shard || one.sequence >= before
                    };
                    self.stream.retain(is_left);
                    self.step(at, HomeEvent::Purged { shard, before });
                }
            }
            _ => {}
        }
    }

    fn append(
        &mut self,
        subject: &ShardSubject,
        expected: u64,
        message: HomeMessage<Text>,
    ) -> AppendResult {
        if self.full {
            return AppendResult::NotTaken;
        }
        let messages = self.stream.iter().filter(|one| one.subject == *subject);
        let last = messages.map(|one| one.sequence).max().unwrap_or_default();
        if last != expected {
            return AppendResult::Refused { last };
        }
        let sequence = self.stream.last().map_or(1, |last| last.sequence + 1);
        let subject = subject.clone();
        self.stream.push(StoredMessage {
            subject,
            sequence,
            message,
        });
        AppendResult::Acked { sequence }
    }

    fn pass(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.now_ms += TICK_MS;
            (0..self.nodes.len()).for_each(|at| self.step(at, HomeEvent::Tick));
        }
    }

    fn home(&self, shard: &Shard) -> usize {
        let is_home = |one: &&Homes<Text>| {
            one.home_of(shard)
                .is_some_and(|(node, _)| node == one.node())
        };
        let homes: Vec<&Homes<Text>> = self.nodes.iter().filter(is_home).collect();
        let [home] = homes.as_slice() else {
            panic!("{} homes of {shard:?}", homes.len());
        };
        self.nodes
            .iter()
            .position(|one| one.node() == home.node())
            .unwrap()
    }

    fn admits(&self, at: usize) -> bool {
        self.nodes[at].admission().admits(self.now_ms)
    }

    fn store(&mut self, shard: &Shard, ticket: u64) -> usize {
        let at = self.home(shard);
        let shard = shard.clone();
        self.step(
            at,
            HomeEvent::Store {
                shard,
                ticket,
                line: Text("line"),
            },
        );
        at
    }

    fn was_seen(&self, seen: impl Fn(usize, &Effect) -> bool) -> bool {
        self.seen.iter().any(|(at, effect)| seen(*at, effect))
    }

    /// Cuts a node off from the others and from the log, or joins it again.
    fn isolate(&mut self, at: usize, is_cut: bool) {
        (self.cut[at], self.away[at]) = (is_cut, is_cut);
    }

    /// Steps a node with what waits for it first.
    fn release(&mut self) {
        let (at, event) = self.held.remove(0);
        self.step(at, event);
    }

    /// The epochs of the topic that have begun in the log.
    fn epochs(&self) -> usize {
        let is_begun = |one: &&StoredMessage<Text>| {
            let is_begun = matches!(one.message.record, HomeRecord::Begun { .. });
            is_begun && one.subject.shard == topic()
        };
        self.stream.iter().filter(is_begun).count()
    }

    fn count(&self, seen: impl Fn(usize, &Effect) -> bool) -> usize {
        let all = self.seen.iter();
        all.filter(|(at, effect)| seen(*at, effect)).count()
    }

    fn is_confirmed(&self, number: u64) -> bool {
        self.was_seen(
            |_, effect| matches!(effect, HomeEffect::Confirmed { ticket } if *ticket == number),
        )
    }
}

#[test]
fn nodes_become_members_and_each_shard_gets_one_home() {
    for names in [
        &["a"][..],
        &["a", "b"],
        &["a", "b", "c"],
        &["a", "b", "c", "d", "e"],
    ] {
        let cluster = Cluster::grown(names);
        let slots: Vec<Slot> = cluster.nodes.iter().filter_map(Homes::slot).collect();
        assert_eq!(slots.len(), names.len());
        assert!((0..names.len()).all(|at| cluster.admits(at)), "{names:?}");
        cluster.home(&Shard::Common);
        cluster.home(&topic());
    }
}

#[test]
fn a_change_is_confirmed_once_all_nodes_have_applied_it() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    cluster.store(&Shard::Common, 7);
    cluster.pass(HEARTBEAT_MS);
    assert!(cluster.is_confirmed(7));
    let applied = |at: &usize| {
        let is_line = |effect: &Effect| matches!(effect, HomeEffect::Apply { lines, .. } if lines == &[Text("line")]);
        cluster.was_seen(|seen, effect| seen == *at && is_line(effect))
    };
    assert!((0..3).all(|at| applied(&at)));
}

#[test]
fn a_change_waits_for_a_node_that_is_cut_off_until_that_admits_nothing() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let cut = (cluster.home(&Shard::Common) + 1) % 3;
    // A home counts no votes before a former one has certainly stopped.
    cluster.pass(CUT_OFF_MS + SILENCE_MS);
    (cluster.cut[cut], cluster.away[cut]) = (true, true);
    cluster.store(&Shard::Common, 7);
    let mut waited_ms = 0;
    while !cluster.is_confirmed(7) {
        cluster.pass(TICK_MS);
        waited_ms += TICK_MS;
        assert!(waited_ms < 16_000, "it is confirmed in time");
    }
    assert!(waited_ms > CUT_OFF_MS, "{waited_ms}");
    assert!(!cluster.admits(cut));
    assert!((0..3).all(|at| at == cut || cluster.admits(at)));
    (cluster.cut[cut], cluster.away[cut]) = (false, false);
    cluster.pass(HEARTBEAT_MS * 4);
    assert!(
        cluster.admits(cut),
        "it is a member again, with all that it missed"
    );
}

#[test]
fn a_silent_home_is_taken_over_and_the_former_one_can_append_nothing() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.home(&topic());
    let epoch = cluster.nodes[former].home_of(&topic()).unwrap().1;
    cluster.cut[former] = true;
    let others = (0..3).filter(|at| *at != former);
    let others: Vec<usize> = others.collect();
    // The former one has no majority, and appends empty groups: it is still the home for the log.
    cluster.pass(SILENCE_MS + 2 * HEARTBEAT_MS);
    let taken = others.iter().find_map(|at| {
        let (home, epoch) = cluster.nodes[*at].home_of(&topic())?;
        (home == cluster.nodes[*at].node()).then_some((*at, epoch))
    });
    assert_eq!(taken.map(|(_, epoch)| epoch), Some(epoch + 1));
    let fenced = |at: usize, effect: &Effect| {
        let is_fenced = matches!(
            effect,
            HomeEffect::StepDown {
                why: StepDownCause::Fenced,
                ..
            }
        );
        at == former && is_fenced
    };
    assert!(cluster.was_seen(fenced), "its next append is refused");
    cluster.step(
        former,
        HomeEvent::Store {
            shard: topic(),
            ticket: 9,
            line: Text("late"),
        },
    );
    let refused = |at: usize, effect: &Effect| {
        let why = NotStored::NotHome;
        at == former
            && *effect_key(effect)
                == *effect_key(&HomeEffect::NotStored {
                    shard: topic(),
                    ticket: 9,
                    why,
                })
    };
    assert!(cluster.was_seen(refused));
}

fn effect_key(effect: &Effect) -> Box<str> {
    format!("{effect:?}").into()
}

#[test]
fn a_home_that_is_alone_steps_down() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let home = cluster.home(&topic());
    (cluster.cut[home], cluster.away[home]) = (true, true);
    cluster.pass(ALONE_MS + HEARTBEAT_MS);
    let alone = |at: usize, effect: &Effect| {
        at == home
            && matches!(
                effect,
                HomeEffect::StepDown {
                    why: StepDownCause::Alone,
                    ..
                }
            )
    };
    assert!(cluster.was_seen(alone));
}

#[test]
fn a_home_that_drains_hands_its_shards_over_at_once() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.home(&topic());
    cluster.step(former, HomeEvent::Drain);
    cluster.pass(TICK_MS * 3);
    assert_ne!(cluster.home(&topic()), former);
    assert_ne!(cluster.home(&Shard::Common), former);
    assert!(
        !cluster.nodes.is_empty() && cluster.admits(former),
        "its calls go on"
    );
}

#[test]
fn a_log_that_has_lost_messages_stops_the_shard_until_a_person_accepts_it() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let home = cluster.store(&topic(), 1);
    cluster.store(&topic(), 2);
    cluster.stream.pop();
    cluster.store(&topic(), 3);
    let stopped = |_: usize, effect: &Effect| matches!(effect, HomeEffect::StopTopic { .. });
    assert!(cluster.was_seen(stopped));
    let stored = |effect: &Effect| matches!(effect, HomeEffect::Stored { ticket: 3, .. });
    assert!(!cluster.was_seen(|_, effect| stored(effect)));
    cluster.store(&topic(), 4);
    let refused = |_: usize, effect: &Effect| {
        matches!(
            effect,
            HomeEffect::NotStored {
                why: NotStored::Lost,
                ..
            }
        )
    };
    assert!(cluster.was_seen(refused));
    // The stop outlives its home: another node that takes over knows the same.
    cluster.cut[home] = true;
    cluster.seen.clear();
    cluster.pass(SILENCE_MS * 2);
    let next =
        (0..3).find(|at| cluster.was_seen(|seen, effect| seen == *at && stopped(seen, effect)));
    let next = next.expect("the next home stops too");
    cluster.step(next, HomeEvent::Accept { shard: topic() });
    let goes_on = |at: usize, effect: &Effect| {
        at == next && matches!(effect, HomeEffect::BecomeHome { lines, .. } if lines.len() == 1)
    };
    assert!(cluster.was_seen(goes_on), "with the line that is left");
}

#[test]
fn a_node_whose_clock_is_apart_does_not_join() {
    for (apart_ms, joins) in [(CLOCKS_APART_MS, true), (CLOCKS_APART_MS + TICK_MS, false)] {
        let mut cluster = Cluster::new(&["a", "b"]);
        cluster.cut[1] = true;
        cluster.walls_ms[1] += apart_ms;
        let late = cluster.nodes.remove(1);
        cluster.pass(2 * SILENCE_MS);
        cluster.nodes.push(late);
        cluster.cut[1] = false;
        cluster.pass(SILENCE_MS);
        assert_eq!(cluster.nodes[1].slot().is_some(), joins, "{apart_ms}");
        let expected = Admission::No(NoAdmission::ClockApart);
        assert_eq!(cluster.nodes[1].admission() == expected, !joins);
    }
}

#[test]
fn a_refresh_token_is_used_by_one_request_for_all_who_ask() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let home = cluster.home(&Shard::Common);
    for ticket in [1, 2, 3] {
        cluster.step(
            home,
            HomeEvent::Renew {
                account: "bob".into(),
                ticket,
            },
        );
    }
    let renews = |cluster: &Cluster| {
        let sent = cluster
            .seen
            .iter()
            .filter(|(_, effect)| matches!(effect, HomeEffect::Renew { .. }));
        sent.count()
    };
    assert_eq!(renews(&cluster), 1);
    let line = Some(Text("tokens"));
    cluster.step(
        home,
        HomeEvent::Renewed {
            account: "bob".into(),
            flight: flight_of(&cluster),
            line,
        },
    );
    let over = |_: usize, effect: &Effect| matches!(effect, HomeEffect::RenewalOver { tickets, known: true, .. } if tickets == &[1, 2, 3]);
    assert!(cluster.was_seen(over));
    cluster.step(
        home,
        HomeEvent::Renew {
            account: "bob".into(),
            ticket: 4,
        },
    );
    assert_eq!(renews(&cluster), 2);
}

/// The number of the latest use of a refresh token.
fn flight_of(cluster: &Cluster) -> u64 {
    let mut latest = cluster.seen.iter().rev();
    let flight = latest.find_map(|(_, effect)| match effect {
        HomeEffect::Renew { flight, .. } => Some(*flight),
        _ => None,
    });
    flight.unwrap()
}

#[test]
fn a_successor_waits_for_the_request_of_the_home_before() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let former = cluster.home(&Shard::Common);
    let next = 1 - former;
    cluster.step(
        former,
        HomeEvent::Renew {
            account: "bob".into(),
            ticket: 1,
        },
    );
    cluster.step(former, HomeEvent::Drain);
    cluster.pass(TICK_MS);
    assert_eq!(cluster.home(&Shard::Common), next);
    cluster.seen.clear();
    cluster.step(
        next,
        HomeEvent::Renew {
            account: "bob".into(),
            ticket: 2,
        },
    );
    let sent =
        |at: usize, effect: &Effect| at == next && matches!(effect, HomeEffect::Renew { .. });
    cluster.pass(RENEWAL_MS);
    assert!(!cluster.was_seen(sent));
    cluster.pass(RENEWAL_MS / 8);
    assert!(cluster.was_seen(sent));
}

#[test]
fn the_rest_of_a_cluster_confirms_nothing_before_a_person_removes_the_others() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    cluster.pass(CUT_OFF_MS + SILENCE_MS);
    let home = cluster.home(&Shard::Common);
    for at in (0..3).filter(|at| *at != home) {
        (cluster.cut[at], cluster.away[at]) = (true, true);
    }
    cluster.step(
        home,
        HomeEvent::Store {
            shard: Shard::Common,
            ticket: 7,
            line: Text("line"),
        },
    );
    cluster.pass(4 * (CUT_OFF_MS + SILENCE_MS));
    assert!(cluster.admits(home), "the log says that it is the home");
    assert!(
        !cluster.is_confirmed(7),
        "the others may be a majority for themselves"
    );
    let names: Vec<_> = cluster.nodes[home].members().cloned().collect();
    let own = cluster.nodes[home].node().name.clone();
    for name in names.into_iter().filter(|name| *name != own) {
        cluster.step(home, HomeEvent::Remove { name });
    }
    cluster.pass(HEARTBEAT_MS);
    assert!(cluster.is_confirmed(7));
}

#[test]
fn a_process_whose_directory_another_has_is_over() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let home = cluster.home(&Shard::Common);
    let mut config = HomesConfig::new(cluster.nodes[home].node().clone(), Vec::new());
    config.node.incarnation.life += 1;
    let mut next: Homes<Text> = Homes::new(config);
    let beat = next.step(cluster.time(home), HomeEvent::Tick).into_iter();
    let beat = beat.filter_map(|effect| match effect {
        HomeEffect::Publish(beat) => Some(beat),
        _ => None,
    });
    for beat in beat {
        cluster.step(home, HomeEvent::Beat(beat));
    }
    let expected = Admission::No(NoAdmission::Replaced);
    assert_eq!(cluster.nodes[home].admission(), expected);
    assert!(cluster.was_seen(|at, effect| {
        at == home
            && matches!(
                effect,
                HomeEffect::StepDown {
                    shard: Shard::Common,
                    ..
                }
            )
    }));
}

#[test]
fn a_topic_that_is_configured_no_more_has_no_home() {
    let mut cluster = Cluster::grown(&["a"]);
    cluster.step(0, HomeEvent::Topics(Vec::new()));
    assert_eq!(cluster.nodes[0].home_of(&topic()), None);
    let back = vec![TopicName::new("main").unwrap()];
    cluster.step(0, HomeEvent::Topics(back));
    cluster.pass(2 * SILENCE_MS);
    assert_eq!(cluster.home(&topic()), 0);
}
