//! Styles of parameters: how a value becomes text of a path, a query, a header or cookies
//! (OpenAPI, "Style Values").

use serde_json::Value;

use crate::written::{Others, Pairs, Put, Written, plain};

/// How lists and objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Matrix,
    Label,
    Form,
    Simple,
    Space,
    Pipe,
    Deep,
    /// As JSON.
    Json,
}

/// How one value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) style: Style,
    /// Whether each item or member stands for itself, as a pair of its own where there are pairs.
    pub(crate) explode: bool,
}

/// Adds the pairs of a value to a query, a form or cookies.
///
/// # Errors
/// They would be too long, or a key is the name of another parameter; in words for the caller.
pub(crate) fn pairs(
    out: &mut Pairs,
    name: &str,
    value: &Value,
    spelling: Spelling,
    others: &Others,
) -> Result<(), String> {
    match (value, spelling.style) {
        (_, Style::Json) => out.pair(name, &value.to_string()),
        (Value::Object(_) | Value::Array(_), Style::Deep) => {
            deep(out, &mut name.to_owned(), name.len(), value, others)
        }
        (Value::Array(items), _) if spelling.explode => {
            for item in items {
                out.pair(name, &plain(item))?;
            }
            Ok(())
        }
        (Value::Object(members), _) if spelling.explode => {
            for (key, value) in members {
                others.refuse(key)?;
                out.pair(key, &plain(value))?;
            }
            Ok(())
        }
        (Value::Array(_) | Value::Object(_), style) => {
            let by = match style {
                Style::Space => "%20",
                Style::Pipe => "%7C",
                _ => ",",
            };
            joined(out.name(name)?, value, by, false, Written::encoded)
        }
        _ => out.pair(name, &plain(value)),
    }
}

/// Writes a value into a path, encoded.
///
/// # Errors
/// As those of [`pairs`].
pub(crate) fn in_path(
    out: &mut Written,
    name: &str,
    value: &Value,
    spelling: Spelling,
    others: &Others,
) -> Result<(), String> {
    let explode = spelling.explode;
    match spelling.style {
        Style::Label => {
            out.push(".")?;
            let by = if explode { "." } else { "," };
            joined(out, value, by, explode, Written::encoded)
        }
        Style::Matrix => match value {
            Value::Array(items) if explode => {
                for item in items {
                    matrix_pair(out, name, &plain(item).into())?;
                }
                Ok(())
            }
            Value::Object(members) if explode => {
                for (key, value) in members {
                    others.refuse(key)?;
                    matrix_pair(out, key, &plain(value).into())?;
                }
                Ok(())
            }
            _ => matrix_pair(out, name, value),
        },
        Style::Json => out.encoded(&value.to_string()),
        Style::Form | Style::Simple | Style::Space | Style::Pipe | Style::Deep => {
            joined(out, value, ",", explode, Written::encoded)
        }
    }
}

/// Writes a value for a header, as it is.
///
/// # Errors
/// It would be too long; in words for the caller.
pub(crate) fn in_header(
    out: &mut Written,
    value: &Value,
    spelling: Spelling,
) -> Result<(), String> {
    match spelling.style {
        Style::Json => out.push(&value.to_string()),
        _ => joined(out, value, ",", spelling.explode, Written::push),
    }
}

/// Writes `;name=value` into a path.
fn matrix_pair(out: &mut Written, name: &str, value: &Value) -> Result<(), String> {
    out.push(";")?;
    out.encoded(name)?;
    out.push("=")?;
    joined(out, value, ",", false, Written::encoded)
}

/// Writes the items of a list, or the members of an object, as one text.
fn joined(
    out: &mut Written,
    value: &Value,
    by: &str,
    explode: bool,
    write: Put,
) -> Result<(), String> {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(by)?;
                }
                write(out, &plain(item))?;
            }
            Ok(())
        }
        Value::Object(members) => {
            for (at, (key, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(by)?;
                }
                write(out, key)?;
                out.push(if explode { "=" } else { by })?;
                write(out, &plain(value))?;
            }
            Ok(())
        }
        _ => write(out, &plain(value)),
    }
}

/// `name[key]=value`, for objects in objects too; a list repeats its name. `name` has the keys on
/// the way, after the first `own_bytes`, which are the parameter's own name.
fn deep(
    out: &mut Pairs,
    name: &mut String,
    own_bytes: usize,
    value: &Value,
    others: &Others,
) -> Result<(), String> {
    let here = name.len();
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                for piece in ["[", key, "]"] {
                    name.push_str(piece);
                }
                deep(out, name, own_bytes, value, others)?;
                name.truncate(here);
            }
            Ok(())
        }
        Value::Array(items) => {
            for item in items {
                if item.is_object() || item.is_array() {
                    name.push_str("[]");
                    deep(out, name, own_bytes, item, others)?;
                    name.truncate(here);
                } else {
                    deep_pair(out, name, own_bytes, item, others)?;
                }
            }
            Ok(())
        }
        _ => deep_pair(out, name, own_bytes, value, others),
    }
}

