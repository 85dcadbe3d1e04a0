//! Example programs that documents quote: whole files, in both languages.

use std::collections::BTreeSet;

use harness::repository;

/// A quoted file stands behind a line `<!-- PATH -->`; what a document leaves out is a docstring, a
/// module's doc or an attribute.
#[test]
fn the_documents_quote_the_examples_as_they_are() {
    let mut quoted = BTreeSet::new();
    for page in [
        "docs/participants.md",
        "clients/python/README.md",
        "crates/sdk/participant/README.md",
    ] {
        let text = std::fs::read_to_string(repository().join(page)).unwrap();
        for block in text.split("<!-- ").skip(1) {
            let (path, rest) = block.split_once(" -->").unwrap();
            let code = rest
                .split("```")
                .nth(1)
                .and_then(|code| code.split_once('\n'))
                .unwrap()
                .1;
            let file = std::fs::read_to_string(repository().join(path)).unwrap();
            assert!(
                file.trim_end().ends_with(code.trim_end()),
                "{page} does not quote the end of {path}"
            );
            let left_out = &file[..file.trim_end().len() - code.trim_end().len()];
            let is_code = |line: &str| {
                line.starts_with("use ") || line.contains("import ") || line.contains("fn ")
            };
            assert!(
                !left_out.lines().any(is_code),
                "{page} leaves out code of {path}"
            );
            quoted.insert(path.to_owned());
        }
    }
    for path in [
        "clients/python/examples/hello.py",
        "crates/sdk/participant/examples/hello.rs",
        "crates/sdk/participant/examples/caller.rs",
        "clients/python/examples/echo_server.py",
    ] {
        assert!(quoted.contains(path), "no document quotes {path}");
    }
}
