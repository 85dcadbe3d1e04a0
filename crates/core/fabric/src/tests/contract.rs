//! The contract of log and bus, for every kind of both.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::log::PAGE_RECORDS_MAX;
use crate::{
    Append, Appended, Bus, BusError, Delivery, FRAME_BYTES_MAX, Log, LogReplay, MessageId, Ongoing,
    Record, Sequence, SubjectName, SubjectPattern, append_until_known,
};

const LONG: Duration = Duration::from_secs(30);

/// A log and bus, as several nodes reach them.
pub(crate) struct Place {
    pub(crate) logs: Vec<Arc<dyn Log>>,
    pub(crate) buses: Vec<Arc<dyn Bus>>,
    /// Below it are the subjects of records.
    pub(crate) records: SubjectName,
    /// Below it are the subjects of messages.
    pub(crate) messages: SubjectName,
    /// Another user of the engine.
    pub(crate) stranger: Arc<dyn Stranger>,
}

/// Another user of the log's engine, who may write what no [`Log::append`] makes.
pub(crate) trait Stranger: Send + Sync {
    fn append_foreign<'a>(&'a self, subject: &'a str, bytes: Bytes) -> Ongoing<'a, Sequence>;
}

/// Checks the whole contract, one sentence after the other.
pub(crate) async fn keeps_the_contract(place: &Place) {
    one_writer_wins_each_race(place).await;
    a_name_appends_one_record(place).await;
    a_deposed_writer_is_fenced(place).await;
    a_log_that_ends_too_early_is_lost(place).await;
    an_expectation_holds_after_a_purge(place).await;
    a_replay_reaches_its_record(place).await;
    foreign_records_are_passed_over(place).await;
    the_last_record_is_the_last_of_all_writers(place).await;
    a_record_has_a_largest_size(place).await;
    messages_come_to_all_who_listen(place).await;
    a_message_has_a_largest_size(place).await;
    a_purge_removes_the_records_of_all_subjects_below_one(place).await;
}

