//! Proxy client: detection, the operations `list`, `info` and `call`, and transparent mode.

use std::sync::Arc;

use model::ListKind;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use wire::mcp::method::ListNames;
use wire::mcp::proxy::{LIST_MAX, NAME, ProxySubject};
use wire::rpc::code::METHOD_NOT_FOUND;

use super::cache::{Cache, changed_by};
use super::definition::{Definition, owned};
use super::detect::candidates;
use super::error::ProxyError;
use super::read;
use super::requester::Requester;
use crate::CallError;

/// Bytes of one list, entries and what keeps them. The cache has three lists at most.
pub const LIST_BYTES_MAX: usize = 16 << 20;
/// Pages of one list.
pub const PAGES_MAX: usize = 1000;

/// The lists that a subject has in MCP.
fn lists_of(subject: ProxySubject) -> &'static [ListKind] {
    match subject {
        ProxySubject::Tool => &[ListKind::Tools],
        ProxySubject::Resource => &[ListKind::Resources, ListKind::Templates],
        ProxySubject::Prompt => &[ListKind::Prompts],
    }
}

/// Client of a server that may have a proxy tool.
///
/// Lists are kept until [`notified`](Self::notified) or [`forget`](Self::forget) says that they
/// have changed: give it the server's notifications.
#[derive(Debug)]
pub struct ProxyClient<R> {
    requester: R,
    /// The name of the proxy tool, if the server has one.
    tool: Option<String>,
    cache: Cache,
}

impl<R: Requester> ProxyClient<R> {
    /// Looks for the proxy tool in the three steps of section 6.1: a tool named `proxy`; else tools
    /// whose descriptions have words like it; and a trial `list` of tools, which also fills the
    /// cache. At most [`TRIALS_MAX`](super::TRIALS_MAX) tools are tried, and only such as have the
    /// parameters `action` and `type`, with the values `list` and `tool`.
    ///
    /// What the server notifies of meanwhile reaches no client yet: [`forget`](Self::forget) the
    /// tools if it says that they changed.
    ///
    /// # Errors
    /// When the list of tools cannot be read, or a trial has no answer. A server without the tool
    /// is no error.
    pub async fn detect(requester: R) -> Result<Self, ProxyError> {
        let mut client = Self::with_tool(requester, None);
        let tools = client.list_directly(ProxySubject::Tool).await?;
        for name in candidates(&tools) {
            client.tool = Some(name);
            client.cache = Cache::default();
            match client.read_list(ProxySubject::Tool).await {
                Ok(read) if read.has_content => {
                    client.keep(ProxySubject::Tool, read, 0);
                    return Ok(client);
                }
                // Another tool of the name, or one that does not work.
                Ok(_)
                | Err(
                    ProxyError::Call(CallError::Answered(_))
                    | ProxyError::Failed(_)
                    | ProxyError::Unfinished(_)
                    | ProxyError::Unreadable(_)
                    | ProxyError::UnexpectedType(_),
                ) => {}
                Err(error) => return Err(error),
            }
        }
        client.tool = None;
        client.cache.put(ProxySubject::Tool, &tools, 0);
        Ok(client)
    }

    /// A client that uses the proxy tool of this name, or none. Nothing is sent.
    pub fn with_tool(requester: R, tool: Option<&str>) -> Self {
        Self {
            requester,
            tool: tool.map(str::to_owned),
            cache: Cache::default(),
        }
    }

    /// A client that uses the tool `proxy` (section 2.1). Nothing is sent.
    pub fn new(requester: R) -> Self {
        Self::with_tool(requester, Some(NAME))
    }

    /// The name of the proxy tool; `None` where the server has none, and requests go directly.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// The connection.
    pub fn requester(&self) -> &R {
        &self.requester
    }

    /// All entries of a list, by `list` (section 3.1), page by page where the annotation
    /// `totalCount` says that there are more. Resources come with templates.
    ///
    /// # Errors
    /// [`ProxyError`]. A list that ends early, or is too long, is an error, not a part.
    pub async fn list(&self, subject: ProxySubject) -> Result<Arc<[Definition]>, ProxyError> {
        if self.tool.is_none() {
            return Err(ProxyError::NoProxy);
        }
        match self.cache.get(subject) {
            (Some(known), _) => Ok(known),
            (None, changes) => Ok(self.keep(subject, self.read_list(subject).await?, changes)),
        }
    }

