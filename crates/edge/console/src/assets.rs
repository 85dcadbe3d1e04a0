//! Style sheet, script and icon, each under an address with its hash.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The script as it is written.
const SCRIPT: &str = include_str!("console.js");
const SHEET: &str = include_str!("console.css");
const MARK: &str = include_str!("icon.svg");

/// A file with the name under which it is served.
pub(crate) struct Asset {
    pub(crate) name: String,
    content: String,
    kind: &'static str,
}

impl Asset {
    fn new(content: String, ending: &str, kind: &'static str) -> Self {
        let hash = HEXLOWER.encode(&Sha256::digest(content.as_bytes()));
        let short = hash.get(..16).unwrap_or_default();
        Self {
            name: format!("{short}.{ending}"),
            content,
            kind,
        }
    }
}

/// The script, without its comments and indentation.
pub(crate) static JS: LazyLock<Asset> = LazyLock::new(|| {
    let lines = SCRIPT.lines().map(str::trim_start);
    let kept: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
    Asset::new(kept.join("\n"), "js", "text/javascript; charset=utf-8")
});
/// The style sheet.
pub(crate) static CSS: LazyLock<Asset> = LazyLock::new(|| {
    let content = [html::PALETTE, SHEET].concat();
    Asset::new(content, "css", "text/css; charset=utf-8")
});
/// The icon of the pages.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(MARK.to_owned(), "svg", "image/svg+xml"));

/// The file of this name. Its content never changes: another one has another name.
pub(crate) fn asset(name: &str) -> Response {
    let all: [&'static Asset; 3] = [&*JS, &*CSS, &*ICON];
    let Some(asset) = all.into_iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = Response::new(Body::from(asset.content.as_str()));
    for (name, value) in [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_short_and_makes_markup_in_one_place() {
        assert!(JS.content.len() < 10 * 1024, "{} bytes", JS.content.len());
        assert!(SCRIPT.lines().count() < 240);
        assert_eq!(SCRIPT.matches("innerHTML").count(), 1);
        for banned in [
            "eval(",
            "Function(",
            "document.write",
            "outerHTML",
            "insertAdjacentHTML",
        ] {
            assert!(!SCRIPT.contains(banned), "{banned}");
        }
    }

    #[test]
    fn a_file_is_served_under_its_hash_alone() {
        for asset_of in [&*JS, &*CSS, &*ICON] {
            let response = asset(&asset_of.name);
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["content-type"], asset_of.kind);
        }
        assert_eq!(asset("0.js").status(), StatusCode::NOT_FOUND);
    }
}
