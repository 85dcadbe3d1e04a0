//! Commands `audit query` and `audit verify`: both read the log in the data directory, or ask the
//! nodes of a cluster for theirs.

mod nodes;
mod rows;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use node::AuditQuestion;
use serde_json::json;
use store::audit::{ChainHead, EntryFilter, Removal, Report, query, verify};
use wire::time::rfc3339;

use self::rows::{COLUMNS, row};
use crate::cli::{AuditCommand, ConfigArgs};
use crate::commands::config::{data_dir, load, sources};
use crate::consent;
use crate::process::env;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::ProcessTerminal;
use terminal::timestamp::time_of;

/// Consequence of a missing data directory.
const NO_LOG: &str = "there is no audit log";

pub(crate) async fn run(command: AuditCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        AuditCommand::Query {
            kinds,
            participant,
            topic,
            verdict,
            operation,
            since,
            until,
            last,
            jsonl,
            nodes,
            config,
            ..
        } => {
            let question = AuditQuestion {
                kinds,
                participant,
                topic,
                verdict,
                operation,
                since_ms: moment_of("--since", since.as_deref())?,
                until_ms: moment_of("--until", until.as_deref())?,
                last: last.unwrap_or(usize::MAX),
            };
            let filter = question.filter();
            let filter = filter
                .map_err(|error| Failure::bad_argument(error.to_string()).hint(error.hint()))?;
            if nodes {
                return nodes::query(question, jsonl, &config, output).await;
            }
            let dir = directory(&config, output)?;
            if jsonl {
                lines(&dir, &filter, last, output)
            } else {
                list(&dir, &filter, last, output)
            }
        }
        AuditCommand::Verify {
            nodes: true,
            config,
            ..
        } => nodes::verify(&config, output).await,
        AuditCommand::Verify { head, config, .. } => {
            let head = head.as_deref().map(parse_head).transpose()?;
            let dir = directory(&config, output)?;
            let report = verify(&dir, head)?.ok_or_else(|| {
                let failure = Failure::new(
                    Exit::NotFound,
                    "no_audit_log",
                    "the data directory has no audit log",
                );
                failure.hint("choose the data directory: --data-dir DIR, or --config FILE")
            })?;
            print_report(&report, output);
            Ok(if report.is_whole() && !report.head_is_removed {
                Exit::Ok
            } else {
                Exit::Failed
            })
        }
    }
}

fn moment_of(option: &str, text: Option<&str>) -> Result<Option<u64>, Failure> {
    text.map(|text| time_of(option, text)).transpose()
}

/// The data directory, also of a configuration that is not valid.
pub(super) fn directory(config: &ConfigArgs, output: Output) -> Result<PathBuf, Failure> {
    let sources = sources(config);
    match sources.data_dir(&env) {
        Some(dir) => Ok(dir),
        None => {
            let loaded = load(&sources, output)?;
            consent::obtain(&loaded, &mut ProcessTerminal, None, output)?;
            data_dir(&loaded, NO_LOG)
        }
    }
}

/// Prints the entries that match, the last `last` of them.
fn list(
    dir: &Path,
    filter: &EntryFilter,
    last: Option<usize>,
    output: Output,
) -> Result<Exit, Failure> {
    // With `--json` a row is a line of the log; its hidden characters are escapes, which mean the
    // same.
    let mut rows = VecDeque::new();
    let rows_max = last.unwrap_or(usize::MAX);
    query(dir, filter, |entry, line| {
        rows.push_back(if output.json {
            vec![line.to_owned()]
        } else {
            row(entry)
        });
        if rows.len() > rows_max {
            rows.pop_front();
        }
        ControlFlow::Continue(())
    })?;
    if output.json {
        let lines: Vec<String> = rows
            .iter()
            .flatten()
            .map(|line| format!("\n    {line}"))
            .collect();
        output.result_json_text(&format!("{{\n  \"entries\": [{}\n  ]\n}}", lines.join(",")));
    } else {
        output.table(&COLUMNS, rows.into_iter());
    }
    Ok(Exit::Ok)
}

/// Prints the entries that match as lines of the log, the last `last` of them; without that number
/// each as it is read.
fn lines(
    dir: &Path,
    filter: &EntryFilter,
    last: Option<usize>,
    output: Output,
) -> Result<Exit, Failure> {
    let mut kept = VecDeque::new();
    query(dir, filter, |_, line| {
        match last {
            None => output.result_json_text(line),
            Some(count) => {
                kept.push_back(line.to_owned());
                kept.drain(..kept.len().saturating_sub(count));
            }
        }
        ControlFlow::Continue(())
    })?;
    kept.iter().for_each(|line| output.result_json_text(line));
    Ok(Exit::Ok)
}

fn print_report(report: &Report, output: Output) {
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    if output.json {
        return output.result_json(&json!({
            "intact": report.is_whole(),
            "entries": report.entries,
            "head": report.head.to_string(),
            "unfinished_bytes": report.unfinished_bytes,
            "findings": findings,
            "findings_count": report.findings_count,
            "removed": report.removed.as_ref().map(removal_json),
            "head_is_removed": report.head_is_removed,
        }));
    }
    if let Some(removed) = &report.removed {
        output.result(&removal_line(removed));
    }
    let shown = findings.iter().map(|finding| json::visible::line(finding));
    shown.for_each(|finding| output.result(&finding));
    let more = report.findings_count - findings.len() as u64;
    if more > 0 {
        output.result(&format!("and {more} more"));
    }
    let intact = if report.is_whole() {
        "intact"
    } else {
        "NOT intact"
    };
    output.result(&format!(
        "{intact}: {} entries, head {}",
        report.entries, report.head
    ));
    if report.head_is_removed {
        output.message("the head that you gave is of an entry that was removed, so the log cannot be compared with it: keep the one above");
    }
    if report.unfinished_bytes > 0 {
        let bytes = report.unfinished_bytes;
        output.message(&format!(
            "the log ends with {bytes} bytes of an unfinished entry; its operation was never confirmed to the caller"
        ));
    }
}

fn removal_json(removed: &Removal) -> serde_json::Value {
    json!({
        "entries": removed.part.entries,
        "head": removed.part.head.to_string(),
        "from": rfc3339(removed.part.from_ms),
        "until": rfc3339(removed.part.to_ms),
        "at": rfc3339(removed.at_ms),
        "entry": removed.seq,
    })
}

fn removal_line(removed: &Removal) -> String {
    let Removal { part, seq, at_ms } = removed;
    format!(
        "entries 1 to {} were removed by retention at {}, of {} to {}: entry {seq} proves it",
        part.head.seq,
        rfc3339(*at_ms),
        rfc3339(part.from_ms),
        rfc3339(part.to_ms),
    )
}

fn parse_head(text: &str) -> Result<ChainHead, Failure> {
    text.parse()
        .map_err(|error| Failure::bad_argument(format!("--head: {error}")))
}
