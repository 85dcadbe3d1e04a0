//! JetStream's answers, which are JSON.

use serde::Deserialize;
use serde_json::Value;

use crate::log::{Appended, FRAME_BYTES_MAX, LogError, Sequence};

/// The most bytes of an answer that is no record.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of headers that a record may have beside its own.
const HEADER_BYTES_MAX: usize = 4096;
/// The most bytes of a message that the stream must take.
pub(super) const STORED_BYTES_MAX: usize = FRAME_BYTES_MAX + HEADER_BYTES_MAX;
/// The largest sequence that is believed.
const SEQUENCE_MAX: Sequence = 1 << 62;
/// The most characters of a server's text that are passed on.
const TEXT_CHARS_MAX: usize = 200;

/// The time in which tries with one name append one record, in nanoseconds.
pub(super) const DUPLICATES_NS: i64 = 120_000_000_000;

const WRONG_LAST_SEQUENCE: u32 = 10_071;
const WRONG_LAST_SEQUENCE_UNDER_WAY: u32 = 10_164;
const STREAM_EXISTS: u32 = 10_058;
const NO_STREAM: u32 = 10_059;
/// JetStream is not enabled, or not for the account.
const NO_JETSTREAM: [u32; 2] = [10_039, 10_076];
/// Several replicas are wished of a server that stands alone.
const NO_CLUSTER: u32 = 10_074;

/// An answer that reports a failure.
#[derive(Debug, Deserialize)]
struct Failed {
    code: u16,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct PublishAnswer {
    error: Option<Failed>,
    stream: Option<String>,
    seq: Option<Sequence>,
}

#[derive(Deserialize)]
struct PurgeAnswer {
    error: Option<Failed>,
    success: Option<bool>,
}

#[derive(Deserialize)]
struct StreamAnswer {
    error: Option<Failed>,
    config: Option<StreamConfig>,
}

/// The parts of a stream's configuration that the log relies on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct StreamConfig {
    name: String,
    subjects: Vec<String>,
    retention: String,
    storage: String,
    discard: String,
    pub(super) num_replicas: u8,
    #[serde(default)]
    allow_direct: bool,
    #[serde(default)]
    sealed: bool,
    #[serde(default)]
    max_age: i64,
    #[serde(default)]
    max_msgs: i64,
    #[serde(default)]
    max_msgs_per_subject: i64,
    #[serde(default)]
    duplicate_window: i64,
    #[serde(default)]
    max_msg_size: i64,
    #[serde(default)]
    allow_rollup_hdrs: bool,
    #[serde(default)]
    deny_purge: bool,
    #[serde(default)]
    mirror: Option<Value>,
    #[serde(default)]
    sources: Option<Vec<Value>>,
    #[serde(default)]
    subject_transform: Option<Value>,
}

/// The answer to the wish for a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is there.
    Stream(Box<StreamConfig>),
    /// One of this name is there, and has another configuration.
    Other,
    /// Several replicas are wished, and the server stands alone.
    Alone,
}

/// The answer to an append that expected this sequence.
pub(super) fn appended(answer: &[u8], stream: &str, expected: Sequence) -> Appended {
    let answer: PublishAnswer = match read(answer) {
        Ok(answer) => answer,
        Err(why) => return Appended::Unknown(why.to_string()),
    };
    match answer {
        PublishAnswer {
            error: Some(failed),
            ..
        } => refused(&failed, expected),
        PublishAnswer {
            stream: Some(of),
            seq: Some(sequence),
            error: None,
        } if of == stream && is_sequence(sequence) => Appended::At(sequence),
        _ => Appended::Unknown("the server's acknowledgement makes no sense".to_owned()),
    }
}

fn refused(failed: &Failed, expected: Sequence) -> Appended {
    match failed.err_code {
        WRONG_LAST_SEQUENCE => match last_in(&failed.description) {
            Some(last) if last != expected => Appended::unexpected(expected, last),
            _ => Appended::Fenced(None),
        },
        WRONG_LAST_SEQUENCE_UNDER_WAY => Appended::Fenced(None),
        // A majority may have stored what one server fails at; and the same name is in process
        // (409) when two tries meet.
        _ if (400..500).contains(&failed.code) && !matches!(failed.code, 408 | 409 | 429) => {
            Appended::Refused(failed.text())
        }
        _ => Appended::Unknown(failed.text()),
    }
}

/// The number in `wrong last sequence: 7`.
fn last_in(description: &str) -> Option<Sequence> {
    let digits = description.strip_prefix("wrong last sequence: ")?;
    number(digits)
}

/// A sequence in decimal digits, 0 included.
pub(super) fn number(digits: &str) -> Option<Sequence> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_plain)?;
    (number <= SEQUENCE_MAX).then_some(number)
}

/// Whether a number is the place of a record.
pub(super) fn is_sequence(number: Sequence) -> bool {
    (1..=SEQUENCE_MAX).contains(&number)
}

