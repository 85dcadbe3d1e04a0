//! Pages of records, as a server sends them: a message for each record, and one for the end.

use bytes::Bytes;

use super::answers;
use crate::log::{FRAME_BYTES_MAX, LogError, MessageId, PAGE_RECORDS_MAX, Page, Record, Sequence};
use crate::subject::{SubjectName, SubjectPattern};

const END_OF_BATCH: u16 = 204;
const NOT_FOUND: u16 = 404;
const NO_RESPONDERS: u16 = 503;

/// The records that were asked for: others are not believed.
pub(super) struct Wanted<'a> {
    pub(super) stream: &'a str,
    pub(super) pattern: &'a SubjectPattern,
    pub(super) from: Sequence,
    /// Whether a batch was asked for, or one record.
    pub(super) is_batch: bool,
}

/// A message of a server: its status, headers and content. A stored message can have headers of
/// the same names: the server's are the last ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply<'a> {
    pub(super) status: Option<u16>,
    pub(super) stream: Option<&'a str>,
    pub(super) subject: Option<&'a str>,
    pub(super) sequence: Option<&'a str>,
    /// The sequence of the record before it in its batch.
    pub(super) before: Option<&'a str>,
    /// The number of records that follow it in its batch.
    pub(super) pending: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) bytes: Bytes,
}

/// The records that have come.
#[derive(Debug, Default)]
pub(super) struct Came {
    records: Vec<Record>,
    /// The sequence of the last one, and their number, with those that were passed over.
    last: Sequence,
    count: usize,
}

/// Whether more messages follow one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    More,
    Nothing,
}

impl Came {
    pub(super) fn page(self, from: Sequence) -> Page {
        Page {
            records: self.records,
            next: from.max(self.last + 1),
        }
    }

    /// The last record, which is one of this subject.
    pub(super) fn newest(mut self, subject: &SubjectName) -> Option<Record> {
        let foreign = (self.last > 0).then(|| Record {
            subject: subject.clone(),
            sequence: self.last,
            id: None,
            bytes: Bytes::new(),
        });
        self.records.pop().or(foreign)
    }
}

impl Wanted<'_> {
    /// Takes the next message of the answer in.
    pub(super) fn take(&self, came: &mut Came, reply: Reply<'_>) -> Result<Follows, LogError> {
        // A stored message can have a status, but what the server says of itself has no place.
        if let (Some(status), None) = (reply.status, reply.sequence) {
            return ended(status);
        }
        let is_last = !self.is_batch || reply.pending.is_none();
        self.take_record(came, reply)?;
        Ok(if is_last {
            Follows::Nothing
        } else {
            Follows::More
        })
    }

    /// Takes a record in, or passes over one that is none of this crate's.
    fn take_record(&self, came: &mut Came, reply: Reply<'_>) -> Result<(), LogError> {
        let unreadable = |what: &str| LogError::Unreadable(format!("a record with {what}"));
        let sequence = reply.sequence.and_then(answers::number);
        let sequence = sequence.filter(|one| answers::is_sequence(*one));
        let sequence = sequence.ok_or_else(|| unreadable("no sequence"))?;
        let subject = reply.subject.ok_or_else(|| unreadable("no subject"))?;
        if reply.stream != Some(self.stream) || !self.pattern.matches_text(subject) {
            return Err(unreadable("another subject or stream"));
        }
        if sequence < self.from || sequence <= came.last {
            return Err(unreadable("a sequence that was not asked for"));
        }
        let before = reply.before.filter(|_| self.is_batch);
        if before.is_some_and(|before| answers::number(before) != Some(came.last)) {
            return Err(LogError::Unavailable(
                "a part of a page was dropped".to_owned(),
            ));
        }
        if came.count >= PAGE_RECORDS_MAX {
            return Err(LogError::Unreadable("a page without an end".to_owned()));
        }
        came.last = sequence;
        came.count += 1;
        let subject = subject.parse().ok();
        let subject = subject.filter(|_| reply.bytes.len() <= FRAME_BYTES_MAX);
        came.records.extend(subject.map(|subject| Record {
            subject,
            sequence,
            id: reply.id.and_then(MessageId::from_hex),
            bytes: reply.bytes,
        }));
        Ok(())
    }
}

