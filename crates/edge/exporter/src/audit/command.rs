//! A command that is started for each batch of entries.

use std::time::Duration;

use bytes::Bytes;
use client::{Guard, HookEnd, HookLimits, run_hook};

use super::sent::Sent;
use crate::push::LOG_TARGET;

/// The longest time that the command may take for a batch.
pub const AUDIT_COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of its output that the gateway's log has of a failure.
const OUTPUT_BYTES_MAX: usize = 512;

/// A program with its arguments, which gets entries as JSON lines on its stdin.
pub(crate) struct AuditCommand {
    words: Vec<String>,
    guard: Option<Guard>,
    is_failing: bool,
}

impl AuditCommand {
    pub(crate) fn new(words: Vec<String>, guard: Option<Guard>) -> Self {
        Self {
            words,
            guard,
            is_failing: false,
        }
    }

    pub(super) async fn send(&mut self, lines: &[String]) -> Sent {
        let mut input = lines.join("\n");
        input.push('\n');
        let limits = HookLimits {
            time: AUDIT_COMMAND_LIMIT,
            output_bytes: OUTPUT_BYTES_MAX,
        };
        let ended = run_hook(&self.words, Bytes::from(input), limits, self.guard.as_ref());
        let why = match ended.await {
            Ok(Some(HookEnd { code: Some(0), .. })) => None,
            Ok(Some(HookEnd { code, output })) => Some(failed(code, &output)),
            Ok(None) => Some(format!(
                "it did not end within {} seconds",
                AUDIT_COMMAND_LIMIT.as_secs()
            )),
            Err(error) => Some(error.to_string()),
        };
        self.note(why.as_deref());
        match why {
            None => Sent::Arrived { rejected: 0 },
            Some(_) => Sent::Failed { pause: None },
        }
    }

    /// Logs that it begins to fail, and that it works again.
    fn note(&mut self, why: Option<&str>) {
        let was_failing = std::mem::replace(&mut self.is_failing, why.is_some());
        let command = self.words.first().map_or("", |name| name);
        match why {
            Some(why) if !was_failing => {
                tracing::warn!(target: LOG_TARGET, command, why, "the command takes no entries of the audit log; they are kept, and it is tried again");
            }
            None if was_failing => {
                tracing::info!(target: LOG_TARGET, command, "the command takes entries of the audit log again");
            }
            _ => {}
        }
    }
}

fn failed(code: Option<i32>, output: &[u8]) -> String {
    let how = match code {
        Some(code) => format!("exit code {code}"),
        None => "ended by a signal".to_owned(),
    };
    match output.trim_ascii() {
        [] => how,
        text => format!(
            "{how}: {}",
            json::visible::line(&String::from_utf8_lossy(text))
        ),
    }
}
