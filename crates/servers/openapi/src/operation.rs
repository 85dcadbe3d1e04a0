//! Operations of a description as tools: names, schemas and annotations, and what is needed to
//! build their requests.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use url::Url;

use crate::body::{self, Body, BodyForm, essence, is_json};
use crate::document::{Document, resolved, servers};
use crate::error::PARAMETERS_MAX;
use crate::names::{self, Taken};
use crate::parameter::{self, Parameter, Place};
use crate::path::{Part, template, variables};
use crate::refs::{self, Unusable};
use crate::schema::{Direction, Schemas};
use crate::security::ApiCredential;

/// The most operations of one description.
pub const OPERATIONS_MAX: usize = 10_000;
/// The most bytes of all definitions of tools together.
pub const DEFINITIONS_BYTES_MAX: usize = 32 << 20;
/// The longest title or description that a tool has, in characters.
pub const TEXT_CHARS_MAX: usize = 4096;

/// The most bytes of schemas that are written for one description, those that are given up
/// included.
const WORK_BYTES_MAX: usize = 256 << 20;
/// The longest title of a tool, in characters.
const TITLE_CHARS_MAX: usize = 120;
/// The methods of operations. `trace` is none of a tool: its answer repeats the credentials of the
/// request.
const METHODS: [(&str, &str); 7] = [
    ("get", "GET"),
    ("head", "HEAD"),
    ("options", "OPTIONS"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
];

/// Names of headers and parameters that the operator has configured for every request. They are no
/// arguments of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presets {
    /// Names of headers, in any case.
    pub headers: Vec<String>,
    /// Names of parameters of the query.
    pub query: Vec<String>,
}

/// An operation that is no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, had it been one; else its method and path.
    pub name: String,
    /// Why, for operators.
    pub reason: String,
}

/// An operation as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The name of the tool, at most [`TOOL_NAME_CHARS_MAX`](crate::TOOL_NAME_CHARS_MAX)
    /// characters.
    pub name: String,
    /// The tool as `tools/list` has it: a JSON object.
    pub definition: String,
    /// Whether it has an output schema: then its successful answers are objects.
    pub promises_object: bool,
    pub(crate) method: &'static str,
    /// The path, that of the base before it.
    pub(crate) path: Vec<Part>,
    /// The query that the base has.
    pub(crate) query: Option<String>,
    /// The names of the parameters of the query that are configured.
    pub(crate) configured_query: Arc<[String]>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
}

/// The operations of a description.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// The title of the API.
    pub title: String,
    /// The version of the API.
    pub version: String,
    /// The operations that are tools, in the order of their paths.
    pub operations: Vec<Operation>,
    /// The operations that are no tools, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Credentials that the API asks for.
    pub credentials: Vec<ApiCredential>,
    by_name: HashMap<String, usize>,
}

impl Operation {
    /// Whether its method only reads.
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS")
    }
}

impl Operations {
    /// The operation of a tool.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Operation> {
        self.by_name
            .get(name)
            .and_then(|at| self.operations.get(*at))
    }
}

impl Document {
    /// The operations, with the API at `base`. All requests go to its origin; operations at another
    /// one are left out.
    #[must_use]
    pub fn operations(&self, base: &Url, configured: &Presets) -> Operations {
        let mut reader = Reader {
            document: self,
            base,
            configured,
            configured_query: configured.query.clone().into(),
            servers: servers(&self.root),
            taken: Taken::default(),
            written: 0,
            work: 0,
        };
        let mut all = Operations {
            title: self.title().chars().take(TITLE_CHARS_MAX).collect(),
            version: self.version().chars().take(TITLE_CHARS_MAX).collect(),
            credentials: self.credentials(),
            ..Operations::default()
        };
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            // Members that begin with `x-` are extensions, and no paths.
            if path.starts_with('/') {
                reader.path(path, item, &mut all);
            }
        }
        for (at, operation) in all.operations.iter().enumerate() {
            all.by_name.insert(operation.name.clone(), at);
        }
        all
    }
}

/// The operations of a description while they are read.
struct Reader<'d> {
    document: &'d Document,
    base: &'d Url,
    configured: &'d Presets,
    configured_query: Arc<[String]>,
    /// The servers of the whole description.
    servers: Vec<String>,
    taken: Taken,
    /// Bytes of the definitions so far.
    written: usize,
    /// Bytes of schemas so far, those that were given up included.
    work: usize,
}