/// The answer to a purge.
pub(super) fn purged(answer: &[u8]) -> Result<(), LogError> {
    let answer: PurgeAnswer = read(answer)?;
    match answer.error {
        Some(failed) => Err(LogError::Unavailable(failed.text())),
        None if answer.success == Some(true) => Ok(()),
        None => Err(LogError::Unreadable("a purge without success".to_owned())),
    }
}

/// The answer to the wish for a stream, or to the question for it.
pub(super) fn made(answer: &[u8]) -> Result<Made, LogError> {
    let answer: StreamAnswer = read(answer)?;
    match (answer.error, answer.config) {
        (Some(failed), _) if failed.err_code == STREAM_EXISTS => Ok(Made::Other),
        (Some(failed), _) if failed.err_code == NO_CLUSTER => Ok(Made::Alone),
        (Some(failed), _) => Err(LogError::Unavailable(failed.text())),
        (None, Some(config)) => Ok(Made::Stream(Box::new(config))),
        (None, None) => Err(LogError::Unreadable("a stream without one".to_owned())),
    }
}

/// The answer to the question for a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is there.
    Stream(Box<StreamConfig>),
    /// None of this name is there.
    None,
    /// The server keeps no streams.
    NoJetStream,
}

/// The stream of an answer to the question for it.
pub(super) fn found(answer: &[u8]) -> Result<Found, LogError> {
    let answer: StreamAnswer = read(answer)?;
    match (answer.error, answer.config) {
        (Some(failed), _) if failed.err_code == NO_STREAM => Ok(Found::None),
        (Some(failed), _) if NO_JETSTREAM.contains(&failed.err_code) => Ok(Found::NoJetStream),
        (Some(failed), _) => Err(LogError::Unavailable(failed.text())),
        (None, Some(config)) => Ok(Found::Stream(Box::new(config))),
        (None, None) => Err(LogError::Unreadable("a stream without one".to_owned())),
    }
}

impl StreamConfig {
    /// The first property for which the stream cannot be the log.
    pub(super) fn unfit(&self, name: &str, subjects: &str) -> Option<&'static str> {
        let own = [
            fact(self.name == name, "its name"),
            fact(self.subjects == [subjects], "its subjects"),
        ];
        let all = own.into_iter().chain(self.keeping()).chain(self.taking());
        let mut broken = all.filter(|fact| !fact.holds);
        broken.next().map(|fact| fact.otherwise)
    }

    /// The properties by which it keeps what it has acknowledged.
    fn keeping(&self) -> [Fact; 8] {
        let limits_a_subject = self.max_msgs_per_subject > 0;
        [
            fact(self.retention == "limits", "its retention: not `limits`"),
            fact(self.storage == "file", "its storage: not `file`"),
            fact(self.discard == "new", "its discard policy: not `new`"),
            fact(self.max_age == 0, "its records expire"),
            fact(self.max_msgs <= 0, "its number of records is limited"),
            fact(
                !limits_a_subject,
                "its number of records of a subject is limited",
            ),
            fact(
                !self.allow_rollup_hdrs,
                "a record may take the place of all before it",
            ),
            fact(
                self.duplicate_window >= DUPLICATES_NS,
                "its window of duplicates is short",
            ),
        ]
    }

    /// The properties by which it does what the log is asked, and takes records from no one else.
    fn taking(&self) -> [Fact; 7] {
        let sources = self.sources.as_deref().unwrap_or_default();
        let takes = |bytes: usize| i64::try_from(bytes).is_ok_and(|one| one <= self.max_msg_size);
        [
            fact(self.allow_direct, "no direct reads"),
            fact(!self.sealed, "it is sealed"),
            fact(!self.deny_purge, "it cannot be purged"),
            fact(self.mirror.is_none(), "it mirrors another stream"),
            fact(sources.is_empty(), "it takes records of other streams"),
            fact(
                self.subject_transform.is_none(),
                "it stores records under other subjects",
            ),
            fact(
                self.max_msg_size <= 0 || takes(STORED_BYTES_MAX),
                "its largest message is too small",
            ),
        ]
    }
}

/// A property that a stream must have, and the words for one that has not.
struct Fact {
    holds: bool,
    otherwise: &'static str,
}

fn fact(holds: bool, otherwise: &'static str) -> Fact {
    Fact { holds, otherwise }
}

impl Failed {
    fn text(&self) -> String {
        let text = self.description.chars().filter(|one| !one.is_control());
        let text: String = text.take(TEXT_CHARS_MAX).collect();
        format!("{text} ({})", self.err_code)
    }
}

fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, LogError> {
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(LogError::Unreadable("a very long answer".to_owned()));
    }
    serde_json::from_slice(answer)
        .map_err(|_| LogError::Unreadable("an answer that is no JSON of JetStream".to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unknown(answer: &str) -> bool {
        matches!(appended(answer.as_bytes(), "PM_a", 5), Appended::Unknown(_))
    }

    #[test]
    fn acknowledgements_are_of_this_stream_and_have_a_place() {
        let read = |answer: &str| appended(answer.as_bytes(), "PM_a", 5);
        assert_eq!(read(r#"{"stream":"PM_a","seq":7}"#), Appended::At(7));
        assert_eq!(
            read(r#"{"stream":"PM_a","domain":"x","seq":7,"duplicate":true}"#),
            Appended::At(7)
        );
        for answer in [
            r#"{"stream":"PM_b","seq":7}"#,
            r#"{"stream":"PM_a","seq":0}"#,
            r#"{"stream":"PM_a","seq":-1}"#,
            r#"{"stream":"PM_a","seq":7.5}"#,
            r#"{"stream":"PM_a","seq":"7"}"#,
            r#"{"stream":"PM_a","seq":18446744073709551615}"#,
            r#"{"stream":"PM_a","seq":7,"seq":8}"#,
            r#"{"stream":"PM_a"}"#,
            "{}",
            "",
            "null",
            "[]",
        ] {
            assert!(unknown(answer), "{answer}");
        }
        let long = format!(
            r#"{{"stream":"PM_a","seq":7,"x":"{}"}}"#,
            "a".repeat(70_000)
        );
        assert!(unknown(&long));
    }

    #[test]
    fn a_wrong_last_sequence_is_a_fence_or_a_loss() {
        let read = |code: u32, description: &str| {
            let error = format!(
                r#"{{"error":{{"code":400,"err_code":{code},"description":"{description}"}},"stream":"PM_a","seq":0}}"#
            );
            appended(error.as_bytes(), "PM_a", 5)
        };
        let fenced = Appended::Fenced;
        assert_eq!(read(10_071, "wrong last sequence: 7"), fenced(Some(7)));
        assert_eq!(read(10_071, "wrong last sequence: 4"), Appended::Lost(4));
        assert_eq!(read(10_071, "wrong last sequence: 0"), Appended::Lost(0));
        // Neither says that something is lost.
        assert_eq!(read(10_071, "wrong last sequence: 5"), fenced(None));
        assert_eq!(read(10_071, "wrong last sequence: +4"), fenced(None));
        assert_eq!(read(10_071, "wrong last sequence"), fenced(None));
        assert_eq!(read(10_164, "wrong last sequence"), fenced(None));
        assert!(matches!(read(10_054, "too large"), Appended::Refused(_)));
    }

    #[test]
    fn a_failure_of_a_server_is_never_taken_for_a_refusal() {
        for error in [
            r#"{"error":{"code":503,"err_code":10077,"description":"no space left"}}"#,
            r#"{"error":{"code":500,"err_code":10047,"description":"storage"}}"#,
            r#"{"error":{"code":409,"err_code":10158,"description":"in process"}}"#,
            r#"{"error":{"code":503}}"#,
        ] {
            assert!(unknown(error), "{error}");
        }
    }

    #[test]
    fn a_stream_that_would_lose_records_is_not_the_log() {
        let config = r#"{"name":"PM_a","subjects":["pm.a.j.>"],"retention":"limits","storage":"file",
            "discard":"new","num_replicas":3,"allow_direct":true,"max_msgs":-1,
            "duplicate_window":120000000000,"max_age":0,"max_msg_size":266240,"allow_rollup_hdrs":false,
            "deny_purge":false,"sources":null}"#;
        let unfit = |from: &str, to: &str| {
            let answer = format!(r#"{{"config":{}}}"#, config.replace(from, to));
            match made(answer.as_bytes()).unwrap() {
                Made::Stream(config) => config.unfit("PM_a", "pm.a.j.>"),
                Made::Other | Made::Alone => None,
            }
        };
        assert_eq!(unfit("x", "x"), None);
        for (from, to) in [
            (r#""max_age":0"#, r#""max_age":5"#),
            (r#""storage":"file""#, r#""storage":"memory""#),
            (r#""discard":"new""#, r#""discard":"old""#),
            (r#""max_msgs":-1"#, r#""max_msgs":9"#),
            ("120000000000", "1000"),
            (r#""allow_direct":true"#, r#""allow_direct":false"#),
            ("pm.a.j.>", "pm.b.j.>"),
            ("PM_a", "PM_b"),
            ("limits", "workqueue"),
            (
                r#""allow_rollup_hdrs":false"#,
                r#""allow_rollup_hdrs":true"#,
            ),
            (r#""deny_purge":false"#, r#""deny_purge":true"#),
            (r#""sources":null"#, r#""sources":[{"name":"b"}]"#),
            (r#""sources":null"#, r#""mirror":{"name":"b"}"#),
            (
                r#""sources":null"#,
                r#""subject_transform":{"src":">","dest":"x.>"}"#,
            ),
            ("266240", "266239"),
        ] {
            assert!(unfit(from, to).is_some(), "{to}");
        }
        for without_limit in ["-1", "0", "1000000"] {
            assert_eq!(unfit("266240", without_limit), None);
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(answer: Vec<u8>, text: String) {
            let _any = appended(&answer, "PM_a", 5);
            let _any = (purged(&answer), made(&answer));
            prop_assert!(unknown(&text));
        }
    }
}
