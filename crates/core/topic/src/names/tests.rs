use super::*;

#[test]
fn a_narrow_name_has_letters_digits_and_two_signs_only() {
    for name in ["gh_create_issue", "a-b", "123", ""] {
        assert_eq!(narrow_name(name), None, "{name}");
    }
    let long = format!("ns/{}", "x".repeat(80));
    let odd = [
        "immich.search.metadata",
        "immich_search_metadata.",
        "ns:sub",
        "ns/sub",
        "ns sub",
        "地图",
        &long,
    ];
    let narrow: Vec<String> = odd.iter().map(|name| narrow_name(name).unwrap()).collect();
    for (at, name) in narrow.iter().enumerate() {
        assert!(
            name.len() <= NAME_CHARS_MAX && narrow_name(name).is_none(),
            "{name}"
        );
        assert!(narrow[..at].iter().all(|other| other != name), "{name}");
    }
    assert!(narrow.iter().all(|name| may_be_narrow(name)) && !may_be_narrow("gh_create_issue"));
    assert!(
        narrow[0].starts_with("immich_search_metadata_"),
        "{narrow:?}"
    );
}

#[test]
fn public_names_are_the_prefix_and_the_own_name() {
    assert_eq!(public_name("gh", "create_issue"), "gh_create_issue");
    assert_eq!(public_name("", "create_issue"), "create_issue");
    for (own, public) in [
        ("git_status", "git_status"),
        ("git_git_status", "git_git_status"),
        ("git_", "git_"),
        ("git", "git_git"),
        ("gitstatus", "git_gitstatus"),
        ("git-status", "git_git-status"),
        ("Git_status", "git_Git_status"),
        ("status", "git_status"),
    ] {
        assert_eq!(public_name("git", own), public);
    }
    let long = "x".repeat(200);
    assert_eq!(
        public_name("gh", &format!("gh_{long}")),
        public_name("gh", &long)
    );
    let long = "x".repeat(200);
    assert_eq!(public_name("", &long), long);
}

#[test]
fn long_names_are_shortened_at_the_limit() {
    let fits = "x".repeat(NAME_CHARS_MAX - 3);
    assert_eq!(public_name("gh", &fits), format!("gh_{fits}"));
    let longer = public_name("gh", &format!("{fits}y"));
    assert_eq!(longer.chars().count(), NAME_CHARS_MAX);
    assert!(longer.starts_with("gh_xxx"), "{longer}");
    assert_ne!(longer, public_name("gh", &format!("{fits}z")));
    assert_eq!(
        longer,
        public_name("gh", &format!("{fits}y")),
        "the same every time"
    );
    assert_eq!(
        public_name("gh", &"é".repeat(80)).chars().count(),
        NAME_CHARS_MAX
    );
}
