//! Arguments of the proxy tool (sections 2.2 and 2.3, appendix A.1 and A.3), and the request that a
//! call stands for.

use std::borrow::Cow;

use json::{JsonError, MemberChange, Members, Span, quote};

use super::{ProxySubject, failed};

/// Entries of one page of `list`, and the most that `limit` may ask for.
pub const LIST_MAX: usize = 1000;

/// The most operations of one `batch`.
pub const BATCH_MAX: usize = 50;

/// The arguments that the tool takes.
const KEYS: [&str; 9] = [
    "action",
    "type",
    "path",
    "args",
    "limit",
    "offset",
    "filter_server",
    "filter",
    "operations",
];
const ACTIONS: [&str; 4] = ["list", "info", "call", "batch"];

/// Request to the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyRequest {
    /// A look into the lists.
    Look(ReadOperation),
    /// A call, read or get.
    Call(ProxyCall),
    /// Several operations: the arguments of each.
    Batch(Vec<Vec<u8>>),
}

/// The operations `list` and `info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOperation {
    /// Entries of a list.
    List(ProxyList),
    /// One entry of a list.
    Info {
        /// Kind of the entry.
        subject: ProxySubject,
        /// Its name or URI.
        path: String,
    },
}

/// The operation `list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyList {
    /// Of what.
    pub subject: ProxySubject,
    /// Filter of the entries.
    pub filter: Filter,
    /// Page of the filtered entries.
    pub page: ProxyPage,
}

/// A part of the entries of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyPage {
    /// The first entry, from 0.
    pub offset: usize,
    /// The most entries.
    pub limit: usize,
}

/// A choice of entries: all that is given must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// A server, or the beginning of names.
    pub server: Option<String>,
    /// The beginning of the name or URI.
    pub prefix: Option<String>,
    /// Tags of which an entry must have one. An empty list does not filter.
    pub tags: Vec<String>,
}

/// The operation `call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyCall {
    /// Kind of the called entry.
    pub subject: ProxySubject,
    /// Its name or URI.
    pub path: String,
    /// The arguments, an object.
    pub args: Option<Vec<u8>>,
}

impl ProxyRequest {
    /// Reads the arguments of a call of the tool.
    ///
    /// # Errors
    /// What is wrong with them, for the model.
    pub fn read(arguments: &[u8]) -> Result<Self, String> {
        let members = json::members(arguments, Span::all(arguments))
            .map_err(|error| invalid(&[format!("arguments\n  {error}")]))?;
        Arguments {
            members,
            faults: Vec::new(),
        }
        .read()
    }
}

struct Arguments<'a> {
    members: Members<'a>,
    /// Violations of the schema, as Magg reports them: a field and a reason.
    faults: Vec<String>,
}

impl<'a> Arguments<'a> {
    fn read(mut self) -> Result<ProxyRequest, String> {
        let keys: Vec<String> = self.members.iter().map(|(key, _)| key.to_owned()).collect();
        for key in keys.iter().filter(|key| !KEYS.contains(&key.as_str())) {
            self.fault(key, "Unexpected keyword argument");
        }
        let action = self.word("action", &ACTIONS, true);
        let subject = self.word(
            "type",
            &["tool", "resource", "prompt"],
            action.as_deref() != Some("batch"),
        );
        let given = Given {
            action: action.unwrap_or_default(),
            subject: subject.and_then(|subject| subject.parse().ok()),
            path: self.text("path"),
            args: self.args(),
            limit: self.number("limit", 1, LIST_MAX),
            offset: self.number("offset", 0, usize::MAX),
            filter: self.filter(),
            operations: self.operations(),
        };
        if self.faults.is_empty() {
            given.request()
        } else {
            Err(invalid(&self.faults))
        }
    }

    fn fault(&mut self, field: &str, why: &str) {
        self.faults.push(format!("{field}\n  {why}"));
    }

