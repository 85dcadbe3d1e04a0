//! Servers that are HTTP APIs: the key `openapi`, a file or a URL, and `query`.

use std::path::PathBuf;
use std::sync::Arc;

use ::openapi::{Document, Operations};
use upstream::config::{Description, HttpConfig, OpenApiConfig, Secret, Transport};
use url::Url;

use crate::node::SourceOrigin;
use crate::read_file::read_file;
use crate::reader::Table;

/// Settings in a server's table beside its description.
pub(super) struct Given {
    /// Address of the API, if it is written.
    pub(super) url: Option<Secret>,
    pub(super) headers: Vec<(String, Secret)>,
    pub(super) query: Vec<(String, Secret)>,
    /// Whether the description is to be read: not of a disabled server, nor of one whose variables
    /// are not set.
    pub(super) reads: bool,
}

/// Whether a description is fetched.
pub(super) fn is_url(description: &Secret) -> bool {
    let text = description.expose().trim_start().to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

/// Reads the description of a server, if it is a file.
pub(super) fn read(
    table: &Table<'_>,
    description: &Secret,
    given: Given,
    tls: tls::ClientTls,
) -> Option<Transport> {
    let Given {
        url,
        headers,
        query,
        reads,
    } = given;
    let is_base = url.is_some() || !is_url(description);
    if is_url(description) {
        let http = HttpConfig {
            url: url.unwrap_or_else(|| description.clone()),
            headers,
            tls,
        };
        let description = Description::Url(description.clone());
        return Some(Transport::OpenApi(OpenApiConfig {
            description,
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
    let path = PathBuf::from(description.expose());
    let mut http = HttpConfig {
        url: url.clone().unwrap_or_else(|| Secret::new("")),
        headers,
        tls,
    };
    let mut operations = Operations::default();
    if reads {
        let wrong =
            |message: String, hint: &str| table.note_value("openapi", message, hint.to_owned());
        let shown = description.written();
        let text = read_file(&path).map_err(|why| {
            wrong(
                format!("`{}`: {shown} cannot be read: {why}", table.full("openapi")),
                "name a file, or an https URL",
            );
        });
        let document = Document::read(text.ok()?.as_bytes()).map_err(|why| {
            wrong(
                format!("`{}`: {shown}: {why}", table.full("openapi")),
                "use a description in OpenAPI 3.0 or 3.1, JSON or YAML",
            );
        });
        let document = document.ok()?;
        let base = match &url {
            Some(url) => Url::parse(url.expose()).ok(),
            None => document.base(None),
        };
        let Some(base) = base else {
            wrong(
                format!("{}: {}", table.name(), upstream::openapi::NO_SERVER),
                "for example url = \"https://api.example.com/v1\"",
            );
            return None;
        };
        if url.is_none() {
            http.url = Secret::new(base.as_str());
        }
        operations = document.operations(&base, &upstream::openapi::configured(&http, &query));
    }
    let description = Description::File {
        path,
        operations: Arc::new(operations),
    };
    Some(Transport::OpenApi(OpenApiConfig {
        description,
        http,
        is_base,
        query,
    }))
}
