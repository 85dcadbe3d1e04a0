//! Prompts of a server that a participant serves.

use serde_json::{Value, json};

use crate::error::RpcError;
use crate::serve::{IncomingRequest, Run};

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its meaning, for people and models.
    pub description: String,
    /// Whether a request without it is refused.
    pub is_required: bool,
}

/// A prompt.
#[derive(Clone)]
pub(crate) struct Prompt {
    definition: Value,
    name: String,
    description: String,
    required: Vec<String>,
    run: Run,
}

impl Prompt {
    pub(crate) fn new(
        name: &str,
        description: &str,
        arguments: &[PromptArgument],
        run: Run,
    ) -> Self {
        let listed = |one: &PromptArgument| json!({ "name": one.name, "description": one.description, "required": one.is_required });
        let required = arguments
            .iter()
            .filter(|one| one.is_required)
            .map(|one| one.name.clone())
            .collect();
        let arguments: Vec<Value> = arguments.iter().map(listed).collect();
        let definition =
            json!({ "name": name, "description": description, "arguments": arguments });
        Self {
            definition,
            name: name.to_owned(),
            description: description.to_owned(),
            required,
            run,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn definition(&self) -> &Value {
        &self.definition
    }

    /// The messages that it makes of these arguments.
    pub(crate) fn get(
        &self,
        arguments: Value,
        request: IncomingRequest,
    ) -> impl Future<Output = Result<Value, RpcError>> + Send + 'static {
        let missing = self
            .required
            .iter()
            .find(|name| arguments.get(name.as_str()).is_none())
            .cloned();
        let running = missing.is_none().then(|| (self.run)(arguments, request));
        let description = self.description.clone();
        async move {
            let Some(running) = running else {
                let name = missing.unwrap_or_default();
                return Err(RpcError::invalid_params(format!(
                    "the argument `{name}` is missing"
                )));
            };
            let messages = match running.await.map_err(RpcError::invalid_params)? {
                Value::String(text) => {
                    json!([{ "role": "user", "content": { "type": "text", "text": text } }])
                }
                messages => messages,
            };
            Ok(json!({ "description": description, "messages": messages }))
        }
    }
}
