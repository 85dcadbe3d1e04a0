//! The simulated log and bus: the contract, and what their faults do.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use platform::Mutex;

use super::contract::{append, replayed};
use super::{Place, Stranger, keeps_the_contract};
use crate::sim::{Faults, Happened, LogAnswer, LogCommand, Simulated, World};
use crate::{
    Append, Appended, Bus, Log, LogError, Ongoing, Page, Record, Sequence, SubjectName,
    SubjectPattern, append_until_known,
};

fn place(simulated: &Simulated) -> Place {
    let nodes = || (0..3).map(|number| Arc::new(simulated.node(number)));
    Place {
        logs: nodes().map(|node| node as Arc<dyn Log>).collect(),
        buses: nodes().map(|node| node as Arc<dyn Bus>).collect(),
        records: "pm.sim.j".parse().unwrap(),
        messages: "pm.sim.b".parse().unwrap(),
        stranger: Arc::new(simulated.clone()),
    }
}

impl Stranger for Simulated {
    fn append_foreign<'a>(&'a self, subject: &'a str, bytes: Bytes) -> Ongoing<'a, Sequence> {
        let sequence = self.world(|world| world.append_foreign(subject, bytes));
        Box::pin(std::future::ready(sequence))
    }
}

#[tokio::test(start_paused = true)]
async fn the_simulated_ones_keep_the_contract() {
    for seed in 0..4 {
        let faults = Faults {
            stale: seed,
            bus_doubles: 100,
            log_drops: u16::try_from(seed).unwrap() * 20,
            ..Faults::default()
        };
        keeps_the_contract(&place(&Simulated::new(seed, faults))).await;
    }
}

/// A writer that appends what it can, and goes on after each fence.
async fn write(log: impl Log, subject: SubjectName, name: u8) -> Vec<(Sequence, Append)> {
    let mut written = Vec::new();
    let mut last = 0;
    for number in 0..12 {
        let record = append(&subject, last, &format!("{name} {number}"));
        match append_until_known(&log, &record, Duration::from_secs(60)).await {
            Appended::At(sequence) => {
                last = sequence;
                written.push((sequence, record));
            }
            Appended::Fenced(Some(newer)) => last = newer,
            Appended::Lost(older) => last = older,
            Appended::Fenced(None) | Appended::Unknown(_) => {}
            Appended::Refused(why) => panic!("{why}"),
        }
    }
    written
}

#[tokio::test(start_paused = true)]
async fn acknowledged_records_are_lost_only_where_a_loss_is_counted() {
    let mut with_losses = 0;
    for seed in 0..150 {
        let simulated = Simulated::new(seed, Faults::of(seed));
        let subject: SubjectName = "pm.sim.j.one".parse().unwrap();
        let writers = (0..3).map(|number| {
            let node = simulated.node(number);
            tokio::spawn(write(node, subject.clone(), u8::try_from(number).unwrap()))
        });
        let mut written = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            written.extend(writer.await.unwrap());
        }
        assert!(!written.is_empty(), "seed {seed}");
        simulated.world(|world| {
            let stored: Vec<_> = world.records().map(|record| record.id.unwrap()).collect();
            let once: BTreeSet<_> = stored.iter().copied().collect();
            assert_eq!(
                once.len(),
                stored.len(),
                "seed {seed}: a record is there twice"
            );
            let missing = written
                .iter()
                .filter(|(_, one)| !once.contains(&one.id))
                .count();
            let lost = usize::try_from(world.lost()).unwrap();
            assert!(
                missing <= lost,
                "seed {seed}: {missing} missing, {lost} lost"
            );
            with_losses += usize::from(lost > 0);
        });
    }
    assert!(with_losses > 5, "some seeds lose records: {with_losses}");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_away_leaves_the_answer_open() {
    let simulated = Simulated::new(1, Faults::default());
    let node = simulated.node(0);
    let subject: SubjectName = "pm.sim.j.away".parse().unwrap();
    let record = append(&subject, 0, "one");
    simulated.world(|world| world.stop_log(true));
    let answer = append_until_known(&node, &record, Duration::from_secs(5)).await;
    assert!(matches!(answer, Appended::Unknown(_)), "{answer:?}");
    simulated.world(|world| world.stop_log(false));
    let answer = append_until_known(&node, &record, Duration::from_secs(5)).await;
    let Appended::At(at) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(replayed(&node, (&subject).into(), at).await.len(), 1);
    simulated.world(|world| world.lose(1));
    let next = append(&subject, at, "two");
    assert_eq!(node.append(&next).await, Appended::Lost(0));
}

