//! Last words of a process that failed: the line that says why, and what an operator does about it.

/// Beginnings of lines of npm that name no cause, after `npm error`.
const NPM_ASIDES: [&str; 7] = [
    "code ",
    "errno ",
    "syscall ",
    "path ",
    "a complete log",
    "command ",
    "signal ",
];
/// What is in a line about a certificate that the process does not trust.
const UNTRUSTED: [&str; 8] = [
    "UnknownIssuer",
    "SELF_SIGNED",
    "self signed certificate",
    "self-signed certificate",
    "UNABLE_TO_GET_ISSUER_CERT",
    "unable to get local issuer certificate",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "CERTIFICATE_VERIFY_FAILED",
];
/// What an operator does about such a certificate.
const PASS_ON: &str = "a certificate is not trusted: if your network has an authority of its own, pass on what names it, in [server]: \
                       env_pass = [\"SSL_CERT_FILE\", \"NODE_EXTRA_CA_CERTS\"]";

/// Beginning of a traceback of Python. Its frames are indented; the line after them names the
/// error.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// The place of the first line that names an error, in these last lines of a process, oldest first.
/// The code that a traceback quotes names none.
pub fn telling<T: AsRef<str>>(lines: &[T]) -> Option<usize> {
    let mut in_traceback = false;
    lines.iter().map(AsRef::as_ref).position(|line| {
        if line.trim_start().starts_with(TRACEBACK) {
            in_traceback = true;
            return false;
        }
        if in_traceback && line.starts_with(char::is_whitespace) {
            return false;
        }
        in_traceback = false;
        names_error(line)
    })
}

/// What an operator does about what a process wrote, if that is known.
pub(crate) fn advice<T: AsRef<str>>(lines: &[T]) -> Option<&'static str> {
    let is_untrusted = |line: &T| UNTRUSTED.iter().any(|mark| line.as_ref().contains(mark));
    lines.iter().any(is_untrusted).then_some(PASS_ON)
}

/// Whether a line names an error: a word that ends with `error`, or another one that programs use
/// for it.
fn names_error(line: &str) -> bool {
    let lower = line.to_lowercase();
    let of_npm = ["npm error", "npm err!"]
        .into_iter()
        .find_map(|start| lower.trim_start().strip_prefix(start));
    if let Some(rest) = of_npm {
        let rest = rest.trim_start();
        return !rest.is_empty() && !NPM_ASIDES.iter().any(|aside| rest.starts_with(aside));
    }
    [
        "error",
        "err!",
        "fatal",
        "panicked",
        "exception",
        "not found",
        "×",
    ]
    .into_iter()
    .any(|word| has_end_of_word(&lower, word))
}

/// Whether a word of a line ends with this text.
fn has_end_of_word(line: &str, end: &str) -> bool {
    let mut places = line.match_indices(end);
    places.any(|(at, _)| {
        let after = line
            .get(at + end.len()..)
            .and_then(|rest| rest.chars().next());
        after.is_none_or(|next| !next.is_alphanumeric() && next != '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_error_is_found() {
        let uvx = [
            "error: Failed to fetch: `https://pypi.org/simple/x/`",
            "  Caused by: client error (Connect)",
            "  Caused by: invalid peer certificate: UnknownIssuer",
            "hint: Consider enabling use of system TLS certificates with `--native-tls`",
        ];
        let npm = [
            "npm error code E404",
            "npm error 404 Not Found - GET https://registry.npmjs.org/nope - Not found",
            "npm error A complete log of this run can be found in: ~/.npm/_logs/x",
        ];
        let python = [
            "Traceback (most recent call last):",
            "  File \"/srv/errors.py\", line 3, in <module>",
            "ModuleNotFoundError: No module named 'x'",
        ];
        let raised = [
            "Traceback (most recent call last):",
            "  File \"/srv/main.py\", line 7, in <module>",
            "    raise RuntimeError(\"the key `database` is missing\")",
            "RuntimeError: the key `database` is missing",
        ];
        let node = [
            "node:internal/errors:496",
            "    throw err;",
            "",
            "Error: Cannot find module 'x'",
            "    at x",
        ];
        assert_eq!(telling(&uvx), Some(0));
        assert_eq!(telling(&npm), Some(1));
        assert_eq!(telling(&python), Some(2));
        assert_eq!(telling(&raised), Some(3));
        assert_eq!(telling(&node), Some(3));
        assert_eq!(telling(&["sh: 1: nope: not found"]), Some(0));
        assert_eq!(telling(&["first", "second"]), None);
        assert_eq!((advice(&uvx), advice(&npm)), (Some(PASS_ON), None));
    }
}
