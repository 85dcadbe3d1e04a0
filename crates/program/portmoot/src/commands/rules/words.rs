//! Rules as the gateway's answers have them, in words.

use ::chat::in_force::standing;
pub(super) use ::chat::offers::{items, text};
use serde_json::Value;

/// A rule: its name and state, and below what it says.
pub(super) fn shown(rule: &Value) -> String {
    let shadow = rule.get("shadow").and_then(|shadow| text(shadow, "words"));
    let shadow = shadow.map_or_else(String::new, |words| format!("  {words}\n"));
    let sentence = text(rule, "sentence").unwrap_or_default();
    format!("{}\n{shadow}  {sentence}", standing(rule))
}
