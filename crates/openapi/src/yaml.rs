//! YAML as JSON: the events of one document as values, within bounds. What aliases repeat counts each time.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Value};

use crate::error::{DEPTH_MAX, DescriptionError, VALUES_MAX};

/// Reads the first document of a text.
pub(crate) fn read(text: &str) -> Result<Value, DescriptionError> {
    let mut reader = Reader { parser: Parser::new_from_str(text), anchors: HashMap::new(), values: 0 };
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
    /// The values that were read by now.
    values: usize,
}

/// A value, and how many it consists of.
#[derive(Clone)]
struct Counted {
    value: Value,
    values: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), DescriptionError> {
        let next = self.parser.next_event().unwrap_or(Ok((Event::StreamEnd, Span::default())));
        next.map_err(|error| DescriptionError::Syntax {
            line: error.marker().line().max(1),
            why: error.info().to_owned(),
        })
    }

    fn count(&mut self, more: usize) -> Result<(), DescriptionError> {
        self.values = self.values.saturating_add(more);
        if self.values > VALUES_MAX { Err(DescriptionError::TooManyValues) } else { Ok(()) }
    }

    fn value(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Counted, DescriptionError> {
        let wrong = |why: &str| DescriptionError::Syntax { line: span.start.line(), why: why.to_owned() };
        if depth > DEPTH_MAX {
            return Err(DescriptionError::TooDeep);
        }
        self.count(1)?;
        let before = self.values;
        let (value, anchor) = match event {
            Event::Alias(id) => {
                let values = self.anchors.get(&id).map(|known| known.values);
                // Counted before it is copied.
                self.count(values.ok_or_else(|| wrong("an alias has no anchor"))?)?;
                return self.anchors.get(&id).cloned().ok_or_else(|| wrong("an alias has no anchor"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                (if is_plain { scalar(&text) } else { Value::String(text.into_owned()) }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    items.push(self.value(event, span, depth + 1)?.value);
                }
                (Value::Array(items), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let mut members = Map::new();
                loop {
                    let (event, _) = self.next()?;
                    // A key is its text: the status 200 and "200" are one.
                    let key = match event {
                        Event::MappingEnd => break,
                        Event::Scalar(text, ..) => text.into_owned(),
                        _ => return Err(wrong("a key is not a text")),
                    };
                    let (event, span) = self.next()?;
                    members.insert(key, self.value(event, span, depth + 1)?.value);
                }
                (Value::Object(members), anchor)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(wrong("a value is missing")),
        };
        let read = Counted { value, values: self.values - before + 1 };
        if anchor > 0 {
            self.count(read.values)?;
            self.anchors.insert(anchor, read.clone());
        }
        Ok(read)
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
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c));
    let number = is_number.then(|| {
        let whole = text.parse::<i64>().map(Value::from).ok();
        whole.or_else(|| text.parse::<u64>().map(Value::from).ok()).or_else(|| {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Value::from)
        })
    });
    number.flatten().unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;
    use crate::error::DescriptionError;

    #[test]
    fn scalars_keys_and_aliases_are_read_as_json_has_them() {
        let text = "a: &x {n: 1, t: 'yes', f: 1.5, on: true, z: ~, big: 18446744073709551615}\nb: *x\n200: [*x, \"7\", 2024-01-01]\n";
        let x = json!({ "n": 1, "t": "yes", "f": 1.5, "on": true, "z": null, "big": u64::MAX });
        assert_eq!(read(text), Ok(json!({ "a": x, "b": x, "200": [x, "7", "2024-01-01"] })));
        assert_eq!(read(""), Ok(json!(null)));
    }

    #[test]
    fn aliases_that_repeat_aliases_end_at_the_bound() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let inner = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", [inner.as_str(); 10].join(", ")));
        }
        assert_eq!(read(&text), Err(DescriptionError::TooManyValues));
    }

    #[test]
    fn what_is_no_yaml_has_a_line() {
        for text in ["a: [1\nb: 2\n", "a: *nowhere\n", "? [a]\n: 1\n"] {
            assert!(matches!(read(text), Err(DescriptionError::Syntax { .. })), "{text}: {:?}", read(text));
        }
    }
}