impl<'d> Reader<'d> {
    /// Reads the operations of one path.
    fn path(&mut self, path: &str, item: &'d Value, all: &mut Operations) {
        let item = match refs::object(&self.document.root, item) {
            Ok(item) => item,
            Err(why) => return leave_out(all, shown(path), why.why()),
        };
        if item.get("trace").is_some() {
            leave_out(
                all,
                format!("TRACE {}", shown(path)),
                "its method is not offered".to_owned(),
            );
        }
        for (key, method) in METHODS {
            let Some(operation) = item.get(key).filter(|operation| operation.is_object()) else {
                continue;
            };
            if all.operations.len() >= OPERATIONS_MAX {
                return leave_out(
                    all,
                    shown(path),
                    format!("the description has more than {OPERATIONS_MAX} operations"),
                );
            }
            if self.written > DEFINITIONS_BYTES_MAX || self.work > WORK_BYTES_MAX {
                return leave_out(
                    all,
                    shown(path),
                    "the schemas of the description are too large".to_owned(),
                );
            }
            let id = operation.get("operationId").and_then(Value::as_str);
            let name = names::of_tool(id, key, path, &mut self.taken);
            match self.operation(&name, method, path, item, operation) {
                Ok(operation) => {
                    self.written += operation.definition.len();
                    all.operations.push(operation);
                }
                Err(why) => leave_out(all, name, why.why()),
            }
        }
    }

    fn operation(
        &mut self,
        name: &str,
        method: &'static str,
        path: &str,
        item: &'d Value,
        operation: &'d Value,
    ) -> Result<Operation, Unusable> {
        let base = self.place(item, operation)?;
        let reads = self.parameters(item, operation)?;
        let body = body::read(self.document, operation)?;
        let mut schemas = Schemas::new(self.document, Direction::Input);
        let input = input(&mut schemas, path, reads, body);
        // Before its errors: schemas that were given up have cost their time too.
        self.work += schemas.spent();
        let Input {
            schema,
            parameters,
            body,
        } = input?;
        let mut path_parameters = BTreeMap::new();
        for (index, parameter) in parameters.iter().enumerate() {
            if parameter.place == Place::Path {
                path_parameters.insert(parameter.name.as_str(), index);
            }
        }
        let parts = template(base.path(), path, &path_parameters)?;
        let output = self.output(operation);
        let promises_object = output.is_some();
        let definition = definition(name, method, path, operation, schema, output);
        Ok(Operation {
            name: name.to_owned(),
            definition: definition.to_string(),
            promises_object,
            method,
            path: parts,
            query: base.query().map(str::to_owned),
            configured_query: Arc::clone(&self.configured_query),
            parameters,
            body,
        })
    }

    /// Where an operation is: at the base, or at a server of its own on the base's origin.
    fn place(&mut self, item: &Value, operation: &Value) -> Result<Url, Unusable> {
        // The nearest list counts: the operation's, then its path's, then the whole description's.
        let mut listed = servers(operation);
        if listed.is_empty() {
            listed = servers(item);
        }
        if listed.is_empty() {
            return Ok(self.base.clone());
        }
        self.work += listed.iter().map(String::len).sum::<usize>();
        // The operator may have configured another base than the description names: what is at a
        // server of the whole description is there.
        if listed.iter().any(|server| self.servers.contains(server)) {
            return Ok(self.base.clone());
        }
        for server in &listed {
            if let Some(url) = resolved(server, Some(self.base))
                && url.origin() == self.base.origin()
            {
                return Ok(url);
            }
        }
        // Callers may read the words: they name no server.
        Err(Unusable::because(
            "it is at another origin than the API, to which all requests go",
        ))
    }

    /// The parameters of an operation and its path; those of the operation count where both have
    /// one.
    fn parameters(
        &self,
        item: &'d Value,
        operation: &'d Value,
    ) -> Result<Vec<parameter::Read<'d>>, Unusable> {
        let own = listed_parameters(operation);
        let shared = listed_parameters(item);
        if own.len() + shared.len() > PARAMETERS_MAX {
            return Err(Unusable::Because(format!(
                "it has more than {PARAMETERS_MAX} parameters"
            )));
        }
        let mut all: Vec<parameter::Read<'d>> = Vec::new();
        // The operation's own first: one of the path with the same name and place comes too late.
        for value in own.iter().chain(shared) {
            let Some(read) = parameter::read(self.document, value)? else {
                continue;
            };
            let parameter = &read.parameter;
            let is_known = all.iter().any(|one| {
                one.parameter.name == parameter.name && one.parameter.place == parameter.place
            });
            if !is_known && !self.is_configured(parameter) {
                all.push(read);
            }
        }
        Ok(all)
    }

    /// Whether the operator has configured a parameter for every request: then it is no argument.
    fn is_configured(&self, parameter: &Parameter) -> bool {
        match parameter.place {
            Place::Header => self.has_header(&parameter.name),
            Place::Query => self.configured.query.contains(&parameter.name),
            // All cookies are one header.
            Place::Cookie => self.has_header("cookie"),
            Place::Path => false,
        }
    }

    /// Whether the operator has configured a header.
    fn has_header(&self, name: &str) -> bool {
        let mut headers = self.configured.headers.iter();
        headers.any(|header| header.eq_ignore_ascii_case(name))
    }

    /// The output schema, if all successful answers are one JSON object. A description that does
    /// not serve for that is no fault.
    fn output(&mut self, operation: &'d Value) -> Option<Value> {
        let schema = answer_schema(self.document, operation)?;
        let mut schemas = Schemas::new(self.document, Direction::Output);
        let output = output(&mut schemas, schema);
        self.work += schemas.spent();
        output.ok()
    }
}

