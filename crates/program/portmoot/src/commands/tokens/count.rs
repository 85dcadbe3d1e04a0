//! Count of the tokens of tools' definitions.

use tiktoken_rs::{CoreBPE, cl100k_base};

use terminal::exit::Exit;
use terminal::failure::Failure;

/// Counter of tokens.
pub(super) fn counter() -> Result<CoreBPE, Failure> {
    let failed = |error| {
        Failure::new(
            Exit::Failed,
            "no_tokens",
            format!("cannot count tokens: {error}"),
        )
    };
    cl100k_base().map_err(failed)
}

/// Part of a definition that hosts pass on to their models.
pub(super) fn definitions(tools: &[&[u8]]) -> String {
    let definition = |tool: &&[u8]| {
        let members = ["name", "description", "inputSchema"]
            .into_iter()
            .filter_map(|key| {
                let raw = json::at(tool, &[key])?;
                Some(format!("\"{key}\":{}", String::from_utf8_lossy(raw)))
            });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    format!(
        "[{}]",
        tools.iter().map(definition).collect::<Vec<_>>().join(",")
    )
}
