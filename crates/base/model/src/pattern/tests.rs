use super::*;

#[test]
fn stars_match_runs_and_both_ends_are_anchored() {
    let check = |pattern: &str, text: &str, expected: bool| {
        assert_eq!(
            Pattern::new(pattern).matches(text),
            expected,
            "{pattern} {text}"
        );
    };
    check("*", "", true);
    check("a", "a", true);
    check("a", "ab", false);
    check("a*", "a", true);
    check("a*", "ba", false);
    check("*a", "ba", true);
    check("a*a", "a", false);
    check("a*a", "aa", true);
    check("a*b*c", "abc", true);
    check("a*b*c", "axbyc", true);
    check("a*b*c", "acb", false);
    check("a*b*b", "ab", false);
    check("*/list", "resources/templates/list", true);
    check("*é*", "café!", true);
}

#[test]
fn overlapping_shapes_are_found() {
    let shape = |text: &str| -> Vec<Option<char>> {
        text.chars()
            .map(|symbol| (symbol != '*').then_some(symbol))
            .collect()
    };
    let check = |left: &str, right: &str, expected: bool| {
        assert_eq!(
            Pattern::new(left).overlaps(&shape(right)),
            expected,
            "{left} {right}"
        );
        assert_eq!(
            overlap(&shape(right), &shape(left)),
            expected,
            "{right} {left}"
        );
    };
    check("file:///public/*", "file:///*", true);
    check("file:///public/a", "file:///public/*", true);
    check("file:///public/*", "file:///secret/*", false);
    check("*.md", "docs/*", true);
    check("*.md", "docs/*.txt", false);
    check("a*c", "*b*", true);
    check("abc", "abc", true);
    check("abc", "abd", false);
    check("*", "", true);
    check("a", "", false);
}
