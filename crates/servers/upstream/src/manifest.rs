//! Manifest of a server: its lists as it wrote them, quarantined tools, header annotations.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use model::{Coding, Refusal, RefusalCode};
use schema::{ListedTool, Module, ToolSchema};
use transcode::server::schemas::SentTool;
use vetting::{Part, PartDefinition, Withheld};
use wire::mcp::header::{self, HeaderParam};
use wire::mcp::task::TaskSupport;
use wire::mcp::{ListKind, Params, Version};
use wire::{mcp::list::Item, rpc::Message};

use crate::arguments::{Arguments, Checks, of_rules};
use crate::field_numbers::FieldNumbers;
use crate::sent::SentTools;
use crate::status::QuarantinedTool;

/// The first line of a refusal whose other lines name what does not fit.
const UNFIT: &str = "the arguments do not fit the input schema of the tool, so it was not called";

/// The lists of the server of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The server's raw capabilities; empty before the handshake.
    pub capabilities: Bytes,
    /// The raw result of `initialize` (legacy) or `server/discover` (modern); empty before the
    /// handshake.
    pub handshake: Bytes,
    /// Its tools as callers see them, under its own names, without the quarantined and the hidden
    /// ones.
    pub tools: List,
    /// The tools that callers see otherwise than the server lists them, by its own names.
    pub altered: HashMap<String, Altered>,
    /// The tools that the configuration hides, by the server's own names.
    pub hidden: Vec<String>,
    /// Lines of the configuration about its tools that have another effect than they seem to have.
    pub notes: Vec<String>,
    /// Its resources.
    pub resources: List,
    /// Its resource templates.
    pub templates: List,
    /// Its prompts.
    pub prompts: List,
    /// Its skills.
    pub skills: List,
    /// Tools that are left out because their schemas are unusable.
    pub quarantined: Vec<QuarantinedTool>,
    /// Arguments that a tool wants mirrored in HTTP headers, by the tool's own name; only tools
    /// that have some.
    pub annotations: HashMap<String, Vec<HeaderParam>>,
    /// Whether its server speaks a revision before 2026-07-28.
    pub is_legacy: bool,
    /// Tools whose calls may or must become tasks (2025-11-25), by the tool's own name; only those.
    pub tasks: HashMap<String, TaskSupport>,
    /// Coding of the server's payloads.
    pub coding: Coding,
    /// The messages that a server of proto-mcp sent with its tools.
    pub sent: SentTools,
    /// Tools of which a server of proto-mcp sent a schema that cannot be used.
    pub untyped: Vec<QuarantinedTool>,
    /// The schemas of its other tools in protobuf, once a caller needs them.
    pub compiled: Compiled,
    /// The input schemas by which arguments were checked.
    pub checks: Checks,
    /// The gateways that its lists came through, the nearest first; empty if its server is no
    /// gateway.
    pub gateways: Vec<String>,
    /// Definitions that callers do not get as the server writes them now: requests for these tools
    /// and prompts are refused.
    pub withheld: Vec<Withheld>,
}

/// Products of a manifest that are made when they are first needed. It says nothing more, so it
/// does not count in comparisons.
#[derive(Debug, Clone, Default)]
pub struct Compiled {
    module: OnceLock<Module>,
    numbers: Arc<FieldNumbers>,
}

impl Compiled {
    /// Nothing yet; fields get the numbers that are remembered.
    #[must_use]
    pub fn with(numbers: &Arc<FieldNumbers>) -> Self {
        Self {
            module: OnceLock::new(),
            numbers: Arc::clone(numbers),
        }
    }
}

impl PartialEq for Compiled {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Compiled {}

/// One list, all pages joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The items in the server's order.
    pub items: Vec<Item>,
    /// Other members of the first page's result, raw.
    pub extras: Vec<(String, Bytes)>,
    /// Time that clients may cache the list, in milliseconds: the minimum of all pages; modern
    /// only.
    pub ttl_ms: Option<u64>,
    /// Whether caches may share the list between callers.
    pub public: bool,
}

/// Lists as their server wrote them, before they are judged and checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Written([List; 5]);

impl Written {
    /// One of the lists.
    pub(crate) fn list(&self, kind: ListKind) -> &List {
        let [tools, resources, templates, prompts, skills] = &self.0;
        match kind {
            ListKind::Tools => tools,
            ListKind::Resources => resources,
            ListKind::Templates => templates,
            ListKind::Prompts => prompts,
            ListKind::Skills => skills,
        }
    }

    /// Replaces one of the lists by a fetched one.
    pub(crate) fn set(&mut self, kind: ListKind, list: List) {
        let [tools, resources, templates, prompts, skills] = &mut self.0;
        match kind {
            ListKind::Tools => *tools = list,
            ListKind::Resources => *resources = list,
            ListKind::Templates => *templates = list,
            ListKind::Prompts => *prompts = list,
            ListKind::Skills => *skills = list,
        }
    }
}

/// A tool that callers see otherwise than its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    /// The server's definition.
    pub original: Item,
    /// Whether some of its arguments are preset or hidden, so that its schema is another one.
    pub is_cut: bool,
}