/// One pair of a deep value. A name with keys of the caller's must not be that of another
/// parameter.
fn deep_pair(
    out: &mut Pairs,
    name: &str,
    own_bytes: usize,
    value: &Value,
    others: &Others,
) -> Result<(), String> {
    if name.len() > own_bytes {
        others.refuse(name)?;
    }
    out.pair(name, &plain(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEEP: Spelling = Spelling {
        style: Style::Deep,
        explode: true,
    };

    fn query(spelling: Spelling, value: &Value) -> Result<String, String> {
        let mut out = Pairs::new("&", Written::new("its URL", 1024));
        let others = Others::new(["hidden"].into_iter());
        pairs(&mut out, "color", value, spelling, &others)?;
        Ok(out.written.text().to_owned())
    }

    fn path(spelling: Spelling, value: &Value) -> Result<String, String> {
        let mut out = Written::new("its URL", 1024);
        let others = Others::new(["hidden"].into_iter());
        in_path(&mut out, "color", value, spelling, &others)?;
        Ok(out.text().to_owned())
    }

    /// The examples of the specification ("Style Examples").
    #[test]
    fn every_style_writes_texts_lists_and_objects() {
        let values = [
            json!("blue"),
            json!(["blue", "black"]),
            json!({ "B": 150, "R": 100 }),
        ];
        for (style, explode, expected) in [
            (
                Style::Matrix,
                false,
                [";color=blue", ";color=blue,black", ";color=B,150,R,100"],
            ),
            (
                Style::Matrix,
                true,
                [";color=blue", ";color=blue;color=black", ";B=150;R=100"],
            ),
            (
                Style::Label,
                false,
                [".blue", ".blue,black", ".B,150,R,100"],
            ),
            (Style::Label, true, [".blue", ".blue.black", ".B=150.R=100"]),
            (Style::Simple, false, ["blue", "blue,black", "B,150,R,100"]),
            (Style::Simple, true, ["blue", "blue,black", "B=150,R=100"]),
        ] {
            let spelling = Spelling { style, explode };
            let written = values.clone().map(|value| path(spelling, &value).unwrap());
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        for (style, explode, expected) in [
            (
                Style::Form,
                false,
                ["color=blue", "color=blue,black", "color=B,150,R,100"],
            ),
            (
                Style::Form,
                true,
                ["color=blue", "color=blue&color=black", "B=150&R=100"],
            ),
            (
                Style::Space,
                false,
                [
                    "color=blue",
                    "color=blue%20black",
                    "color=B%20150%20R%20100",
                ],
            ),
            (
                Style::Pipe,
                false,
                [
                    "color=blue",
                    "color=blue%7Cblack",
                    "color=B%7C150%7CR%7C100",
                ],
            ),
            (
                Style::Deep,
                true,
                [
                    "color=blue",
                    "color=blue&color=black",
                    "color%5BB%5D=150&color%5BR%5D=100",
                ],
            ),
            (
                Style::Json,
                false,
                [
                    "color=%22blue%22",
                    "color=%5B%22blue%22%2C%22black%22%5D",
                    "color=%7B%22B%22%3A150%2C%22R%22%3A100%7D",
                ],
            ),
        ] {
            let spelling = Spelling { style, explode };
            let written = values.clone().map(|value| query(spelling, &value).unwrap());
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        let header = Spelling {
            style: Style::Simple,
            explode: true,
        };
        let written = values.map(|value| {
            let mut out = Written::new("a header", 1024);
            in_header(&mut out, &value, header).unwrap();
            out.text().to_owned()
        });
        assert_eq!(written, ["blue", "blue,black", "B=150,R=100"]);
    }

    #[test]
    fn nested_values_have_their_way_in_brackets() {
        let value = json!({ "a": { "b c": [1, 2] }, "d": [{ "e": true }] });
        assert_eq!(
            query(DEEP, &value).unwrap(),
            "color%5Ba%5D%5Bb%20c%5D=1&color%5Ba%5D%5Bb%20c%5D=2&color%5Bd%5D%5B%5D%5Be%5D=true"
        );
    }

    #[test]
    fn no_key_is_sent_as_the_name_of_another_parameter() {
        let value = json!({ "hidden": "mine" });
        for style in [Style::Form, Style::Matrix] {
            let spelling = Spelling {
                style,
                explode: true,
            };
            let written = match style {
                Style::Matrix => path(spelling, &value),
                _ => query(spelling, &value),
            };
            assert!(written.unwrap_err().contains("another parameter"));
        }
        let as_one = Spelling {
            style: Style::Form,
            explode: false,
        };
        assert_eq!(query(as_one, &value).unwrap(), "color=hidden,mine");
        assert_eq!(query(DEEP, &value).unwrap(), "color%5Bhidden%5D=mine");
        let mut out = Pairs::new("&", Written::new("its URL", 1024));
        let others = Others::new(["hidden"].into_iter());
        pairs(&mut out, "hid", &json!({ "den": 1 }), DEEP, &others).unwrap();
        assert_eq!(out.written.text(), "hid%5Bden%5D=1");
    }

    /// A long key, and many empty lists below it: nothing is written of them, and nothing is made
    /// of their names.
    #[test]
    fn long_keys_are_not_repeated_for_what_is_not_sent() {
        let items = vec![json!([]); 200_000];
        let value = json!({ "k".repeat(1 << 20): items });
        assert_eq!(query(DEEP, &value).unwrap(), "");
    }
}
