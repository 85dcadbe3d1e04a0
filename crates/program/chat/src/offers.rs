//! Rules that were learned from decisions and are offered to the person, as text: what each rests on.

use json::visible;
use serde_json::Value;

/// Said where nothing is offered.
pub(crate) const NONE: &str = "no rule is offered to you: one is learned from calls that you approve by hand, after you looked at each";

/// Digits of a digest that a list shows, and at least so many name an offer.
pub const DIGEST_DIGITS: usize = 12;
/// Digits of a proposal's id that a list shows.
const ID_DIGITS: usize = 8;

/// The members of a list; none for a missing one.
#[must_use]
pub fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A text of the gateway's answer, if it is there.
#[must_use]
pub fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    Some(visible::line(text))
}

/// The spot checks of a rule that were decided, if there are any: `spot checks: 3, agreed: 2`.
#[must_use]
pub fn spot_checks(rule: &Value) -> Option<String> {
    let count = |key: &str| rule.get(key).and_then(Value::as_u64).unwrap_or_default();
    let checks = count("spot_checks");
    let agreed = count("spot_checks_agreed");
    (checks > 0).then(|| format!("spot checks: {checks}, agreed: {agreed}"))
}

/// Words about what is not offered: that nothing is, and of which tools and why.
#[must_use]
pub fn not_offered(answer: &Value) -> Vec<String> {
    let none = items(answer, "offers").is_empty().then(|| NONE.to_owned());
    let withheld = items(answer, "withheld").iter().map(withheld);
    none.into_iter().chain(withheld).collect()
}

fn withheld(one: &Value) -> String {
    let why = text(one, "why").unwrap_or_default();
    match (text(one, "tool"), text(one, "to")) {
        (Some(tool), Some(to)) => format!("none for {tool} of {to}: {why}"),
        _ => format!("none now: {why}"),
    }
}

/// The beginning of a digest or an id.
fn beginning(value: &Value, key: &str, digits: usize) -> String {
    let whole = text(value, key).unwrap_or_default();
    whole.chars().take(digits).collect()
}

/// An offer: its digest, its sentence, and below what it rests on.
#[must_use]
pub fn offer(offer: &Value) -> String {
    let count = items(offer, "approvals").len();
    let approvals = if count == 1 { "approval" } else { "approvals" };
    let renews = offer.get("renews").filter(|renews| renews.is_object());
    let renewed =
        renews.map(|renews| format!("renews {}, ", text(renews, "rule").unwrap_or_default()));
    let mut lines = vec![
        format!(
            "{}  {}rests on {count} {approvals} of yours",
            beginning(offer, "digest", DIGEST_DIGITS),
            renewed.unwrap_or_default()
        ),
        format!("  {}", text(offer, "sentence").unwrap_or_default()),
    ];
    lines.extend(renews.into_iter().flat_map(renewal));
    let replay = offer.get("replay").unwrap_or(&Value::Null);
    lines.push(format!(
        "  in 90 days  {}",
        text(replay, "words").unwrap_or_default()
    ));
    lines.push(format!(
        "  saves  {} a day",
        tenths(offer, "saved_a_day_tenths", "decisions")
    ));
    lines.extend(bound(offer));
    lines.extend(differing(offer));
    lines.extend(items(offer, "nearest").iter().map(rejected));
    for made in strings(offer, "made_up") {
        lines.push(format!("  inside and never seen  {made}"));
    }
    lines.extend(items(offer, "steps").iter().map(steps));
    lines.join("\n")
}

/// A rejection near the offer. Only one that does not count lies inside: a rule or an agent rejected it.
fn rejected(near: &Value) -> String {
    let id = beginning(near, "proposal", ID_DIGITS);
    let why: Vec<String> = strings(near, "excluded_by");
    if why.is_empty() {
        return format!("  rejected and inside  {id}: not by a person, so it does not count");
    }
    format!("  rejected and outside  {id}: {}", why.join("; "))
}

