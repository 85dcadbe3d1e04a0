//! Challenges: the `Bearer` scheme in `WWW-Authenticate` (RFC 6750 section 3, RFC 9728 section
//! 5.1).

/// The parameters of a `Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BearerChallenge {
    /// Address of the server's metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scopes: Vec<String>,
    /// `invalid_token`, `insufficient_scope`, ...
    pub error: Option<String>,
}

/// Reads the `Bearer` challenge among those of a header; the default where there is none.
#[must_use]
pub fn bearer(header: &str) -> BearerChallenge {
    let mut found = BearerChallenge::default();
    let mut is_bearer = false;
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|one: char| !is_token(one)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            // What cannot be read is skipped, one character at a time.
            match rest.chars().next() {
                Some(one) => rest = rest.get(one.len_utf8()..).unwrap_or_default(),
                None => return found,
            }
            continue;
        }
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        let Some(value) = value
            .filter(|_| !after.starts_with([' ', '\t']) || after.trim_start().starts_with('='))
        else {
            is_bearer = word.eq_ignore_ascii_case("bearer");
            rest = after;
            continue;
        };
        let (value, after) = value_of(value.trim_start_matches([' ', '\t']));
        rest = after;
        if !is_bearer {
            continue;
        }
        match word.to_ascii_lowercase().as_str() {
            "resource_metadata" => found.resource_metadata = Some(value),
            "scope" => found.scopes = value.split_ascii_whitespace().map(str::to_owned).collect(),
            "error" => found.error = Some(value),
            _ => {}
        }
    }
}

fn is_token(one: char) -> bool {
    one.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(one)
}

/// A token or a quoted text, and what comes after it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, one) in quoted.char_indices() {
        match one {
            _ if escaped => (value.push(one), escaped = false).0,
            '\\' => escaped = true,
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            _ => value.push(one),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let check = |header: &str, metadata: Option<&str>, scopes: &str, error: Option<&str>| {
            let found = bearer(header);
            assert_eq!(found.resource_metadata.as_deref(), metadata, "{header}");
            assert_eq!(found.scopes.join(" "), scopes, "{header}");
            assert_eq!(found.error.as_deref(), error, "{header}");
        };
        check("", None, "", None);
        check("Bearer", None, "", None);
        check("Bearer scope=\"a b\"", None, "a b", None);
        check(
            "bearer scope=a, error=invalid_token",
            None,
            "a",
            Some("invalid_token"),
        );
        check(
            "Bearer resource_metadata=\"https://a/x?y=1,2\", error=\"insufficient_scope\",scope=\"w\"",
            Some("https://a/x?y=1,2"),
            "w",
            Some("insufficient_scope"),
        );
        check(
            "Basic realm=\"x\", scope=\"no\", Bearer scope=\"yes\"",
            None,
            "yes",
            None,
        );
        check(
            "Bearer scope=\"yes\", DPoP algs=\"ES256\", scope=\"no\"",
            None,
            "yes",
            None,
        );
        check(
            "Bearer error_description=\"say \\\"hi\\\", scope=no\", scope = \"x\"",
            None,
            "x",
            None,
        );
        check("Bearer scope=\"open", None, "open", None);
        check("Negotiate abc==, Bearer scope=s", None, "s", None);
        check("=,=,\u{e9}Bearer scope=s", None, "s", None);
    }
}