/// The news of a seed's world.
fn history(seed: u64) -> Vec<(Duration, Happened)> {
    let mut world = World::new(seed, Faults::of(seed));
    let subject: SubjectName = "pm.sim.a".parse().unwrap();
    for node in 0..3 {
        world.subscribe(node, subject.all_below());
    }
    let mut seen = Vec::new();
    for number in 0_u8..50 {
        let below = subject.with_name("x").unwrap();
        world.publish(u16::from(number % 3), &below, &vec![number].into());
        let id = crate::MessageId([number; 16]);
        let record = Append {
            id,
            ..append(&subject, 0, "x")
        };
        world.command(u16::from(number % 3), LogCommand::Append(record));
        let now = Duration::from_millis(3 * u64::from(number));
        seen.extend(world.advance(now).into_iter().map(|news| (now, news)));
    }
    while let Some(due) = world.due() {
        seen.extend(world.advance(due).into_iter().map(|news| (due, news)));
    }
    seen
}

#[test]
fn a_seed_has_one_history() {
    for seed in 0..30 {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    }
    assert_ne!(history(1), history(2));
    let all: Vec<_> = (0..30).flat_map(history).collect();
    let unknown = |news: &Happened| {
        matches!(
            news,
            Happened::Answered(_, LogAnswer::Appended(Appended::Unknown(_)))
        )
    };
    assert!(all.iter().any(|(_, news)| unknown(news)));
}

#[test]
fn a_cut_stops_messages_and_commands_one_way() {
    let mut world = World::new(1, Faults::default());
    let subject: SubjectName = "pm.sim.a.b".parse().unwrap();
    let listeners: Vec<_> = (0..3)
        .map(|node| world.subscribe(node, (&subject).into()))
        .collect();
    world.cut(0, 1, true);
    world.publish(0, &subject, &"to 2".into());
    world.publish(1, &subject, &"to all".into());
    world.cut(0, 1, false);
    world.publish(0, &subject, &"again".into());
    let news = world.advance(Duration::from_secs(1));
    let to = |listener: usize| {
        let is_to = |news: &&Happened| matches!(news, Happened::Arrived(number, _) if *number == listeners[listener]);
        news.iter().filter(is_to).count()
    };
    assert_eq!([to(0), to(1), to(2)], [3, 2, 3]);
    world.cut_log(0, true);
    let ticket = world.command(0, LogCommand::Last(subject.clone()));
    let other = world.command(1, LogCommand::Last(subject));
    let news = world.advance(Duration::from_secs(9));
    assert!(news.contains(&Happened::Answered(other, LogAnswer::Last(Ok(None)))));
    let given_up = |news: &Happened| matches!(news, Happened::Answered(one, LogAnswer::Last(Err(_))) if *one == ticket);
    assert!(news.iter().any(given_up));
}

/// A log that answers what its test says.
#[derive(Default)]
struct Scripted(Mutex<VecDeque<Appended>>);

impl Log for Scripted {
    fn append<'a>(&'a self, _: &'a Append) -> Ongoing<'a, Appended> {
        let next = self.0.lock().pop_front();
        let next = next.unwrap_or_else(|| Appended::Unknown("silent".to_owned()));
        Box::pin(std::future::ready(next))
    }

    fn read<'a>(
        &'a self,
        _: &'a SubjectPattern,
        from: Sequence,
    ) -> Ongoing<'a, Result<Page, LogError>> {
        let next = from;
        let records = Vec::new();
        Box::pin(std::future::ready(Ok(Page { records, next })))
    }

    fn purge<'a>(
        &'a self,
        _: &'a SubjectPattern,
        _: Sequence,
    ) -> Ongoing<'a, Result<(), LogError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn last<'a>(&'a self, _: &'a SubjectName) -> Ongoing<'a, Result<Option<Record>, LogError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_an_open_try_says_nothing_of_the_record() {
    let record = append(&"pm.sim.j.scripted".parse().unwrap(), 0, "one");
    let refused = Appended::Refused("too large".to_owned());
    let open = Appended::Unknown("no answer in time".to_owned());
    for (script, expect) in [
        (vec![refused.clone()], refused.clone()),
        (
            vec![Appended::Fenced(None), refused.clone()],
            refused.clone(),
        ),
        // The second try is looked at before its name is.
        (
            vec![open.clone(), refused.clone(), Appended::At(7)],
            Appended::At(7),
        ),
        (vec![open, refused], Appended::Unknown("silent".to_owned())),
    ] {
        let log = Scripted(Mutex::new(script.into()));
        let answer = append_until_known(&log, &record, Duration::from_secs(5)).await;
        assert_eq!(answer, expect);
    }
}
