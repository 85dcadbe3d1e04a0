//! The common log: four operations, of which one decides.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use crate::subject::{SubjectName, SubjectPattern};

/// The most bytes of a message or of a record.
pub const FRAME_BYTES_MAX: usize = 256 * 1024;
/// The most records of a page.
pub const PAGE_RECORDS_MAX: usize = 256;
/// Bytes of records after which a page ends; the last record may exceed them.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The time in which one try of an operation is answered, or counts as unknown.
pub const TRY_MAX: Duration = Duration::from_secs(2);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// An operation under way.
pub type Ongoing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place in the log: all records of all subjects are counted together, from 1.
pub type Sequence = u64;

/// The log of a cluster. No read decides anything: only an append does.
pub trait Log: Send + Sync {
    /// Tries once to append a record, if the last record of its subject is the expected one.
    fn append<'a>(&'a self, append: &'a Append) -> Ongoing<'a, Appended>;

    /// Some of the records from a sequence on, oldest first. They may be those of some time ago.
    /// Records that no [`Log::append`] can have made, since their subject is no [`SubjectName`] or
    /// they have more than [`FRAME_BYTES_MAX`] bytes, are passed over.
    fn read<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
        from: Sequence,
    ) -> Ongoing<'a, Result<Page, LogError>>;

    /// Removes the records of a pattern that come before a sequence, the oldest first: one that ends
    /// in the middle leaves the others. A subject without records begins anew: an append to it
    /// expects none.
    fn purge<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
        before: Sequence,
    ) -> Ongoing<'a, Result<(), LogError>>;

    /// The last record of a subject, if it has one, of whatever writer. It may be that of some time
    /// ago. One that has more than [`FRAME_BYTES_MAX`] bytes has no name and no content here.
    fn last<'a>(
        &'a self,
        subject: &'a SubjectName,
    ) -> Ongoing<'a, Result<Option<Record>, LogError>>;
}

/// A record to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The subject.
    pub subject: SubjectName,
    /// The sequence of the subject's last record, as its writer knows it; 0 if it has none.
    pub expected: Sequence,
    /// The name of the record: tries with one name append one record.
    pub id: MessageId,
    /// The record.
    pub bytes: Bytes,
}

/// The name of a record, which no other one has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub [u8; 16]);

impl MessageId {
    /// A new name, by chance.
    #[must_use]
    pub fn random() -> Self {
        Self(platform::random())
    }

    /// The name in 32 hexadecimal digits, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let is_short = text.len() == 32 && text.bytes().all(|one| one.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok()?;
        is_short.then_some(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

/// The answer to one try of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The record is in the log, on the disks of a majority.
    At(Sequence),
    /// The subject has a later record, of another writer: this writer is deposed. The number of
    /// that record is missing if it was being written at the time.
    Fenced(Option<Sequence>),
    /// The subject ends before the expected record: the log has lost what it had acknowledged.
    Lost(Sequence),
    /// The log cannot take the record, and has stored nothing of this try. An earlier try of the
    /// same name may have stored it all the same: the log looks at the size of a record, and at the
    /// room that is left, before it looks at the name. Only where no earlier try is
    /// [`Appended::Unknown`], the record is not in the log.
    Refused(String),
    /// Nothing is known: the record may be in the log, now or later. Only another try with the same
    /// name tells.
    Unknown(String),
}

impl Appended {
    /// The answer to a refused expectation, from the real last sequence of the subject.
    #[must_use]
    pub fn unexpected(expected: Sequence, last: Sequence) -> Self {
        if last < expected {
            return Self::Lost(last);
        }
        Self::Fenced(Some(last))
    }
}

/// A record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its subject.
    pub subject: SubjectName,
    /// Its place.
    pub sequence: Sequence,
    /// Its name; other writers than this crate may have given it none.
    pub id: Option<MessageId>,
    /// Its content.
    pub bytes: Bytes,
}

/// A part of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Records, in their order. A page can have none and a further one some.
    pub records: Vec<Record>,
    /// The sequence at which a reader goes on: behind the records, and behind what was passed over.
    /// The one from which the page was read: there was nothing more.
    pub next: Sequence,
}

/// An operation that did not succeed. Each of them may be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The log does not answer, or answers that it cannot now.
    #[error("the log is unavailable: {0}")]
    Unavailable(String),
    /// The log answers otherwise than it should.
    #[error("the log's answer makes no sense: {0}")]
    Unreadable(String),
    /// The part of the log that was asked does not have the record yet.
    #[error("the log was read up to {read} only, not to {wanted}")]
    Behind {
        /// The last sequence that was read.
        read: Sequence,
        /// The sequence that was to be reached.
        wanted: Sequence,
    },
}

/// Appends a record, and tries again with the same name until the answer is known or the time is
/// over: then it is [`Appended::Unknown`], and the record must not be taken for absent. After
/// [`Appended::Refused`] it is absent.
pub async fn append_until_known(log: &dyn Log, append: &Append, within: Duration) -> Appended {
    let until = tokio::time::Instant::now() + within;
    let mut last = Appended::Unknown("there was no time for a try".to_owned());
    let mut may_be_stored = false;
    while tokio::time::Instant::now() < until {
        match tokio::time::timeout_at(until, log.append(append)).await {
            // Known, but not yet by whom.
            Ok(Appended::Fenced(None)) => last = Appended::Fenced(None),
            Ok(Appended::Unknown(why)) => {
                may_be_stored = true;
                last = Appended::Unknown(why);
            }
            // This try stored nothing; an earlier one may have.
            Ok(Appended::Refused(why)) if may_be_stored => last = Appended::Unknown(why),
            Ok(known) => return known,
            Err(_) => return Appended::Unknown("no answer in time".to_owned()),
        }
        tokio::time::sleep_until((tokio::time::Instant::now() + PAUSE).min(until)).await;
    }
    last
}

/// A replay of the records of a pattern, up to one that is known to be in the log.
pub struct LogReplay<'a> {
    log: &'a dyn Log,
    pattern: SubjectPattern,
    next: Sequence,
    reach: Sequence,
    until: tokio::time::Instant,
}

impl<'a> LogReplay<'a> {
    /// A replay from a sequence on, up to the record at `reach`: parts of the log that lag are
    /// asked again, until `within` is over.
    #[must_use]
    pub fn new(
        log: &'a dyn Log,
        pattern: SubjectPattern,
        from: Sequence,
        reach: Sequence,
        within: Duration,
    ) -> Self {
        let until = tokio::time::Instant::now() + within;
        Self {
            log,
            pattern,
            next: from.max(1),
            reach,
            until,
        }
    }

    /// The next records; `None` when all up to the wanted one have been read.
    ///
    /// # Errors
    /// [`LogError`] when the time is over.
    pub async fn page(&mut self) -> Result<Option<Vec<Record>>, LogError> {
        while self.next <= self.reach {
            let failure = match self.log.read(&self.pattern, self.next).await {
                Ok(page) if page.next > self.next => {
                    self.next = page.next;
                    if page.records.is_empty() {
                        continue;
                    }
                    return Ok(Some(page.records));
                }
                Ok(_) => LogError::Behind {
                    read: self.next - 1,
                    wanted: self.reach,
                },
                Err(failure) => failure,
            };
            if tokio::time::Instant::now() + PAUSE >= self.until {
                return Err(failure);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(None)
    }
}

impl fmt::Debug for LogReplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "LogReplay({} {}..={})",
            self.pattern, self.next, self.reach
        )
    }
}
