//! Result of a check of the doctor.

/// Result of one check.
pub(super) struct Check {
    pub(super) what: String,
    pub(super) severity: Severity,
    pub(super) found: String,
    pub(super) fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Ok,
    Warning,
    Error,
}

impl Severity {
    /// Its colour, a code of ECMA-48.
    pub(super) fn color(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Warning => "33",
            Self::Error => "31",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Warning => "careful",
            Severity::Error => "wrong",
        }
    }
}

pub(super) fn passed(what: &str, found: impl Into<String>) -> Check {
    Check {
        what: what.to_owned(),
        severity: Severity::Ok,
        found: found.into(),
        fix: None,
    }
}

pub(super) fn failed(what: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check {
        what: what.to_owned(),
        severity: Severity::Error,
        found: found.into(),
        fix: Some(fix.into()),
    }
}