pub(crate) fn append(subject: &SubjectName, expected: Sequence, text: &str) -> Append {
    Append {
        subject: subject.clone(),
        expected,
        id: MessageId::random(),
        bytes: Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// Appends what must be appended.
pub(crate) async fn appended(log: &dyn Log, append: &Append) -> Sequence {
    match append_until_known(log, append, LONG).await {
        Appended::At(sequence) => sequence,
        other => panic!("{append:?}: {other:?}"),
    }
}

/// All records of a pattern up to one.
pub(crate) async fn replayed(
    log: &dyn Log,
    pattern: SubjectPattern,
    reach: Sequence,
) -> Vec<Record> {
    let mut replay = LogReplay::new(log, pattern, 1, reach, LONG);
    let mut all = Vec::new();
    while let Some(records) = replay.page().await.unwrap() {
        all.extend(records);
    }
    all
}

async fn one_writer_wins_each_race(place: &Place) {
    let subject = place.records.with_name("race").unwrap();
    let mut last = 0;
    for round in 0..40 {
        let tries: Vec<Append> = (0..place.logs.len())
            .map(|writer| append(&subject, last, &format!("{round} {writer}")))
            .collect();
        let writers = place.logs.iter().zip(&tries);
        let answers =
            join_all(writers.map(|(log, append)| append_until_known(log.as_ref(), append, LONG)))
                .await;
        let mut won = Vec::new();
        for answer in &answers {
            match answer {
                Appended::At(sequence) => won.push(*sequence),
                Appended::Fenced(Some(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(won.len(), 1, "{answers:?}");
        let fence = Appended::Fenced(Some(won[0]));
        let lost = answers.iter().filter(|answer| **answer == fence).count();
        assert_eq!(lost, place.logs.len() - 1, "{answers:?}");
        last = won[0];
    }
}

async fn a_name_appends_one_record(place: &Place) {
    let subject = place.records.with_name("names").unwrap();
    let first = append(&subject, 0, "first");
    let at = appended(&*place.logs[0], &first).await;
    let next = append(&subject, at, "next");
    let next_at = appended(&*place.logs[1], &next).await;
    // The name is looked at before the expectation, which no longer holds.
    for log in &place.logs {
        assert_eq!(appended(&**log, &first).await, at);
        assert_eq!(appended(&**log, &next).await, next_at);
    }
    let records = replayed(&*place.logs[2], (&subject).into(), next_at).await;
    let ids: Vec<_> = records.iter().map(|record| record.id).collect();
    assert_eq!(ids, [Some(first.id), Some(next.id)]);
}

async fn a_deposed_writer_is_fenced(place: &Place) {
    let subject = place.records.with_name("fence").unwrap();
    let own = appended(&*place.logs[0], &append(&subject, 0, "own")).await;
    let fence = appended(&*place.logs[1], &append(&subject, own, "fence")).await;
    let late = append(&subject, own, "late");
    let answer = append_until_known(&*place.logs[0], &late, LONG).await;
    assert_eq!(answer, Appended::Fenced(Some(fence)));
    let begun = append(&subject, 0, "begun twice");
    let answer = append_until_known(&*place.logs[0], &begun, LONG).await;
    assert_eq!(answer, Appended::Fenced(Some(fence)));
    assert_eq!(
        replayed(&*place.logs[2], (&subject).into(), fence)
            .await
            .len(),
        2
    );
    // What is fenced is one subject.
    let other = place.records.with_name("fence.other").unwrap();
    appended(&*place.logs[0], &append(&other, 0, "next epoch")).await;
}

async fn a_log_that_ends_too_early_is_lost(place: &Place) {
    let subject = place.records.with_name("loss").unwrap();
    let none = append(&subject, 7, "after nothing");
    let answer = append_until_known(&*place.logs[0], &none, LONG).await;
    assert_eq!(answer, Appended::Lost(0));
    let at = appended(&*place.logs[0], &append(&subject, 0, "one")).await;
    let beyond = append(&subject, at + 1000, "after more");
    let answer = append_until_known(&*place.logs[0], &beyond, LONG).await;
    assert_eq!(answer, Appended::Lost(at));
}

/// Purges, as often as it takes: a log may be unavailable for a while.
async fn purged(log: &dyn Log, pattern: &SubjectPattern, before: Sequence) {
    for _ in 0..10 {
        if log.purge(pattern, before).await.is_ok() {
            return;
        }
    }
    panic!("{pattern} cannot be purged");
}

async fn a_purge_removes_the_records_of_all_subjects_below_one(place: &Place) {
    let root = place.records.with_name("purge below").unwrap();
    let [one, two, three] = ["1", "2", "3"].map(|epoch| root.with_name(epoch).unwrap());
    let beside = place.records.with_name("purge beside").unwrap();
    let log = &*place.logs[0];
    let kept = appended(log, &append(&beside, 0, "beside")).await;
    let first = appended(log, &append(&one, 0, "first")).await;
    appended(log, &append(&one, first, "its last")).await;
    let before = appended(log, &append(&two, 0, "before")).await;
    let from = appended(log, &append(&two, before, "from here")).await;
    let next = appended(log, &append(&three, 0, "next")).await;
    for log in &place.logs {
        // A second one finds nothing.
        purged(&**log, &root.all_below(), from).await;
    }
    let last = appended(log, &append(&three, next, "behind the purge")).await;
    let left = replayed(log, root.all_below(), last).await;
    let places: Vec<Sequence> = left.iter().map(|record| record.sequence).collect();
    assert_eq!(places, [from, next, last]);
    assert_eq!(replayed(log, (&beside).into(), kept).await.len(), 1);
    // A page from before begins where records are left.
    let mut rest = LogReplay::new(log, root.all_below(), first, last, LONG);
    let page = rest.page().await.unwrap().unwrap();
    assert_eq!(page[0].sequence, from);
    let late = append_until_known(log, &append(&two, before, "late"), LONG).await;
    assert_eq!(late, Appended::Fenced(Some(from)));
    let emptied = append_until_known(log, &append(&one, first, "late"), LONG).await;
    assert_eq!(emptied, Appended::Lost(0));
}

async fn an_expectation_holds_after_a_purge(place: &Place) {
    let subject = place.records.with_name("purge").unwrap();
    let other = place.records.with_name("purge.other").unwrap();
    let kept = appended(&*place.logs[0], &append(&other, 0, "kept")).await;
    let mut last = 0;
    for number in 0..5 {
        let record = append(&subject, last, &format!("{number}"));
        last = appended(&*place.logs[0], &record).await;
    }
    purged(&*place.logs[1], &(&subject).into(), last).await;
    let early = append(&subject, 0, "as if it were empty");
    let answer = append_until_known(&*place.logs[0], &early, LONG).await;
    assert_eq!(answer, Appended::Fenced(Some(last)));
    let next = appended(&*place.logs[0], &append(&subject, last, "next")).await;
    let left = replayed(&*place.logs[2], (&subject).into(), next).await;
    let places: Vec<Sequence> = left.iter().map(|record| record.sequence).collect();
    assert_eq!(places, [last, next]);
    // Nothing is purged of what comes before the first record, nor of another subject.
    purged(&*place.logs[1], &(&subject).into(), 0).await;
    let left = replayed(&*place.logs[0], (&subject).into(), next).await;
    assert_eq!(left.len(), 2);
    assert_eq!(
        replayed(&*place.logs[0], (&other).into(), kept).await.len(),
        1
    );
    // Without any record the subject begins anew: a writer must leave its last one.
    purged(&*place.logs[1], &(&subject).into(), next + 1).await;
    let answer = append_until_known(&*place.logs[0], &append(&subject, next, "x"), LONG).await;
    assert_eq!(answer, Appended::Lost(0));
}

async fn a_replay_reaches_its_record(place: &Place) {
    let root = place.records.with_name("replay").unwrap();
    let epochs = ["1", "2"].map(|epoch| root.with_name(epoch).unwrap());
    let foreign = place.records.with_name("replay elsewhere").unwrap();
    let large = "x".repeat(200 * 1024);
    let (mut written, mut last) = (Vec::new(), [0, 0]);
    for number in 0..PAGE_RECORDS_MAX + 40 {
        let epoch = usize::from(number > 100);
        let text = match number % 10 {
            0 => large.clone(),
            _ => format!("record {number}"),
        };
        let record = append(&epochs[epoch], last[epoch], &text);
        last[epoch] = appended(&*place.logs[0], &record).await;
        written.push((last[epoch], record));
        if number % 50 == 0 {
            let id = MessageId::random();
            let record = Append {
                id,
                expected: 0,
                subject: foreign
                    .with_name(&text)
                    .unwrap_or(foreign.with_name("long").unwrap()),
                bytes: Bytes::new(),
            };
            let _any = append_until_known(&*place.logs[0], &record, LONG).await;
        }
    }
    for log in &place.logs {
        let read = replayed(&**log, root.all_below(), last[1]).await;
        assert_eq!(read.len(), written.len());
        for (record, (at, append)) in read.iter().zip(&written) {
            assert_eq!((record.sequence, record.id), (*at, Some(append.id)));
            assert_eq!(
                (&record.subject, &record.bytes),
                (&append.subject, &append.bytes)
            );
        }
        let newest = log.last(&epochs[1]).await.unwrap();
        // It may be an older one, never a wrong one.
        assert!(newest.is_none_or(|one| one.subject == epochs[1] && one.sequence <= last[1]));
    }
    let nothing = root.with_name("none").unwrap();
    assert_eq!(place.logs[0].last(&nothing).await, Ok(None));
    let mut beyond = LogReplay::new(
        &*place.logs[0],
        root.all_below(),
        last[1] + 1,
        last[1] + 9,
        Duration::from_millis(200),
    );
    assert!(beyond.page().await.is_err());
}

async fn foreign_records_are_passed_over(place: &Place) {
    let root = place.records.with_name("foreign").unwrap();
    let [own, large] = ["own", "large"].map(|name| root.with_name(name).unwrap());
    let odd = format!("{root}.xT.1.!");
    let beyond = Bytes::from(vec![7; FRAME_BYTES_MAX + 1000]);
    let mut written = Vec::new();
    let mut last = 0;
    for number in 0..4 {
        let record = append(&own, last, &format!("{number}"));
        last = appended(&*place.logs[0], &record).await;
        written.push(Some(record.id));
        place.stranger.append_foreign(&odd, "odd".into()).await;
        let foreign = place
            .stranger
            .append_foreign(large.as_str(), beyond.clone());
        assert!(foreign.await > last);
    }
    // More than a page of them.
    for _ in 0..PAGE_RECORDS_MAX + 20 {
        place.stranger.append_foreign(&odd, Bytes::new()).await;
    }
    last = appended(&*place.logs[0], &append(&own, last, "behind")).await;
    for log in &place.logs {
        let read = replayed(&**log, root.all_below(), last).await;
        assert_eq!(read.len(), written.len() + 1);
        let ids: Vec<_> = read.iter().map(|record| record.id).collect();
        assert_eq!(ids[..written.len()], written);
        assert_eq!(&read[written.len()].bytes[..], b"behind");
        let mut far = LogReplay::new(&**log, root.all_below(), last + 1, last + 9, Duration::ZERO);
        assert!(far.page().await.is_err());
    }
}

async fn the_last_record_is_the_last_of_all_writers(place: &Place) {
    let subject = place.records.with_name("last").unwrap();
    let own = append(&subject, 0, "own");
    let at = appended(&*place.logs[0], &own).await;
    let beyond = Bytes::from(vec![7; FRAME_BYTES_MAX + 1]);
    let foreign = place.stranger.append_foreign(subject.as_str(), beyond);
    let foreign = foreign.await;
    // A log that lags says the one before.
    for log in &place.logs {
        let mut newest = log.last(&subject).await;
        while !matches!(&newest, Ok(Some(one)) if one.sequence == foreign) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            newest = log.last(&subject).await;
        }
        let newest = newest.unwrap().unwrap();
        assert_eq!((newest.subject, newest.id), (subject.clone(), None));
        assert!(newest.bytes.is_empty());
    }
    // It fences like any other, also where the one after the expected record is foreign.
    let late = append_until_known(&*place.logs[1], &append(&subject, at, "late"), LONG).await;
    assert_eq!(late, Appended::Fenced(Some(foreign)));
    let next = appended(&*place.logs[0], &append(&subject, foreign, "next")).await;
    let read = replayed(&*place.logs[2], (&subject).into(), next).await;
    let places: Vec<_> = read.iter().map(|record| record.sequence).collect();
    assert_eq!(places, [at, next]);
}

async fn a_record_has_a_largest_size(place: &Place) {
    let subject = place.records.with_name("size").unwrap();
    let of = |bytes: usize| Append {
        bytes: vec![7; bytes].into(),
        ..append(&subject, 0, "")
    };
    let answer = append_until_known(&*place.logs[0], &of(FRAME_BYTES_MAX + 1), LONG).await;
    assert!(matches!(answer, Appended::Refused(_)), "{answer:?}");
    let at = appended(&*place.logs[0], &of(FRAME_BYTES_MAX)).await;
    let read = replayed(&*place.logs[1], (&subject).into(), at).await;
    assert_eq!(read[0].bytes.len(), FRAME_BYTES_MAX);
}

/// The next message.
async fn message(subscription: &mut crate::BusSubscription) -> (String, Bytes) {
    match tokio::time::timeout(LONG, subscription.next()).await {
        Ok(Some(Delivery::Message(message))) => (message.subject.to_string(), message.bytes),
        other => panic!("{other:?}"),
    }
}

/// Subscribes a node, and waits until messages of all nodes come.
async fn listening(place: &Place, node: usize, root: &SubjectName) -> crate::BusSubscription {
    let mut listener = place.buses[node]
        .subscribe(&root.all_below())
        .await
        .unwrap();
    let hello = root.with_name("hello").unwrap();
    for (from, bus) in place.buses.iter().enumerate() {
        let greeting = Bytes::from(format!("{from} to {node}"));
        while {
            bus.publish(&hello, greeting.clone()).await.unwrap();
            let wait = Duration::from_millis(100);
            let came = tokio::time::timeout(wait, message(&mut listener)).await;
            came.is_err()
        } {}
    }
    listener
}

async fn messages_come_to_all_who_listen(place: &Place) {
    let root = place.messages.with_name("all").unwrap();
    let mut listeners = Vec::new();
    for node in 0..place.buses.len() {
        listeners.push(listening(place, node, &root).await);
    }
    let gone = listening(place, 0, &root).await;
    drop(gone);
    let own = root.with_name("numbers").unwrap();
    let foreign = place.messages.with_name("elsewhere").unwrap();
    for number in 0..200 {
        place.buses[1]
            .publish(&foreign, Bytes::from_static(b"x"))
            .await
            .unwrap();
        let bytes = Bytes::from(format!("{number}"));
        place.buses[1].publish(&own, bytes).await.unwrap();
    }
    for listener in &mut listeners {
        let mut left: Vec<String> = (0..200).map(|number| format!("{number}")).collect();
        while !left.is_empty() {
            let (subject, bytes) = message(listener).await;
            if subject == own.as_str() {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                left.retain(|one| *one != text);
            } else {
                assert!(subject.starts_with(root.as_str()), "{subject}");
            }
        }
        assert_eq!(listener.dropped(), 0);
    }
}

async fn a_message_has_a_largest_size(place: &Place) {
    let root = place.messages.with_name("large").unwrap();
    let subject = root.with_name("one").unwrap();
    let mut listener = listening(place, 1, &root).await;
    let bytes = |count: usize| Bytes::from(vec![7; count]);
    let bus = &place.buses[0];
    assert_eq!(
        bus.publish(&subject, bytes(FRAME_BYTES_MAX + 1)).await,
        Err(BusError::TooLarge(FRAME_BYTES_MAX + 1))
    );
    bus.publish(&subject, bytes(FRAME_BYTES_MAX)).await.unwrap();
    while message(&mut listener).await != (subject.to_string(), bytes(FRAME_BYTES_MAX)) {}
}
