//! Words of two drafts about calls that wait for an approval: what became of the call (SEP-2848),
//! and that it is denied for now or for good (SEP-2643). Both stand in the `_meta` of a result.

use json::{JsonError, Object, Span};

use super::result::says_error;

/// The key of what became of a call (SEP-2848).
pub const DISPOSITION: &str = "io.modelcontextprotocol/tool-approval-disposition";
/// The key of a denial (SEP-2643). It says that the call has not been made.
const DENIAL: &str = "io.modelcontextprotocol/authorization";

/// What became of a call that needed an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Disposition {
    /// It was approved, and its tool has answered.
    ApprovedExecuted,
    /// It was not made: rejected, or not decided in time.
    DeniedNotExecuted,
    /// It was made, and its tool has answered with an error.
    ExecutionError,
    /// It was approved, and there is no answer: it may have been made.
    OutcomeUnknown,
}

impl Disposition {
    /// That of a call which was made, by its tool's result.
    #[must_use]
    pub fn of_result(result: &[u8]) -> Self {
        if says_error(result) {
            Self::ExecutionError
        } else {
            Self::ApprovedExecuted
        }
    }

    /// Whether it says that the call was not made, and never will be.
    #[must_use]
    pub fn is_denial(self) -> bool {
        matches!(self, Self::DeniedNotExecuted)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What the caller of a denied call can do about that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// To wait for its task, which ends once the call is decided.
    Task,
    /// Nothing that a client could do by itself: the text of the result says more.
    Undisclosed,
    /// Nothing.
    None,
}

/// Adds a denial to a `_meta`.
pub fn write_denial(meta: &mut Object<'_>, remedy: Remedy) {
    let word = match remedy {
        Remedy::Task => "available",
        Remedy::Undisclosed => "undisclosed",
        Remedy::None => "unavailable",
    };
    meta.object(DENIAL, |denial| {
        denial
            .text("reason", "insufficient_authorization")
            .text("remediation", word);
        if remedy == Remedy::Task {
            denial.raw("remediationHints", br#"[{"type":"task"}]"#);
        }
    });
}

/// Adds to a `_meta` what became of a call, and that it is denied if it is.
pub fn write_disposition(meta: &mut Object<'_>, disposition: Disposition) {
    meta.text(DISPOSITION, disposition.as_str());
    if disposition.is_denial() {
        write_denial(meta, Remedy::None);
    }
}

/// The result of a tool with what became of its call. A server that holds calls itself knows that
/// better: what it says stays.
///
/// # Errors
/// [`JsonError`] when `result` or its `_meta` is no object or has a member twice.
pub fn with_disposition(result: &[u8], disposition: Disposition) -> Result<Vec<u8>, JsonError> {
    let members = json::members(result, Span::all(result))?;
    let meta = members.get("_meta").filter(|meta| meta.raw != b"null");
    let name = json::quote(disposition.as_str());
    let meta = match meta {
        Some(meta) if json::at(meta.raw, &[DISPOSITION]).is_some() => return Ok(result.to_vec()),
        Some(meta) => json::edited(meta.raw, &[(DISPOSITION, Some(name.as_bytes()))])?,
        None => json::object(|meta| {
            meta.raw(DISPOSITION, name.as_bytes());
        }),
    };
    json::edited(result, &[("_meta", Some(&meta))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_gets_a_disposition_unless_its_server_gave_one() {
        let own = format!(r#"{{"_meta":{{"{DISPOSITION}":"denied-not-executed"}}}}"#);
        let added = format!(r#""{DISPOSITION}":"approved-executed""#);
        for (result, expected) in [
            (
                r#"{"content":[]}"#,
                format!(r#"{{"content":[],"_meta":{{{added}}}}}"#),
            ),
            (r#"{"_meta":null}"#, format!(r#"{{"_meta":{{{added}}}}}"#)),
            (
                r#"{"_meta":{"a":1.0},"b":2}"#,
                format!(r#"{{"_meta":{{"a":1.0,{added}}},"b":2}}"#),
            ),
            (own.as_str(), own.clone()),
        ] {
            let got = with_disposition(result.as_bytes(), Disposition::ApprovedExecuted).unwrap();
            assert_eq!(String::from_utf8(got).unwrap(), expected, "{result}");
        }
        for broken in ["[]", r#"{"_meta":[]}"#] {
            let got = with_disposition(broken.as_bytes(), Disposition::ApprovedExecuted);
            assert!(got.is_err(), "{broken}");
        }
    }

    #[test]
    fn each_denial_has_the_words_of_the_drafts() {
        let denial = |remedy| {
            let meta = json::object(|meta| write_denial(meta, remedy));
            let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
            meta["io.modelcontextprotocol/authorization"].to_string()
        };
        let hints = r#","remediationHints":[{"type":"task"}]"#;
        for (remedy, word, hints) in [
            (Remedy::Task, "available", hints),
            (Remedy::Undisclosed, "undisclosed", ""),
            (Remedy::None, "unavailable", ""),
        ] {
            let expected = format!(
                r#"{{"reason":"insufficient_authorization","remediation":"{word}"{hints}}}"#
            );
            assert_eq!(denial(remedy), expected);
        }
        for (disposition, name) in [
            (
                Disposition::of_result(br#"{"isError":false}"#),
                "approved-executed",
            ),
            (
                Disposition::of_result(br#"{"isError":true}"#),
                "execution-error",
            ),
            (Disposition::DeniedNotExecuted, "denied-not-executed"),
            (Disposition::OutcomeUnknown, "outcome-unknown"),
        ] {
            let meta = json::object(|meta| write_disposition(meta, disposition));
            let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
            assert_eq!(meta[DISPOSITION], name);
            assert_eq!(
                meta.get(DENIAL).is_some(),
                disposition.is_denial(),
                "{name}"
            );
        }
    }
}
