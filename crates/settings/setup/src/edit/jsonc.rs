//! JSON with comments, edited at the places that the syntax tree gives.

use config::jsonc::OPTIONS;
use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::parts::{EditError, NewEntry, Table, TableEntry, line_end, place, spliced};

/// Indentation where the file shows none.
const INDENT: &str = "  ";

/// The tree of a text; `None` without a value.
fn parse(text: &str) -> Result<Option<Node<'_>>, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let (line, column) = place(text, error.range().start);
        EditError::Syntax {
            line,
            column,
            why: error.kind().to_string(),
        }
    })?;
    Ok(parsed.value)
}

/// The object of a file; `None` if the file has no value.
fn root(text: &str) -> Result<Option<Object<'_>>, EditError> {
    match parse(text)? {
        None => Ok(None),
        Some(Node::Object(object)) => Ok(Some(object)),
        Some(_) => Err(EditError::Shape(
            "the file has no object `{ ... }`".to_owned(),
        )),
    }
}

/// The property of this name.
///
/// # Errors
/// When the object has it twice: programs differ in which of them counts.
fn property<'a, 'b>(
    text: &str,
    object: &'b Object<'a>,
    name: &str,
) -> Result<Option<&'b ObjectProp<'a>>, EditError> {
    let mut all = object
        .properties
        .iter()
        .filter(|one| one.name.as_str() == name);
    let first = all.next();
    if let Some(second) = all.next() {
        let (line, column) = place(text, second.range.start);
        return Err(EditError::Syntax {
            line,
            column,
            why: format!("`{name}` occurs twice"),
        });
    }
    Ok(first)
}

/// The table of a file, and how many keys of its path the file has.
fn table<'a>(
    table: &Table,
    text: &str,
    root: &'a Object<'a>,
) -> Result<(&'a Object<'a>, usize), EditError> {
    let mut at = root;
    let mut depth = 0;
    for key in &table.path {
        let Some(found) = property(text, at, key)? else {
            break;
        };
        let Node::Object(object) = &found.value else {
            let (line, _) = place(text, found.range.start);
            return Err(EditError::Shape(format!(
                "line {line}: `{key}` is not an object"
            )));
        };
        (at, depth) = (object, depth + 1);
    }
    Ok((at, depth))
}

pub(super) fn value(text: &str) -> Result<Value, EditError> {
    Ok(parse(text)?.as_ref().map_or(Value::Null, plain))
}

fn plain(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(one) => Value::String(one.value.to_string()),
        // A number that no program could hold is compared as it is written.
        Node::NumberLit(one) => {
            serde_json::from_str(one.value).unwrap_or_else(|_| one.value.into())
        }
        Node::BooleanLit(one) => Value::Bool(one.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(plain).collect(),
        Node::Object(object) => {
            let one = |one: &ObjectProp<'_>| (one.name.as_str().to_owned(), plain(&one.value));
            Value::Object(object.properties.iter().map(one).collect::<Map<_, _>>())
        }
    }
}

pub(super) fn entries(of: &Table, text: &str) -> Result<Vec<TableEntry>, EditError> {
    let Some(root) = root(text)? else {
        return Ok(Vec::new());
    };
    let (object, depth) = table(of, text, &root)?;
    if depth < of.path.len() {
        return Ok(Vec::new());
    }
    for one in &object.properties {
        property(text, object, one.name.as_str())?;
    }
    let entry = |one: &ObjectProp<'_>| TableEntry {
        name: one.name.as_str().to_owned(),
        value: plain(&one.value),
    };
    Ok(object.properties.iter().map(entry).collect())
}

pub(super) fn insert(
    of: &Table,
    text: &str,
    name: &str,
    fields: &NewEntry,
) -> Result<String, EditError> {
    let end = line_end(text);
    let Some(root) = root(text)? else {
        let style = Style {
            unit: INDENT,
            end,
            is_flat: false,
        };
        let mut keys: Vec<&str> = of.path.iter().map(String::as_str).collect();
        keys.push(name);
        let written = nested(&keys, fields, style, 0);
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            end
        };
        return Ok(format!("{text}{gap}{{{end}{INDENT}{written}{end}}}{end}"));
    };
    let (object, depth) = table(of, text, &root)?;
    let mut keys: Vec<&str> = of.path.iter().skip(depth).map(String::as_str).collect();
    keys.push(name);
    let first = keys.first().copied().unwrap_or(name);
    if property(text, object, first)?.is_some() {
        return Err(EditError::Unsafe);
    }
    Ok(put_in(text, &root, object, &keys, fields, end))
}