/// The schema of successful answers, if there is one kind of them, and it is a JSON object.
fn answer_schema<'d>(document: &'d Document, operation: &'d Value) -> Option<&'d Value> {
    let responses = operation.get("responses")?.as_object()?;
    let mut successes = responses
        .iter()
        .filter(|(status, _)| status.starts_with('2'));
    let (_, response) = successes.next()?;
    if successes.next().is_some() {
        return None;
    }
    let response = refs::object(&document.root, response).ok()?;
    let content = response.get("content")?.as_object()?;
    if content.len() != 1 {
        return None;
    }
    let (media, described) = content.iter().next()?;
    if !is_json(&essence(media)) {
        return None;
    }
    let schema = refs::object(&document.root, described.get("schema")?).ok()?;
    let is_object = match schema.get("type") {
        Some(name) => name == "object",
        None => schema.get("properties").is_some(),
    };
    let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
    (is_object && !is_nullable).then_some(schema)
}

/// The output schema of a tool: its type is an object alone, without the `null` that schemas of
/// answers admit.
fn output(schemas: &mut Schemas<'_>, schema: &Value) -> Result<Value, Unusable> {
    let mut output = schemas.convert(schema)?;
    let definitions = schemas.definitions()?;
    if let Some(members) = output.as_object_mut() {
        members.insert("type".to_owned(), "object".into());
        if !definitions.is_empty() {
            members.insert("$defs".to_owned(), definitions.into());
        }
    }
    Ok(output)
}

/// The arguments of a tool: their schema, and the parts of the request that they become.
struct Input {
    schema: Value,
    parameters: Vec<Parameter>,
    body: Option<Body>,
}

/// The input schema, with parameters and body as they become arguments.
fn input<'d>(
    schemas: &mut Schemas<'d>,
    path: &str,
    mut reads: Vec<parameter::Read<'d>>,
    body: Option<body::Read<'d>>,
) -> Result<Input, Unusable> {
    // Many descriptions have variables in paths that no parameter declares.
    for name in variables(path)? {
        let is_declared = reads
            .iter()
            .any(|read| read.parameter.place == Place::Path && read.parameter.name == name);
        if !is_declared {
            reads.push(parameter::undeclared(name));
        }
    }
    let mut arguments = Arguments::default();
    let mut parameters = Vec::with_capacity(reads.len());
    for read in reads {
        parameters.push(arguments.add_parameter(schemas, read)?);
    }
    // After the parameters, which keep their names if one of them is named `body`.
    let body = match body {
        Some(read) => Some(arguments.add_body(schemas, read)?),
        None => None,
    };
    // Last: converting a schema adds to the definitions that it refers to.
    let definitions = schemas.definitions()?;
    Ok(Input {
        schema: arguments.into_schema(definitions),
        parameters,
        body,
    })
}

