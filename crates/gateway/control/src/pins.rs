//! Pins of servers' definitions: what is trusted, kept in the journal, and what differs, said in
//! the log and recorded.

mod kept;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use auth::Participant;
use data_encoding::HEXLOWER;
use identity::PINS;
use model::{GATEWAY, Refusal, RefusalCode};
use platform::{Mutex, unix_ms};
use sha2::{Digest as _, Sha256};
use store::audit::{AuditEntry, RecordedVerdict};
use store::recorder::{Recorder, entry};
use store::{Ledger, not_written};
use upstream::Pinning;
use upstream::config::{PinMode, ServerConfig};
use vetting::{
    Book, FINDINGS_MAX, Flag, FlaggedText, KnownDefinition, News, Part, PartDefinition, Pin,
    Withheld, imitations, scan,
};

pub use kept::{KeptPins, PinRecord, PinnedDefinition};

/// The log target of what is found.
const TARGET: &str = "portmoot::servers";
/// Findings of one list that the log names.
const LOGGED_MAX: usize = 10;

/// All pins and findings of a gateway.
pub struct Pins {
    book: Mutex<Book>,
    /// Findings in the lists of each server's shared sessions.
    seen: Mutex<HashMap<String, Seen>>,
    journal: Option<Ledger<KeptPins>>,
    audit: Recorder,
    /// Names of tools that are the gateway's own.
    builtin: Vec<&'static str>,
}

/// Names and findings in the lists of one server.
#[derive(Default)]
struct Seen {
    prefix: String,
    tools: Vec<String>,
    findings: BTreeMap<Part, Vec<FlaggedText>>,
    /// Digests of the lists in which this was found.
    of: BTreeMap<Part, String>,
}

impl Pins {
    /// The pins of the journal, if the gateway keeps one.
    #[must_use]
    pub fn open(
        journal: Option<Ledger<KeptPins>>,
        audit: &Recorder,
        builtin: Vec<&'static str>,
    ) -> Self {
        let book = journal.as_ref().map(pinned).unwrap_or_default();
        let book = Mutex::new(book);
        let seen = Mutex::new(HashMap::new());
        Self {
            book,
            seen,
            journal,
            audit: audit.clone(),
            builtin,
        }
    }

    /// Takes over the pins of the journal, which another process writes.
    pub(crate) fn follow(&self) {
        if let Some(journal) = &self.journal {
            *self.book.lock() = pinned(journal);
        }
    }

    /// The servers of which anything is pinned, or waits.
    #[must_use]
    pub fn servers(&self) -> Vec<String> {
        self.book.lock().servers().map(str::to_owned).collect()
    }

    /// Definitions of a server, each with its state.
    #[must_use]
    pub fn rows(&self, server: &str) -> Vec<KnownDefinition> {
        self.book.lock().rows(server)
    }

    /// Findings in the texts of a server, names that imitate others too.
    #[must_use]
    pub fn findings(&self, server: &str) -> Vec<FlaggedText> {
        let seen = self.seen.lock();
        let Some(own) = seen.get(server) else {
            return Vec::new();
        };
        let mut found: Vec<FlaggedText> = own.findings.values().flatten().cloned().collect();
        let publics = seen
            .iter()
            .filter(|(name, _)| *name != server)
            .flat_map(|(_, other)| {
                other.tools.iter().map(|tool| match other.prefix.as_str() {
                    "" => tool.clone(),
                    prefix => format!("{prefix}_{tool}"),
                })
            });
        let publics: Vec<String> = publics.collect();
        let others: Vec<&str> = publics
            .iter()
            .map(String::as_str)
            .chain(self.builtin.iter().copied())
            .collect();
        let names: Vec<&str> = own.tools.iter().map(String::as_str).collect();
        found.extend(imitations(&names, &own.prefix, &others));
        found.truncate(FINDINGS_MAX);
        found
    }

