//! Record of a server's lists: the file in which they are kept, read and written.

use bytes::Bytes;
use json::Span;
use model::ListKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::mcp::list::Item;
use wire::mcp::{Era, Version};

use crate::declared::Handshake;
use crate::manifest::{List, Written};

/// The version of the record.
const FORMAT: u32 = 1;

/// Kept knowledge of a server: its eras and lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kept {
    /// The eras that it speaks.
    pub(crate) eras: Vec<Era>,
    /// Whether a modern server speaks legacy too, if it was asked.
    pub(crate) legacy: Option<bool>,
    /// Whether the probe of its era spoils a process of it.
    pub(crate) dislikes_probe: bool,
    /// Its lists in each era.
    pub(crate) lists: Vec<KeptLists>,
}

/// The handshake and the lists of one session, as the server wrote them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptLists {
    pub(crate) handshake: Handshake,
    pub(crate) written: Written,
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    server: String,
    configuration: String,
    eras: Vec<String>,
    legacy: Option<bool>,
    dislikes_probe: bool,
    lists: Vec<SessionRecord>,
}

#[derive(Serialize, Deserialize)]
struct SessionRecord {
    version: String,
    speaks_both: bool,
    handshake: Box<RawValue>,
    tools: ListRecord,
    resources: ListRecord,
    templates: ListRecord,
    prompts: ListRecord,
    skills: ListRecord,
}

#[derive(Serialize, Deserialize)]
struct ListRecord {
    items: Vec<Box<RawValue>>,
    extras: Vec<(String, Box<RawValue>)>,
    ttl_ms: Option<u64>,
    public: bool,
}

impl Kept {
    /// Reads a record; `None` if it is not one of this configuration.
    pub(super) fn read(text: &[u8], configuration: &str) -> Option<Self> {
        let record: Record = serde_json::from_slice(text).ok()?;
        if record.format != FORMAT
            || record.configuration != configuration
            || record.lists.is_empty()
        {
            return None;
        }
        let eras: Option<Vec<Era>> = record.eras.iter().map(|era| era.parse().ok()).collect();
        let lists: Option<Vec<KeptLists>> = record.lists.iter().map(KeptLists::read).collect();
        let Record {
            legacy,
            dislikes_probe,
            ..
        } = record;
        Some(Self {
            eras: eras?,
            legacy,
            dislikes_probe,
            lists: lists?,
        })
    }

    /// The record as text.
    pub(super) fn write(&self, server: &str, configuration: &str) -> Option<Vec<u8>> {
        let record = Record {
            format: FORMAT,
            server: server.to_owned(),
            configuration: configuration.to_owned(),
            eras: self
                .eras
                .iter()
                .map(|era| <&str>::from(era).to_owned())
                .collect(),
            legacy: self.legacy,
            dislikes_probe: self.dislikes_probe,
            lists: self
                .lists
                .iter()
                .map(KeptLists::record)
                .collect::<Option<_>>()?,
        };
        serde_json::to_vec(&record).ok()
    }
}

impl KeptLists {
    fn read(record: &SessionRecord) -> Option<Self> {
        let result = Bytes::copy_from_slice(record.handshake.get().as_bytes());
        let version = Version::parse(&record.version)?;
        let handshake = Handshake::of(version, result, record.speaks_both);
        let mut written = Written::default();
        for (kind, list) in [
            (ListKind::Tools, &record.tools),
            (ListKind::Resources, &record.resources),
            (ListKind::Templates, &record.templates),
            (ListKind::Prompts, &record.prompts),
            (ListKind::Skills, &record.skills),
        ] {
            written.set(kind, list.read(kind)?);
        }
        Some(Self { handshake, written })
    }

    fn record(&self) -> Option<SessionRecord> {
        let list = |kind| ListRecord::of(self.written.list(kind));
        Some(SessionRecord {
            version: self.handshake.version.as_str().to_owned(),
            speaks_both: self.handshake.both,
            handshake: raw(&self.handshake.result)?,
            tools: list(ListKind::Tools)?,
            resources: list(ListKind::Resources)?,
            templates: list(ListKind::Templates)?,
            prompts: list(ListKind::Prompts)?,
            skills: list(ListKind::Skills)?,
        })
    }
}

impl ListRecord {
    fn of(list: &List) -> Option<Self> {
        Some(Self {
            items: list
                .items
                .iter()
                .map(|item| raw(&item.raw))
                .collect::<Option<_>>()?,
            extras: list
                .extras
                .iter()
                .map(|(name, value)| Some((name.clone(), raw(value)?)))
                .collect::<Option<_>>()?,
            ttl_ms: list.ttl_ms,
            public: list.public,
        })
    }

    fn read(&self, kind: ListKind) -> Option<List> {
        let bytes = |value: &RawValue| Bytes::copy_from_slice(value.get().as_bytes());
        let items: Option<Vec<Item>> = self
            .items
            .iter()
            .map(|item| Item::read(kind, bytes(item)).ok())
            .collect();
        let extras = self
            .extras
            .iter()
            .map(|(name, value)| (name.clone(), bytes(value)))
            .collect();
        Some(List {
            items: items?,
            extras,
            ttl_ms: self.ttl_ms,
            public: self.public,
        })
    }
}

/// Bytes of JSON as a value that is written as it is.
fn raw(bytes: &Bytes) -> Option<Box<RawValue>> {
    // White space around a value is no part of it.
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    let value = RawValue::from_string(text).ok()?;
    (!Span::all(bytes).of(bytes).is_empty()).then_some(value)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record with something in every place.
    pub(crate) fn sample() -> Kept {
        let result = Bytes::from_static(
            br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x"}}"#,
        );
        let list = |kind, raw: &'static str| List {
            items: vec![Item::read(kind, Bytes::from_static(raw.as_bytes())).unwrap()],
            extras: vec![("_meta".to_owned(), Bytes::from_static(br#"{"a": 1.50}"#))],
            ttl_ms: Some(3),
            public: true,
        };
        let mut written = Written::default();
        written.set(
            ListKind::Tools,
            list(
                ListKind::Tools,
                r#"{"name":"a\u0062", "inputSchema":{"type":"object"},"n":1e3}"#,
            ),
        );
        written.set(
            ListKind::Resources,
            list(ListKind::Resources, r#"{"uri":"x://y","name":"y"}"#),
        );
        written.set(
            ListKind::Skills,
            list(
                ListKind::Skills,
                r#"{"uri":"skill://a/SKILL.md","frontmatter":{}}"#,
            ),
        );
        Kept {
            eras: vec![Era::Legacy],
            legacy: Some(false),
            dislikes_probe: true,
            lists: vec![KeptLists {
                handshake: Handshake::of(Version::V2025_11_25, result, false),
                written,
            }],
        }
    }

    #[test]
    fn lists_come_back_byte_for_byte() {
        let kept = sample();
        let text = kept.write("files", "digest").unwrap();
        let again = Kept::read(&text, "digest").unwrap();
        assert_eq!(again, kept);
        let tools = again.lists[0].written.list(ListKind::Tools);
        assert_eq!(tools.items[0].key, "ab");
        assert!(tools.items[0].raw.ends_with(b"\"n\":1e3}"));
    }
}
