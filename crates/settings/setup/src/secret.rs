//! Secrets in configuration files: recognised by their names, and hidden where a file is shown.

/// Parts of the names of variables and headers that hold secrets.
const NAMES: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "APIKEY",
    "API-KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
    "AUTHORIZATION",
    "COOKIE",
];
/// Beginnings of well-known tokens.
const TOKENS: [&str; 9] = [
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "eyJ",
];
/// Text that is shown instead of a secret.
const HIDDEN: &str = "(hidden)";

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.iter().any(|part| name.contains(part))
        || name.ends_with("_KEY")
        || name == "KEY"
        || name.ends_with("-KEY")
}

/// Whether a variable or header holds a secret, and not a reference to one.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    let is_token = TOKENS
        .iter()
        .any(|start| value.starts_with(start) && value.len() > 16);
    !value.is_empty()
        && !value.replace("$${", "").contains("${")
        && (names_secret(name) || is_token)
}

/// The name of an environment variable for a text.
pub(crate) fn variable_name(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

/// A line of a configuration file without the secrets in it: values of keys that name one, and
/// well-known tokens.
pub(crate) fn hidden(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    let mut key = String::new();
    loop {
        let start = rest.find(|c: char| c.is_ascii_alphanumeric() || "\"'_".contains(c));
        let Some((before, word)) = start.and_then(|start| rest.split_at_checked(start)) else {
            return out + rest;
        };
        out += before;
        let is_value = before.trim_end().ends_with([':', '=']);
        let length = word_length(word);
        let (word, after) = word.split_at_checked(length).unwrap_or((word, ""));
        let text = word.trim_matches(['"', '\'']);
        let is_plain = !word.starts_with(['"', '\'']);
        let is_key = after.trim_start().starts_with([':', '=']);
        if is_value && !is_key && is_secret(&key, text) && !matches!(text, "true" | "false") {
            // A value without quotes reaches to the end of the line.
            let (length, quote) = if is_plain {
                (word.len() + after.len(), "")
            } else {
                (word.len(), "\"")
            };
            out += &format!("{quote}{HIDDEN}{quote}");
            rest = rest.get(before.len() + length..).unwrap_or_default();
            key.clear();
            continue;
        }
        if !is_key && is_secret("", text) {
            out += HIDDEN;
        } else {
            out += word;
        }
        if is_key {
            text.clone_into(&mut key);
        }
        rest = after;
    }
}

/// The length of a text in quotes, or of a word.
fn word_length(text: &str) -> usize {
    let Some(quote) = text.chars().next().filter(|first| "\"'".contains(*first)) else {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c));
        return end.unwrap_or(text.len());
    };
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_line_are_hidden() {
        let check = |line: &str, expect: &str| assert_eq!(hidden(line), expect);
        check(
            r#"  "GITHUB_TOKEN": "ghp_abc", "MODE": "x""#,
            r#"  "GITHUB_TOKEN": "(hidden)", "MODE": "x""#,
        );
        check(
            r#"env = { A = "1", API_KEY = "a\"b" }"#,
            r#"env = { A = "1", API_KEY = "(hidden)" }"#,
        );
        check("    API_KEY: abc def # x", "    API_KEY: (hidden)");
        check(
            r#""Authorization": "Bearer ${TOKEN}""#,
            r#""Authorization": "Bearer ${TOKEN}""#,
        );
        check(
            r#""Authorization": "Bearer abc""#,
            r#""Authorization": "(hidden)""#,
        );
        check(
            r#""args": ["--key", "ghp_0123456789abcdef"]"#,
            r#""args": ["--key", (hidden)]"#,
        );
        check(
            r#""apiKeySet": true, "token": "#,
            r#""apiKeySet": true, "token": "#,
        );
        check("# a token: see below", "# a token: (hidden)");
        check("é [servers.x] é", "é [servers.x] é");
    }

    #[test]
    fn names_of_variables() {
        assert_eq!(variable_name("my server_X-Api-Key"), "MY_SERVER_X_API_KEY");
        assert_eq!(variable_name("1a"), "_1A");
    }
}
