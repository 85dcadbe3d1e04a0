//! Names with values on the command line.

use terminal::failure::Failure;

/// The names and values of an option.
pub(super) fn pairs(
    texts: &[String],
    sign: char,
    option: &str,
    form: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let pair = |text: &String| {
        let pair = text
            .split_once(sign)
            .map(|(name, value)| (name.trim(), value));
        let (name, value) = pair.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            // The text may be a secret.
            Failure::bad_argument(format!("a value of {option} is not {form}"))
        })?;
        let value = if sign == ':' { value.trim() } else { value };
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}
