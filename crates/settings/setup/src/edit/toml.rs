//! TOML: whole sections are put in and taken out by lines; other ways to write a table are left to
//! `toml_edit`.

use serde_json::{Map, Value};
use toml_edit::{Document, DocumentMut, InlineTable, Item, Key, Table as TomlTable, TableLike};

use super::lines::{Line, lines, part};
use super::parts::{
    EditError, NewEntry, Table, TableEntry, line_end, object, place, prune, put, spliced,
};

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    let document = Document::parse(text.to_owned()).map_err(|error| {
        let (line, column) = place(text, error.span().unwrap_or_default().start);
        EditError::Syntax {
            line,
            column,
            why: error.message().trim().replace('\n', ", "),
        }
    })?;
    Ok(document.into_mut())
}

pub(super) fn value(text: &str) -> Result<Value, EditError> {
    Ok(plain_table(parse(text)?.as_table()))
}

fn plain_table(table: &dyn TableLike) -> Value {
    Value::Object(
        table
            .iter()
            .map(|(key, item)| (key.to_owned(), plain(item)))
            .collect::<Map<_, _>>(),
    )
}

fn plain(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Table(table) => plain_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| plain_table(table)).collect(),
        Item::Value(value) => plain_value(value),
    }
}

fn plain_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => {
            // Infinities and what is no number are compared by their names.
            let number = *number.value();
            serde_json::Number::from_f64(number)
                .map_or_else(|| number.to_string().into(), Value::Number)
        }
        toml_edit::Value::Boolean(flag) => Value::Bool(*flag.value()),
        toml_edit::Value::Datetime(time) => Value::String(time.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(plain_value).collect(),
        toml_edit::Value::InlineTable(table) => plain_table(table),
    }
}

pub(super) fn entries(of: &Table, text: &str) -> Result<Vec<TableEntry>, EditError> {
    let document = parse(text)?;
    let mut at: &dyn TableLike = document.as_table();
    for key in &of.path {
        let Some(item) = at.get(key) else {
            return Ok(Vec::new());
        };
        let not_a_table = || EditError::Shape(format!("`{key}` is not a table"));
        at = item.as_table_like().ok_or_else(not_a_table)?;
    }
    Ok(at
        .iter()
        .map(|(name, item)| TableEntry {
            name: name.to_owned(),
            value: plain(item),
        })
        .collect())
}

/// The keys of a header such as `[servers.a]`, if the line is one.
fn header(line: &Line<'_>) -> Option<Vec<String>> {
    let text = line.text.trim_start();
    if !text.starts_with('[') {
        return None;
    }
    let end = text
        .char_indices()
        .filter(|(_, c)| *c == ']')
        .map(|(at, _)| at);
    // A key in quotes may have a bracket.
    end.into_iter().find_map(|end| {
        let inside = text.get(1..end)?.trim_start_matches('[');
        let keys = Key::parse(inside).ok()?;
        let rest = text.get(end + 1..)?.trim_start_matches(']').trim();
        (rest.is_empty() || rest.starts_with('#'))
            .then(|| keys.iter().map(|key| key.get().to_owned()).collect())
    })
}

/// A section: its header's keys, its first line, and the line behind its last key and the comments
/// below that.
struct Section {
    keys: Vec<String>,
    first: usize,
    end: usize,
}

fn sections(lines: &[Line<'_>]) -> Vec<Section> {
    let headers = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, header(line)?)));
    let headers: Vec<(usize, Vec<String>)> = headers.collect();
    let starts = headers
        .iter()
        .skip(1)
        .map(|(at, _)| *at)
        .chain([lines.len()]);
    let ends: Vec<usize> = starts.collect();
    headers
        .into_iter()
        .zip(ends)
        .map(|((first, keys), next)| {
            let body = lines.get(first..next).unwrap_or_default();
            let last = body
                .iter()
                .rposition(|line| !line.is_blank() && !line.is_comment())
                .unwrap_or(0);
            let below = body
                .iter()
                .skip(last + 1)
                .take_while(|line| line.is_comment())
                .count();
            // Comments right above the next header are of that one.
            let is_joined = last + 1 + below == body.len() && next < lines.len();
            Section {
                keys,
                first,
                end: first + last + 1 + if is_joined { 0 } else { below },
            }
        })
        .collect()
}

pub(super) fn insert(
    of: &Table,
    text: &str,
    name: &str,
    fields: &NewEntry,
) -> Result<String, EditError> {
    let document = parse(text)?;
    let by_lines = insert_section(of, text, name, fields);
    if value(&by_lines).is_ok_and(|found| {
        let mut expected = plain_table(document.as_table());
        put(&mut expected, of, name, Some(object(fields)));
        found == expected
    }) {
        return Ok(by_lines);
    }
    insert_item(of, document, name, fields)
}

