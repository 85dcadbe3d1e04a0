//! Command `proto convert`: tool schemas as .proto files.

use std::fs;
use std::path::{Path, PathBuf};

use schema::{
    Converted, FieldNumbering, ListedTool, Style, VALIDATE_PROTO, VALIDATE_TEXT, convert_all,
    package_of, snake,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cli::{GatewayArgs, ProtoCommand, ProtoStyle};
use crate::commands::target::resolve;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Folder of the module with the tools' files.
const TOOLS: &str = "proto";
/// Folder of the module with what they import.
const IMPORTS: &str = "vendor";
const BUF_YAML: &str = "\
version: v2
modules:
  - path: proto
  - path: vendor
    lint:
      ignore:
        - vendor/buf/validate
";

pub(crate) async fn run(command: ProtoCommand, output: Output) -> Result<Exit, Failure> {
    let ProtoCommand::Convert {
        source,
        out,
        package,
        style,
        gateway,
    } = command;
    let (stem, tools) = tools_of(&source, &gateway, output).await?;
    let package = package.unwrap_or_else(|| package_of(&stem));
    check_package(&package)?;
    let folder = package.replace('.', "/");
    let found = out
        .as_ref()
        .map(|out| files_below(&out.join(TOOLS), &folder))
        .unwrap_or_default();
    let earlier = FieldNumbering::read(&found)
        .map_err(|error| Failure::new(Exit::Failed, "bad_proto", error.to_string()))?;
    let style = match style {
        ProtoStyle::Lossless => Style::Lossless,
        ProtoStyle::Spec => Style::Spec,
    };
    let borrowed: Vec<_> = tools.iter().map(Listed::borrowed).collect();
    borrowed.iter().try_for_each(check_arguments)?;
    let converted = convert_all(&package, &borrowed, &earlier, style);
    let left = left(&found, &converted);
    match &out {
        Some(out) => {
            write(out, &converted)?;
            output.message(&format!(
                "wrote {} files to {}",
                converted.len(),
                out.join(TOOLS).join(folder).display()
            ));
            if !left.is_empty() {
                output.message(&format!(
                    "left as they were, because no tool of {source} has them: {}\nif their tools are gone, delete them; their \
                     numbers are then free",
                    left.join(", ")
                ));
            }
        }
        None if output.json => {}
        None => {
            let messages: Vec<_> = converted
                .iter()
                .map(|converted| converted.file.messages())
                .collect();
            output.result(messages.join("\n").trim_end());
        }
    }
    if output.json {
        let row = |(tool, converted): (&Listed, &Converted)| {
            let Converted {
                file,
                input,
                output,
            } = converted;
            json!({ "name": tool.name, "file": file.path, "input": input, "output": output })
        };
        let tools: Vec<_> = tools.iter().zip(&converted).map(row).collect();
        output.result_json(&json!({ "tools": tools, "left": left }));
    }
    Ok(Exit::Ok)
}

/// A tool, with its schemas as they were written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    #[serde(default)]
    description: Option<String>,
    input_schema: Box<RawValue>,
    #[serde(default)]
    output_schema: Option<Box<RawValue>>,
    /// In the gateway's own list.
    #[serde(default)]
    server: Option<String>,
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

#[derive(Deserialize)]
struct List {
    tools: Vec<Listed>,
}

#[derive(Deserialize)]
struct Answer {
    result: List,
}

/// The tools of a file or of a server, and its name without what a path adds.
async fn tools_of(
    source: &str,
    gateway: &GatewayArgs,
    output: Output,
) -> Result<(String, Vec<Listed>), Failure> {
    let path = Path::new(source);
    let is_file = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("json"))
        || path.is_file();
    if is_file {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::new(
                Exit::Failed,
                "unreadable",
                format!("cannot read {}: {error}", path.display()),
            )
        })?;
        let tools = read(&stem, &text)?;
        return Ok((stem, tools));
    }
    let endpoint = resolve(gateway, output)?;
    let List { mut tools } = api::get(&*endpoint, &["tools"], &[("topic", config::MAIN_TOPIC)])
        .await?
        .read()?;
    tools.retain(|tool| tool.server.as_deref() == Some(source));
    if tools.is_empty() {
        let what = format!(
            "there is no file `{source}`, and no server `{source}` with tools that you may call"
        );
        return Err(Failure::new(Exit::NotFound, "unknown_server", what).hint("portmoot tools ls"));
    }
    Ok((source.to_owned(), tools))
}

