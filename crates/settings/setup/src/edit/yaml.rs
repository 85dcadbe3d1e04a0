//! YAML: entries of a table or list in block style are put in and taken out by lines.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

use super::lines::{Line, lines, part};
use super::parts::{DEPTH_MAX, EditError, NewEntry, Table, TableEntry, line_end, spliced};

/// Most values of a file, those that aliases repeat included.
pub(super) const VALUES_MAX: usize = 100_000;
/// Words that some parsers take for a flag or nothing.
const NO_TEXT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A value with its place.
#[derive(Debug, Clone)]
struct Node {
    kind: Kind,
    /// The first line, from 0.
    line: usize,
    /// The first column, from 0.
    column: usize,
    /// The last line, from 0.
    last: usize,
    /// Written in brackets.
    is_flow: bool,
}

/// The entries of a table: the name of each, its key, its value.
type Entries = Vec<(String, Node, Node)>;

#[derive(Debug, Clone)]
enum Kind {
    Scalar(Value),
    Map(Entries),
    List(Vec<Node>),
}

/// The reader of one document.
struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    lines: Vec<Line<'a>>,
    anchors: HashMap<usize, Node>,
    values: usize,
}

/// The tree of a text; `None` without a value.
fn parse(text: &str) -> Result<Option<Node>, EditError> {
    let parser = Parser::new_from_str(text);
    let mut reader = Reader {
        parser,
        lines: lines(text),
        anchors: HashMap::new(),
        values: 0,
    };
    let mut found = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => return Ok(found),
            Event::DocumentStart(_) if found.is_some() => {
                return Err(EditError::Shape(
                    "the file has several documents".to_owned(),
                ));
            }
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event @ (Event::Alias(_)
            | Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd) => found = Some(reader.node(event, span, 0)?),
        }
    }
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), EditError> {
        let next = self
            .parser
            .next_event()
            .unwrap_or(Ok((Event::StreamEnd, Span::default())));
        next.map_err(|error| {
            let line = error.marker().line().max(1);
            let column = error.marker().col() + 1;
            EditError::Syntax {
                line,
                column,
                why: error.info().to_owned(),
            }
        })
    }

    fn wrong(span: Span, why: &str) -> EditError {
        EditError::Syntax {
            line: span.start.line(),
            column: span.start.col() + 1,
            why: why.to_owned(),
        }
    }

    /// The value that begins with an event.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, EditError> {
        self.values += 1;
        if depth > DEPTH_MAX || self.values > VALUES_MAX {
            return Err(Self::wrong(
                span,
                "the file is nested too deeply, or has too many values",
            ));
        }
        let line = span.start.line().saturating_sub(1);
        let column = span.start.col();
        let is_flow = self.is_flow(&event, span);
        let end = self.last(span);
        let (kind, last, anchor) = match event {
            Event::Alias(id) => {
                let known = self.anchors.get(&id).cloned();
                let known = known.ok_or_else(|| Self::wrong(span, "an alias has no anchor"))?;
                // An alias counts as all that it stands for: a few of them could be millions.
                self.values += count(&known.kind);
                (known.kind, end, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let value = if is_plain {
                    plain_scalar(&text)
                } else {
                    Value::String(text.into_owned())
                };
                (Kind::Scalar(value), end, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let (items, last) = self.items(line, is_flow, depth)?;
                (Kind::List(items), last, anchor)
            }
            Event::MappingStart(anchor, _) => {
                let (entries, last) = self.entries(line, is_flow, depth)?;
                (Kind::Map(entries), last, anchor)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(Self::wrong(span, "a value is missing")),
        };
        let node = Node {
            kind,
            line,
            column,
            last: last.max(line),
            is_flow,
        };
        // The parser numbers anchors from 1.
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Whether a collection is written in brackets. Looked at of collections alone: the lines of
    /// others' files may be long.
    fn is_flow(&self, event: &Event<'a>, span: Span) -> bool {
        if !matches!(event, Event::SequenceStart(..) | Event::MappingStart(..)) {
            return false;
        }
        let line = self.lines.get(span.start.line().saturating_sub(1));
        line.and_then(|line| line.text.chars().nth(span.start.col()))
            .is_some_and(|first| first == '{' || first == '[')
    }

    /// The items of a list that begins on this line, and its last line.
    fn items(
        &mut self,
        line: usize,
        is_flow: bool,
        depth: usize,
    ) -> Result<(Vec<Node>, usize), EditError> {
        let mut items = Vec::new();
        let mut last = line;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok((items, Self::end_of(span, is_flow, last)));
            }
            let item = self.node(event, span, depth + 1)?;
            last = item.last;
            items.push(item);
        }
    }

    /// The entries of a table that begins on this line, each with its key, and its last line.
    fn entries(
        &mut self,
        line: usize,
        is_flow: bool,
        depth: usize,
    ) -> Result<(Entries, usize), EditError> {
        let mut entries = Entries::new();
        let mut last = line;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok((entries, Self::end_of(span, is_flow, last)));
            }
            let key = self.node(event, span, depth + 1)?;
            let (event, span) = self.next()?;
            let mut value = self.node(event, span, depth + 1)?;
            // A value that is left out has no place of its own.
            if matches!(value.kind, Kind::Scalar(Value::Null)) && value.line != key.line {
                value.line = key.line;
                value.last = key.last;
            }
            last = value.last.max(key.last);
            let name = match &key.kind {
                Kind::Scalar(Value::String(name)) => name.clone(),
                Kind::Scalar(other) => other.to_string(),
                Kind::Map(_) | Kind::List(_) => {
                    return Err(Self::wrong(span, "a key is not a text"));
                }
            };
            entries.push((name, key, value));
        }
    }

    /// The last line of a collection: that of its closing bracket, else that of its last part. The
    /// parser ends one without brackets only at what follows it.
    fn end_of(span: Span, is_flow: bool, last: usize) -> usize {
        if is_flow {
            span.end.line().saturating_sub(1)
        } else {
            last
        }
    }

    /// The last line of a value. What ends behind the white space of a line ends before that line;
    /// blank lines, and comments further left than a text over several lines, are not its own.
    fn last(&self, span: Span) -> usize {
        let start = span.start.line().saturating_sub(1);
        let end = span.end.line().saturating_sub(1);
        let ends_before = self
            .text(end)
            .chars()
            .take(span.end.col())
            .all(char::is_whitespace);
        let mut last = if ends_before && end > start {
            end - 1
        } else {
            end
        };
        while last > start && self.is_outside(last, span.start.col()) {
            last -= 1;
        }
        last
    }

    /// Whether a line at the end of a text that begins in a column is no part of it.
    fn is_outside(&self, line: usize, column: usize) -> bool {
        let text = self.text(line);
        let indent = text.chars().take_while(|c| *c == ' ').count();
        let is_comment = text.trim_start().starts_with('#');
        text.trim().is_empty() || (is_comment && indent < column)
    }

    fn text(&self, line: usize) -> &str {
        self.lines.get(line).map_or("", |line| line.text)
    }
}