/// Puts a section in the place of the entry's own ones, if these follow each other.
pub(super) fn replace_section(
    of: &Table,
    text: &str,
    name: &str,
    fields: &NewEntry,
) -> Option<String> {
    let all = lines(text);
    let keys: Vec<String> = of.path.iter().cloned().chain([name.to_owned()]).collect();
    let sections = sections(&all);
    let is_own = |section: &Section| section.keys.starts_with(&keys);
    let first = sections.iter().position(is_own)?;
    let own = sections
        .get(first..)?
        .iter()
        .take_while(|section| is_own(section))
        .count();
    let last = sections.get(first + own - 1)?;
    if sections.iter().filter(|section| is_own(section)).count() != own {
        return None;
    }
    let start = all.get(sections.get(first)?.first)?.start;
    let end = all.get(last.end.checked_sub(1)?)?.end();
    let section = section_text(of, name, fields).replace('\n', line_end(text));
    let has_end = text.get(start..end)?.ends_with('\n');
    let section = if has_end {
        section.as_str()
    } else {
        section.trim_end_matches(['\r', '\n'])
    };
    Some(spliced(text, start..end, section))
}

/// Puts a section behind the last one of the table, else at the end.
fn insert_section(of: &Table, text: &str, name: &str, fields: &NewEntry) -> String {
    let all = lines(text);
    let sections = sections(&all);
    // Without one of the table, behind those of the table around it.
    let around = |depth: &usize| {
        sections.iter().rfind(|section| {
            of.path
                .get(..*depth)
                .is_some_and(|path| section.keys.starts_with(path))
        })
    };
    let depths = (1..=of.path.len())
        .rev()
        .take_while(|depth| *depth == of.path.len() || *depth > 1);
    let after = depths
        .collect::<Vec<_>>()
        .iter()
        .find_map(around)
        .map_or(all.len(), |section| section.end);
    let end = line_end(text);
    let section = section_text(of, name, fields).replace('\n', end);
    let at = after
        .checked_sub(1)
        .and_then(|at| all.get(at))
        .map_or(0, Line::end);
    let before = text.get(..at).unwrap_or_default();
    let section = section.strip_suffix(end).unwrap_or(&section);
    if before.trim().is_empty() {
        return spliced(text, at..at, &format!("{section}{end}"));
    }
    match before.ends_with('\n') {
        true => spliced(text, at..at, &format!("{end}{section}{end}")),
        // The file ends without a line end, and goes on doing so.
        false => spliced(text, at..at, &format!("{end}{end}{section}")),
    }
}

/// `[servers.a]` and its keys, with line feeds.
fn section_text(of: &Table, name: &str, fields: &NewEntry) -> String {
    let mut entry = TomlTable::new();
    for (key, value) in fields {
        entry.insert(key, toml_value(value).map_or(Item::None, Item::Value));
    }
    let mut item = entry;
    for key in of.path.iter().map(String::as_str).chain([name]).rev() {
        let mut outer = TomlTable::new();
        outer.set_implicit(true);
        outer.insert(key, Item::Table(item));
        item = outer;
    }
    DocumentMut::from(item).to_string()
}

/// A value; `None` for `null`, which TOML has not.
fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(
            items
                .iter()
                .filter_map(toml_value)
                .collect::<toml_edit::Array>(),
        ),
        Value::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map
                .iter()
                .filter_map(|(key, value)| Some((key, toml_value(value)?)))
            {
                table.insert(key, value);
            }
            toml_edit::Value::InlineTable(table)
        }
    })
}

/// Puts the entry into a table that is not written as sections: `servers = { ... }`,
/// `servers.a.command = ...`.
fn insert_item(
    of: &Table,
    mut document: DocumentMut,
    name: &str,
    fields: &NewEntry,
) -> Result<String, EditError> {
    let mut at: &mut dyn TableLike = document.as_table_mut();
    for key in &of.path {
        let item = at
            .entry(key)
            .or_insert_with(|| Item::Value(InlineTable::new().into()));
        at = item.as_table_like_mut().ok_or(EditError::Unsafe)?;
    }
    let fields: Map<String, Value> = fields.iter().cloned().collect();
    let value = toml_value(&Value::Object(fields)).ok_or(EditError::Unsafe)?;
    at.insert(name, Item::Value(value));
    Ok(document.to_string())
}