impl Manifest {
    /// One of the lists.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &List {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Prompts => &self.prompts,
            ListKind::Skills => &self.skills,
        }
    }

    /// A tool as its server defines it: what pins, checks and reviewers go by.
    #[must_use]
    pub fn original(&self, tool: &str) -> Option<&Item> {
        match self.altered.get(tool) {
            Some(altered) => Some(&altered.original),
            None => self.listed(tool),
        }
    }

    /// A tool as callers see it.
    fn listed(&self, tool: &str) -> Option<&Item> {
        self.tools.items.iter().find(|item| item.key == tool)
    }

    /// The messages that the server sent with a tool, unless callers see fewer arguments than these
    /// have.
    #[must_use]
    pub fn sent_to_callers(&self, tool: &str) -> Option<&SentTool> {
        if self.is_cut(tool) {
            return None;
        }
        self.sent.get(tool)
    }

    /// The reference to a tool's schema as the server wrote it, unless callers see fewer arguments.
    #[must_use]
    pub fn reference(&self, tool: &str) -> Option<&str> {
        if self.is_cut(tool) {
            return None;
        }
        self.sent.reference(tool)
    }

    /// Whether callers cannot pass some arguments of a tool.
    #[must_use]
    pub fn is_cut(&self, tool: &str) -> bool {
        self.altered.get(tool).is_some_and(|altered| altered.is_cut)
    }

    /// The arguments that callers of a tool mirror in HTTP headers.
    #[must_use]
    pub fn mirrored_by_callers(&self, tool: &str) -> Vec<HeaderParam> {
        if !self.is_cut(tool) {
            return self.annotations.get(tool).cloned().unwrap_or_default();
        }
        // The annotations are those of the server's schema, which has arguments that callers do not
        // see.
        let schema = self.listed(tool).and_then(|item| item.get("inputSchema"));
        match schema {
            Some(schema) => header::annotations(&schema).unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// The schema in protobuf that callers of a tool use: what its server sent, else the JSON
    /// Schema that they see as a message in the package of the server with this name.
    pub fn tool_schema(&self, server: &str, tool: &str) -> Option<ToolSchema> {
        match self.sent_to_callers(tool) {
            Some(sent) => Some(sent.schema.clone()),
            None => self.module(server).tool(tool).cloned(),
        }
    }

    /// Checks the arguments of a call of one of its tools, by the tool's own name: by the input
    /// schema, or by the message that a server of proto-mcp has for them. A tool that the server
    /// does not list takes any.
    ///
    /// # Errors
    /// What does not fit, in words for the caller, a line for each violation:
    /// [`RefusalCode::SchemaViolation`], and [`RefusalCode::Malformed`] for arguments that are no
    /// such message.
    pub fn check(&self, tool: &str, arguments: Option<&[u8]>) -> Result<(), Refusal> {
        match self.coding {
            Coding::Json => self.check_json(tool, arguments).map_err(|violations| {
                let why = format!("{UNFIT}:\n{violations}");
                Refusal::new(RefusalCode::SchemaViolation, why)
            }),
            Coding::Proto => {
                let Some(sent) = self.sent.get(tool) else {
                    return Ok(());
                };
                // `null` is how some callers write that there are none; a message has no such value.
                let arguments = match arguments {
                    None | Some(b"null") => b"{}",
                    Some(arguments) => arguments,
                };
                sent.check(arguments).map_err(by_line)
            }
        }
    }

    /// The refusal of arguments that do not fit, as [`Manifest::check`]; `None` also where no schema
    /// says what fits, or one by which nothing can be checked.
    pub fn misfit(&self, tool: &str, arguments: Option<&[u8]>) -> Option<Refusal> {
        let is_checked_by_schema = self.coding == Coding::Json;
        if is_checked_by_schema && self.schema_of(tool)?.is_err() {
            return None;
        }
        self.check(tool, arguments).err()
    }

    /// Checks a call in protobuf that passes to a server of proto-mcp as it is, a
    /// `CallToolRequest`. `checked` is the schema by which that was done before.
    ///
    /// # Errors
    /// As [`Manifest::check`].
    pub fn check_message(
        &self,
        tool: &str,
        call: &Bytes,
        checked: Option<&ToolSchema>,
    ) -> Result<(), Refusal> {
        match self.sent.get(tool) {
            Some(sent) => sent.check_message(call, checked),
            None => Ok(()),
        }
    }

    /// Check of arguments in JSON; its error has a line for each violation.
    fn check_json(&self, tool: &str, arguments: Option<&[u8]>) -> Result<(), String> {
        // A server whose names have no prefix is also asked for what the lists leave out.
        if let Some(unusable) = self.quarantined.iter().find(|one| one.name == tool) {
            return Err(format!("- {}", unusable.reason));
        }
        let Some(schema) = self.schema_of(tool) else {
            return Ok(());
        };
        schema.map_err(|why| format!("- {why}"))?.check(arguments)
    }

    /// The input schema of a tool as its server defines it, or why nothing can be checked by it; `None`
    /// of a tool that it does not define.
    fn schema_of(&self, tool: &str) -> Option<Result<Arc<Arguments>, String>> {
        let item = self.original(tool)?;
        let schema = || item.get("inputSchema").unwrap_or_default();
        Some(self.checks.of(tool, schema))
    }

    /// The schemas of the tools that came without one: those of the registry's module too. They are
    /// compiled once, about 20 microseconds a tool.
    pub fn module(&self, server: &str) -> &Module {
        self.compiled.module.get_or_init(|| {
            let items = self.tools.items.iter();
            let untyped: Vec<Untyped<'_>> = items
                .filter(|item| self.sent_to_callers(&item.key).is_none())
                .map(Untyped::of)
                .collect();
            let tools: Vec<ListedTool<'_>> = untyped.iter().map(Untyped::listed).collect();
            self.compiled
                .numbers
                .module(&schema::package_of(server), &tools)
        })
    }

    /// Whether it has a tool of this name that is defined like this, as pins compare definitions.
    #[must_use]
    pub fn defines(&self, tool: &str, definition: &[u8]) -> bool {
        let Some(item) = self.original(tool) else {
            return false;
        };
        // The same bytes are the same definition: only others are read.
        *item.raw == *definition
            || PartDefinition::of(Part::Tool, tool, &item.raw)
                == PartDefinition::of(Part::Tool, tool, definition)
    }

    /// Whether requests for an entry of this list are refused, whatever the caller may do.
    #[must_use]
    pub fn withholds(&self, kind: ListKind, name: &str) -> bool {
        self.withheld_of(kind).any(|one| one.name == name)
    }

    /// The withheld entries of a list.
    pub fn withheld_of(&self, kind: ListKind) -> impl Iterator<Item = &Withheld> {
        let part = match kind {
            ListKind::Tools => Some(Part::Tool),
            ListKind::Prompts => Some(Part::Prompt),
            ListKind::Skills => Some(Part::Skill),
            ListKind::Resources | ListKind::Templates => None,
        };
        self.withheld
            .iter()
            .filter(move |one| Some(one.part) == part)
    }

    /// The instructions to pass on in place of the server's own, if these are withheld: empty if
    /// none were approved.
    #[must_use]
    pub fn instructions_instead(&self) -> Option<String> {
        let withheld = self
            .withheld
            .iter()
            .find(|one| one.part == Part::Instructions)?;
        let approved = withheld
            .pinned
            .as_ref()
            .and_then(|pinned| json::at(pinned.as_bytes(), &["instructions"]))
            .and_then(json::text);
        Some(approved.unwrap_or_default().into_owned())
    }

    pub(crate) fn set(&mut self, kind: ListKind, list: List) {
        match kind {
            ListKind::Tools => self.tools = list,
            ListKind::Resources => self.resources = list,
            ListKind::Templates => self.templates = list,
            ListKind::Prompts => self.prompts = list,
            ListKind::Skills => self.skills = list,
        }
    }

    /// The HTTP headers that mirror a modern request (2026-07-28, Streamable HTTP). `target` is the
    /// name, URI or task id that the frame has. The frame is read only for a tool that wants some
    /// of its arguments in headers.
    pub(crate) fn mirror_headers(
        &self,
        frame: &Bytes,
        method: &str,
        target: Option<&str>,
        version: Version,
    ) -> HeaderMap {
        let mut mirrored = header::standard(version, method, target);
        if method == "tools/call"
            && let Some(tool) = target
            && let Some(annotations) = self.annotations.get(tool)
            && let Ok(message) = Message::read(frame.clone())
            && let Ok(params) = Params::read(&message)
        {
            mirrored.extend(header::compute(&params, annotations).unwrap_or_default());
        }
        let mut headers = HeaderMap::new();
        for (name, value) in mirrored {
            // What no header can have is left out.
            if let Ok(name) = HeaderName::try_from(name)
                && let Ok(value) = HeaderValue::try_from(value)
            {
                headers.append(name, value);
            }
        }
        headers
    }
}

/// A tool that came without a message, with the members that one is made of.
struct Untyped<'m> {
    name: &'m str,
    description: Option<String>,
    input: Option<Bytes>,
    output: Option<Bytes>,
}

impl<'m> Untyped<'m> {
    fn of(item: &'m Item) -> Self {
        let description = item.get("description");
        Self {
            name: &item.key,
            description: description.and_then(|raw| Some(json::text(&raw)?.into_owned())),
            input: item.get("inputSchema"),
            output: item.get("outputSchema"),
        }
    }

    fn listed(&self) -> ListedTool<'_> {
        ListedTool {
            name: self.name,
            description: self.description.as_deref(),
            input: self.input.as_deref().unwrap_or(b"{}"),
            output: self.output.as_deref(),
        }
    }
}

/// A refusal by the rules of a message in the words of one by a JSON Schema.
fn by_line(refusal: Refusal) -> Refusal {
    match refusal.code {
        RefusalCode::SchemaViolation => {
            let message = format!("{UNFIT}:\n{}", of_rules(&refusal.violations)).into();
            Refusal { message, ..refusal }
        }
        _ => refusal,
    }
}
