//! Servers that are HTTP APIs: the key `openapi`, a file or a URL, and `query`.

use std::path::PathBuf;
use std::sync::Arc;

use ::openapi::{Document, Operations};
use upstream::config::{Description, HttpConfig, OpenApiConfig, SecretText, Transport};
use url::Url;

use crate::node::SourceOrigin;
use crate::read_file::read_file;
use crate::reader::Table;

/// Settings in a server's table beside its description.
pub(super) struct Given {
    /// Address of the API, if it is written.
    pub(super) url: Option<SecretText>,
    pub(super) headers: Vec<(String, SecretText)>,
    pub(super) query: Vec<(String, SecretText)>,
    /// Whether the description is to be read: not of a disabled server, nor of one whose variables
    /// are not set.
    pub(super) reads: bool,
}

/// Whether a description is fetched.
pub(super) fn is_url(description: &SecretText) -> bool {
    let text = description.expose().trim_start().to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

/// Reads the description of a server, if it is a file. One that is a URL is fetched when the server
/// starts.
pub(super) fn read(
    table: &Table<'_>,
    description: &SecretText,
    given: Given,
    tls: tls::ClientTls,
) -> Option<Transport> {
    let Given {
        url,
        headers,
        query,
        reads,
    } = given;
    if is_url(description) {
        let is_base = url.is_some();
        let http = HttpConfig {
            url: url.unwrap_or_else(|| description.clone()),
            headers,
            tls,
        };
        return Some(Transport::OpenApi(OpenApiConfig {
            description: Description::Url(description.clone()),
            http,
            is_base,
            query,
        }));
    }
    if url.is_none() && table.location().layer.origin == SourceOrigin::Found {
        // Consent is to the configuration: the description may be another one by the time that
        // credentials are sent.
        table.note_value(
            "openapi",
            format!(
                "`{}`: a file that you did not name must say where the API is",
                table.full("openapi")
            ),
            "write url = \"https://...\" beside it".to_owned(),
        );
        return None;
    }
    let mut http = HttpConfig {
        url: url.clone().unwrap_or_else(|| SecretText::new("")),
        headers,
        tls,
    };
    let mut operations = Operations::default();
    if reads {
        let document = document(table, description)?;
        let base = base(table, url.as_ref(), &document)?;
        if url.is_none() {
            http.url = SecretText::new(base.as_str());
        }
        operations = document.operations(&base, &upstream::openapi::configured(&http, &query));
    }
    let description = Description::File {
        path: PathBuf::from(description.expose()),
        operations: Arc::new(operations),
    };
    Some(Transport::OpenApi(OpenApiConfig {
        description,
        http,
        is_base: true,
        query,
    }))
}

/// Reads the description in a file; notes a problem if there is none.
fn document(table: &Table<'_>, description: &SecretText) -> Option<Document> {
    // Unexpanded: its variables may be secrets.
    let shown = description.written();
    let text = match read_file(PathBuf::from(description.expose())) {
        Ok(text) => text,
        Err(why) => {
            let message = format!("`{}`: {shown} cannot be read: {why}", table.full("openapi"));
            table.note_value("openapi", message, "name a file, or an https URL");
            return None;
        }
    };
    match Document::read(text.as_bytes()) {
        Ok(document) => Some(document),
        Err(why) => {
            let message = format!("`{}`: {shown}: {why}", table.full("openapi"));
            let hint = "use a description in OpenAPI 3.0 or 3.1, JSON or YAML";
            table.note_value("openapi", message, hint);
            None
        }
    }
}

/// The address of an API: the written one, else that of its description.
fn base(table: &Table<'_>, url: Option<&SecretText>, document: &Document) -> Option<Url> {
    let base = match url {
        Some(url) => Url::parse(url.expose()).ok(),
        None => document.base(None),
    };
    if base.is_none() {
        let message = format!("{}: {}", table.name(), upstream::openapi::NO_SERVER);
        let hint = "for example url = \"https://api.example.com/v1\"";
        table.note_value("openapi", message, hint);
    }
    base
}
