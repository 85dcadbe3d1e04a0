//! Form field: prompt text and parsing of a typed line.

use std::fmt::Write as _;

use chrono::DateTime;
use serde_json::{Number, Value};

use json::visible;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormField {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) field_type: FieldType,
}

/// Type of a field, with its bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldType {
    Text {
        min: Option<usize>,
        max: Option<usize>,
        format: Option<String>,
    },
    Number {
        whole: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    Flag,
    One(Vec<FieldChoice>),
    Many {
        choices: Vec<FieldChoice>,
        min: Option<usize>,
        max: Option<usize>,
    },
}

/// A value of a choice, with its title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldChoice {
    pub(crate) value: String,
    pub(crate) title: Option<String>,
}

impl FormField {
    /// The prompt: title, description, type and default on one line, choices below. Hidden
    /// characters are made visible.
    pub(crate) fn prompt(&self) -> String {
        let mut out = visible::line(self.title.as_deref().unwrap_or(&self.name));
        if let Some(description) = &self.description {
            let _ = write!(out, ": {}", visible::line(description));
        }
        let _ = write!(
            out,
            " ({}{})",
            self.field_type.what(),
            if self.required { "" } else { ", optional" }
        );
        if let Some(default) = &self.default {
            let _ = write!(out, " [{}]", visible::line(&plain(default)));
        }
        for (at, choice) in self.field_type.choices().iter().enumerate() {
            let title = choice
                .title
                .as_ref()
                .filter(|title| **title != choice.value);
            let title = title
                .map(|title| format!(" - {}", visible::line(title)))
                .unwrap_or_default();
            let _ = write!(
                out,
                "\n  {}. {}{title}",
                at + 1,
                visible::line(&choice.value)
            );
        }
        out
    }

    /// Parses a typed line; `None` leaves the field out.
    ///
    /// # Errors
    /// Why the line is not a valid value, to show before asking again.
    pub(crate) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim();
        if line.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("this field is required".into()),
            };
        }
        self.field_type.read(line).map(Some)
    }
}

impl FieldType {
    fn what(&self) -> String {
        match self {
            FieldType::Text {
                format: Some(format),
                ..
            } => visible::line(format),
            FieldType::Text { format: None, .. } => "text".into(),
            FieldType::Number { whole: true, .. } => "whole number".into(),
            FieldType::Number { whole: false, .. } => "number".into(),
            FieldType::Flag => "yes or no".into(),
            FieldType::One(_) => "one of these".into(),
            FieldType::Many { .. } => "any of these, separated by commas".into(),
        }
    }

    fn choices(&self) -> &[FieldChoice] {
        match self {
            FieldType::One(choices) | FieldType::Many { choices, .. } => choices,
            FieldType::Text { .. } | FieldType::Number { .. } | FieldType::Flag => &[],
        }
    }

    fn read(&self, line: &str) -> Result<Value, String> {
        match self {
            FieldType::Text { min, max, format } => {
                within("characters", line.chars().count(), *min, *max)?;
                format
                    .as_deref()
                    .map_or(Ok(()), |format| check_format(format, line))?;
                Ok(Value::from(line))
            }
            FieldType::Number { whole, min, max } => read_number(line, *whole, *min, *max),
            FieldType::Flag => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Ok(Value::from(true)),
                "n" | "no" | "false" | "0" => Ok(Value::from(false)),
                _ => Err("type yes or no".into()),
            },
            FieldType::One(choices) => pick(choices, line).map(Value::from),
            FieldType::Many { choices, min, max } => {
                let words = line
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let mut picked: Vec<String> = words
                    .map(|word| pick(choices, word))
                    .collect::<Result<_, _>>()?;
                let mut seen = std::collections::HashSet::new();
                picked.retain(|value| seen.insert(value.clone()));
                within("choices", picked.len(), *min, *max)?;
                Ok(Value::from(picked))
            }
        }
    }
}

/// Finds a choice by value, else by number, else by title.
fn pick(choices: &[FieldChoice], word: &str) -> Result<String, String> {
    let by_value = choices.iter().find(|choice| choice.value == word);
    let by_number = || choices.get(word.parse::<usize>().ok()?.checked_sub(1)?);
    let by_title = || {
        choices
            .iter()
            .find(|choice| choice.title.as_deref() == Some(word))
    };
    let found = by_value.or_else(by_number).or_else(by_title);
    found
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("`{word}` is not one of the choices"))
}

fn read_number(
    line: &str,
    whole: bool,
    min: Option<f64>,
    max: Option<f64>,
) -> Result<Value, String> {
    let number: Number = line.parse().map_err(|_| "type a number".to_owned())?;
    let value = number
        .as_f64()
        .filter(|value| value.is_finite())
        .ok_or("type a number")?;
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
        (Some(min), _) if count < min => Err(format!("at least {min} {what} are required")),
        (_, Some(max)) if count > max => Err(format!("at most {max} {what} are allowed")),
        _ => Ok(()),
    }
}

/// Checks the four formats of MCP forms; others are accepted.
fn check_format(format: &str, line: &str) -> Result<(), String> {
    let good = match format {
        "email" => line.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty()
                && host.contains('.')
                && !line.contains(char::is_whitespace)
                && !host.contains('@')
        }),
        "uri" => {
            line.parse::<hyper::Uri>()
                .is_ok_and(|uri| uri.scheme().is_some())
                || opaque_uri(line)
        }
        "date" => is_date_time(&format!("{line}T00:00:00Z")),
        "date-time" => is_date_time(line),
        _ => true,
    };
    let example = match format {
        "email" => "ann@example.com",
        "uri" => "https://example.com/",
        "date" => "2026-07-28",
        _ => "2026-07-28T12:30:00Z",
    };
    if good {
        Ok(())
    } else {
        Err(format!("it must look like {example}"))
    }
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

/// RFC 3339, with a `T` between date and time.
fn is_date_time(text: &str) -> bool {
    !text.contains(' ') && DateTime::parse_from_rfc3339(text).is_ok()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Bool(flag) => (if *flag { "yes" } else { "no" }).into(),
        Value::Null | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