    /// Pins the definitions that wait and have these digests, as a participant asks from this address.
    /// Returns them. Blocks on the disk.
    ///
    /// # Errors
    /// If none of them waits, or the journal or the audit log cannot be written.
    pub fn approve(
        &self,
        server: &str,
        digests: &[String],
        by: &Participant,
        address: Option<IpAddr>,
    ) -> Result<Vec<Pin>, Refusal> {
        let permit = self.audit.reserve_of(&by.id)?.from_address(address);
        let pins = self.book.lock().approved(server, digests);
        let names: Vec<String> = pins
            .iter()
            .map(|pin| named(pin.definition.part, &pin.definition.name))
            .collect();
        let end = if pins.is_empty() {
            Err(Refusal::new(
                RefusalCode::UnknownTarget,
                format!("nothing of `{server}` with these digests waits"),
            )
            .hint(format!(
                "it may have changed again: portmoot pins show {server}"
            )))
        } else {
            let identity = self
                .book
                .lock()
                .identity(server)
                .unwrap_or_default()
                .to_owned();
            self.write(server, &identity, &pins, Some(by.id.as_str()))
        };
        if end.is_ok() {
            self.book.lock().approve(server, pins.clone());
        }
        permit.write_change(
            (PINS, server, None),
            by.id.as_str(),
            &format!("approved: {}", names.join(", ")),
            &end,
        );
        end.map(|()| pins)
    }

    /// Forgets what is pinned of a server: what it lists next is seen for the first time. Blocks on
    /// the disk.
    ///
    /// # Errors
    /// If the journal or the audit log cannot be written.
    pub fn reset(
        &self,
        server: &str,
        by: &Participant,
        address: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let permit = self.audit.reserve_of(&by.id)?.from_address(address);
        let record = PinRecord::PinsReset {
            server: server.to_owned(),
            at_ms: unix_ms(),
        };
        let end = self.append(&[record]);
        if end.is_ok() {
            self.book.lock().reset(server);
        }
        permit.write_change((PINS, server, None), by.id.as_str(), "reset", &end);
        end
    }

    fn write(
        &self,
        server: &str,
        identity: &str,
        pins: &[Pin],
        by: Option<&str>,
    ) -> Result<(), Refusal> {
        let records: Vec<PinRecord> = pins
            .iter()
            .map(|pin| record(server, identity, pin, by))
            .collect();
        self.append(&records)
    }

    fn append(&self, records: &[PinRecord]) -> Result<(), Refusal> {
        self.journal.as_ref().map_or(Ok(()), |journal| {
            journal.append(records).map_err(|error| not_written(&error))
        })
    }

    /// Writes what was pinned at first sight. It is trusted in memory by now: if it cannot be
    /// written, it is seen for the first time after a restart.
    fn keep(&self, server: &str, identity: &str, pins: &[Pin]) {
        let Some(journal) = self.journal.clone().filter(|_| !pins.is_empty()) else {
            return;
        };
        let records: Vec<PinRecord> = pins
            .iter()
            .map(|pin| record(server, identity, pin, None))
            .collect();
        let write = move || {
            if let Err(error) = journal.append(&records) {
                tracing::error!(%error, "pins cannot be written to the journal");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(write)),
            Err(_) => write(),
        }
    }

    /// Says and records what has changed.
    fn say(&self, server: &str, policy: PinMode, news: &[(News, vetting::Key)]) {
        for (news, (part, name)) in news {
            let what = named(*part, name);
            let name = json::visible::line(name);
            let refused = policy == PinMode::Block && !matches!(news, News::New | News::Gone);
            let hint = format!("portmoot pins show {server}");
            match news {
                News::New | News::Gone => {
                    tracing::info!(target: TARGET, server, part = part.as_str(), name, "{}: {what}", news.as_str())
                }
                News::Changed | News::Waits | News::NoRoom => {
                    let refused = if refused {
                        "refused until it is approved"
                    } else {
                        "listed and called as it is"
                    };
                    tracing::warn!(target: TARGET, server, part = part.as_str(), name, hint, "{}: {what}: {refused}", news.as_str());
                }
            }
            self.record(
                server,
                if refused {
                    RecordedVerdict::Refused
                } else {
                    RecordedVerdict::Admitted
                },
                &format!("{}: {what}", news.as_str()),
            );
        }
    }

    fn record(&self, server: &str, verdict: RecordedVerdict, why: &str) {
        let permit = self.audit.reserve_or_count();
        let to = [server];
        self.audit.write_counted(
            permit,
            &AuditEntry {
                to: &to,
                why: Some(why),
                ..entry(None, GATEWAY, PINS, verdict)
            },
        );
    }

