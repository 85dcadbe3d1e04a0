use super::*;

#[test]
fn uris_match_templates() {
    let check = |template: &str, uri: &str, expected: bool| {
        assert_eq!(
            Template::parse(template).unwrap().matches(uri),
            expected,
            "{template} {uri}"
        );
    };
    check("a://b/{id}", "a://b/1", true);
    check("a://b/{id}", "a://b/", false);
    check("a://b/{id}", "a://b/1/2", false);
    check("a://b/{id}", "a://c/1", false);
    check("a://b/{id}/x", "a://b/1/x", true);
    check("a://b/{id}/x", "a://b/x", false);
    check("a://b/{x}{y}", "a://b/12", true);
    check("a://b/{x}{y}", "a://b/1", false);
    check("file:///{+path}", "file:///a/b/c.txt", true);
    check("file:///{+path}", "file:///", false);
    check("a://b{/seg*}", "a://b/1/2", true);
    check("a://b{/seg*}", "a://b", true);
    check("a://b{/seg*}", "a://bc", false);
    check("a://b{?q,r}", "a://b?q=1&r=2", true);
    check("a://b{?q}", "a://b", true);
    check("a://b?x=1{&q}", "a://b?x=1&q=2", true);
    check("a://b{#part}", "a://b#here", true);
    check("a://b{.ext}", "a://b.txt", true);
    check("a://b{;v}", "a://b;v=1", true);
    check("a://é/{x}", "a://é/ü", true);
    check("plain", "plain", true);
    check("plain", "plai", false);
    check("{+all}", "anything:at/all", true);
}

#[test]
fn broken_templates_are_none() {
    for text in ["{", "a}", "{}", "{+}", "{a{b}}", "a}{b}", "{a"] {
        assert_eq!(Template::parse(text), None, "{text}");
    }
}

#[test]
fn many_holes_take_no_exponential_time() {
    let template = Template::parse(&"{+a}".repeat(EXPRESSIONS_MAX)).unwrap();
    assert!(template.matches(&"x".repeat(4_000)));
    assert_eq!(Template::parse(&"{+a}".repeat(EXPRESSIONS_MAX + 1)), None);
    assert!(!template.matches(&"x".repeat(EXPRESSIONS_MAX - 1)));
}
