//! Command `tokens`: what the list of tools costs, on the wire and in a model's context (proto-mcp
//! v1.0, "Token Efficiency"), and which tools cost it for nothing.

mod count;
mod unused;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;
use topic::section::BuiltIn;

use count::{counter, definitions};

use crate::cli::TokensArgs;
use crate::commands::lists::written;
use crate::commands::servers::say_what_is_down;
use crate::commands::target::resolve;
use crate::remote::list_bytes;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 4] = ["FORM OF THE LIST", "BYTES", "TOKENS", "SAVED"];

/// One form of the list.
struct Form {
    name: &'static str,
    bytes: usize,
    /// None for what no model reads.
    tokens: Option<usize>,
}

pub(crate) async fn run(args: TokensArgs, output: Output) -> Result<Exit, Failure> {
    if args.unused {
        return unused::run(&args, output).await;
    }
    let endpoint = resolve(&args.gateway, output)?;
    let tools = written(&*endpoint, &args.topic, "tools", output).await?;
    if tools.is_empty() {
        say_what_is_down(&*endpoint, output).await;
        let failure = Failure::new(
            Exit::NotFound,
            "no_tools",
            "there are no tools that you may call",
        );
        return Err(if endpoint.is_own() {
            failure
        } else {
            failure.hint("to see the servers: portmoot servers ls")
        });
    }
    let bpe = counter()?;
    let mut forms = shown(&tools, &bpe);
    // No model reads it.
    for (name, inline) in [
        ("protobuf, with references", false),
        ("protobuf, with the schemas", true),
    ] {
        let bytes = list_bytes(&*endpoint, &args.topic, inline).await?;
        forms.splice(
            1..1,
            bytes.map(|bytes| Form {
                name,
                bytes,
                tokens: None,
            }),
        );
    }
    let full = forms
        .first()
        .and_then(|form| form.tokens)
        .unwrap_or_default();
    if output.json {
        let row =
            |form: &Form| json!({ "form": form.name, "bytes": form.bytes, "tokens": form.tokens });
        let forms: Vec<_> = forms.iter().map(row).collect();
        output.result_json(
            &json!({ "tools": tools.len(), "encoding": "cl100k_base", "forms": forms }),
        );
        return Ok(Exit::Ok);
    }
    let saved = |tokens: usize| format!("{:.1} %", percent_saved(full, tokens));
    output.table(
        &COLUMNS,
        forms.iter().map(|form| {
            let tokens = form
                .tokens
                .map_or("-".to_owned(), |tokens| tokens.to_string());
            let saved = form
                .tokens
                .filter(|_| form.tokens != Some(full))
                .map_or("-".to_owned(), saved);
            vec![form.name.to_owned(), form.bytes.to_string(), tokens, saved]
        }),
    );
    output.result(&verdict(tools.len(), full, &forms));
    Ok(Exit::Ok)
}

/// The forms that programs send and models read. What is JSON is counted as its server wrote it.
fn shown(tools: &[Box<RawValue>], bpe: &CoreBPE) -> Vec<Form> {
    let lines = |line: &dyn Fn(&[u8]) -> String| {
        tools
            .iter()
            .map(|tool| line(tool.get().as_bytes()))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let name = |tool: &[u8]| text(tool, "name");
    let sentence = |tool: &[u8]| first_sentence(&text(tool, "description")).to_owned();
    let raw: Vec<_> = tools.iter().map(|tool| tool.get().as_bytes()).collect();
    let joined = tools
        .iter()
        .map(|tool| tool.get())
        .collect::<Vec<_>>()
        .join(",");
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{joined}]}}}}"#);
    let searched = gateway::built_in_manifest(&[BuiltIn::Proxy, BuiltIn::SearchTools])
        .tools
        .items;
    let searched: Vec<_> = searched.iter().map(|item| &*item.raw).collect();
    [
        ("JSON-RPC, as tools/list has it", list),
        ("name, description, schema as JSON", definitions(&raw)),
        (
            "signatures, first sentences",
            lines(&|tool| format!("{}: {}", signature(tool), sentence(tool))),
        ),
        ("signatures", lines(&signature)),
        (
            "names, first sentences",
            lines(&|tool| format!("{}: {}", name(tool), sentence(tool))),
        ),
        ("names", lines(&name)),
        (
            "search_tools and proxy in place of all",
            definitions(&searched),
        ),
    ]
    .map(|(name, text)| Form {
        name,
        bytes: text.len(),
        tokens: Some(bpe.encode_ordinary(&text).len()),
    })
    .into()
}

