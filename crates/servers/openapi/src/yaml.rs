//! YAML as JSON: the events of one document as values, within bounds. What aliases repeat counts
//! each time.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Value};

use crate::error::{DEPTH_MAX, DescriptionError, EXPANDED_BYTES_MAX, VALUES_MAX};

/// The parser's number of the anchor of a value that has none.
const NO_ANCHOR: usize = 0;

/// Reads the first document of a text.
pub(crate) fn read(text: &str) -> Result<Value, DescriptionError> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        read: Extent::default(),
    };
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
            Event::Alias(_)
            | Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd => return Ok(reader.value(event, span, 0)?.value),
        }
    }
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Counted>,
    /// Size of all that was read by now, with the copies that are kept for aliases.
    read: Extent,
}

/// Size of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    values: usize,
    /// The bytes of its texts and keys.
    bytes: usize,
}

/// A value and its extent.
#[derive(Clone)]
struct Counted {
    value: Value,
    extent: Extent,
    /// Number of lists and objects that lie inside each other.
    depth: usize,
}

/// A value, and the number of lists and objects in it that lie inside each other.
struct Nested {
    value: Value,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), DescriptionError> {
        let next = self
            .parser
            .next_event()
            .unwrap_or(Ok((Event::StreamEnd, Span::default())));
        next.map_err(|error| DescriptionError::Syntax {
            line: error.marker().line().max(1),
            why: error.info().to_owned(),
        })
    }

    fn count(&mut self, more: Extent) -> Result<(), DescriptionError> {
        self.read.values = self.read.values.saturating_add(more.values);
        self.read.bytes = self.read.bytes.saturating_add(more.bytes);
        if self.read.values > VALUES_MAX {
            return Err(DescriptionError::TooManyValues);
        }
        if self.read.bytes > EXPANDED_BYTES_MAX {
            Err(DescriptionError::TooMuchText)
        } else {
            Ok(())
        }
    }

    fn count_text(&mut self, text: &str) -> Result<(), DescriptionError> {
        self.count(Extent {
            values: 0,
            bytes: text.len(),
        })
    }

    /// The value that begins with an event, which lies in so many lists and objects.
    fn value(
        &mut self,
        event: Event<'t>,
        span: Span,
        depth: usize,
    ) -> Result<Counted, DescriptionError> {
        let line = span.start.line();
        if depth > DEPTH_MAX {
            return Err(DescriptionError::TooDeep);
        }
        let before = self.read;
        self.count(Extent {
            values: 1,
            bytes: 0,
        })?;
        let anchor = match event {
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _) => anchor,
            _ => NO_ANCHOR,
        };
        let nested = match event {
            Event::Alias(id) => return self.repeated(id, line, depth),
            Event::Scalar(text, style, _, tag) => {
                self.count_text(&text)?;
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let value = if is_plain {
                    scalar(&text)
                } else {
                    Value::String(text.into_owned())
                };
                Nested { value, depth: 0 }
            }
            Event::SequenceStart(..) => self.items(depth + 1)?,
            Event::MappingStart(..) => self.members(line, depth + 1)?,
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(syntax(line, "a value is missing")),
        };
        let extent = Extent {
            values: self.read.values - before.values,
            bytes: self.read.bytes - before.bytes,
        };
        let read = Counted {
            value: nested.value,
            extent,
            depth: nested.depth,
        };
        // Kept for its aliases: a copy, which counts like the value itself.
        if anchor != NO_ANCHOR {
            self.count(extent)?;
            self.anchors.insert(anchor, read.clone());
        }
        Ok(read)
    }

    /// A copy of the value that an alias names.
    fn repeated(
        &mut self,
        id: usize,
        line: usize,
        depth: usize,
    ) -> Result<Counted, DescriptionError> {
        let Some(known) = self.anchors.get(&id) else {
            return Err(syntax(line, "an alias has no anchor"));
        };
        if depth + known.depth > DEPTH_MAX {
            return Err(DescriptionError::TooDeep);
        }
        // Before it is copied: aliases of aliases grow by the power.
        self.count(known.extent)?;
        match self.anchors.get(&id) {
            Some(known) => Ok(known.clone()),
            None => Err(syntax(line, "an alias has no anchor")),
        }
    }

    /// A list whose items lie in so many lists and objects.
    fn items(&mut self, depth: usize) -> Result<Nested, DescriptionError> {
        let mut items = Vec::new();
        let mut below = 0;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            let item = self.value(event, span, depth)?;
            below = below.max(item.depth + 1);
            items.push(item.value);
        }
        Ok(Nested {
            value: Value::Array(items),
            depth: below,
        })
    }

    /// An object whose members lie in so many lists and objects.
    fn members(&mut self, line: usize, depth: usize) -> Result<Nested, DescriptionError> {
        let mut members = Map::new();
        let mut below = 0;
        loop {
            let (event, _) = self.next()?;
            // A key is its text: the status 200 and "200" are one.
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(syntax(line, "a key is not a text")),
            };
            self.count_text(&key)?;
            let (event, span) = self.next()?;
            let member = self.value(event, span, depth)?;
            below = below.max(member.depth + 1);
            members.insert(key, member.value);
        }
        Ok(Nested {
            value: Value::Object(members),
            depth: below,
        })
    }
}