fn count(kind: &Kind) -> usize {
    match kind {
        Kind::Scalar(_) => 1,
        Kind::Map(entries) => entries
            .iter()
            .map(|(_, _, value)| count(&value.kind) + 1)
            .sum(),
        Kind::List(items) => items.iter().map(|item| count(&item.kind) + 1).sum(),
    }
}

/// A scalar without quotes (YAML 1.2, core schema): numbers, flags, nothing, else a text.
fn plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::from(number),
            (Err(_), Ok(number))
                if text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c)) =>
            {
                Value::from(number)
            }
            (Err(_), _) => Value::String(text.to_owned()),
        },
    }
}

fn plain(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar(value) => value.clone(),
        Kind::Map(entries) => {
            let one = |(name, _, value): &(String, Node, Node)| (name.clone(), plain(value));
            Value::Object(entries.iter().map(one).collect::<Map<_, _>>())
        }
        Kind::List(items) => items.iter().map(plain).collect(),
    }
}

pub(super) fn value(text: &str) -> Result<Value, EditError> {
    Ok(parse(text)?.as_ref().map_or(Value::Null, plain))
}

/// The key of the table, with its value, of the file's outermost table.
fn table<'a>(
    of: &Table,
    root: Option<&'a Node>,
) -> Result<Option<&'a (String, Node, Node)>, EditError> {
    let [name] = of.path.as_slice() else {
        return Err(EditError::Unsafe);
    };
    let Some(root) = root else { return Ok(None) };
    let entries = match &root.kind {
        Kind::Map(entries) => entries,
        Kind::Scalar(Value::Null) => return Ok(None),
        Kind::Scalar(_) | Kind::List(_) => {
            return Err(EditError::Shape(
                "the file is not a table of keys".to_owned(),
            ));
        }
    };
    let mut all = entries.iter().filter(|(key, ..)| key == name);
    let first = all.next();
    match all.next() {
        Some((_, key, _)) => Err(twice(key, name)),
        None => Ok(first),
    }
}