/// Form in which a new entry is written.
#[derive(Clone, Copy)]
struct Style<'a> {
    /// One step of indentation.
    unit: &'a str,
    /// The line end.
    end: &'a str,
    /// On one line.
    is_flat: bool,
}

/// Puts keys, each inside the one before, into an object.
fn put_in(
    text: &str,
    root: &Object<'_>,
    object: &Object<'_>,
    keys: &[&str],
    fields: &NewEntry,
    end: &str,
) -> String {
    let unit = unit(text, root);
    let open = indent_at(text, object.range.start);
    let Some(last) = object.properties.last() else {
        let style = Style {
            unit: &unit,
            end,
            is_flat: false,
        };
        let depth = depth_of(open, &unit);
        let entry = nested(keys, fields, style, depth);
        let inside = object.range.start + 1..object.range.end.saturating_sub(1);
        let comments = text.get(inside.clone()).unwrap_or_default().trim_end();
        return spliced(
            text,
            inside,
            &format!("{comments}{end}{open}{unit}{entry}{end}{open}"),
        );
    };
    let own_line = starts_line(text, last.range.start);
    let after = last.range.end;
    let comma = comma_after(text, after);
    if !own_line {
        let style = Style {
            unit: &unit,
            end,
            is_flat: true,
        };
        let entry = nested(keys, fields, style, 0);
        return match comma {
            Some(comma) => spliced(text, comma + 1..comma + 1, &format!(" {entry},")),
            None => spliced(text, after..after, &format!(", {entry}")),
        };
    }
    let indent = indent_at(text, last.range.start);
    let style = Style {
        unit: &unit,
        end,
        is_flat: false,
    };
    let entry = nested(
        keys,
        fields,
        style,
        depth_of(indent, &unit).saturating_sub(1),
    );
    let rest = line_rest(text, comma.map_or(after, |comma| comma + 1));
    let trailing = if comma.is_some() { "," } else { "" };
    let edited = spliced(text, rest..rest, &format!("{end}{indent}{entry}{trailing}"));
    if comma.is_some() {
        edited
    } else {
        spliced(&edited, after..after, ",")
    }
}

/// `"a": { "b": { fields } }`, whose first line is indented already.
fn nested(keys: &[&str], fields: &NewEntry, style: Style<'_>, depth: usize) -> String {
    let Some((key, rest)) = keys.split_first() else {
        return String::new();
    };
    let key = Value::from(*key);
    let (open, close) = if style.is_flat {
        (" ".to_owned(), " ".to_owned())
    } else {
        let line = |depth: usize| format!("{}{}", style.end, style.unit.repeat(depth));
        (line(depth + 2), line(depth + 1))
    };
    if rest.is_empty() {
        let separator = if style.is_flat {
            ", ".to_owned()
        } else {
            format!(",{open}")
        };
        let field = |(key, value): &(String, Value)| {
            format!(
                "{}: {}",
                Value::from(key.as_str()),
                written(value, style, depth + 2)
            )
        };
        let fields: Vec<String> = fields.iter().map(field).collect();
        return format!("{key}: {{{open}{}{close}}}", fields.join(&separator));
    }
    format!(
        "{key}: {{{open}{}{close}}}",
        nested(rest, fields, style, depth + 1)
    )
}

/// A value: lists and empty objects on one line.
fn written(value: &Value, style: Style<'_>, depth: usize) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if !map.is_empty() && !style.is_flat => {
            let line = |depth: usize| format!("{}{}", style.end, style.unit.repeat(depth));
            let field = |(key, value): (&String, &Value)| {
                format!(
                    "{}{}: {}",
                    line(depth + 1),
                    Value::from(key.as_str()),
                    written(value, style, depth + 1)
                )
            };
            let fields: Vec<String> = map.iter().map(field).collect();
            format!("{{{}{}}}", fields.join(","), line(depth))
        }
        Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            value.to_string()
        }
    }
}

