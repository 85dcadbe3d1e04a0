//! Names as protobuf's style guide spells them, each unique in its scope.

use std::collections::HashSet;

/// A name in `lower_snake_case`, from any text: a letter first, no two underscores in a row.
#[must_use]
pub fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, &letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            begin_word(&mut snake);
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + 1);
        // `userID` is `user_id`, but the last capital of `URLPath` begins the next word.
        let begins_word = match before {
            Some('A'..='Z') => after.is_some_and(char::is_ascii_lowercase),
            Some(before) => before.is_ascii_lowercase() || before.is_ascii_digit(),
            None => false,
        };
        if letter.is_ascii_uppercase() && begins_word {
            begin_word(&mut snake);
        }
        snake.push(letter.to_ascii_lowercase());
    }
    let trimmed = snake.trim_end_matches('_');
    match trimmed.chars().next() {
        None => "field".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{trimmed}"),
        Some(_) => trimmed.to_owned(),
    }
}

/// Ends the word before, if there is one.
fn begin_word(snake: &mut String) {
    if !snake.is_empty() && !snake.ends_with('_') {
        snake.push('_');
    }
}

/// A name in `PascalCase`, from any text.
#[must_use]
pub fn pascal(name: &str) -> String {
    let snake = snake(name);
    let mut pascal = String::with_capacity(snake.len());
    for word in snake.split('_') {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            pascal.push(first.to_ascii_uppercase());
            pascal.push_str(letters.as_str());
        }
    }
    pascal
}

/// The JSON name that protobuf gives a field: `lowerCamelCase`.
pub(crate) fn camel(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    let mut upper = false;
    for letter in snake.chars() {
        match letter {
            '_' => upper = true,
            letter if std::mem::take(&mut upper) => camel.push(letter.to_ascii_uppercase()),
            letter => camel.push(letter),
        }
    }
    camel
}

/// Names that are taken in one scope.
#[derive(Debug, Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// This name, or the first of `name_2`, `name_3` (`Name2` for messages) that is free. Names
    /// that protobuf cannot tell apart by their JSON names are the same.
    pub fn unique(&mut self, name: &str) -> String {
        let separator = if name.starts_with(|first: char| first.is_ascii_uppercase()) {
            ""
        } else {
            "_"
        };
        let mut unique = name.to_owned();
        let mut count = 1;
        while !self.0.insert(unique.replace('_', "").to_ascii_lowercase()) {
            count += 1;
            unique = format!("{name}{separator}{count}");
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_style_guide() {
        for (name, expected) in [
            ("query", "query"),
            ("maxResults", "max_results"),
            ("URLPath", "url_path"),
            ("userID", "user_id"),
            ("html2PDF", "html2_pdf"),
            ("x-api key", "x_api_key"),
            ("__a__b__", "a_b"),
            ("2fa", "n2fa"),
            ("größe", "gr_e"),
            ("", "field"),
            ("日本", "field"),
        ] {
            assert_eq!(snake(name), expected, "{name}");
        }
        assert_eq!(pascal("web_search"), "WebSearch");
        assert_eq!(pascal("API-getUser"), "ApiGetUser");
        assert_eq!(camel("max_results_2"), "maxResults2");
    }

    #[test]
    fn names_that_json_cannot_tell_apart_are_numbered() {
        let mut names = Names::default();
        let unique: Vec<_> = ["foo_1", "foo1", "foo1", "bar"]
            .map(|name| names.unique(name))
            .into();
        assert_eq!(unique, ["foo_1", "foo1_2", "foo1_3", "bar"]);
        assert_eq!(names.unique("Bar"), "Bar2");
    }
}