    /// A value that is neither absent nor null.
    fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.members
            .get(key)
            .map(|member| member.raw)
            .filter(|raw| *raw != b"null")
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let text = json::text(self.get(key)?).map(Cow::into_owned);
        if text.is_none() {
            self.fault(key, "Input should be a valid string");
        }
        text
    }

    /// One of some words.
    fn word(&mut self, key: &str, known: &[&str], required: bool) -> Option<String> {
        let Some(raw) = self.members.get(key).map(|member| member.raw) else {
            if required {
                self.fault(key, "Missing required argument");
            }
            return None;
        };
        let word = json::text(raw).filter(|word| known.contains(&&**word));
        if word.is_none() {
            let known: Vec<String> = known.iter().map(|known| format!("'{known}'")).collect();
            self.fault(key, &format!("Input should be {}", known.join(", ")));
        }
        word.map(Cow::into_owned)
    }

    fn number(&mut self, key: &str, min: usize, max: usize) -> Option<usize> {
        let raw = self.get(key)?;
        let number = json::integer(raw).and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let most = if max == usize::MAX {
                String::new()
            } else {
                format!(" and at most {max}")
            };
            self.fault(
                key,
                &format!("Input should be an integer of at least {min}{most}"),
            );
        }
        number
    }

    /// The arguments of a call: an object, or a string of one.
    fn args(&mut self) -> Option<Vec<u8>> {
        let raw = self.get("args")?;
        let spelled = match json::text(raw) {
            Some(text) if json::check(text.as_bytes()).is_ok() => text.into_owned().into_bytes(),
            Some(_) => Vec::new(),
            None => raw.to_vec(),
        };
        if json::is_object(&spelled) {
            return Some(spelled);
        }
        self.fault(
            "args",
            "Input should be an object, or a JSON string of an object",
        );
        None
    }

    fn filter(&mut self) -> Filter {
        let mut filter = Filter {
            server: self.text("filter_server"),
            ..Filter::default()
        };
        let Some(raw) = self.get("filter") else {
            return filter;
        };
        let Ok(members) = json::members(raw, Span::all(raw)) else {
            self.fault("filter", "Input should be an object");
            return filter;
        };
        for (key, member) in members.iter().filter(|(_, member)| member.raw != b"null") {
            match key {
                "prefix" => filter.prefix = member.text().map(Cow::into_owned),
                "tags" => filter.tags = texts(member.raw).unwrap_or_default(),
                _ => {}
            }
            let is_read = match key {
                "prefix" => filter.prefix.is_some(),
                "tags" => texts(member.raw).is_some(),
                _ => false,
            };
            if !is_read {
                self.fault(
                    &format!("filter.{key}"),
                    "Input should be `prefix`, a string, or `tags`, a list of strings",
                );
            }
        }
        filter
    }

    fn operations(&mut self) -> Option<Vec<Vec<u8>>> {
        let raw = self.get("operations")?;
        let spans = json::elements(raw, Span::all(raw)).ok();
        let Some(spans) = spans.filter(|spans| (1..=BATCH_MAX).contains(&spans.len())) else {
            self.fault(
                "operations",
                &format!("Input should be a list of 1 to {BATCH_MAX} operations"),
            );
            return None;
        };
        Some(spans.iter().map(|span| span.of(raw).to_vec()).collect())
    }
}

/// Arguments that are of the schema.
struct Given {
    action: String,
    subject: Option<ProxySubject>,
    path: Option<String>,
    args: Option<Vec<u8>>,
    limit: Option<usize>,
    offset: Option<usize>,
    filter: Filter,
    operations: Option<Vec<Vec<u8>>>,
}

impl Given {
    /// The request that they make together.
    fn request(self) -> Result<ProxyRequest, String> {
        let action = self.action.as_str();
        if action != "batch" && self.operations.is_some() {
            return Err(failed(
                "Parameter 'operations' is only allowed for 'batch' action",
            ));
        }
        let has_page = self.limit.is_some() || self.offset.is_some();
        if action != "list" && (has_page || self.filter != Filter::default()) {
            return Err(failed(
                "Parameters 'limit', 'offset', and 'filter_server' are only allowed for 'list' action",
            ));
        }
        if action == "batch" {
            return self.batch();
        }
        let Some(subject) = self.subject else {
            return Err(failed("Parameter 'type' is required"));
        };
        if action == "list" {
            self.list(subject)
        } else {
            self.one(subject)
        }
    }