/// Reads any of the forms in which people keep tools.
fn read(stem: &str, text: &str) -> Result<Vec<Listed>, Failure> {
    let bad =
        |why: serde_json::Error| Failure::bad_argument(format!("{stem}.json is not JSON: {why}"));
    let whole: Box<RawValue> = serde_json::from_str(text).map_err(bad)?;
    let text = whole.get();
    if let Ok(List { tools }) = serde_json::from_str(text) {
        return Ok(tools);
    }
    if let Ok(Answer { result }) = serde_json::from_str(text) {
        return Ok(result.tools);
    }
    if let Ok(tools) = serde_json::from_str(text) {
        return Ok(tools);
    }
    if let Ok(tool) = serde_json::from_str(text) {
        return Ok(vec![tool]);
    }
    if ["type", "properties", "$ref"]
        .iter()
        .any(|key| json::at(text.as_bytes(), &[key]).is_some())
    {
        let name = stem.to_owned();
        let server = None;
        return Ok(vec![Listed {
            name,
            description: None,
            input_schema: whole,
            output_schema: None,
            server,
        }]);
    }
    Err(Failure::bad_argument(format!("{stem}.json has no tools"))
        .hint("pass a result of tools/list, a list of tools, one tool, or one input schema"))
}

/// Arguments are an object (MCP, "Tool"): a schema of anything else has no message.
fn check_arguments(tool: &ListedTool<'_>) -> Result<(), Failure> {
    let is_object = match json::at(tool.input, &["type"]) {
        None => tool.input.first() == Some(&b'{'),
        Some(of) => serde_json::from_slice::<Value>(of).is_ok_and(|of| of == "object"),
    };
    if is_object {
        return Ok(());
    }
    let why = format!(
        "the inputSchema of `{}` is of no object",
        json::visible::line(tool.name)
    );
    Err(Failure::bad_argument(why)
        .hint("arguments are an object: write \"type\": \"object\" and its properties"))
}

/// A package of lower-case words that ends with a version, as buf's lint rules want it.
fn check_package(package: &str) -> Result<(), Failure> {
    if package
        .split('.')
        .all(|word| !word.is_empty() && snake(word) == word)
    {
        return Ok(());
    }
    Err(
        Failure::bad_argument(format!("--package: `{package}` is not a package"))
            .hint("write lower-case words with dots between them, such as acme.tools.v1"),
    )
}

/// The .proto files of an earlier run, by their paths below `root`.
fn files_below(root: &Path, folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(root.join(folder))
        .into_iter()
        .flatten()
        .flatten();
    let paths = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "proto"));
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((format!("{folder}/{name}"), fs::read_to_string(path).ok()?))
    };
    paths.filter_map(read).collect()
}

/// The files of an earlier run that this one does not write: of tools that are gone, or of another
/// source with the same package.
fn left<'f>(found: &'f [(String, String)], converted: &[Converted]) -> Vec<&'f str> {
    let is_written = |path: &str| {
        converted
            .iter()
            .any(|converted| converted.file.path == path)
    };
    let mut left: Vec<_> = found
        .iter()
        .map(|(path, _)| path.as_str())
        .filter(|path| !is_written(path))
        .collect();
    left.sort_unstable();
    left
}

fn write(out: &Path, converted: &[Converted]) -> Result<(), Failure> {
    let mut files = vec![
        (out.join("buf.yaml"), BUF_YAML.to_owned()),
        (
            out.join(IMPORTS).join(VALIDATE_PROTO),
            VALIDATE_TEXT.to_owned(),
        ),
    ];
    files.extend(converted.iter().map(|converted| {
        let (path, text) = converted.file.source();
        (out.join(TOOLS).join(path), text)
    }));
    for (path, text) in files {
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text));
        written.map_err(|error| {
            Failure::new(
                Exit::Failed,
                "unwritable",
                format!("cannot write {}: {error}", path.display()),
            )
        })?;
    }
    Ok(())
}
