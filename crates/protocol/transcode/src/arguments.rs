//! Refusals of arguments by the schema of their tool, the same for callers of every protocol.

use model::{Refusal, RefusalCode, Violation};
use schema::{Invalid, ValueError};

/// The refusal of arguments that are not of the tool's message.
pub(crate) fn wrong(error: ValueError) -> Refusal {
    let why = format!("the arguments do not fit the tool's schema: {error}");
    let violation = Violation {
        field: error.field,
        rule: String::new(),
        message: error.why,
    };
    Refusal::new(RefusalCode::Malformed, why).violations(vec![violation])
}

/// The refusal of arguments that are of the message, and break its rules.
pub(crate) fn invalid(invalid: Invalid) -> Refusal {
    let why = format!("the arguments break the tool's schema: {invalid}");
    match invalid {
        Invalid::Violations(all) => {
            let mut violations = Vec::with_capacity(all.len());
            for one in all {
                violations.push(Violation {
                    field: one.field,
                    rule: one.rule,
                    message: one.message,
                });
            }
            Refusal::new(RefusalCode::SchemaViolation, why).violations(violations)
        }
        Invalid::Unchecked(_) => Refusal::new(RefusalCode::SchemaUnresolved, invalid.to_string()),
    }
}
