//! HTTP APIs on the command line of `add`: their descriptions, keys and parameters.

use std::path::Path;

use ::openapi::{ApiCredential, Document, Presets, Sent};
use json::visible;
use setup::{NewTransport, TextFile, literal};
use url::Url;

use super::absolute;
use super::arguments::pairs;
use crate::cli::AddArgs;
use crate::process::program_name;
use terminal::exit::Exit;
use terminal::failure::Failure;

/// The server of a description, and what a person should know about it.
pub(super) fn typed(
    args: &AddArgs,
    description: &str,
) -> Result<(NewTransport, Vec<String>), Failure> {
    let mut headers = pairs(&args.header, ':', "--header", "\"NAME: VALUE\"")?;
    let mut query = pairs(&args.query, '=', "--query", "NAME=VALUE")?;
    if !args.env.is_empty() || args.cwd.is_some() {
        return Err(Failure::bad_argument(
            "--env or --cwd is for a server with a command",
        ));
    }
    let url = args.url.clone();
    let start = description.trim_start().to_ascii_lowercase();
    if start.starts_with("http://") || start.starts_with("https://") {
        if args.key.is_some() {
            let message = "--key needs the description as a file, for that says where the key goes";
            return Err(Failure::bad_argument(message)
                .hint("say it yourself: --header 'NAME: KEY', or --query NAME=KEY"));
        }
        let description = description.trim().to_owned();
        return Ok((
            NewTransport::OpenApi {
                description,
                url,
                headers,
                query,
            },
            Vec::new(),
        ));
    }
    let path = absolute(Path::new(description))?;
    let document = read(&path)?;
    let asked = document.credentials();
    if let Some(key) = &args.key {
        match asked.iter().find_map(|one| one.sent(key)) {
            Some(Sent::Header(name, value)) => headers.push((name, value)),
            Some(Sent::Query(name, value)) => query.push((name, value)),
            None => return Err(no_key(&asked)),
        }
    }
    let base = match &url {
        Some(url) => Url::parse(url).ok(),
        None => Some(document.base(None).ok_or_else(|| {
            let hint = format!(
                "{} add {} https://HOST/PATH --openapi FILE",
                program_name(),
                args.name
            );
            Failure::bad_argument(upstream::openapi::NO_SERVER).hint(hint)
        })?),
    };
    let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect();
    let configured = Presets {
        headers: names(&headers),
        query: names(&query),
    };
    // A URL that cannot be read is a problem of the file, which is checked later.
    let mut notes: Vec<String> = base
        .map(|base| counted(&document, &base, &configured, args))
        .into_iter()
        .collect();
    if headers.is_empty() && query.is_empty() && !asked.is_empty() {
        let asked: Vec<String> = asked.iter().map(ApiCredential::advice).collect();
        notes.push(format!("the API asks for {}", asked.join(", or ")));
    }
    let description = literal(&path.display().to_string());
    Ok((
        NewTransport::OpenApi {
            description,
            url,
            headers,
            query,
        },
        notes,
    ))
}

/// A description in a file.
fn read(path: &Path) -> Result<Document, Failure> {
    let file = TextFile::read(path)?;
    let shown = visible::line(&path.display().to_string());
    if !file.exists() {
        let message = format!("there is no file {shown}");
        return Err(Failure::new(Exit::NotFound, "unknown_file", message)
            .hint("name an OpenAPI description: a file, or an https URL"));
    }
    Document::read(file.text.as_bytes()).map_err(|why| {
        let message = format!("{shown}: {}", visible::line(&why.to_string()));
        Failure::new(Exit::Usage, "description_unusable", message)
            .hint("use a description in OpenAPI 3.0 or 3.1, JSON or YAML")
    })
}

/// Why a key alone does not do.
fn no_key(asked: &[ApiCredential]) -> Failure {
    let failure =
        Failure::bad_argument("the description has no security scheme that takes a key alone");
    let words: Vec<String> = asked.iter().map(ApiCredential::advice).collect();
    if words.is_empty() {
        failure.hint("say where the key goes: --header 'NAME: KEY', or --query NAME=KEY")
    } else {
        failure.hint(format!("the API asks for {}", words.join(", or ")))
    }
}

/// Sentence about how many of the operations are tools.
fn counted(document: &Document, base: &Url, configured: &Presets, args: &AddArgs) -> String {
    let all = document.operations(base, configured);
    let title = match all.title.trim() {
        "" => "the API".to_owned(),
        title => format!("`{}`", visible::line(title)),
    };
    let tools = match all.operations.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    match all.left_out.len() {
        0 => format!("{title} has {tools}"),
        others => format!(
            "{title} has {tools}; {others} of its operations can be none: {} servers show {} says why",
            program_name(),
            args.name
        ),
    }
}