pub(super) fn remove(of: &Table, text: &str, name: &str) -> Result<String, EditError> {
    let Some(root) = root(text)? else {
        return Ok(text.to_owned());
    };
    let (object, _) = table(of, text, &root)?;
    let Some(at) = object
        .properties
        .iter()
        .position(|one| one.name.as_str() == name)
    else {
        return Ok(text.to_owned());
    };
    let Some(found) = object.properties.get(at) else {
        return Ok(text.to_owned());
    };
    let before = at.checked_sub(1).and_then(|at| object.properties.get(at));
    let comma = comma_after(text, found.range.end);
    let behind = comma.map_or(found.range.end, |comma| comma + 1);
    let is_last = at + 1 == object.properties.len();
    let inside = object.range.start + 1..object.range.end.saturating_sub(1);
    let around = format!(
        "{}{}",
        text.get(inside.start..found.range.start)
            .unwrap_or_default(),
        text.get(behind..inside.end).unwrap_or_default()
    );
    if object.properties.len() == 1 && around.trim().is_empty() {
        return Ok(spliced(text, inside, ""));
    }
    let next = object.properties.get(at + 1);
    if !starts_line(text, found.range.start)
        || next.is_some_and(|next| !starts_line(text, next.range.start))
    {
        return Ok(match (before, next) {
            (_, Some(next)) => spliced(text, found.range.start..next.range.start, ""),
            (Some(before), None) => {
                // A trailing comma stays for the entry before.
                let comma = comma_after(text, before.range.end).unwrap_or(before.range.end);
                let end = comma_after(text, found.range.end).unwrap_or(found.range.end);
                spliced(text, comma..end, "")
            }
            (None, None) => spliced(text, found.range.start..behind, ""),
        });
    }
    // The line end before the entry, the entry, its comma, and a comment that follows on its line.
    let start = line_start(text, found.range.start);
    let start = start - usize::from(start > 0);
    let start = start
        - usize::from(
            text.get(..start)
                .is_some_and(|before| before.ends_with('\r')),
        );
    let edited = spliced(text, start..line_rest(text, behind), "");
    let extra = before.filter(|_| is_last && comma.is_none());
    Ok(
        match extra.and_then(|before| comma_after(&edited, before.range.end)) {
            Some(comma) => spliced(&edited, comma..comma + 1, ""),
            None => edited,
        },
    )
}

/// One step of indentation: that of the first key on a line of its own.
fn unit(text: &str, root: &Object<'_>) -> String {
    let first = root
        .properties
        .iter()
        .find(|one| starts_line(text, one.range.start));
    let outer = indent_at(text, root.range.start);
    let unit = first.and_then(|one| indent_at(text, one.range.start).strip_prefix(outer));
    unit.filter(|unit| !unit.is_empty())
        .unwrap_or(INDENT)
        .to_owned()
}

/// Steps of an indentation.
fn depth_of(indent: &str, unit: &str) -> usize {
    indent.len() / unit.len().max(1)
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |end| end + 1)
}

/// The white space at the begin of the line of this byte.
fn indent_at(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    let length = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..length).unwrap_or_default()
}

/// Whether only white space is before this byte on its line, and a line is before it.
fn starts_line(text: &str, at: usize) -> bool {
    let start = line_start(text, at);
    start > 0
        && text
            .get(start..at)
            .is_some_and(|before| before.trim().is_empty())
}

/// The place of the comma after a value.
fn comma_after(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let skipped = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        at += skipped;
        if rest.starts_with(',') {
            return Some(at);
        } else if let Some(comment) = rest.strip_prefix("//") {
            at += 2 + comment.find('\n')?;
        } else {
            at += 4 + rest.strip_prefix("/*")?.find("*/")?;
        }
    }
}

/// The end of what follows a byte on its line: white space before a comment, and the comment.
fn line_rest(text: &str, at: usize) -> usize {
    let mut end = at;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let rest = rest.trim_start_matches([' ', '\t']);
        if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            return end + blank + line.trim_end_matches('\r').len();
        }
        let Some(length) = rest
            .strip_prefix("/*")
            .and_then(|rest| rest.find("*/"))
            .map(|length| length + 4)
        else {
            return end;
        };
        if rest
            .get(..length)
            .is_none_or(|comment| comment.contains('\n'))
        {
            return end;
        }
        end += blank + length;
    }
}
