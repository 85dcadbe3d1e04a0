//! Audit entries about what the approver outside was sent and said.

use authzen::config::SentArguments;
use model::{OperationId, ParticipantId};
use store::audit::{AuditEntry, RecordedVerdict as Word};
use store::recorder::RecordPermit;

use super::desk::ApproverInForce;
use crate::proposals::kept::OpenedProposal;
use crate::record::Record;

/// The kind of these entries.
const APPROVER: &str = "portmoot/approver";
/// The most characters of a service's words that are recorded.
const APPROVER_WORDS_CHARS_MAX: usize = 256;

impl Record<'_> {
    /// The approver is asked about a proposal.
    pub(super) fn approver_asked(
        self,
        permit: RecordPermit,
        approver: &ApproverInForce,
        proposal: OperationId,
        opened: &OpenedProposal,
    ) {
        let arguments = match &approver.config.arguments {
            SentArguments::All => "all arguments".to_owned(),
            SentArguments::Listed(none) if none.is_empty() => "no arguments".to_owned(),
            SentArguments::Listed(pointers) => format!("arguments {}", pointers.join(", ")),
        };
        let why = format!("sent to {}: {arguments}", approver.client.host());
        let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
        let by = approver.config.acts_as.as_str();
        permit.write(&AuditEntry {
            to: &to,
            why: Some(&why),
            operation: Some(proposal),
            digest: Some(&opened.digest),
            ..self.entry(by, APPROVER, Word::Admitted)
        });
    }

    /// The approver has answered with these words, or has not (`Word::Failed`).
    pub(super) fn approver_said(
        self,
        by: &ParticipantId,
        proposal: OperationId,
        verdict: Word,
        why: &str,
    ) {
        let permit = self.0.audit.reserve_or_count();
        permit.write(&AuditEntry {
            why: Some(why),
            operation: Some(proposal),
            ..self.entry(by.as_str(), APPROVER, verdict)
        });
    }
}

/// Words of a service, as they are recorded: in one line, and cut.
pub(super) fn recorded_words(text: &str) -> String {
    json::visible::line(text)
        .chars()
        .take(APPROVER_WORDS_CHARS_MAX)
        .collect()
}