fn twice(key: &Node, name: &str) -> EditError {
    EditError::Syntax {
        line: key.line + 1,
        column: key.column + 1,
        why: format!("`{name}` occurs twice"),
    }
}

/// The entries with their first and last lines.
fn items<'a>(of: &Table, node: &'a Node) -> Result<Vec<(String, usize, &'a Node)>, EditError> {
    let wrong = |what: &str| {
        EditError::Shape(format!(
            "line {}: `{}` is not a {what}",
            node.line + 1,
            of.path.concat()
        ))
    };
    let found: Vec<(String, usize, &Node)> = match (&node.kind, of.is_list) {
        (Kind::Scalar(Value::Null), _) => Vec::new(),
        (Kind::Map(entries), false) => entries
            .iter()
            .map(|(name, key, value)| (name.clone(), key.line, value))
            .collect(),
        (Kind::List(items), true) => items
            .iter()
            .filter_map(|item| {
                Some((
                    plain(item).get("name")?.as_str()?.to_owned(),
                    item.line,
                    item,
                ))
            })
            .collect(),
        (_, false) => return Err(wrong("table")),
        (_, true) => return Err(wrong("list")),
    };
    for (at, (name, _, item)) in found.iter().enumerate() {
        if found.iter().take(at).any(|(known, ..)| known == name) {
            return Err(twice(item, name));
        }
    }
    Ok(found)
}

pub(super) fn entries(of: &Table, text: &str) -> Result<Vec<TableEntry>, EditError> {
    let root = parse(text)?;
    let Some((_, _, node)) = table(of, root.as_ref())? else {
        return Ok(Vec::new());
    };
    let entry = |(name, _, node): (String, usize, &Node)| TableEntry {
        name,
        value: plain(node),
    };
    Ok(items(of, node)?.into_iter().map(entry).collect())
}

