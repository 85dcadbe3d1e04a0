//! Any bytes as the JSON Schema of a tool: what comes out is valid protobuf, and keeps its numbers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schema::{FieldNumbering, ListedTool, Names, Style, compile, convert};

fuzz_target!(|input: &[u8]| {
    let tool = ListedTool {
        name: "t",
        description: None,
        input,
        output: None,
    };
    let file = |numbers: &FieldNumbering| {
        convert(
            &tool,
            ("a.v1", "a.proto".to_owned()),
            (&mut Names::default(), numbers),
            Style::Lossless,
        )
        .file
    };
    let first = file(&FieldNumbering::default());
    compile(&[first.source()]).expect("what is printed is proto3");
    let numbers = FieldNumbering::read(&[first.source()]).expect("what is printed is read");
    assert_eq!(file(&numbers), first);
});
