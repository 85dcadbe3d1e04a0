//! TOML tables with their places: values of the expected type, or an error that says what to write.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::constant::Constant;
use crate::decimal::{Decimal, SpelledNumber};
use crate::range::CountRange;

/// Why a file of rules is not accepted: the place, what is wrong there, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFileError {
    /// The line, from 1 on.
    pub line: usize,
    /// The column in characters, from 1 on.
    pub column: usize,
    /// The id of the rule, if it is known.
    pub rule: Option<String>,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl RuleFileError {
    /// The error, of a rule of this id.
    pub(crate) fn of_rule(mut self, id: &str) -> Self {
        self.rule = Some(id.to_owned());
        self
    }
}

impl fmt::Display for RuleFileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: ", self.line, self.column)?;
        if let Some(rule) = &self.rule {
            write!(out, "rule {rule}: ")?;
        }
        write!(out, "{}; {}", self.message, self.remedy)
    }
}

impl std::error::Error for RuleFileError {}

/// The text of a file, to find places in.
#[derive(Clone, Copy)]
pub(crate) struct Source<'t> {
    pub(crate) text: &'t str,
}

/// A place in a text.
pub(crate) struct TextPlace {
    /// The line, from 1 on.
    pub(crate) line: usize,
    /// The column in characters, from 1 on.
    pub(crate) column: usize,
}

impl Source<'_> {
    fn place(self, at: &Range<usize>) -> TextPlace {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let last = before.rsplit('\n').next().unwrap_or_default();
        TextPlace {
            line: before.matches('\n').count() + 1,
            column: last.chars().count() + 1,
        }
    }

    pub(crate) fn error(
        self,
        at: &Range<usize>,
        message: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> RuleFileError {
        let TextPlace { line, column } = self.place(at);
        RuleFileError {
            line,
            column,
            rule: None,
            message: json::visible::line(&message.to_string()),
            remedy: json::visible::line(&remedy.to_string()),
        }
    }
}

/// A table, with its place.
#[derive(Clone)]
pub(crate) struct TableReader<'t> {
    source: Source<'t>,
    table: &'t DeTable<'t>,
    at: Range<usize>,
}

impl<'t> TableReader<'t> {
    pub(crate) fn new(source: Source<'t>, table: &'t DeTable<'t>, at: Range<usize>) -> Self {
        Self { source, table, at }
    }

    /// Refuses keys that are not among these.
    pub(crate) fn known(&self, keys: &[&str]) -> Result<(), RuleFileError> {
        let mut own = self.table.iter();
        match own.find(|(key, _)| !keys.contains(&&**key.get_ref())) {
            None => Ok(()),
            Some((key, _)) => Err(self.source.error(
                &key.span(),
                format_args!("`{}` is not known here", key.get_ref()),
                format_args!("the keys are {}", keys.join(", ")),
            )),
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn get(&self, key: &str) -> Option<ItemReader<'t>> {
        let mut items = self.items();
        items.find(|item| item.key == key)
    }

    pub(crate) fn required(
        &self,
        key: &str,
        remedy: &str,
    ) -> Result<ItemReader<'t>, RuleFileError> {
        self.get(key)
            .ok_or_else(|| self.error(format_args!("`{key}` is missing"), remedy))
    }

    /// All keys with their values.
    pub(crate) fn items(&self) -> impl Iterator<Item = ItemReader<'t>> + use<'t> {
        let source = self.source;
        let pairs = self.table.iter();
        pairs.map(move |(key, value)| ItemReader {
            source,
            key: key.get_ref().to_string(),
            key_at: key.span(),
            value,
        })
    }

    /// An error about the whole table.
    pub(crate) fn error(
        &self,
        message: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> RuleFileError {
        self.source.error(&self.at, message, remedy)
    }
}

/// A value, with its key and its place.
#[derive(Clone)]
pub(crate) struct ItemReader<'t> {
    source: Source<'t>,
    pub(crate) key: String,
    key_at: Range<usize>,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> ItemReader<'t> {
    /// The place at which the value begins.
    pub(crate) fn place(&self) -> TextPlace {
        self.source.place(&self.value.span())
    }

    /// An error about the value.
    pub(crate) fn error(
        &self,
        message: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> RuleFileError {
        self.source.error(&self.value.span(), message, remedy)
    }

    /// An error about the key.
    pub(crate) fn key_error(
        &self,
        message: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> RuleFileError {
        self.source.error(&self.key_at, message, remedy)
    }

    fn wrong_type(&self, expected: &str) -> RuleFileError {
        self.error(
            format_args!("`{}` is no {expected}", self.key),
            format_args!("write a {expected}"),
        )
    }

    pub(crate) fn text(&self) -> Result<&'t str, RuleFileError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => Err(self.wrong_type("text in quotes")),
        }
    }