    /// Whether there are arguments of a call. As in Magg, an empty object counts as absent.
    fn has_args(&self) -> bool {
        let args = self.args.as_deref();
        args.is_some_and(|args| json::compact(args).ok().as_deref() != Some(b"{}"))
    }

    fn not_for_action(&self, what: &str) -> String {
        let action = &self.action;
        failed(&format!(
            "{what} should not be provided for action '{action}'"
        ))
    }

    fn batch(self) -> Result<ProxyRequest, String> {
        if self.path.is_some() || self.has_args() {
            return Err(self.not_for_action("Parameters 'path' and 'args'"));
        }
        self.operations
            .map(ProxyRequest::Batch)
            .ok_or_else(|| failed("Parameter 'operations' is required for action 'batch'"))
    }

    fn list(self, subject: ProxySubject) -> Result<ProxyRequest, String> {
        if self.path.is_some() {
            return Err(self.not_for_action("Parameter 'path'"));
        }
        if self.has_args() {
            return Err(self.not_for_action("Parameter 'args'"));
        }
        Ok(ProxyRequest::Look(ReadOperation::List(ProxyList {
            subject,
            filter: self.filter,
            page: ProxyPage {
                offset: self.offset.unwrap_or(0),
                limit: self.limit.unwrap_or(LIST_MAX),
            },
        })))
    }

    /// `info` or `call`: about one entry.
    fn one(self, subject: ProxySubject) -> Result<ProxyRequest, String> {
        let is_info = self.action == "info";
        let has_args = self.has_args();
        if is_info && has_args {
            return Err(self.not_for_action("Parameter 'args'"));
        }
        let Some(path) = self.path else {
            return Err(failed(&format!(
                "Parameter 'path' is required for action '{}'",
                self.action
            )));
        };
        if is_info {
            return Ok(ProxyRequest::Look(ReadOperation::Info { subject, path }));
        }
        if has_args && subject == ProxySubject::Resource {
            return Err(failed(
                "Parameter 'args' should not be provided for type 'resource'",
            ));
        }
        Ok(ProxyRequest::Call(ProxyCall {
            subject,
            path,
            args: self.args,
        }))
    }
}

/// A list of strings.
fn texts(raw: &[u8]) -> Option<Vec<String>> {
    let spans = json::elements(raw, Span::all(raw)).ok()?;
    spans
        .iter()
        .map(|span| json::text(span.of(raw)).map(Cow::into_owned))
        .collect()
}

/// Violations of the schema, as Magg words them.
fn invalid(faults: &[String]) -> String {
    let s = if faults.len() == 1 { "" } else { "s" };
    format!(
        "{} validation error{s} for call[_proxy_tool]\n{}",
        faults.len(),
        faults.join("\n")
    )
}

/// The params of the request that a call of the tool stands for. All that the caller added to its
/// own params stays: `_meta` with the progress token, a retry's answers, and for a tool the wish to
/// become a task.
///
/// # Errors
/// [`JsonError`] if the caller's params are no object.
pub fn params_of(call: &ProxyCall, params: &[u8]) -> Result<Vec<u8>, JsonError> {
    let path = quote(&call.path);
    let (path, args) = (Some(path.as_bytes()), call.args.as_deref());
    let changes: &[MemberChange<'_>] = match call.subject {
        ProxySubject::Tool => &[("name", path), ("arguments", args)],
        ProxySubject::Prompt => &[("name", path), ("arguments", args), ("task", None)],
        ProxySubject::Resource => &[
            ("uri", path),
            ("name", None),
            ("arguments", None),
            ("task", None),
        ],
    };
    json::edited(params, changes)
}
