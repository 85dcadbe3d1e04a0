//! Expansion of `${VAR}`, `${VAR:-default}` and `${env:VAR}`, and of `~` in paths.

/// Lookup of environment variables; tests pass their own.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Hint at a `~user`.
pub(crate) const FULL_PATH: &str =
    "write the full path: only `~` and `~/` mean a home directory, your own";

/// Error in a text to expand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    /// The variable is not set and has no default.
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    /// A `${` without its `}`.
    #[error("`${{` is never closed")]
    Open,
    /// The text between the braces is not the name of a variable.
    #[error("`${{{0}}}` is not an environment variable")]
    Name(String),
    /// The home directory of another user, with its `~`.
    #[error("`{0}` is not expanded")]
    User(String),
}

/// Expands every `${...}`. A lone `$`, and `$NAME` without braces, stay as they are; `$${` gives
/// `${`. A default is used when the variable is not set or empty, as in a shell. The value of a
/// variable is not expanded again.
pub(crate) fn expand(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once('}').ok_or(ExpandError::Open)?;
        out.push_str(before);
        out.push_str(&variable(inside, env)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Expands a path: a leading `~`, alone or before `/`, is the home directory; variables as
/// [`expand`].
pub(crate) fn expand_path(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let (home, rest) = home(text, env)?;
    Ok(home + &expand(rest, env)?)
}

/// Expands a leading `~` only.
pub(crate) fn expand_home(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    home(text, env).map(|(home, rest)| home + rest)
}

/// The home directory if a text begins with it, and the rest of the text.
fn home<'a>(
    text: &'a str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, &'a str), ExpandError> {
    let Some(rest) = text.strip_prefix('~') else {
        return Ok((String::new(), text));
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(ExpandError::User(
            text.split('/').next().unwrap_or_default().to_owned(),
        ));
    }
    let home = env("HOME").ok_or_else(|| ExpandError::Unset("HOME".to_owned()))?;
    Ok((home, rest))
}

/// Whether a text has a variable, so that the unexpanded text can be shown.
pub(crate) fn is_reference(text: &str) -> bool {
    text.contains("${")
}

fn variable(inside: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || !name.chars().all(letter)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(ExpandError::Name(inside.to_owned()));
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ExpandError::Unset(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded() {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ann".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOME}".to_owned()),
            _ => None,
        };
        let unset = |name: &str| Err(ExpandError::Unset(name.into()));
        for (text, expect) in [
            ("", Ok("")),
            ("plain $HOME $ {}", Ok("plain $HOME $ {}")),
            ("${HOME}/x", Ok("/home/ann/x")),
            ("${env:HOME}${HOME}", Ok("/home/ann/home/ann")),
            ("${GONE:-a:-b}", Ok("a:-b")),
            ("${GONE:-}", Ok("")),
            ("${EMPTY:-full}|${EMPTY}", Ok("full|")),
            ("${NESTED}", Ok("${HOME}")),
            ("$${HOME}", Ok("${HOME}")),
            ("${GONE}", unset("GONE")),
            ("${HOME", Err(ExpandError::Open)),
            ("${input:key}", Err(ExpandError::Name("input:key".into()))),
            ("${}", Err(ExpandError::Name(String::new()))),
            ("${1X}", Err(ExpandError::Name("1X".into()))),
        ] {
            assert_eq!(expand(text, &env), expect.map(str::to_owned), "{text}");
        }
        let other = |name: &str| Err(ExpandError::User(name.into()));
        for (text, expect) in [
            ("~", Ok("/home/ann")),
            ("~/x/${EMPTY}~", Ok("/home/ann/x/~")),
            ("/x/~/y", Ok("/x/~/y")),
            ("${NESTED}", Ok("${HOME}")),
            ("~bob/x", other("~bob")),
            ("~~", other("~~")),
            ("~/${GONE}", unset("GONE")),
        ] {
            assert_eq!(expand_path(text, &env), expect.map(str::to_owned), "{text}");
        }
        assert_eq!(expand_home("~/${X}", &env), Ok("/home/ann/${X}".to_owned()));
        assert_eq!(
            expand_home("~", &|_| None),
            Err(ExpandError::Unset("HOME".into()))
        );
    }
}
