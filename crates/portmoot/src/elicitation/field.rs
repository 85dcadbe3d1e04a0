//! One field of a form: how it is asked for, and what a typed line means. Must not know the schema's spelling.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::visible;

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) shape: Shape,
}

/// What goes into a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Text { min: Option<usize>, max: Option<usize>, format: Option<String> },
    Number { whole: bool, min: Option<f64>, max: Option<f64> },
    Flag,
    One(Vec<Choice>),
    Many { choices: Vec<Choice>, min: Option<usize>, max: Option<usize> },
}

/// One of several values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) title: Option<String>,
}

impl Field {
    /// What the field is, on one line, and its choices below. Nothing that the server wrote stays hidden.
    pub(crate) fn prompt(&self) -> String {
        let mut out = visible::line(self.title.as_deref().unwrap_or(&self.name));
        if let Some(description) = &self.description {
            let _ = write!(out, ": {}", visible::line(description));
        }
        let _ = write!(out, " ({}{})", self.shape.what(), if self.required { "" } else { ", optional" });
        if let Some(default) = &self.default {
            let _ = write!(out, " [{}]", visible::line(&plain(default)));
        }
        for (at, choice) in self.shape.choices().iter().enumerate() {
            let title = choice.title.as_ref().filter(|title| **title != choice.value);
            let title = title.map(|title| format!(" - {}", visible::line(title))).unwrap_or_default();
            let _ = write!(out, "\n  {}. {}{title}", at + 1, visible::line(&choice.value));
        }
        out
    }

    /// What a typed line means: `None` leaves the field out.
    ///
    /// # Errors
    /// Why the line does not fit, to be asked again.
    pub(crate) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim();
        if line.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("this field is needed".into()),
            };
        }
        self.shape.read(line).map(Some)
    }
}

impl Shape {
    fn what(&self) -> String {
        match self {
            Shape::Text { format: Some(format), .. } => visible::line(format),
            Shape::Text { format: None, .. } => "text".into(),
            Shape::Number { whole: true, .. } => "whole number".into(),
            Shape::Number { whole: false, .. } => "number".into(),
            Shape::Flag => "yes or no".into(),
            Shape::One(_) => "one of these".into(),
            Shape::Many { .. } => "any of these, with commas between".into(),
        }
    }

    fn choices(&self) -> &[Choice] {
        match self {
            Shape::One(choices) | Shape::Many { choices, .. } => choices,
            Shape::Text { .. } | Shape::Number { .. } | Shape::Flag => &[],
        }
    }

    fn read(&self, line: &str) -> Result<Value, String> {
        match self {
            Shape::Text { min, max, format } => {
                within("characters", line.chars().count(), *min, *max)?;
                format.as_deref().map_or(Ok(()), |format| check_format(format, line))?;
                Ok(Value::from(line))
            }
            Shape::Number { whole, min, max } => read_number(line, *whole, *min, *max),
            Shape::Flag => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Ok(Value::from(true)),
                "n" | "no" | "false" | "0" => Ok(Value::from(false)),
                _ => Err("type yes or no".into()),
            },
            Shape::One(choices) => pick(choices, line).map(Value::from),
            Shape::Many { choices, min, max } => {
                let words = line.split(',').map(str::trim).filter(|word| !word.is_empty());
                let mut picked: Vec<String> =
                    words.map(|word| pick(choices, word)).collect::<Result<_, _>>()?;
                let mut seen = std::collections::HashSet::new();
                picked.retain(|value| seen.insert(value.clone()));
                within("choices", picked.len(), *min, *max)?;
                Ok(Value::from(picked))
            }
        }
    }
}

/// The value itself counts before its number, its number before its title.
fn pick(choices: &[Choice], word: &str) -> Result<String, String> {
    let by_value = choices.iter().find(|choice| choice.value == word);
    let by_number = || choices.get(word.parse::<usize>().ok()?.checked_sub(1)?);
    let by_title = || choices.iter().find(|choice| choice.title.as_deref() == Some(word));
    let found = by_value.or_else(by_number).or_else(by_title);
    found.map(|choice| choice.value.clone()).ok_or_else(|| format!("`{word}` is none of the choices"))
}

fn read_number(line: &str, whole: bool, min: Option<f64>, max: Option<f64>) -> Result<Value, String> {
    let number: Number = line.parse().map_err(|_| "type a number".to_owned())?;
    let value = number.as_f64().filter(|value| value.is_finite()).ok_or("type a number")?;
    if whole && !(number.is_i64() || number.is_u64()) {
        return Err("type a whole number".into());
    }
    if min.is_some_and(|min| value < min) {
        return Err(format!("it must be at least {}", min.unwrap_or_default()));
    }
    if max.is_some_and(|max| value > max) {
        return Err(format!("it must be at most {}", max.unwrap_or_default()));
    }
    Ok(Value::Number(number))
}

fn within(what: &str, count: usize, min: Option<usize>, max: Option<usize>) -> Result<(), String> {
    match (min, max) {
        (Some(min), _) if count < min => Err(format!("at least {min} {what} are needed")),
        (_, Some(max)) if count > max => Err(format!("at most {max} {what} are allowed")),
        _ => Ok(()),
    }
}

/// The four formats that forms may name; others are not checked.
fn check_format(format: &str, line: &str) -> Result<(), String> {
    let good = match format {
        "email" => line.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty()
                && host.contains('.')
                && !line.contains(char::is_whitespace)
                && !host.contains('@')
        }),
        "uri" => line.parse::<hyper::Uri>().is_ok_and(|uri| uri.scheme().is_some()) || opaque_uri(line),
        "date" => is_date(line),
        "date-time" => line.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        _ => true,
    };
    let example = match format {
        "email" => "ann@example.com",
        "uri" => "https://example.com/",
        "date" => "2026-07-28",
        _ => "2026-07-28T12:30:00Z",
    };
    if good { Ok(()) } else { Err(format!("it must look like {example}")) }
}

/// `mailto:...`, `urn:...`.
fn opaque_uri(line: &str) -> bool {
    let scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    line.split_once(':').is_some_and(|(name, rest)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(scheme)
            && !rest.is_empty()
            && !rest.contains(char::is_whitespace)
    })
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, digits: usize| text.parse::<u32>().ok().filter(|_| text.len() == digits);
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339: `HH:MM:SS`, a fraction perhaps, `Z` or an offset.
fn is_time(text: &str) -> bool {
    let below =
        |text: &str, limit: u32| text.len() == 2 && text.parse::<u32>().is_ok_and(|number| number < limit);
    let clock = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        match parts.as_slice() {
            [hour, minute] => below(hour, 24) && below(minute, 60),
            [hour, minute, second] => below(hour, 24) && below(minute, 60) && below(second, 61),
            _ => false,
        }
    };
    let zone = text.find(['Z', 'z', '+', '-']).map(|at| text.split_at(at));
    let Some((time, zone)) = zone else { return false };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let offset = matches!(zone, "Z" | "z")
        || zone.strip_prefix(['+', '-']).is_some_and(|zone| zone.len() == 5 && clock(zone));
    time.len() == 8 && clock(time) && digits && offset
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Bool(flag) => (if *flag { "yes" } else { "no" }).into(),
        Value::Null | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
