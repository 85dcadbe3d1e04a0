//! Members that some JSON readers take for others: those that differ in letter case.
//!
//! Go's `encoding/json` is such a reader, and takes the last one. A member that it would take for one
//! that the gateway reads is refused, so that no server sees another call than the gateway has judged.

/// The name, among these, for which a JSON reader that ignores letter case takes this one. A name
/// that is among them is taken for itself.
pub(crate) fn twin_of(key: &str, exact: &[&'static str]) -> Option<&'static str> {
    if exact.contains(&key) {
        return None;
    }
    let is_twin = |one: &&&'static str| {
        if key.is_ascii() {
            key.eq_ignore_ascii_case(one)
        } else {
            folded(key) == folded(one)
        }
    };
    exact.iter().find(is_twin).copied()
}

/// A text in upper and then in lower case, which also finds letters outside ASCII that fold to one
/// inside, such as the Kelvin sign.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twin_differs_in_letter_case_alone() {
        let exact = ["params", "task", "_meta"];
        for key in ["Params", "PARAMS", "param\u{17f}", "pArAmS"] {
            assert_eq!(twin_of(key, &exact), Some("params"), "{key}");
        }
        assert_eq!(twin_of("tas\u{212a}", &exact), Some("task"));
        assert_eq!(twin_of("_META", &exact), Some("_meta"));
        for key in ["params", "task", "param", "params ", "pärams", "", "meta"] {
            assert_eq!(twin_of(key, &exact), None, "{key}");
        }
    }
}