    /// A text, or a date of TOML as a text.
    pub(crate) fn text_or_date(&self) -> Result<String, RuleFileError> {
        match self.value.get_ref() {
            DeValue::Datetime(date) => Ok(date.to_string()),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => self.text().map(str::to_owned),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, RuleFileError> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::String(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => Err(self.wrong_type("`true` or `false`")),
        }
    }

    pub(crate) fn count(&self) -> Result<u32, RuleFileError> {
        let spelled = self.spelled_number()?;
        spelled.parse().map_err(|_| self.wrong_type("whole number"))
    }

    /// A number as it is spelled.
    fn spelled_number(&self) -> Result<&'t str, RuleFileError> {
        match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str()),
            DeValue::Float(number) => Ok(number.as_str()),
            DeValue::Integer(_)
            | DeValue::Boolean(_)
            | DeValue::String(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => Err(self.wrong_type("number")),
        }
    }

    pub(crate) fn number(&self) -> Result<SpelledNumber, RuleFileError> {
        match SpelledNumber::read(self.spelled_number()?) {
            SpelledNumber::Odd => Err(self.error(
                "not every reader of JSON reads this number alike",
                "write it with at most 15 digits, without exponent, and not as -0",
            )),
            plain => Ok(plain),
        }
    }

    pub(crate) fn decimal(&self) -> Result<Decimal, RuleFileError> {
        let number = self.number()?.exact();
        number.ok_or_else(|| self.wrong_type("number"))
    }

    pub(crate) fn list(&self) -> Result<Vec<ItemReader<'t>>, RuleFileError> {
        match self.value.get_ref() {
            DeValue::Array(items) => Ok(items
                .iter()
                .map(|value| ItemReader {
                    source: self.source,
                    key: self.key.clone(),
                    key_at: self.key_at.clone(),
                    value,
                })
                .collect()),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::String(_)
            | DeValue::Datetime(_)
            | DeValue::Table(_) => Err(self.wrong_type("list in brackets")),
        }
    }

    pub(crate) fn table(&self) -> Result<TableReader<'t>, RuleFileError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(TableReader::new(self.source, table, self.value.span())),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::String(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => Err(self.wrong_type("table in braces")),
        }
    }

    /// Two items, the lower and the upper end.
    pub(crate) fn pair(&self) -> Result<[ItemReader<'t>; 2], RuleFileError> {
        let items = self.list()?;
        <[ItemReader<'t>; 2]>::try_from(items)
            .map_err(|_| self.wrong_type("pair `[lowest, highest]`"))
    }

    pub(crate) fn range(&self) -> Result<CountRange, RuleFileError> {
        let [min, max] = self.pair()?;
        CountRange::new(min.count()?, max.count()?).ok_or_else(|| self.not_ascending())
    }

    pub(crate) fn not_ascending(&self) -> RuleFileError {
        self.error(
            "the lowest is above the highest",
            "write the lower one first",
        )
    }

    pub(crate) fn constant(&self) -> Result<Constant, RuleFileError> {
        let read = match self.value.get_ref() {
            DeValue::String(text) => Constant::of_text(text),
            DeValue::Boolean(flag) => Constant::parse(&flag.to_string()),
            DeValue::Integer(_) | DeValue::Float(_) => {
                self.number()?;
                Constant::parse(self.spelled_number()?)
            }
            DeValue::Table(_) => {
                let table = self.table()?;
                table.known(&["json"])?;
                let json = table.required("json", "write `{ json = 'null' }`")?;
                Constant::parse(json.text()?)
            }
            DeValue::Array(_) | DeValue::Datetime(_) => {
                return Err(self.error(
                    "a list or a date is no constant",
                    "write it as JSON in a text: `{ json = '[1, 2]' }`",
                ));
            }
        };
        read.map_err(|error| {
            self.error(
                error,
                "leave the member to a person, or write another constant",
            )
        })
    }

    /// A value of a type that knows its own syntax.
    pub(crate) fn parsed<T, E: fmt::Display>(
        &self,
        parse: impl FnOnce(&'t str) -> Result<T, E>,
        example: &str,
    ) -> Result<T, RuleFileError> {
        parse(self.text()?).map_err(|error| self.error(error, format_args!("write {example}")))
    }
}