pub(super) fn insert(
    of: &Table,
    text: &str,
    name: &str,
    fields: &NewEntry,
) -> Result<String, EditError> {
    let root = parse(text)?;
    let end = line_end(text);
    let Some((_, key, node)) = table(of, root.as_ref())? else {
        if root.as_ref().is_some_and(|root| root.is_flow) {
            return Err(EditError::Unsafe);
        }
        let column = match &root {
            Some(Node {
                kind: Kind::Map(entries),
                ..
            }) => entries.first().map_or(0, |(_, key, _)| key.column),
            Some(_) | None => 0,
        };
        let indent = " ".repeat(column);
        let entry = entry_text(of, name, fields, column + 2, end);
        let whole = format!("{indent}{}:{end}{entry}", of.path.concat());
        return Ok(if text.is_empty() || text.ends_with('\n') {
            format!("{text}{whole}{end}")
        } else {
            format!("{text}{end}{whole}")
        });
    };
    let all = lines(text);
    let found = items(of, node)?;
    let Some((_, _, last)) = found.last() else {
        // `key:` or `key: {}`, perhaps with a comment.
        let line = all.get(key.line).ok_or(EditError::Unsafe)?;
        let cleared = if node.is_flow {
            let written = line
                .text
                .replacen(if of.is_list { " []" } else { " {}" }, "", 1);
            if written == line.text {
                return Err(EditError::Unsafe);
            }
            written
        } else {
            line.text.to_owned()
        };
        let open = cleared.trim_end_matches(['\r', '\n']);
        let entry = entry_text(of, name, fields, key.column + 2, end);
        let closing = cleared.get(open.len()..).unwrap_or_default();
        return Ok(spliced(
            text,
            line.start..line.end(),
            &format!("{open}{end}{entry}{closing}"),
        ));
    };
    if node.is_flow {
        return Err(EditError::Unsafe);
    }
    let column = match &node.kind {
        Kind::Map(entries) => entries.first().map_or(0, |(_, key, _)| key.column),
        // Where the dashes are.
        Kind::List(items) => items
            .first()
            .and_then(|item| all.get(item.line))
            .map_or(0, |line| {
                line.text.chars().take_while(|c| *c == ' ').count()
            }),
        Kind::Scalar(_) => node.column,
    };
    let entry = entry_text(of, name, fields, column, end);
    let line = all.get(last.last).ok_or(EditError::Unsafe)?;
    let at = line.end();
    Ok(if line.text.ends_with('\n') {
        spliced(text, at..at, &format!("{entry}{end}"))
    } else {
        spliced(text, at..at, &format!("{end}{entry}"))
    })
}

/// The lines of an entry, without a line end behind the last.
fn entry_text(of: &Table, name: &str, fields: &NewEntry, column: usize, end: &str) -> String {
    let indent = " ".repeat(column);
    let mut rows = if of.is_list {
        vec![format!("{indent}- name: {}", scalar(name))]
    } else {
        vec![format!("{indent}{}:", scalar(name))]
    };
    for (key, value) in fields
        .iter()
        .filter(|(key, _)| !of.is_list || key != "name")
    {
        rows.extend(field(key, value, column + 2));
    }
    rows.join(end)
}

/// The lines of a key and its value: lists on one line.
fn field(key: &str, value: &Value, column: usize) -> Vec<String> {
    let start = format!("{}{}:", " ".repeat(column), scalar(key));
    match value {
        Value::Object(map) if !map.is_empty() => {
            let inner = map
                .iter()
                .flat_map(|(key, value)| field(key, value, column + 2));
            std::iter::once(start).chain(inner).collect()
        }
        Value::String(text) => vec![format!("{start} {}", scalar(text))],
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            vec![format!("{start} [{}]", items.join(", "))]
        }
        Value::Object(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            vec![format!("{start} {value}")]
        }
    }
}

/// A text: in quotes, as in JSON, unless every parser reads it as the same text without.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(plain)
        && !NO_TEXT.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

pub(super) fn remove(of: &Table, text: &str, name: &str) -> Result<String, EditError> {
    let root = parse(text)?;
    let Some((_, key, node)) = table(of, root.as_ref())? else {
        return Ok(text.to_owned());
    };
    if node.is_flow {
        return Err(EditError::Unsafe);
    }
    let found = items(of, node)?;
    let Some((_, first, entry)) = found.iter().find(|(known, ..)| known == name) else {
        return Ok(text.to_owned());
    };
    let all = lines(text);
    let starts = all
        .get(*first)
        .is_some_and(|line| !of.is_list || line.text.trim_start().starts_with('-'));
    if !starts || *first == key.line {
        return Err(EditError::Unsafe);
    }
    let edited = spliced(text, part(text, &all, *first, entry.last + 1), "");
    let is_only = match &node.kind {
        Kind::Map(entries) => entries.len() == 1,
        Kind::List(items) => items.len() == 1,
        Kind::Scalar(_) => false,
    };
    let line = all.get(key.line).filter(|_| is_only);
    let colon = line.and_then(|line| Some(line.start + line.text.find(':')? + 1));
    Ok(match colon {
        Some(colon) => spliced(
            &edited,
            colon..colon,
            if of.is_list { " []" } else { " {}" },
        ),
        None => edited,
    })
}
