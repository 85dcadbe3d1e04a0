//! Arguments as values, each number the one that is written: what was reviewed is what is sent.

use json::{Token, Tokens};
use serde_json::{Map, Value};

/// The deepest nesting of arguments.
const DEPTH_MAX: usize = 128;
/// Characters of a number or a key that are shown.
const SHOWN_CHARS: usize = 64;

/// Reads a JSON value.
///
/// # Errors
/// What cannot be sent as it is written, in words for the caller: a number that no 64 bits hold
/// exactly, half a surrogate pair, a member that occurs twice, too deep a nesting.
pub(super) fn read(raw: &[u8]) -> Result<Value, String> {
    json::check(raw).map_err(|error| error.to_string())?;
    if json::nesting(raw) > DEPTH_MAX {
        return Err(format!("they are nested deeper than {DEPTH_MAX} levels"));
    }
    let mut tokens = Tokens::new(raw);
    let first = tokens.next().ok_or_else(cut_off)?;
    value(&mut tokens, first)
}

fn value(tokens: &mut Tokens<'_>, first: Token<'_>) -> Result<Value, String> {
    match first {
        Token::Open(b'[') => {
            let mut items = Vec::new();
            loop {
                match tokens.next().ok_or_else(cut_off)? {
                    Token::Close(_) => return Ok(items.into()),
                    Token::Comma => {}
                    token => items.push(value(tokens, token)?),
                }
            }
        }
        Token::Open(_) => {
            let mut members = Map::new();
            loop {
                match tokens.next().ok_or_else(cut_off)? {
                    Token::Close(_) => return Ok(members.into()),
                    Token::Text(key) => {
                        let key = text(key)?;
                        // The colon.
                        tokens.next();
                        let token = tokens.next().ok_or_else(cut_off)?;
                        let member = value(tokens, token)?;
                        if members.contains_key(&key) {
                            return Err(format!("the member `{}` occurs twice", shown(&key)));
                        }
                        members.insert(key, member);
                    }
                    _ => {}
                }
            }
        }
        Token::Text(raw) => text(raw).map(Value::from),
        Token::Plain(b"null") => Ok(Value::Null),
        Token::Plain(b"true") => Ok(Value::Bool(true)),
        Token::Plain(b"false") => Ok(Value::Bool(false)),
        Token::Plain(raw) => number(raw),
        Token::Close(_) | Token::Comma | Token::Colon => Err(cut_off()),
    }
}

fn cut_off() -> String {
    "they are not valid JSON".to_owned()
}

fn shown(text: &str) -> String {
    text.chars()
        .take(SHOWN_CHARS)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

fn text(raw: &[u8]) -> Result<String, String> {
    let text = json::text(raw).ok_or("a text has half a surrogate pair, or is not UTF-8")?;
    Ok(text.into_owned())
}

fn number(raw: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(raw).unwrap_or_default();
    let whole = text
        .parse::<i64>()
        .map(Value::from)
        .or_else(|_| text.parse::<u64>().map(Value::from));
    let read = whole.ok().or_else(|| {
        let float = text
            .parse::<f64>()
            .ok()
            .filter(|float| float.is_finite())
            .map(Value::from)?;
        (Decimal::read(text)? == Decimal::read(&float.to_string())?).then_some(float)
    });
    read.ok_or_else(|| {
        format!(
            "the number `{}` cannot be sent as it is written: give it fewer digits, or as a text where that is allowed",
            shown(text)
        )
    })
}

/// The value of a number, without rounding.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    /// Its digits, without zeros around them; none for zero.
    digits: String,
    /// The power of ten of the last digit.
    exponent: i64,
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all = [whole, fraction].concat();
        let digits = all.trim_end_matches('0');
        let places =
            i64::try_from(all.len() - digits.len()).ok()? - i64::try_from(fraction.len()).ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self {
                is_negative: false,
                digits,
                exponent: 0,
            });
        }
        let exponent = exponent.parse::<i64>().ok()?.checked_add(places)?;
        Some(Self {
            is_negative: mantissa.len() > unsigned.len(),
            digits,
            exponent,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let raw = br#" {"a": [1, -2, 1.50, 1e22, 1E+2, 0.1, 0.30000000000000004, 18446744073709551615, 0e99999, -0.0],
            "b\u00e9": {"c": [], "d": {}}, "e": "\ud83d\ude00", "f": [null, true, false] } "#;
        let expected = json!({ "a": [1, -2, 1.5, 1e22, 100.0, 0.1, 0.300_000_000_000_000_04, u64::MAX, 0.0, -0.0],
            "bé": { "c": [], "d": {} }, "e": "😀", "f": [null, true, false] });
        assert_eq!(read(raw), Ok(expected));
        for number in [
            "12345678.12345678",
            "5e-324",
            "1.7976931348623157e308",
            "0.1000000000000000000000",
        ] {
            let text = read(number.as_bytes()).map(|value| Decimal::read(&value.to_string()));
            assert_eq!(text, Ok(Decimal::read(number)), "{number}");
        }
    }

    #[test]
    fn what_would_change_is_refused() {
        for (raw, why) in [
            (
                "12345678901234567890123",
                "the number `12345678901234567890123` cannot be sent as it is written",
            ),
            ("[18446744073709551616]", "cannot be sent"),
            ("0.1234567890123456789", "cannot be sent"),
            ("9007199254740993.0", "cannot be sent"),
            ("123456789.123456789", "cannot be sent"),
            ("1e400", "cannot be sent"),
            ("-1e400", "cannot be sent"),
            ("1e-400", "cannot be sent"),
            ("1e99999999999999999999", "cannot be sent"),
            (r#"{"a":"\ud800"}"#, "half a surrogate pair"),
            (r#"{"\udc00":1}"#, "half a surrogate pair"),
            (r#"{"a":1,"\u0061":2}"#, "the member `a` occurs twice"),
            ("{", "not valid JSON"),
            ("[1,]", "not valid JSON"),
        ] {
            let refused = read(raw.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{raw}: {refused}");
        }
        let long = read("9".repeat(1000).as_bytes()).unwrap_err();
        assert!(long.len() < 200, "{long}");
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert!(read(nested(DEPTH_MAX + 1).as_bytes()).is_err());
    }
}