/// A text of a tool; nothing if it has none.
fn text(tool: &[u8], key: &str) -> String {
    json::at(tool, &[key])
        .and_then(json::text)
        .unwrap_or_default()
        .into_owned()
}

/// A tool's name with its arguments in the order of the schema: `name(a: string, b?: integer)`.
pub(super) fn signature(tool: &[u8]) -> String {
    let value = |path: &[&str]| -> Value {
        json::at(tool, path)
            .and_then(|raw| serde_json::from_slice(raw).ok())
            .unwrap_or_default()
    };
    let required = value(&["inputSchema", "required"]);
    let is_required = |key: &str| {
        required
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one.as_str() == Some(key)))
    };
    let argument = |(key, schema): (&str, json::Member<'_>)| {
        let schema: Value = serde_json::from_slice(schema.raw).unwrap_or_default();
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join("|"),
            _ => "any".to_owned(),
        };
        format!("{key}{}: {kind}", if is_required(key) { "" } else { "?" })
    };
    let properties = json::at(tool, &["inputSchema", "properties"]).unwrap_or(b"{}");
    let members = json::members(properties, json::Span::all(properties)).ok();
    let arguments: Vec<_> = members
        .iter()
        .flat_map(json::Members::iter)
        .map(argument)
        .collect();
    format!("{}({})", text(tool, "name"), arguments.join(", "))
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    line.find(". ")
        .and_then(|end| line.get(..=end))
        .unwrap_or(line)
}

#[allow(clippy::cast_precision_loss, reason = "tokens of a list")]
fn percent_saved(full: usize, tokens: usize) -> f64 {
    100.0 - tokens as f64 * 100.0 / full.max(1) as f64
}

/// The figures in a sentence.
fn verdict(tools: usize, full: usize, forms: &[Form]) -> String {
    let least = forms
        .iter()
        .filter_map(|form| Some((form.name, form.tokens?)))
        .min_by_key(|(_, tokens)| *tokens);
    let (name, tokens) = least.unwrap_or_default();
    let saved = percent_saved(full, tokens);
    format!(
        "\n{tools} tools, {} tokens each as JSON. A model never reads protobuf: it saves bytes on the wire, not tokens.\nThe cheapest form for a model: {name}, {saved:.1} % fewer tokens.\nTokens are of cl100k_base, as a stand-in: other models count otherwise.",
        full / tools.max(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_and_sentences() {
        let tool = br#"{ "name": "find", "inputSchema": { "type": "object", "required": ["q"],
            "properties": { "q": { "type": "string" }, "n": { "type": ["integer", "null"] }, "b": {} } } }"#;
        assert_eq!(
            signature(tool),
            "find(q: string, n?: integer|null, b?: any)"
        );
        assert_eq!(signature(br#"{"name":"now"}"#), "now()");
        for (text, sentence) in [
            ("One. Two.", "One."),
            (" One\nTwo", "One"),
            ("", ""),
            ("v1.2 is new. Yes", "v1.2 is new."),
        ] {
            assert_eq!(first_sentence(text), sentence);
        }
    }

    #[test]
    fn lists_are_counted_as_they_were_written() {
        let tool =
            r#"{"name":"b", "inputSchema":{"type":"object","a":1.0},"description":"d","x":0}"#;
        let raw = RawValue::from_string(tool.to_owned()).unwrap();
        let bytes = |name: &str| {
            let forms = shown(
                std::slice::from_ref(&raw),
                &tiktoken_rs::cl100k_base().unwrap(),
            );
            forms
                .iter()
                .find(|form| form.name == name)
                .map(|form| form.bytes)
        };
        let around = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#.len();
        assert_eq!(
            bytes("JSON-RPC, as tools/list has it"),
            Some(around + tool.len())
        );
        let definition =
            r#"[{"name":"b","description":"d","inputSchema":{"type":"object","a":1.0}}]"#;
        assert_eq!(
            bytes("name, description, schema as JSON"),
            Some(definition.len())
        );
    }

    #[test]
    fn what_saves_most_is_named() {
        let form = |name, tokens| Form {
            name,
            bytes: 0,
            tokens,
        };
        let forms = [
            form("full", Some(1000)),
            form("wire", None),
            form("names", Some(30)),
        ];
        assert!(
            verdict(10, 1000, &forms)
                .contains("The cheapest form for a model: names, 97.0 % fewer tokens.")
        );
    }
}
