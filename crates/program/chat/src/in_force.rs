//! Rules of the topic: how they are shown, and notices about those that decide no more or end soon.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::time::read_rfc3339;

use crate::offers::{items, spot_checks, text};

/// Time before its end from which a rule is said to end soon, in milliseconds.
const ENDS_SOON_MS: u64 = 24 * 3_600_000;
/// State of a rule that is listed no more.
const GONE: &str = "ended, or out of its file";
/// Said where a topic has no rules that the person may see.
const NONE: &str =
    "no rule decides here that you may see; s in the inbox shows those that are suggested";

/// The name of a rule, its state with the cause, its uses and its end, without what it says.
#[must_use]
pub fn standing(rule: &Value) -> String {
    let mut parts = vec![state(rule)];
    if let (Some(used), Some(left)) = (number(rule, "used"), number(rule, "left")) {
        parts.push(format!("{used} used"));
        parts.push(format!("{left} left"));
    }
    if let Some(expires) = text(rule, "expires") {
        parts.push(format!("ends {expires}"));
    }
    if let Some(accepted) = text(rule, "accepted") {
        let author = text(rule, "author").unwrap_or_default();
        let origin = match text(rule, "origin").as_deref() {
            Some("added") => "added",
            _ => "learned, accepted",
        };
        parts.push(format!("{origin} by {author} {accepted}"));
    }
    parts.extend(spot_checks(rule));
    format!("{}  {}", name(rule), parts.join(", "))
}

/// A rule's state, since when and why: `suspended since 2026-11-28T00:28:29Z: the tool has changed`.
fn state(rule: &Value) -> String {
    let mut state = text(rule, "state").unwrap_or_default();
    if let Some(since) = text(rule, "suspended") {
        state += &format!(" since {since}");
    }
    if let Some(why) = text(rule, "why") {
        state += &format!(": {why}");
    }
    state
}

/// All rules of an answer, in one line each.
pub(crate) fn lines(answer: &Value) -> Vec<String> {
    let rules = items(answer, "rules").iter();
    let lines: Vec<String> = rules
        .map(|rule| {
            let sentence = text(rule, "sentence").unwrap_or_default();
            format!("= {}: {sentence}", standing(rule))
        })
        .collect();
    if lines.is_empty() {
        vec![format!("= {NONE}")]
    } else {
        lines
    }
}

/// The rules of the topic, as they were read last.
#[derive(Debug, Default)]
pub(crate) struct KnownRules {
    rules: BTreeMap<String, KnownRule>,
}

/// A rule, as it was read last.
#[derive(Debug)]
struct KnownRule {
    /// Whether it decides.
    is_in_force: bool,
    /// Whether it was said to end soon.
    is_ending: bool,
}

impl KnownRules {
    /// Takes an answer of the gateway. Returns a notice about each rule that has stopped deciding
    /// since the last one, and about each that ends soon.
    pub(crate) fn take(&mut self, answer: &Value, now_ms: u64) -> Vec<String> {
        let mut notices = Vec::new();
        let mut now = BTreeMap::new();
        for rule in items(answer, "rules") {
            let name = name(rule);
            let before = self.rules.get(&name);
            let known = KnownRule {
                is_in_force: text(rule, "state").as_deref() == Some("in force"),
                is_ending: ends_soon(rule, now_ms),
            };
            let was_in_force = before.is_some_and(|before| before.is_in_force);
            let was_ending = before.is_some_and(|before| before.is_ending);
            if was_in_force && !known.is_in_force {
                notices.push(format!(
                    "* rule {name} decides no more, it is {}",
                    state(rule)
                ));
            } else if known.is_in_force && known.is_ending && !was_ending {
                let end = text(rule, "expires").unwrap_or_default();
                notices.push(format!("* rule {name} ends within a day: {end}"));
            }
            now.insert(name, known);
        }
        let gone = self
            .rules
            .iter()
            .filter(|(name, _)| !now.contains_key(*name));
        for (name, before) in gone {
            if before.is_in_force {
                notices.push(format!("* rule {name} decides no more, it is {GONE}"));
            }
        }
        self.rules = now;
        notices
    }
}

fn name(rule: &Value) -> String {
    text(rule, "rule").unwrap_or_default()
}