fn syntax(line: usize, why: &str) -> DescriptionError {
    DescriptionError::Syntax {
        line,
        why: why.to_owned(),
    }
}

/// A scalar without quotes (YAML 1.2, core schema).
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A number; `None` if a text is none, or one that JSON cannot write.
fn number(text: &str) -> Option<Value> {
    // Rust reads `inf` and `nan` as numbers too.
    if !text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c)) {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Some(number.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;
    use crate::error::{DEPTH_MAX, DescriptionError, EXPANDED_BYTES_MAX};

    #[test]
    fn scalars_keys_and_aliases_are_read_as_json_has_them() {
        let text = "a: &x {n: 1, t: 'yes', f: 1.5, on: true, z: ~, big: 18446744073709551615}\nb: *x\n200: [*x, \"7\", 2024-01-01]\n";
        let x = json!({ "n": 1, "t": "yes", "f": 1.5, "on": true, "z": null, "big": u64::MAX });
        assert_eq!(
            read(text),
            Ok(json!({ "a": x, "b": x, "200": [x, "7", "2024-01-01"] }))
        );
        assert_eq!(read(""), Ok(json!(null)));
    }

    #[test]
    fn aliases_that_repeat_aliases_end_at_the_bound() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let inner = format!("*a{}", level - 1);
            text.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                [inner.as_str(); 10].join(", ")
            ));
        }
        assert_eq!(read(&text), Err(DescriptionError::TooManyValues));
    }

    #[test]
    fn texts_that_aliases_repeat_end_at_the_bound() {
        // The text itself, the copy for its aliases, and theirs; keys have the rest.
        let text = |aliases: usize, bytes: usize| {
            format!(
                "x: &a \"{}\"\ny: [{}]\n",
                "t".repeat(bytes),
                vec!["*a"; aliases].join(", ")
            )
        };
        let copies = 62;
        let keys = 2;
        let longest = (EXPANDED_BYTES_MAX - keys) / (copies + 2);
        assert!(read(&text(copies, longest)).is_ok());
        assert_eq!(
            read(&text(copies, longest + 1)),
            Err(DescriptionError::TooMuchText)
        );
        assert_eq!(
            read(&text(490_000, 8 << 20)),
            Err(DescriptionError::TooMuchText)
        );
    }

    #[test]
    fn depths_of_anchors_and_their_aliases_add_up() {
        // Each anchor lies in a list of 90, whose innermost is the anchor before it.
        let level = |number: usize, inner: &str, depth: usize| {
            format!(
                "a{number}: &a{number} {}{inner}{}\n",
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };
        let two = |depth: usize| level(0, "x", 50) + &level(1, "*a0", depth);
        assert!(read(&two(DEPTH_MAX - 1 - 50)).is_ok());
        assert_eq!(read(&two(DEPTH_MAX - 50)), Err(DescriptionError::TooDeep));
        let mut many = level(0, "x", 90);
        for number in 1..110 {
            many += &level(number, &format!("*a{}", number - 1), 90);
        }
        assert_eq!(read(&many), Err(DescriptionError::TooDeep));
    }

    #[test]
    fn what_is_no_yaml_has_a_line() {
        for text in ["a: [1\nb: 2\n", "a: *nowhere\n", "? [a]\n: 1\n"] {
            assert!(
                matches!(read(text), Err(DescriptionError::Syntax { .. })),
                "{text}: {:?}",
                read(text)
            );
        }
    }
}
