//! Conversions of whole tools, and of 397 real ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use schema::{Converted, FieldNumbering, ListedTool, Names, STRUCT, Style, compile, convert};
use serde_json::value::RawValue;

mod back;
mod costs;
mod module;
mod peers;
mod sample;
mod shapes;
mod stable;
mod validate;
mod values;

/// A tool list, with the schemas as they were written.
#[derive(serde::Deserialize)]
struct List {
    tools: Vec<Listed>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    description: Option<String>,
    input_schema: Box<RawValue>,
    output_schema: Option<Box<RawValue>>,
}

impl Listed {
    fn borrowed(&self) -> ListedTool<'_> {
        let output = self
            .output_schema
            .as_ref()
            .map(|output| output.get().as_bytes());
        let input = self.input_schema.get().as_bytes();
        ListedTool {
            name: &self.name,
            description: self.description.as_deref(),
            input,
            output,
        }
    }
}

/// Converts a schema as the arguments of the tool `web_search`.
fn of_schema(schema: &str, numbers: &FieldNumbering, style: Style) -> Converted {
    let tool = ListedTool {
        name: "web_search",
        description: None,
        input: schema.as_bytes(),
        output: None,
    };
    convert(
        &tool,
        ("acme.tools.v1", "web_search.proto".to_owned()),
        (&mut Names::default(), numbers),
        style,
    )
}

/// The text of a message with only these lines, in the lossless style.
#[track_caller]
fn assert_fields(schema: &str, lines: &[&str]) {
    let converted = of_schema(schema, &FieldNumbering::default(), Style::Lossless);
    let text = converted.file.messages();
    let shown: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .collect();
    let body = shown
        .strip_prefix(&["message WebSearchRequest {"])
        .and_then(|rest| rest.strip_suffix(&["}"]));
    assert_eq!(body.unwrap_or(&shown), lines, "{text}");
    compile(&[converted.file.source()]).unwrap();
}

#[test]
fn real_tools_become_descriptors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
    let (mut tools, mut structs) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let server = path.file_stem().unwrap().to_string_lossy().into_owned();
        let list: List = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let package = format!("{server}.v1");
        let all = |numbers: &FieldNumbering| {
            let mut names = Names::default();
            let one = |tool: &Listed| {
                let file = format!("{server}/v1/{}.proto", schema::snake(&tool.name));
                convert(
                    &tool.borrowed(),
                    (&package, file),
                    (&mut names, numbers),
                    Style::Lossless,
                )
            };
            list.tools.iter().map(one).collect::<Vec<_>>()
        };
        let converted = all(&FieldNumbering::default());
        let files: Vec<_> = converted
            .iter()
            .map(|converted| converted.file.source())
            .collect();
        compile(&files).unwrap();
        assert_eq!(
            all(&FieldNumbering::read(&files).unwrap()),
            converted,
            "the numbers stay"
        );
        tools += converted.len();
        structs += converted
            .iter()
            .filter(|converted| converted.input == STRUCT)
            .count();
    }
    assert_eq!(tools, 397);
    assert_eq!(structs, 11, "tools that name no argument and refuse none");
}

/// The fields of all messages by their path, with their numbers.
fn numbers_of(text: &str) -> BTreeMap<String, String> {
    let fields = text
        .lines()
        .filter_map(|line| line.trim().split_once(" = "));
    fields
        .map(|(field, number)| (field.to_owned(), number.trim_end_matches(';').to_owned()))
        .collect()
}
