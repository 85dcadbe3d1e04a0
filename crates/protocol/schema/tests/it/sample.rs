//! The samples of proto-mcp's document.

use crate::of_schema;
use schema::{FieldNumbering, Style};

#[test]
fn the_sample_of_the_document_is_printed_exactly() {
    let schema = r#"{
      "type": "object",
      "properties": {
        "query": {"type": "string"},
        "max_results": {"type": "integer", "minimum": 1}
      },
      "required": ["query"]
    }"#;
    let sample = "\
message WebSearchRequest {
  string query = 1;
  optional int32 max_results = 2 [(buf.validate.field).int32.gte = 1];
}
";
    assert_eq!(
        of_schema(schema, &FieldNumbering::default(), Style::Spec)
            .file
            .messages(),
        sample
    );
    let lossless = "\
// The arguments of `web_search`.
message WebSearchRequest {
  optional string query = 1 [(buf.validate.field).required = true];
  optional int64 max_results = 2 [
    json_name = \"max_results\",
    (buf.validate.field).int64.gte = 1
  ];
}
";
    assert_eq!(
        of_schema(schema, &FieldNumbering::default(), Style::Lossless)
            .file
            .messages(),
        lossless
    );
}