    /// One definition, by `info`: of a tool or prompt by its name; of a resource by URI, where the
    /// server knows it by that, or name.
    ///
    /// # Errors
    /// [`ProxyError::Failed`] where there is none, and others.
    pub async fn info(&self, subject: ProxySubject, path: &str) -> Result<Definition, ProxyError> {
        let arguments = Arguments {
            path: Some(path),
            ..Arguments::of("info", subject)
        };
        read::info(self.ask(&arguments).await?.get().as_bytes(), subject)
    }

    /// Calls a tool, reads a resource or gets a prompt, by `call` (section 3.2). Returns the result
    /// of `tools/call`, as it came, with annotations; or that of `resources/read` or `prompts/get`,
    /// restored. `args` is an object, or null for none; resources have none.
    ///
    /// # Errors
    /// [`ProxyError::Failed`] where a resource or prompt fails; the failure of a tool is a result
    /// with `isError`. And others.
    pub async fn call(
        &self,
        subject: ProxySubject,
        path: &str,
        args: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Box<RawValue>, ProxyError> {
        let args = raw(args)?;
        let args = Some(&*args).filter(|args| args.get() != "null");
        let arguments = Arguments {
            path: Some(path),
            args,
            ..Arguments::of("call", subject)
        };
        let result = self.ask(&arguments).await?;
        match subject {
            ProxySubject::Tool if read::is_final(result.get().as_bytes()) => Ok(result),
            ProxySubject::Tool => Err(ProxyError::Unfinished(result)),
            ProxySubject::Resource => read::resource(result.get().as_bytes()),
            ProxySubject::Prompt => read::prompt(result.get().as_bytes()),
        }
    }

    /// The server's tools, through the proxy tool if there is one.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_tools(&self) -> Result<Arc<[Definition]>, ProxyError> {
        self.list_either_way(ProxySubject::Tool).await
    }

