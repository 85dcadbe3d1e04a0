//! Documents that describe the gateway as a client of authorization servers.

use serde_json::json;

use super::{ANN, Browser, Site};
use crate::http::Connection;
use crate::support::Client;

/// A P-256 key of these tests alone.
const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg47FM8INc7uYjIV7Z\n\
fZ7kcF1ezzdvc9RomXcCE6+lExyhRANCAATc5Pk/vg0LjxqoBCGWB4ZrCL5Havya\n\
p5TXhS0yH116M/0YahW8o8wKse9ecTUeQnW43xldUiEDS3GtltHdjgGf\n\
-----END PRIVATE KEY-----\n";

#[test]
fn the_gateway_describes_itself_at_its_public_url() {
    let site = Site::of(
        "public_url = \"https://gw.example/mcp-gateway\"",
        "",
        "[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n",
    );
    let get = |path: &str| Connection::open(site.address()).exchange("GET", path, &[], "");
    for prefix in ["", "/mcp-gateway"] {
        let reply = get(&format!("{prefix}/oauth/client.json"));
        let document = reply.json();
        assert_eq!(
            document["client_id"],
            "https://gw.example/mcp-gateway/oauth/client.json"
        );
        assert_eq!(
            document["redirect_uris"],
            json!([
                "https://gw.example/mcp-gateway/oauth/callback",
                "http://127.0.0.1/callback",
                "http://127.0.0.1/oauth/callback"
            ])
        );
        assert_eq!(document["token_endpoint_auth_method"], "none");
        assert!(document.get("jwks_uri").is_none(), "{document}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        assert_eq!(reply.header("cache-control"), Some("max-age=300"));
    }
    assert_eq!(get("/oauth/jwks.json").status, 404, "there is no key");
    assert_eq!(get("/oauth/client/x.json").status, 404);
    assert_eq!(
        Connection::open(site.address())
            .exchange("POST", "/oauth/client.json", &[], "")
            .status,
        405
    );
    // Over TLS the cookie has the prefix of its host, and the link is spelled from the public URL.
    let ann = Client::of(&site.gateway, ANN);
    let said = ann.call("jira_whoami", json!({}));
    let link = super::text(&said)
        .split(' ')
        .find(|word| word.starts_with("https://"))
        .unwrap()
        .to_owned();
    assert!(
        link.starts_with("https://gw.example/mcp-gateway/connect/"),
        "{link}"
    );
    let mut browser = Browser::default();
    let page = browser.open(site.address(), &link);
    let cookie = page.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-pm_connect=")
            && cookie.ends_with("; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    assert!(
        page.body.contains("action=\"/mcp-gateway/connect/"),
        "{page:?}"
    );
    let page = browser.submit(site.address(), &page, &[("code", &site.code(ANN))]);
    assert!(page.body.contains("<dd>gw.example</dd>"), "{page:?}");
    let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
    let location = sent.header("location").unwrap();
    assert!(
        location
            .contains("redirect_uri=https%3A%2F%2Fgw.example%2Fmcp-gateway%2Foauth%2Fcallback&"),
        "{location}"
    );
    let back = site.service.approve(location, "user-a");
    assert!(
        browser
            .open(site.address(), &back)
            .body
            .contains("Connected")
    );
}

#[test]
fn a_gateway_without_a_public_url_has_no_document() {
    let site = Site::start();
    let get = |path: &str| Connection::open(site.address()).exchange("GET", path, &[], "");
    assert_eq!(
        (
            get("/oauth/client.json").status,
            get("/oauth/jwks.json").status
        ),
        (404, 404)
    );
}

#[test]
fn a_client_that_signs_has_a_document_of_its_own() {
    let public = "public_url = \"https://gw.example\"";
    let key = std::env::temp_dir().join(format!("portmoot-test-{}.pem", std::process::id()));
    std::fs::write(&key, PEM).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let site = Site::of(public, &format!("private_key_file = {key:?}"), "");
    std::fs::remove_file(&key).unwrap();
    let get = |path: &str| {
        Connection::open(site.address())
            .exchange("GET", path, &[], "")
            .json()
    };
    let keys = get("/oauth/jwks.json");
    let jwk = &keys["keys"][0];
    assert_eq!(
        (&jwk["kty"], &jwk["alg"], &jwk["use"], jwk.get("d")),
        (&json!("EC"), &json!("ES256"), &json!("sig"), None)
    );
    let path = format!("/oauth/client/{}.json", jwk["kid"].as_str().unwrap());
    let document = get(&path);
    assert_eq!(document["client_id"], format!("https://gw.example{path}"));
    assert_eq!(document["token_endpoint_auth_method"], "private_key_jwt");
    assert_eq!(document["jwks_uri"], "https://gw.example/oauth/jwks.json");
    assert_eq!(
        get("/oauth/client.json")["token_endpoint_auth_method"],
        "none"
    );
}