/// The end of an answer by its status.
fn ended(status: u16) -> Result<Follows, LogError> {
    match status {
        END_OF_BATCH | NOT_FOUND => Ok(Follows::Nothing),
        NO_RESPONDERS => Err(LogError::Unavailable("no server has the stream".to_owned())),
        status => Err(LogError::Unreadable(format!("status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record<'a>(subject: &'a str, sequence: &'a str, before: &'a str) -> Reply<'a> {
        Reply {
            stream: Some("PM_a"),
            subject: Some(subject),
            sequence: Some(sequence),
            before: Some(before),
            pending: Some("9"),
            id: Some("00000000000000000000000000000007"),
            bytes: "content".into(),
            ..Reply::default()
        }
    }

    fn end() -> Reply<'static> {
        Reply {
            status: Some(END_OF_BATCH),
            ..Reply::default()
        }
    }

    /// A page of the records below `pm.a.j` from 5 on, from these messages.
    fn page<'a>(replies: impl IntoIterator<Item = Reply<'a>>) -> Result<Page, LogError> {
        let pattern = "pm.a.j.>".parse().unwrap();
        let wanted = Wanted {
            stream: "PM_a",
            pattern: &pattern,
            from: 5,
            is_batch: true,
        };
        let mut came = Came::default();
        for reply in replies {
            if wanted.take(&mut came, reply)? == Follows::Nothing {
                return Ok(came.page(5));
            }
        }
        Err(LogError::Unavailable("no end".to_owned()))
    }

    #[test]
    fn a_page_passes_over_what_is_no_record() {
        let large = Reply {
            bytes: vec![0; FRAME_BYTES_MAX + 1].into(),
            ..record("pm.a.j.x", "9", "8")
        };
        // One whose writer gave it the look of an end.
        let posing = Reply {
            status: Some(NOT_FOUND),
            ..record("pm.a.j.z", "12", "9")
        };
        let all = [
            record("pm.a.j.x", "6", "0"),
            record("pm.a.j.xT.1.!", "8", "6"),
            large,
            posing,
            record("pm.a.j.é", "20", "12"),
            end(),
        ];
        let page_of_all = page(all).unwrap();
        let places: Vec<_> = page_of_all.records.iter().map(|one| one.sequence).collect();
        assert_eq!((places, page_of_all.next), (vec![6, 12], 21));
        let empty = page([end()]).unwrap();
        assert_eq!((empty.records.len(), empty.next), (0, 5));
    }

    #[test]
    fn a_page_believes_no_other_records() {
        let refused = |reply: Reply<'_>| page([reply, end()]).is_err();
        assert!(!refused(record("pm.a.j.x", "6", "0")));
        for (subject, sequence, before) in [
            ("pm.b.j.x", "6", "0"),
            ("pm.a.!.x", "6", "0"),
            ("pm.a.j", "6", "0"),
            ("pm.a.j.x", "4", "0"),
            ("pm.a.j.x", "0", "0"),
            ("pm.a.j.x", "", "0"),
            ("pm.a.j.x", "+6", "0"),
            ("pm.a.j.x", "6", "5"),
            ("pm.a.j.x", "18446744073709551615", "0"),
        ] {
            assert!(refused(record(subject, sequence, before)), "{sequence}");
        }
        let elsewhere = Reply {
            stream: Some("PM_b"),
            ..record("pm.a.j.x", "6", "0")
        };
        assert!(refused(elsewhere));
        let numbers: Vec<_> = (5..).take(PAGE_RECORDS_MAX + 2).collect();
        let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        let nth = |at: usize| {
            record(
                "pm.a.j.!",
                &texts[at],
                if at == 0 { "0" } else { &texts[at - 1] },
            )
        };
        let full = page((0..PAGE_RECORDS_MAX).map(nth).chain([end()])).unwrap();
        assert_eq!(full.next, 5 + PAGE_RECORDS_MAX as u64);
        assert!(page((0..=PAGE_RECORDS_MAX).map(nth).chain([end()])).is_err());
        // The same one again.
        assert!(page([nth(1), nth(1)]).is_err());
    }

    #[test]
    fn the_newest_record_is_there_whatever_its_writer_put_into_it() {
        let subject: SubjectName = "pm.a.j.x".parse().unwrap();
        let newest = |reply: Reply<'_>| {
            let wanted = Wanted {
                stream: "PM_a",
                pattern: &(&subject).into(),
                from: 1,
                is_batch: false,
            };
            let mut came = Came::default();
            assert_eq!(wanted.take(&mut came, reply), Ok(Follows::Nothing));
            came.newest(&subject)
        };
        // Headers of its own that look like those of a batch.
        let own = newest(record("pm.a.j.x", "6", "77")).unwrap();
        assert_eq!((own.sequence, &own.bytes[..]), (6, &b"content"[..]));
        let large = newest(Reply {
            bytes: vec![0; FRAME_BYTES_MAX + 1].into(),
            ..record("pm.a.j.x", "7", "0")
        });
        let large = large.unwrap();
        assert_eq!((large.sequence, large.id), (7, None));
        assert_eq!(
            (large.subject, large.bytes),
            (subject.clone(), Bytes::new())
        );
        assert_eq!(newest(end()), None);
    }

    fn texts() -> impl Strategy<Value = Option<String>> {
        let texts = prop_oneof![
            any::<String>(),
            any::<u64>().prop_map(|number| number.to_string()),
            (0_u64..9).prop_map(|number| number.to_string()),
            Just("PM_a".to_owned()),
            "pm\\.a\\.j\\.[a-z!.*> ]{0,5}",
        ];
        proptest::option::of(texts)
    }

    type Texts = [Option<String>; 6];

    proptest! {
        /// Any messages as the answer: nothing panics, and a page has but what was asked for.
        #[test]
        fn no_headers_panic(
            all in proptest::collection::vec(
                (any::<Option<u16>>(), proptest::array::uniform6(texts()), any::<Vec<u8>>()), 0..8,
            ),
        ) {
            let replies = all.iter().map(|(status, texts, bytes): &(_, Texts, _)| {
                let [stream, subject, sequence, before, pending, id] = texts.each_ref().map(Option::as_deref);
                let bytes = Bytes::copy_from_slice(bytes);
                Reply { status: *status, stream, subject, sequence, before, pending, id, bytes }
            });
            if let Ok(page) = page(replies) {
                let places: Vec<_> = page.records.iter().map(|one| one.sequence).collect();
                prop_assert!(places.is_sorted_by(|one, next| one < next));
                prop_assert!(places.iter().all(|place| (5..page.next).contains(place)));
                prop_assert!(page.records.iter().all(|one| one.subject.as_str().starts_with("pm.a.j.")));
            }
        }
    }
}
