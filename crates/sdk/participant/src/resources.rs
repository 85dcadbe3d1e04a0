//! Resources and resource templates of a server that a participant serves.

use serde_json::{Map, Value, json};

use crate::error::RpcError;
use crate::serve::{IncomingRequest, Run};

/// MCP: there is no such resource.
const UNKNOWN_RESOURCE: i64 = -32002;

/// A resource, or a template of resources.
#[derive(Clone)]
pub(crate) struct Resource {
    definition: Value,
    uri: String,
    mime_type: String,
    run: Run,
}

impl Resource {
    pub(crate) fn new(uri: &str, name: &str, mime_type: &str, run: Run) -> Self {
        let key = if is_template(uri) {
            "uriTemplate"
        } else {
            "uri"
        };
        let definition = json!({ key: uri, "name": name, "mimeType": mime_type });
        Self {
            definition,
            uri: uri.to_owned(),
            mime_type: mime_type.to_owned(),
            run,
        }
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) fn definition(&self) -> &Value {
        &self.definition
    }

    pub(crate) fn is_template(&self) -> bool {
        is_template(&self.uri)
    }

    /// The parts of a URI that this template has, by name; `None` if the URI is another resource's.
    pub(crate) fn parts(&self, uri: &str) -> Option<Value> {
        let mut parts = Map::new();
        let mut template = self.uri.as_str();
        let mut rest = uri;
        while let Some((literal, behind)) = template.split_once('{') {
            let (name, behind) = behind.split_once('}')?;
            rest = rest.strip_prefix(literal)?;
            let next = behind.split('{').next().unwrap_or_default();
            let end = if next.is_empty() {
                rest.len()
            } else {
                rest.find(next)?
            };
            let part = rest
                .get(..end)
                .filter(|part| !part.is_empty() && !part.contains('/'))?;
            parts.insert(name.to_owned(), Value::String(part.to_owned()));
            (template, rest) = (behind, rest.get(end..)?);
        }
        (template == rest).then_some(Value::Object(parts))
    }

    /// The contents of a resource with these parts.
    pub(crate) fn read(
        &self,
        uri: &str,
        parts: Value,
        request: IncomingRequest,
    ) -> impl Future<Output = Result<Value, RpcError>> + Send + 'static {
        let uri = uri.to_owned();
        let mime_type = self.mime_type.clone();
        let running = (self.run)(parts, request);
        async move {
            let text = match running.await {
                Ok(Value::String(text)) => text,
                Ok(other) => other.to_string(),
                Err(why) => return Err(Self::unknown(&uri, why)),
            };
            Ok(json!({ "contents": [{ "uri": uri, "mimeType": mime_type, "text": text }] }))
        }
    }

    /// The error about a resource that cannot be read.
    pub(crate) fn unknown(uri: &str, why: impl Into<String>) -> RpcError {
        RpcError {
            data: json!({ "uri": uri }),
            ..RpcError::new(UNKNOWN_RESOURCE, why)
        }
    }
}

fn is_template(uri: &str) -> bool {
    uri.contains('{')
}
