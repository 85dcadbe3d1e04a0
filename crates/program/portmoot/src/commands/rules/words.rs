//! Rules as the gateway's answers have them, in words.

use ::chat::offers::spot_checks;
pub(super) use ::chat::offers::{items, text};
use serde_json::Value;

use crate::commands::view::cell;

/// A rule: its name and state, and below what it says.
pub(super) fn shown(rule: &Value) -> String {
    let mut head = format!("{}  {}", cell(rule, "rule"), cell(rule, "state"));
    if let Some(since) = text(rule, "suspended") {
        head += &format!(" since {since}");
    }
    if let Some(why) = text(rule, "why") {
        head += &format!(": {why}");
    }
    if let Some(left) = rule.get("left").and_then(Value::as_u64) {
        head += &format!(", {} used, {left} left", cell(rule, "used"));
    }
    if let Some(expires) = text(rule, "expires") {
        head += &format!(", ends {expires}");
    }
    if let Some(accepted) = text(rule, "accepted") {
        let author = cell(rule, "author");
        let origin = match text(rule, "origin").as_deref() {
            Some("added") => "added",
            _ => "learned, accepted",
        };
        head += &format!(", {origin} by {author} {accepted}");
    }
    if let Some(checks) = spot_checks(rule) {
        head += &format!(", {checks}");
    }
    let shadow = rule.get("shadow").and_then(|shadow| text(shadow, "words"));
    let shadow = shadow.map_or_else(String::new, |words| format!("  {words}\n"));
    let sentence = text(rule, "sentence").unwrap_or_default();
    format!("{head}\n{shadow}  {sentence}")
}
