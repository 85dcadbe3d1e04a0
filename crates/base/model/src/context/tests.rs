use super::*;

fn check(context: &str, expected: bool) {
    assert_eq!(is_unambiguous(context), expected, "{context:?}");
}

#[test]
fn plain_contexts_are_unambiguous() {
    check("search_web", true);
    check("file:///notes/a..b/c.txt", true);
    check("file:///notes/...", true);
    check("file:///notes/a;b=c/.hidden", true);
    check("file:///notes/two words", true);
    check("file:///notes/two%20words", true);
    check("file:///notes/100%25", true);
    check("file:///notes/%C3%A9t%C3%A9", true);
    check("file:///notes/été/日本語", true);
    check("https://example.com/a?b=c&d=%7B%7D#e", true);
    check("https://[::1]/a//b", true);
}

#[test]
fn what_parsers_drop_is_ambiguous() {
    for symbol in [
        "\t", "\n", "\r", "\0", "\u{1f}", "\u{7f}", "\u{85}", "\u{a0}", "\u{ad}", "\u{200b}",
        "\u{200d}",
    ]
    .into_iter()
    .chain([
        "\u{202e}",
        "\u{2028}",
        "\u{2060}",
        "\u{feff}",
        "\u{fe0f}",
        "\u{e0041}",
        "\u{115f}",
        "\u{fff9}",
    ]) {
        check(&format!("file:///notes/.{symbol}./etc"), false);
        check(&format!("{symbol}file:///notes/a"), false);
        check(&format!("file:///notes/a{symbol}"), false);
        let encoded: String = symbol.bytes().map(|byte| format!("%{byte:02x}")).collect();
        check(&format!("file:///notes/a{encoded}b"), false);
        check(
            &format!("file:///notes/a{}b", encoded.replace('%', "%25")),
            false,
        );
    }
    check(" file:///notes/a", false);
    check("file:///notes/a ", false);
    check("file:///notes/a%20", false);
    check("file:///notes/a%2520", false);
}

#[test]
fn hidden_dots_and_slashes_are_ambiguous() {
    for path in [
        "..", "a/../b", "./a", "a/.", "a\\..\\b", "..?x", "..#x", "%2e%2E/a", ".%2e/a", "a%2fb",
        "a%5Cb",
    ] {
        check(&format!("file:///notes/{path}"), false);
    }
    // Windows drops blanks after dots and maps look-alikes to slashes; servlet containers drop
    // parameters.
    for path in [
        ".. /a", "..%20/a", " ../a", "..;/a", "..;x=y/a", "%2e.;/a", "a/.. ./b", "..∕a", "a⁄..",
        "..∖a", "..¥a", "..₩a",
    ] {
        check(&format!("file:///notes/{path}"), false);
    }
    for path in [
        "%252e%252e/a",
        "a%252fb",
        "%25252e./a",
        "a%2525252525b",
        "%c0%ae%c0%ae/a",
        "%e0%80%ae./a",
    ] {
        check(&format!("file:///notes/{path}"), false);
    }
    for path in [
        "．．/a",
        "‥/a",
        "․․/a",
        "a／..／b",
        "﹒﹒/a",
        "%EF%BC%8E%EF%BC%8E/a",
        "%u002e%u002e/a",
        "%2/a",
        "a%",
    ] {
        check(&format!("file:///notes/{path}"), false);
    }
}

#[test]
fn percent_layers_are_limited() {
    let nested = |layers: usize| format!("file:///notes/%{}41", "25".repeat(layers - 1));
    check(&nested(PERCENT_LAYERS_MAX), true);
    check(&nested(PERCENT_LAYERS_MAX + 1), false);
}

/// What the tails of hostile URIs are made of.
const FRAGMENTS: &[&str] = &[
    "a",
    "etc",
    "passwd",
    "/",
    "//",
    "\\",
    ".",
    "..",
    "/..",
    "/../",
    "../",
    "./",
    "...",
    "%2e",
    "%2E%2e",
    "%2f",
    "%5c",
    "%252e",
    "%25252e",
    "%252f",
    "%",
    "%%",
    "%u002e",
    "%c0%ae",
    "%ff",
    "\t",
    "\r",
    "\n",
    " ",
    "%20",
    "%09",
    "%0a",
    "%00",
    "\0",
    "?",
    "#",
    "?..",
    ";",
    ":",
    "@",
    "|",
    "~",
    "\u{200b}",
    "\u{ad}",
    "\u{202e}",
    "\u{feff}",
    "．",
    "／",
    "‥",
    "․",
    "%ef%bc%8e",
    "%E2%80%8B",
    "\u{85}",
    "\u{a0}",
    "é",
    "日",
    "C|",
    "=",
    "&",
    "+",
    "*",
    "'",
    "\"",
    "<",
    "[",
    "^",
];
const PREFIXES: &[&str] = &[
    "file:///notes/",
    "file:///notes/a",
    "https://example.com/notes/",
    "https://example.com/notes/a",
    "db://host/notes/",
];
const URIS: usize = 40_000;

/// Whether each pair of prefix and URI leaves the prefix, as a program in another language reads
/// it.
fn outside(program: &str, args: &[&str], pairs: &str) -> Vec<bool> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(move || input.write_all(pairs.as_bytes()).unwrap());
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success());
        let text = String::from_utf8(out.stdout).unwrap();
        text.trim()
            .trim_matches(['[', ']'])
            .split(',')
            .map(|one| one.trim() == "true")
            .collect()
    })
}

#[test]
fn no_common_parser_leaves_the_prefix_of_an_admitted_uri() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let uris: Vec<(&str, String)> = (0..URIS)
        .map(|_| {
            let prefix = PREFIXES[draw(PREFIXES.len())];
            let tail = (0..=draw(6)).map(|_| FRAGMENTS[draw(FRAGMENTS.len())]);
            (
                prefix,
                tail.fold(prefix.to_owned(), |uri, fragment| uri + fragment),
            )
        })
        .collect();
    let text = |text: &str| {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        format!("\"{}\"", units.collect::<String>())
    };
    let pairs = uris
        .iter()
        .map(|(prefix, uri)| format!("[{},{}]", text(prefix), text(uri)));
    let pairs = format!("[{}]", pairs.collect::<Vec<_>>().join(","));
    let node = outside("node", &["-e", include_str!("parsers.js")], &pairs);
    let python = outside("python3", &["-c", include_str!("parsers.py")], &pairs);
    assert_eq!((node.len(), python.len()), (URIS, URIS));

    let mut admitted = 0;
    let mut left = [0, 0];
    for ((prefix, uri), (node, python)) in uris.iter().zip(node.into_iter().zip(python)) {
        let capability =
            crate::Capability::parse(&format!("mcp/request:resources/read:{prefix}*")).unwrap();
        let kind = crate::KindRef::request("resources/read", Some(uri));
        if kind.is_ok_and(|kind| capability.admits(kind)) {
            admitted += 1;
            assert!(
                !node && !python,
                "admitted under {prefix}* and read elsewhere: {uri:?}"
            );
        }
        left[0] += usize::from(node);
        left[1] += usize::from(python);
    }
    // The property says something: many URIs are admitted, and both parsers leave the prefix with
    // many others.
    assert!(
        admitted > URIS / 20 && left.iter().all(|left| *left > URIS / 20),
        "{admitted} admitted, {left:?} left"
    );
}
