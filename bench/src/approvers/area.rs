//! Area of rules outside of the hidden policy: calls drawn inside of a rule, which the policy judges.

use rules::{Arguments, CallRule, CharSet, Conditions, CountRange, Fit, Shape, ValueTest};
use serde_json::{Map, Value, json};

use super::trace::{Draw, HiddenPolicy};

/// Calls that are drawn inside of each rule.
pub const AREA_CALLS: usize = 10_000;
/// The seed of these calls.
const SEED: u64 = 41;
/// Characters of names that are drawn below a root.
const NAME_CHARS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The area of some rules outside of a policy.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct RuleArea {
    /// Rules that were measured.
    pub rules: usize,
    /// Rules of which a call was drawn that the policy rejects.
    pub reaching: usize,
    /// The largest part of such calls among those of one rule, in percent.
    pub worst_percent: f64,
}

/// Measures rules by so many calls of each.
pub fn area_outside(rules: &[CallRule], policy: HiddenPolicy, calls: usize) -> RuleArea {
    let mut area = RuleArea::default();
    let mut draw = Draw(SEED);
    for rule in rules {
        let tool = rule.scope.target.as_deref().unwrap_or_default();
        let drawn = (0..calls).filter_map(|_| drawn_inside(&rule.when, &mut draw));
        let drawn: Vec<bool> = drawn.map(|call| policy(tool, &call)).collect();
        let outside = drawn.iter().filter(|is_approved| !**is_approved).count();
        let percent = outside as f64 * 100.0 / drawn.len().max(1) as f64;
        area.rules += usize::from(!drawn.is_empty());
        area.reaching += usize::from(outside > 0);
        area.worst_percent = area.worst_percent.max(percent);
    }
    area
}

/// A call inside of conditions.
fn drawn_inside(when: &Conditions, draw: &mut Draw) -> Option<Value> {
    let mut root = Value::Object(Map::new());
    for (pointer, test) in when.iter().filter(|(_, test)| **test != ValueTest::Absent) {
        let mut place = &mut root;
        for name in pointer.names() {
            let members = place.as_object_mut()?;
            place = members.entry(name).or_insert_with(|| json!({}));
        }
        *place = drawn(test, draw)?;
    }
    let read = Arguments::read(root.to_string().as_bytes()).ok()?;
    (when.fit_closed(&read) == Fit::Held).then_some(root)
}

/// A value that satisfies a test; `None` if none was found.
fn drawn(test: &ValueTest, draw: &mut Draw) -> Option<Value> {
    match test {
        ValueTest::OneOf(constants) => {
            let one = constants.get(draw.below(constants.len() as u64) as usize)?;
            serde_json::from_str(one.as_str()).ok()
        }
        ValueTest::Integer(low, high) => {
            let (low, high) = (whole(&low.to_string())?, whole(&high.to_string())?);
            let span = u64::try_from(high - low).ok()?.saturating_add(1);
            Some(json!(low + i64::try_from(draw.below(span)).ok()?))
        }
        ValueTest::Fraction(low, high) => {
            let (low, high): (f64, f64) = (
                low.to_string().parse().ok()?,
                high.to_string().parse().ok()?,
            );
            let part = draw.below(1_000_001) as f64 / 1_000_000.0;
            let fraction = ((low + (high - low) * part) * 100.0).round() / 100.0;
            Some(json!(fraction.clamp(low, high)))
        }
        ValueTest::Under(root) => Some(json!(format!("{root}/{}", name(draw)))),
        ValueTest::Url(root) => Some(json!(format!("{root}/{}", name(draw)))),
        ValueTest::Chars(set, length) => Some(json!(of_set(*set, *length, draw))),
        ValueTest::Shape(shapes, length) => of_shapes(shapes, *length, draw).map(Value::from),
        ValueTest::Each(count, test) => {
            let elements = 0..within(*count, draw);
            let elements = elements.map(|_| drawn(test.as_deref()?, draw));
            elements.collect::<Option<Vec<Value>>>().map(Value::from)
        }
        ValueTest::Absent | ValueTest::Type(_) | ValueTest::Length(_) | ValueTest::Some(_) => None,
    }
}

fn whole(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn within(range: CountRange, draw: &mut Draw) -> u64 {
    let span = u64::from(range.high() - range.low()) + 1;
    u64::from(range.low()) + draw.below(span)
}

fn one_of(bytes: &[u8], draw: &mut Draw) -> char {
    char::from(bytes[draw.below(bytes.len() as u64) as usize])
}

fn name(draw: &mut Draw) -> String {
    (0..1 + draw.below(12))
        .map(|_| one_of(NAME_CHARS, draw))
        .collect()
}

fn of_set(set: CharSet, length: CountRange, draw: &mut Draw) -> String {
    let bytes: Vec<u8> = (0..=127).filter(|byte| set.has(*byte)).collect();
    (0..within(length, draw))
        .map(|_| one_of(&bytes, draw))
        .collect()
}

/// A text of one of these shapes, whose length is in a range.
fn of_shapes(shapes: &[Shape], length: CountRange, draw: &mut Draw) -> Option<String> {
    let shape = shapes
        .get(draw.below(shapes.len() as u64) as usize)?
        .as_str();
    let total = within(length, draw) as usize;
    let is_run = |symbol: char| matches!(symbol, 'A' | 'a' | '9');
    let runs = shape.chars().filter(|symbol| is_run(*symbol)).count();
    let mut left = total.checked_sub(shape.len())?;
    let mut seen = 0;
    let mut text = String::new();
    for symbol in shape.chars() {
        if !is_run(symbol) {
            text.push(symbol);
            continue;
        }
        seen += 1;
        let more = if seen == runs {
            left
        } else {
            draw.below(left as u64 + 1) as usize
        };
        left -= more;
        let class: &[u8] = match symbol {
            'A' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            'a' => b"abcdefghijklmnopqrstuvwxyz",
            _ => b"0123456789",
        };
        text.extend((0..=more).map(|_| one_of(class, draw)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(when: &str) -> CallRule {
        let digest = "ab".repeat(32);
        let text = format!(
            "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"approve\"\nkind = \"mcp/request:tools/call:t\"\n\
             to = \"s\"\nproposers = [\"a\"]\ndefinition = \"{digest}\"\nserver = \"{digest}\"\n\
             expires = \"2026-12-06T09:00:00Z\"\nuses = 5\n[rule.when]\n{when}\n"
        );
        rules::parse_rules(&text).expect("a rule").remove(0)
    }

    #[test]
    fn what_a_rule_reaches_beyond_the_policy_is_found() {
        let small: HiddenPolicy = |_, call| call["n"].as_i64().is_none_or(|n| n <= 50);
        for (when, reaching) in [
            ("\"/n\" = { integer = [1, 50] }", 0),
            ("\"/n\" = { integer = [1, 100] }", 1),
            ("\"/n\" = { one_of = [1, 99] }", 1),
            ("\"/o/id\" = { chars = \"A-Z0-9\", length = [6, 6] }", 0),
            ("\"/d\" = { shape = [\"9-9\"], length = [3, 9] }", 0),
            ("\"/f\" = { under = \"/srv/docs\" }", 0),
            (
                "\"/l\" = { count = [1, 3], each = { decimal = [0.5, 9.5] } }",
                0,
            ),
        ] {
            let area = area_outside(&[rule(when)], small, 200);
            assert_eq!((area.rules, area.reaching), (1, reaching), "{when}");
        }
        let half = area_outside(&[rule("\"/n\" = { integer = [1, 100] }")], small, 2_000);
        assert!((45.0..55.0).contains(&half.worst_percent), "{half:?}");
    }
}
