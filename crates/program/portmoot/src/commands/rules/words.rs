//! Rules as the gateway's answers have them, in words.

use json::visible;
use serde_json::Value;

use crate::commands::view::cell;

/// The members of a list; none for a missing one.
pub(super) fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A text of the gateway's answer, if it is there.
pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    Some(visible::line(text))
}

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

/// The spot checks of a rule that were decided, if there are any: `spot checks: 3, agreed: 2`.
pub(super) fn spot_checks(rule: &Value) -> Option<String> {
    let count = |key: &str| rule.get(key).and_then(Value::as_u64).unwrap_or_default();
    let checks = count("spot_checks");
    let agreed = count("spot_checks_agreed");
    (checks > 0).then(|| format!("spot checks: {checks}, agreed: {agreed}"))
}