    /// Looks through a list of a shared session, and says what it finds unless the list was looked
    /// through before.
    fn look(&self, server: &ServerConfig, part: Part, definitions: &[PartDefinition]) {
        let name = server.name.as_str();
        let mut sha = Sha256::new();
        for definition in definitions {
            sha.update(definition.digest(""));
        }
        let of = HEXLOWER.encode(&sha.finalize());
        {
            let mut seen = self.seen.lock();
            let own = seen.entry(name.to_owned()).or_default();
            server.prefix.as_ref().clone_into(&mut own.prefix);
            if part == Part::Tool {
                own.tools = definitions
                    .iter()
                    .map(|definition| definition.name.clone())
                    .collect();
            }
            if own.of.insert(part, of.clone()).as_ref() == Some(&of) {
                return;
            }
        }
        let mut found: Vec<FlaggedText> = definitions
            .iter()
            .flat_map(scan)
            .take(FINDINGS_MAX)
            .collect();
        if let Some(own) = self.seen.lock().get_mut(name) {
            own.findings.insert(part, found.clone());
        }
        if part == Part::Tool {
            found.extend(
                self.findings(name)
                    .into_iter()
                    .filter(|one| one.flag == Flag::ImitatesName),
            );
        }
        if found.is_empty() {
            return;
        }
        let all: Vec<String> = found.iter().take(LOGGED_MAX).map(described).collect();
        let rest = found.len().saturating_sub(LOGGED_MAX);
        tracing::warn!(
            target: TARGET, server = name, found = found.len(), hint = format!("portmoot servers show {name}"),
            "texts that may instruct models: {}{}", all.join("; "), if rest > 0 { format!("; {rest} more") } else { String::new() }
        );
        self.record(
            name,
            RecordedVerdict::Admitted,
            &format!("flagged: {}", all.join("; ")),
        );
    }
}

impl Pinning for Pins {
    fn wants(&self, server: &ServerConfig, is_shared: bool) -> bool {
        is_shared || server.pins.mode != PinMode::Off
    }

    fn judge(
        &self,
        server: &ServerConfig,
        part: Part,
        definitions: Vec<PartDefinition>,
        is_shared: bool,
    ) -> Vec<Withheld> {
        if is_shared {
            self.look(server, part, &definitions);
        }
        let identity = server.identity_digest().to_string();
        let name = server.name.as_str();
        let mode = server.pins.mode;
        let judged = self.book.lock().judge(
            (name, &identity),
            server.pins,
            (part, definitions),
            is_shared,
        );
        if judged.is_another {
            tracing::info!(target: TARGET, server = name, "another program or address: its pins begin anew");
        }
        self.keep(name, &identity, &judged.pinned);
        self.say(name, mode, &judged.news);
        judged.withheld
    }
}

/// A book with the pins of the journal.
fn pinned(journal: &Ledger<KeptPins>) -> Book {
    let mut book = Book::default();
    journal.state(|pins| {
        for pin in pins.all() {
            // A part that a newer version knows is not this one's.
            let Ok(part) = pin.part.parse::<Part>() else {
                continue;
            };
            let definition = PartDefinition {
                part,
                name: pin.name.clone(),
                text: pin.definition.clone(),
            };
            let digest = pin.digest.clone();
            book.restore(&pin.server, &pin.identity, Pin { definition, digest });
        }
    });
    book
}

fn record(server: &str, identity: &str, pin: &Pin, by: Option<&str>) -> PinRecord {
    PinRecord::Pin(PinnedDefinition {
        server: server.to_owned(),
        identity: identity.to_owned(),
        part: pin.definition.part.as_str().to_owned(),
        name: pin.definition.name.clone(),
        digest: pin.digest.clone(),
        definition: pin.definition.text.clone(),
        by: by.map(str::to_owned),
        at_ms: unix_ms(),
    })
}

/// A definition in words: its part, and its name if it has one.
fn named(part: Part, name: &str) -> String {
    format!("{} {}", part.as_str(), json::visible::line(name))
        .trim_end()
        .to_owned()
}

fn described(finding: &FlaggedText) -> String {
    let name = if finding.name.is_empty() {
        String::new()
    } else {
        format!(" {}", finding.name)
    };
    format!(
        "{}{name}: {} at {}",
        finding.part.as_str(),
        finding.flag.as_str(),
        finding.path
    )
}