/// The text with a key of an entry set or taken out in its own lines; `None` if the entry is no
/// section that has them.
pub(super) fn set_line(
    of: &Table,
    text: &str,
    name: &str,
    key: &str,
    value: Option<&Value>,
) -> Result<Option<String>, EditError> {
    // It knows the places of keys and values.
    let document = Document::parse(text.to_owned()).map_err(|_| EditError::Unsafe)?;
    let mut at: &dyn TableLike = document.as_table();
    for outer in of.path.iter().map(String::as_str).chain([name]) {
        at = at
            .get(outer)
            .and_then(Item::as_table_like)
            .ok_or(EditError::Unsafe)?;
    }
    let written = value.and_then(toml_value).map(|value| value.to_string());
    let Some((place, item)) = at.get_key_value(key) else {
        if value.is_none() {
            return Ok(Some(text.to_owned()));
        }
        return Ok(written
            .and_then(|value| with_line(of, text, name, &format!("{} = {value}", Key::new(key)))));
    };
    let (Some(key), Some(value)) = (place.span(), item.span()) else {
        return Ok(None);
    };
    Ok(match written {
        Some(written) => Some(spliced(text, value, &written)),
        None => without_line(text, key.start, value.end),
    })
}

/// The text with one more line behind the last key of a section; `None` if the entry is no section.
fn with_line(of: &Table, text: &str, name: &str, line: &str) -> Option<String> {
    let all = lines(text);
    let is_it = |section: &&Section| {
        section.keys.len() == of.path.len() + 1
            && section.keys.starts_with(&of.path)
            && section.keys.last().is_some_and(|last| last == name)
    };
    let section = sections(&all).into_iter().find(|section| is_it(&section))?;
    let body = all.get(section.first..section.end)?;
    let last = body
        .iter()
        .rfind(|line| !line.is_blank() && !line.is_comment())?;
    let at = last.end();
    let end = line_end(text);
    Some(if last.text.ends_with('\n') {
        spliced(text, at..at, &format!("{line}{end}"))
    } else {
        spliced(text, at..at, &format!("{end}{line}"))
    })
}

/// The text without the lines of a key and its value; `None` if something else is in them.
fn without_line(text: &str, start: usize, end: usize) -> Option<String> {
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |end| end + 1);
    let rest = text.get(end..)?;
    let line_end = rest.find('\n').map_or(text.len(), |at| end + at + 1);
    let before = text.get(line_start..start)?;
    let after = text.get(end..line_end)?.trim();
    let is_alone = before.trim().is_empty() && (after.is_empty() || after.starts_with('#'));
    is_alone.then(|| spliced(text, line_start..line_end, ""))
}

/// The text with a key of an entry set or taken out, if the entry is written in another way.
pub(super) fn set_item(
    of: &Table,
    text: &str,
    name: &str,
    key: &str,
    value: Option<&Value>,
) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let mut at: &mut dyn TableLike = document.as_table_mut();
    for outer in of.path.iter().map(String::as_str).chain([name]) {
        at = at
            .get_mut(outer)
            .and_then(Item::as_table_like_mut)
            .ok_or(EditError::Unsafe)?;
    }
    match value.and_then(toml_value) {
        Some(value) => drop(at.insert(key, Item::Value(value))),
        None => drop(at.remove(key)),
    }
    Ok(document.to_string())
}

pub(super) fn remove(of: &Table, text: &str, name: &str) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let by_lines = remove_sections(of, text, name);
    let mut expected = plain_table(document.as_table());
    put(&mut expected, of, name, None);
    let mut found = value(&by_lines).unwrap_or_default();
    prune(&mut expected, &of.path);
    prune(&mut found, &of.path);
    if found == expected {
        return Ok(by_lines);
    }
    let mut at: &mut dyn TableLike = document.as_table_mut();
    for key in &of.path {
        at = at
            .get_mut(key)
            .and_then(Item::as_table_like_mut)
            .ok_or(EditError::Unsafe)?;
    }
    at.remove(name);
    Ok(document.to_string())
}

/// Takes out the sections of the entry with the comments right above them.
fn remove_sections(of: &Table, text: &str, name: &str) -> String {
    let all = lines(text);
    let keys: Vec<String> = of.path.iter().cloned().chain([name.to_owned()]).collect();
    let mut edited = text.to_owned();
    for section in sections(&all)
        .iter()
        .rev()
        .filter(|section| section.keys.starts_with(&keys))
    {
        let above = all.get(..section.first).unwrap_or_default();
        let comments = above
            .iter()
            .rev()
            .take_while(|line| line.is_comment())
            .count();
        // A comment at the begin of the file may be about the whole of it.
        let comments = if comments == above.len() { 0 } else { comments };
        let first = section.first - comments;
        let above = above.get(..first).unwrap_or_default();
        let is_first = above.iter().all(Line::is_blank);
        // The one blank line that stands between two sections.
        let blank = usize::from(above.last().is_some_and(Line::is_blank));
        let below = all
            .get(section.end..)
            .unwrap_or_default()
            .iter()
            .take_while(|line| line.is_blank())
            .count();
        let (first, end) = if is_first {
            (first, section.end + below)
        } else {
            (first - blank, section.end)
        };
        edited = spliced(&edited, part(text, &all, first, end), "");
    }
    edited
}