/// Lines about a rule whose next version is offered: its uses, and what differs.
fn renewal(renews: &Value) -> Vec<String> {
    let count = |key: &str| renews.get(key).and_then(Value::as_u64).unwrap_or_default();
    let mut state = format!("{} used, {} left", count("used"), count("left"));
    if let Some(expires) = text(renews, "expires") {
        state += &format!(", ends {expires}");
    }
    if let Some(why) = text(renews, "why") {
        state += &format!(", suspended: {why}");
    }
    if let Some(checks) = spot_checks(renews) {
        state += &format!(", {checks}");
    }
    let breadth = text(renews, "breadth").unwrap_or_default();
    let mut lines = vec![
        format!("  so far  {state}"),
        format!("  rejected beside it  {}", count("rejected")),
        match breadth.as_str() {
            "same" => "  it covers what it did".to_owned(),
            _ => format!("  it is {breadth} now"),
        },
    ];
    for one in items(renews, "conditions") {
        let [member, before, after] =
            ["member", "before", "after"].map(|key| text(one, key).unwrap_or_default());
        lines.push(format!("  differs  {member} {after}; before: {before}"));
    }
    let uses = items(renews, "uses");
    for one in uses {
        let arguments = text(one, "arguments").unwrap_or_default();
        lines.push(format!("  used for  {arguments}{}", times(one)));
    }
    let shown = u64::try_from(uses.len()).unwrap_or(u64::MAX);
    match count("different").saturating_sub(shown) {
        0 => {}
        more => lines.push(format!("  used for  {more} more different calls")),
    }
    lines
}

/// The number of equal calls behind one that is shown, if there are several.
fn times(value: &Value) -> String {
    match value.get("times").and_then(Value::as_u64) {
        None | Some(1) => String::new(),
        Some(times) => format!(" ({times} times)"),
    }
}

/// The line about the share of calls that would be approved, if there is something to go by.
fn bound(offer: &Value) -> Option<String> {
    let permille = offer.get("approved_share_permille")?.as_u64()?;
    (permille > 0).then(|| {
        let percent = format!("{}.{}", permille / 10, permille % 10);
        format!("  bound  at least {percent} % of such calls would be approved, as far as that can be known")
    })
}

/// Tenths as a number with one digit behind the point, and what it counts.
fn tenths(value: &Value, key: &str, what: &str) -> String {
    let tenths = value.get(key).and_then(Value::as_u64).unwrap_or_default();
    format!("{}.{} {what}", tenths / 10, tenths % 10)
}

fn strings(value: &Value, key: &str) -> Vec<String> {
    let all = items(value, key).iter();
    all.filter_map(Value::as_str).map(visible::line).collect()
}

/// The rows of the approved calls that differ.
fn differing(offer: &Value) -> Vec<String> {
    let members = strings(offer, "differing");
    let rows = items(offer, "rows");
    if members.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("  approved, by {}", members.join(", "))];
    for row in rows {
        let values = strings(row, "values").join(", ");
        lines.push(format!("    {values}{}", times(row)));
    }
    let different = offer.get("different").and_then(Value::as_u64);
    let shown = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    match different.unwrap_or_default().saturating_sub(shown) {
        0 => {}
        more => lines.push(format!("    and {more} more")),
    }
    lines
}

fn steps(steps: &Value) -> String {
    let member = text(steps, "member").unwrap_or_default();
    let chosen = text(steps, "chosen").unwrap_or_default();
    let step = |key: &str| text(steps, key).map(|step| format!("; {key}: {step}"));
    format!(
        "  condition  {member} {chosen}{}{}",
        step("tighter").unwrap_or_default(),
        step("wider").unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rejection_inside_of_an_offer_says_why_it_does_not_count() {
        let near =
            |why: &[&str]| rejected(&json!({ "proposal": "0123456789abcdef", "excluded_by": why }));
        let outside = near(&["amount is 250", "to is absent"]);
        assert!(outside.contains("rejected and outside"), "{outside}");
        assert!(
            outside.ends_with(": amount is 250; to is absent"),
            "{outside}"
        );
        let inside = near(&[]);
        assert!(
            inside.ends_with("not by a person, so it does not count"),
            "{inside}"
        );
    }
}
