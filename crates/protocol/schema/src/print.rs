//! The text of a proto file.

use std::fmt::Write as _;

use crate::file::{Field, File, Label, Message, Rule};

/// Columns of a comment.
const COLUMNS: usize = 100;

impl File {
    /// The whole file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        comment(&mut text, 0, self.comment.as_deref());
        if self.comment.is_some() {
            text.push('\n');
        }
        let _ = write!(text, "syntax = \"proto3\";\n\npackage {};\n", self.package);
        let mut has_rules = false;
        let mut has_structs = false;
        for message in self.messages.iter().flat_map(Message::all) {
            for field in &message.fields {
                has_rules |= !field.rules.is_empty();
                has_structs |= field.ty.name().starts_with("google.protobuf.");
            }
        }
        if has_rules || has_structs {
            text.push('\n');
        }
        if has_rules {
            text.push_str("import \"buf/validate/validate.proto\";\n");
        }
        if has_structs {
            text.push_str("import \"google/protobuf/struct.proto\";\n");
        }
        if !self.messages.is_empty() {
            text.push('\n');
            text.push_str(&self.messages());
        }
        text
    }

    /// Its messages alone.
    #[must_use]
    pub fn messages(&self) -> String {
        let mut text = String::new();
        for (at, message) in self.messages.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            print_message(&mut text, 0, message);
        }
        text
    }
}

fn print_message(text: &mut String, depth: usize, message: &Message) {
    let indent = "  ".repeat(depth);
    comment(text, depth, message.comment.as_deref());
    if message.fields.is_empty() && message.messages.is_empty() && message.reserved.is_empty() {
        let _ = writeln!(text, "{indent}message {} {{}}", message.name);
        return;
    }
    let _ = writeln!(text, "{indent}message {} {{", message.name);
    if !message.reserved.is_empty() {
        let numbers: Vec<_> = message.reserved.iter().map(u32::to_string).collect();
        let _ = writeln!(text, "{indent}  reserved {};", numbers.join(", "));
    }
    for field in &message.fields {
        print_field(text, depth + 1, field);
    }
    for inner in &message.messages {
        text.push('\n');
        print_message(text, depth + 1, inner);
    }
    let _ = writeln!(text, "{indent}}}");
}

fn print_field(text: &mut String, depth: usize, field: &Field) {
    let indent = "  ".repeat(depth);
    comment(text, depth, field.comment.as_deref());
    let ty = field.ty.name();
    let ty = match field.label {
        Label::Plain => ty.to_owned(),
        Label::Optional => format!("optional {ty}"),
        Label::Repeated => format!("repeated {ty}"),
        Label::Map => format!("map<string, {ty}>"),
    };
    let _ = write!(text, "{indent}{ty} {} = {}", field.name, field.number);
    let mut options = Vec::new();
    if field.has_json_name {
        options.push(format!("json_name = {}", literal(&field.property)));
    }
    for Rule { path, value } in &field.rules {
        options.push(format!("(buf.validate.field).{path} = {value}"));
    }
    match options.as_slice() {
        [] => {}
        [one] => {
            let _ = write!(text, " [{one}]");
        }
        several => {
            let _ = write!(
                text,
                " [\n{indent}  {}\n{indent}]",
                several.join(&format!(",\n{indent}  "))
            );
        }
    }
    text.push_str(";\n");
}

/// Writes a comment, wrapped. Control characters are spaces in it: a server's text must not end
/// the comment and go on as code.
fn comment(text: &mut String, depth: usize, comment: Option<&str>) {
    let indent = "  ".repeat(depth);
    for line in comment.unwrap_or_default().trim().lines() {
        let words = line.split(|letter: char| letter.is_whitespace() || letter.is_control());
        let mut width = 0;
        for word in words.filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if width == 0 || width + 1 + length > COLUMNS {
                let _ = write!(
                    text,
                    "{}{indent}// {word}",
                    if width == 0 { "" } else { "\n" }
                );
                width = indent.len() + 3 + length;
            } else {
                let _ = write!(text, " {word}");
                width += 1 + length;
            }
        }
        if width == 0 {
            let _ = write!(text, "{indent}//");
        }
        text.push('\n');
    }
}

/// A string literal.
pub(crate) fn literal(value: &str) -> String {
    let mut literal = String::with_capacity(value.len() + 2);
    literal.push('"');
    for letter in value.chars() {
        match letter {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            letter if letter.is_ascii_control() => {
                let _ = write!(literal, "\\{:03o}", u32::from(letter));
            }
            letter => literal.push(letter),
        }
    }
    literal.push('"');
    literal
}