/// The arguments of a tool while they are read.
#[derive(Default)]
struct Arguments {
    taken: Taken,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Arguments {
    /// Adds a parameter, and returns it with the name of its argument.
    fn add_parameter(
        &mut self,
        schemas: &mut Schemas<'_>,
        read: parameter::Read<'_>,
    ) -> Result<Parameter, Unusable> {
        let mut parameter = read.parameter;
        let place = parameter.place.name();
        parameter.argument = names::of_argument(&parameter.name, place, &mut self.taken);
        let mut schema = converted(schemas, read.schema)?;
        let mut words = read.description.unwrap_or_default();
        if parameter.argument != parameter.name {
            let sent = format!("Sent as `{}` ({place}).", parameter.name);
            note(&mut words, &sent);
        }
        if read.deprecated {
            note(&mut words, "Deprecated.");
        }
        schemas.describe(&mut schema, words)?;
        self.add(&parameter.argument, schema, parameter.required);
        Ok(parameter)
    }

    /// Adds the body, and returns it with the name of its argument.
    fn add_body(
        &mut self,
        schemas: &mut Schemas<'_>,
        read: body::Read<'_>,
    ) -> Result<Body, Unusable> {
        let mut body = read.body;
        body.argument = names::of_argument("body", "request", &mut self.taken);
        let mut schema = match body.form {
            BodyForm::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            _ => converted(schemas, read.schema)?,
        };
        let mut words = cut(read.description.unwrap_or_default(), TEXT_CHARS_MAX);
        if body.media != "application/json" {
            note(&mut words, &format!("Sent as {}.", body.media));
        }
        schemas.describe(&mut schema, words)?;
        self.add(&body.argument, schema, body.required);
        Ok(body)
    }

    fn add(&mut self, argument: &str, schema: Value, is_required: bool) {
        if is_required {
            self.required.push(argument.to_owned());
        }
        self.properties.insert(argument.to_owned(), schema);
    }

    /// The schema of all of them, with the definitions that theirs refer to.
    fn into_schema(self, definitions: Map<String, Value>) -> Value {
        let properties = self.properties;
        let mut schema =
            json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if let Some(members) = schema.as_object_mut() {
            if !self.required.is_empty() {
                members.insert("required".to_owned(), json!(self.required));
            }
            if !definitions.is_empty() {
                members.insert("$defs".to_owned(), definitions.into());
            }
        }
        schema
    }
}

/// The schema of an argument; without one it may be anything.
fn converted(schemas: &mut Schemas<'_>, schema: Option<&Value>) -> Result<Value, Unusable> {
    match schema {
        Some(schema) => schemas.convert(schema),
        None => Ok(json!({})),
    }
}

/// The parameters that an operation or a path lists.
fn listed_parameters(of: &Value) -> &[Value] {
    of.get("parameters")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
}

/// A path as people read it: one line, not too long.
fn shown(path: &str) -> String {
    cut(path, 200).escape_debug().to_string()
}

/// The beginning of a text, at most so many characters.
fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// Records that an operation, or a path, is no tool, with the reason in words for operators.
fn leave_out(all: &mut Operations, name: String, reason: String) {
    if all.left_out.len() < OPERATIONS_MAX {
        all.left_out.push(LeftOut { name, reason });
    }
}

/// Adds a sentence to a description.
fn note(words: &mut String, sentence: &str) {
    if !words.is_empty() {
        words.push(' ');
    }
    words.push_str(sentence);
}

/// The tool as it is listed.
fn definition(
    name: &str,
    method: &str,
    path: &str,
    operation: &Value,
    input: Value,
    output: Option<Value>,
) -> Value {
    let summary = trimmed(operation, "summary");
    let described = trimmed(operation, "description");
    let mut words: Vec<String> = Vec::new();
    for part in [summary, described] {
        if !part.is_empty() && !words.iter().any(|word| word == part) {
            words.push(cut(part, TEXT_CHARS_MAX));
        }
    }
    words.push(format!("{method} {}", cut(path, TITLE_CHARS_MAX)));
    if operation.get("deprecated") == Some(&Value::Bool(true)) {
        words.push("Deprecated.".to_owned());
    }
    let mut annotations = Map::new();
    for hint in hints(method) {
        annotations.insert((*hint).to_owned(), true.into());
    }
    let description = cut(&words.join("\n\n"), TEXT_CHARS_MAX);
    let mut tool = json!({ "name": name, "description": description, "inputSchema": input });
    if let Some(members) = tool.as_object_mut() {
        if !summary.is_empty() {
            members.insert("title".to_owned(), cut(summary, TITLE_CHARS_MAX).into());
        }
        if !annotations.is_empty() {
            members.insert("annotations".to_owned(), annotations.into());
        }
        if let Some(output) = output {
            members.insert("outputSchema".to_owned(), output);
        }
    }
    tool
}

/// The annotations of tools that follow from a method (RFC 9110, 9.2).
fn hints(method: &str) -> &'static [&'static str] {
    match method {
        "GET" | "HEAD" | "OPTIONS" => &["readOnlyHint"],
        "PUT" => &["idempotentHint"],
        "DELETE" => &["destructiveHint", "idempotentHint"],
        _ => &[],
    }
}

/// A text of an operation, without the blanks around it; empty if there is none.
fn trimmed<'o>(operation: &'o Value, key: &str) -> &'o str {
    operation
        .get(key)
        .and_then(Value::as_str)
        .map(str::trim)
        .unwrap_or_default()
}
