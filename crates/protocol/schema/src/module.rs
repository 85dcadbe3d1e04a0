//! The compiled schemas of a server's tools.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::compile::compile;
use crate::convert::{Converted, ListedTool, STRUCT, Style, convert};
use crate::names::{Names, snake};
use crate::numbers::FieldNumbering;
use crate::set::Descriptors;
use crate::tool::ToolSchema;

/// The schemas of a server's tools as one protobuf package: its files, its descriptors, and the
/// messages of each tool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Module(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    package: String,
    sources: Vec<(String, String)>,
    /// The tools of the files.
    owners: Vec<String>,
    descriptors: Descriptors,
    tools: HashMap<String, ToolSchema>,
    digest: String,
}

impl Module {
    /// Converts and compiles these tools as the package `package`; `numbers` are those of an
    /// earlier module of the same package. A tool whose schemas no descriptor can carry gets
    /// [`STRUCT`]. It takes about 20 microseconds a tool: not on the path of a call.
    #[must_use]
    pub fn new(package: &str, tools: &[ListedTool<'_>], numbers: &FieldNumbering) -> Self {
        let mut converted = convert_all(package, tools, numbers, Style::Lossless);
        // One file that does not compile must not take those of all other tools with it.
        let descriptors = compiled(&converted).unwrap_or_else(|| {
            converted.retain(|one| compiled(std::slice::from_ref(one)).is_some());
            compiled(&converted).unwrap_or_default()
        });
        let by_path: HashMap<_, _> = converted
            .iter()
            .map(|one| (one.file.path.as_str(), one))
            .collect();
        let mut owners = Vec::new();
        let mut sources = Vec::new();
        let mut schemas = HashMap::with_capacity(tools.len());
        for (tool, path) in tools.iter().zip(paths(package, tools)) {
            let found = by_path.get(path.as_str()).copied();
            if let Some(Converted { file, .. }) = found
                && !file.messages.is_empty()
            {
                owners.push(tool.name.to_owned());
                sources.push(file.source());
            }
            if let Some(schema) = tool_schema(&descriptors, tool, found) {
                schemas.insert(tool.name.to_owned(), schema);
            }
        }
        let digest = digest(&sources);
        Self(Arc::new(Inner {
            package: package.to_owned(),
            sources,
            owners,
            descriptors,
            tools: schemas,
            digest,
        }))
    }

    /// The name of the package, such as `weather.v1`.
    #[must_use]
    pub fn package(&self) -> &str {
        &self.0.package
    }

    /// The files by path, in the order of the tools. Tools of which no message says anything have
    /// none. `buf/validate/validate.proto`, which they import, is [`crate::VALIDATE_TEXT`].
    #[must_use]
    pub fn sources(&self) -> &[(String, String)] {
        &self.0.sources
    }

    /// The files of the tools that are seen.
    pub fn sources_of(
        &self,
        is_seen: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &(String, String)> {
        let owned = self.0.owners.iter().zip(&self.0.sources);
        owned.filter_map(move |(tool, source)| is_seen(tool).then_some(source))
    }

    /// The descriptors of all files.
    #[must_use]
    pub fn descriptors(&self) -> &Descriptors {
        &self.0.descriptors
    }

    /// The messages of a tool.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSchema> {
        self.0.tools.get(name)
    }

    /// The SHA-256 of paths and texts, in hexadecimal: two modules with the same one have the same
    /// schemas.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// The numbers of its fields, for the module that comes after it.
    #[must_use]
    pub fn numbers(&self) -> FieldNumbering {
        FieldNumbering::read(&self.0.sources).unwrap_or_default()
    }
}

/// The package of a server's tools, unless the operator names another.
#[must_use]
pub fn package_of(server: &str) -> String {
    format!("{}.v1", snake(server))
}

/// Converts the tools of one package, each as a file of its own.
#[must_use]
pub fn convert_all(
    package: &str,
    tools: &[ListedTool<'_>],
    numbers: &FieldNumbering,
    style: Style,
) -> Vec<Converted> {
    let mut names = Names::default();
    let mut converted = Vec::with_capacity(tools.len());
    for (tool, path) in tools.iter().zip(paths(package, tools)) {
        converted.push(convert(tool, (package, path), (&mut names, numbers), style));
    }
    converted
}

/// The messages of a tool; `converted` is `None` if its file does not compile.
fn tool_schema(
    descriptors: &Descriptors,
    tool: &ListedTool<'_>,
    converted: Option<&Converted>,
) -> Option<ToolSchema> {
    let input = converted.map_or(STRUCT, |one| &one.input);
    let output = match converted.and_then(|one| one.output.as_deref()) {
        Some(output) => Some(output),
        None => tool.output.map(|_| STRUCT),
    };
    let absent = converted.map(|one| one.file.absent()).unwrap_or_default();
    Some(ToolSchema::new(
        descriptors,
        descriptors.message(input)?,
        output.and_then(|name| descriptors.message(name)),
        absent,
    ))
}

/// The paths of the tools' files.
fn paths(package: &str, tools: &[ListedTool<'_>]) -> Vec<String> {
    let folder = package.replace('.', "/");
    let mut files = Names::default();
    tools
        .iter()
        .map(|tool| format!("{folder}/{}.proto", files.unique(&snake(tool.name))))
        .collect()
}

/// The descriptors of all these files together; `None` if they do not compile.
fn compiled(converted: &[Converted]) -> Option<Descriptors> {
    let sources: Vec<_> = converted.iter().map(|one| one.file.source()).collect();
    Descriptors::own(&compile(&sources).ok()?).ok()
}

/// The SHA-256 of paths and texts, in hexadecimal.
fn digest(sources: &[(String, String)]) -> String {
    let mut hash = Sha256::new();
    for (path, text) in sources {
        for part in [path, text] {
            // The length before each part: `ab`, `c` and `a`, `bc` are not the same.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let mut digest = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
