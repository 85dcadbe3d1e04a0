//! Table `[audit]`.

use std::time::Duration;

use store::audit::{AuditConfig, LogFiles, Payloads, SEGMENT_BYTES_MAX};

use crate::node::SourceOrigin;
use crate::reader::Table;

const PAYLOADS: [(&str, Payloads); 3] = [
    ("full", Payloads::Full),
    ("digest", Payloads::Digest),
    ("none", Payloads::None),
];

/// The smallest size of a file of the log that can be configured.
const ROTATE_BYTES_MIN: u64 = 64 * 1024;
/// The largest one: a check has a whole file in memory.
const ROTATE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The age at which a file ends if entries are removed at an age, and no other is configured.
const ROTATE_AGE: Duration = Duration::from_secs(86_400);

const EXPORT: &str =
    "for example [\"curl\", \"--fail\", \"--data-binary\", \"@-\", \"https://logs.example.com/\"]";

/// Reads the table, all else by default.
pub(crate) fn read(root: &Table<'_>) -> AuditConfig {
    let Some(table) = root.table("audit") else {
        return AuditConfig::default();
    };
    let enabled = table.flag("enabled").unwrap_or(true);
    let payloads = table.choice("payloads", &PAYLOADS).unwrap_or_default();
    let redact = table.plain_texts("redact");
    let files = files(&table);
    let export = export(&table);
    table.finish();
    AuditConfig {
        enabled,
        payloads,
        redact,
        files,
        export,
    }
}

/// The command that gets the entries.
fn export(table: &Table<'_>) -> Option<Vec<String>> {
    let words = table.texts("export")?;
    if table.location().layer.origin == SourceOrigin::Found {
        // Consent is to the configuration: who did what would go to whom its author chose.
        let message = format!(
            "`{}`: a file that you did not name exports no audit log",
            table.full("export")
        );
        let hint = "name your configuration with --config FILE";
        table.note_value("export", message, hint);
    }
    let words: Vec<String> = words.iter().map(|word| word.text.to_owned()).collect();
    if words.first().is_none_or(String::is_empty) {
        let message = format!("`{}` names no program", table.full("export"));
        table.note_value("export", message, EXPORT);
    }
    Some(words)
}

fn files(table: &Table<'_>) -> LogFiles {
    let keep_age = table.duration("keep");
    let keep_bytes = table.bytes("keep_bytes").map(wide);
    let rotate_bytes = rotate_bytes(table);
    let standard = keep_age.map(|keep| keep.min(ROTATE_AGE));
    let rotate_age = table.duration("rotate").or(standard);
    if let (Some(keep), Some(rotate)) = (keep_age, rotate_age)
        && rotate > keep
    {
        let message = format!(
            "`{}` is longer than `{}`: entries are removed a file at a time",
            table.full("rotate"),
            table.full("keep")
        );
        table.note_value("rotate", message, "for example \"1d\" of \"90d\"");
    }
    if keep_bytes.is_some_and(|keep| keep < rotate_bytes) {
        let message = format!(
            "`{}` is less than one file has, {rotate_bytes} bytes: see `rotate_bytes`",
            table.full("keep_bytes")
        );
        table.note_value("keep_bytes", message, "for example \"10GiB\"");
    }
    LogFiles {
        rotate_bytes,
        rotate_age,
        keep_age,
        keep_bytes,
    }
}

fn rotate_bytes(table: &Table<'_>) -> u64 {
    let Some(bytes) = table.bytes("rotate_bytes").map(wide) else {
        return SEGMENT_BYTES_MAX;
    };
    if !(ROTATE_BYTES_MIN..=ROTATE_BYTES_MAX).contains(&bytes) {
        let message = format!("`{}` must be 64KiB to 256MiB", table.full("rotate_bytes"));
        table.note_value("rotate_bytes", message, "for example \"32MiB\"");
        return SEGMENT_BYTES_MAX;
    }
    bytes
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