    /// The server's resources and templates, through the proxy tool if there is one.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_resources(&self) -> Result<Arc<[Definition]>, ProxyError> {
        self.list_either_way(ProxySubject::Resource).await
    }

    /// The server's prompts, through the proxy tool if there is one.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_prompts(&self) -> Result<Arc<[Definition]>, ProxyError> {
        self.list_either_way(ProxySubject::Prompt).await
    }

    /// Calls a tool, through the proxy tool if there is one. Returns the result of `tools/call`;
    /// through the proxy tool its items have annotations more.
    ///
    /// # Errors
    /// As [`call`](Self::call). A tool that does not exist is one: [`CallError::Answered`]
    /// directly, or a result with `isError`.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Box<RawValue>, ProxyError> {
        self.call_either_way(ProxySubject::Tool, "name", name, raw(arguments)?)
            .await
    }

    /// Reads a resource, through the proxy tool if there is one. Returns the result of
    /// `resources/read`. Text that is JSON loses white space on the way through the proxy tool.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn read_resource(&self, uri: &str) -> Result<Box<RawValue>, ProxyError> {
        self.call_either_way(ProxySubject::Resource, "uri", uri, raw(&())?)
            .await
    }

    /// Gets a prompt, through the proxy tool if there is one. Returns the result of `prompts/get`.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Box<RawValue>, ProxyError> {
        self.call_either_way(ProxySubject::Prompt, "name", name, raw(arguments)?)
            .await
    }

    /// Forgets the list that a notification of the server says has changed, and returns whether
    /// there is one. `method` is the notification's, such as `notifications/tools/list_changed`.
    pub fn notified(&self, method: &str) -> bool {
        let changed = changed_by(method);
        if let Some(subject) = changed {
            self.cache.forget(subject);
        }
        changed.is_some()
    }

    /// Forgets a list, so that it is read again.
    pub fn forget(&self, subject: ProxySubject) {
        self.cache.forget(subject);
    }

    async fn list_either_way(
        &self,
        subject: ProxySubject,
    ) -> Result<Arc<[Definition]>, ProxyError> {
        if self.tool.is_some() {
            return self.list(subject).await;
        }
        match self.cache.get(subject) {
            (Some(known), _) => Ok(known),
            (None, _) => self.list_directly(subject).await,
        }
    }

    async fn call_either_way(
        &self,
        subject: ProxySubject,
        key: &str,
        path: &str,
        args: Box<RawValue>,
    ) -> Result<Box<RawValue>, ProxyError> {
        if self.tool.is_some() {
            return self.call(subject, path, &args).await;
        }
        let path = raw(path)?;
        let with_args = args.get() != "null";
        let params = json::object(|params| {
            params.raw(key, path.get().as_bytes());
            if with_args {
                params.raw("arguments", args.get().as_bytes());
            }
        });
        Ok(self
            .requester
            .request(subject.method(), &owned(&params)?)
            .await?)
    }

    /// The lists of MCP itself.
    async fn list_directly(&self, subject: ProxySubject) -> Result<Arc<[Definition]>, ProxyError> {
        let (_, changes) = self.cache.get(subject);
        let mut all = Collected::default();
        for list in lists_of(subject) {
            let names = ListNames::of(*list);
            let mut cursor = None;
            loop {
                let params: Map<String, Value> = cursor
                    .map(|cursor| ("cursor".to_owned(), cursor))
                    .into_iter()
                    .collect();
                let page = match self.requester.request(names.method, &raw(&params)?).await {
                    // Servers may have one of the lists of resources, or none.
                    Err(CallError::Answered(error)) if error.code == METHOD_NOT_FOUND => break,
                    page => page?,
                };
                let page = page.get().as_bytes();
                let items = json::at(page, &[names.items])
                    .and_then(|raw| Some((raw, json::elements(raw, json::Span::all(raw)).ok()?)));
                let (items, spans) = items.ok_or(ProxyError::Unreadable("a list is no array"))?;
                all.add(
                    spans
                        .iter()
                        .map(|span| Definition::read(span.of(items), &[*list]))
                        .collect::<Result<_, _>>()?,
                )?;
                let next = json::at(page, &["nextCursor"]).and_then(json::text);
                let Some(next) = next else { break };
                cursor = Some(Value::String(next.into_owned()));
            }
        }
        Ok(self.keep(subject, all, changes))
    }

    fn keep(&self, subject: ProxySubject, all: Collected, changes: u64) -> Arc<[Definition]> {
        let list = Arc::from(all.entries);
        self.cache.put(subject, &list, changes);
        list
    }

    /// All pages of a list, by the proxy tool.
    async fn read_list(&self, subject: ProxySubject) -> Result<Collected, ProxyError> {
        let mut all = Collected::default();
        let mut arguments = Arguments::of("list", subject);
        let mut total = 0;
        loop {
            let page = read::list(self.ask(&arguments).await?.get().as_bytes(), subject)?;
            all.has_content |= page.is_some();
            let page = page.unwrap_or_default();
            let is_empty = page.entries.is_empty();
            total = page.total.unwrap_or(total);
            all.add(page.entries)?;
            let read = all.entries.len();
            if total <= read {
                return Ok(all);
            }
            if is_empty {
                return Err(ProxyError::ListCut { read, total });
            }
            // The document knows no pages: they are asked for only where the answer has named them.
            (arguments.offset, arguments.limit) = (Some(read), Some(LIST_MAX));
        }
    }

    /// Calls the proxy tool.
    async fn ask(&self, arguments: &Arguments<'_>) -> Result<Box<RawValue>, ProxyError> {
        let name = self.tool.as_deref().ok_or(ProxyError::NoProxy)?;
        let params = raw(&ToolCall { name, arguments })?;
        Ok(self
            .requester
            .request(ProxySubject::Tool.method(), &params)
            .await?)
    }
}

#[derive(Serialize)]
struct ToolCall<'a> {
    name: &'a str,
    arguments: &'a Arguments<'a>,
}

/// The arguments of the tool (section 2.2), and those of pages, which the document does not have.
#[derive(Serialize)]
struct Arguments<'a> {
    action: &'a str,
    #[serde(rename = "type")]
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
}

impl<'a> Arguments<'a> {
    fn of(action: &'a str, subject: ProxySubject) -> Self {
        Self {
            action,
            subject: subject.as_str(),
            path: None,
            args: None,
            offset: None,
            limit: None,
        }
    }
}

/// The entries of a list so far.
#[derive(Default)]
struct Collected {
    entries: Vec<Definition>,
    bytes: usize,
    pages: usize,
    /// Whether an answer had any content.
    has_content: bool,
}

impl Collected {
    fn add(&mut self, page: Vec<Definition>) -> Result<(), ProxyError> {
        self.pages += 1;
        self.bytes += page.iter().map(Definition::bytes).sum::<usize>();
        if self.pages > PAGES_MAX || self.bytes > LIST_BYTES_MAX {
            return Err(ProxyError::ListTooLong);
        }
        self.entries.extend(page);
        Ok(())
    }
}

fn raw(value: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, ProxyError> {
    to_raw_value(value).map_err(|error| CallError::Invalid(error.to_string()).into())
}