fn number(rule: &Value, key: &str) -> Option<u64> {
    rule.get(key).and_then(Value::as_u64)
}

fn time(rule: &Value, key: &str) -> Option<u64> {
    read_rfc3339(rule.get(key)?.as_str()?)
}

/// Whether a rule ends within a day. One that was made for no longer is known to.
fn ends_soon(rule: &Value, now_ms: u64) -> bool {
    let Some(end_ms) = time(rule, "expires") else {
        return false;
    };
    let is_short =
        time(rule, "accepted").is_some_and(|made| end_ms.saturating_sub(made) <= ENDS_SOON_MS);
    !is_short && end_ms.saturating_sub(now_ms) <= ENDS_SOON_MS
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests_support::NOW_MS;

    const SOON: &str = "2026-07-29T12:00:00.000Z";
    const LATER: &str = "2026-08-02T12:00:00.000Z";

    fn rule(name: &str, state: &str, expires: &str, more: &Value) -> Value {
        let mut rule = json!({
            "rule": name, "author": "boss", "sentence": "scout may call pay of bank.",
            "state": state, "used": 3, "left": 30, "expires": expires, "origin": "file",
        });
        for (key, value) in more.as_object().unwrap() {
            rule[key] = value.clone();
        }
        rule
    }

    fn answer(rules: &[Value]) -> Value {
        json!({ "rules": rules })
    }

    #[test]
    fn a_rule_is_one_line_with_its_uses_its_end_and_why_it_is_suspended() {
        let cause = json!({ "suspended": "2026-07-28T12:00:00.000Z", "why": "the definition has\u{200b} changed" });
        let checks = json!({
            "origin": "learned", "accepted": "2026-07-20T12:00:00.000Z", "spot_checks": 2, "spot_checks_agreed": 1,
        });
        let ask = json!({ "left": null, "expires": null });
        let shown = lines(&answer(&[
            rule("r1.1", "suspended", LATER, &cause),
            rule("learned-9.2", "in force", LATER, &checks),
            rule("r2.1", "in force", LATER, &ask),
        ]));
        assert_eq!(
            shown,
            [
                "= r1.1  suspended since 2026-07-28T12:00:00.000Z: the definition has\\u{200b} changed, 3 used, 30 left, \
                 ends 2026-08-02T12:00:00.000Z: scout may call pay of bank.",
                "= learned-9.2  in force, 3 used, 30 left, ends 2026-08-02T12:00:00.000Z, learned, accepted by boss \
                 2026-07-20T12:00:00.000Z, spot checks: 2, agreed: 1: scout may call pay of bank.",
                "= r2.1  in force: scout may call pay of bank.",
            ]
        );
        assert_eq!(lines(&answer(&[])), [format!("= {NONE}")]);
    }

    #[test]
    fn a_rule_that_stops_deciding_or_ends_soon_is_said_once() {
        let mut known = KnownRules::default();
        let none = json!({});
        let for_an_hour = json!({ "accepted": "2026-07-28T12:00:00.000Z", "origin": "added" });
        let first = answer(&[
            rule("r1.1", "in force", LATER, &none),
            rule("r2.1", "in force", SOON, &none),
            rule("r3.1", "spent", LATER, &none),
            rule("like-1.1", "in force", SOON, &for_an_hour),
        ]);
        let soon = format!("* rule r2.1 ends within a day: {SOON}");
        assert_eq!(known.take(&first, NOW_MS), [soon]);
        assert_eq!(known.take(&first, NOW_MS), [""; 0]);
        let cause = json!({ "why": "a person rejected a call that it covers" });
        let second = answer(&[
            rule("r1.1", "suspended", LATER, &cause),
            rule("r2.1", "spent", SOON, &none),
            rule("r3.1", "spent", LATER, &none),
        ]);
        assert_eq!(
            known.take(&second, NOW_MS),
            [
                "* rule r1.1 decides no more, it is suspended: a person rejected a call that it covers",
                "* rule r2.1 decides no more, it is spent",
                "* rule like-1.1 decides no more, it is ended, or out of its file",
            ]
        );
        assert_eq!(known.take(&second, NOW_MS), [""; 0]);
    }
}
