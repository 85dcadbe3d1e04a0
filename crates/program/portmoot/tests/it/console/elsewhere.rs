//! People who sign in to the console at an identity provider, and at the gateway's own authorization
//! server.

use serde_json::{Value, json};

use super::Stage;
use super::accessibility::Judge;
use super::browser::Browser;
use crate::authorization::provider::Provider;
use crate::signin::free_port;
use crate::support::{Gateway, until};
use crate::ws::people;

/// The link to the identity provider on the sign-in page, and that to the gateway itself.
const CORP: &str = "[data-testid=places] a[href*=\"with=corp\"]";
const OWN: &str = "[data-testid=places] a[href*=\"with=portmoot\"]";
/// The provider's question whether the gateway may know who the person is.
const CONSENT: &str = "[name=prompt][value=consent]";

/// A gateway with an identity provider.
struct Corp {
    provider: Provider,
    stage: Stage,
    url: String,
    config: String,
}

impl Corp {
    /// Tokens of the provider are valid for `ttl` seconds, those of the gateway for this time.
    fn start(ttl: u64, access: &str) -> Self {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let provider = Provider::of(&[format!("{url}/mcp")], ttl);
        let client = json!({
            "client_id": "console", "client_secret": "hush-console",
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "redirect_uris": [format!("{url}/console/signed-in/corp")],
        });
        provider.control(&json!({ "op": "client", "client": client }));
        let (home, people) = people(&[
            ("ann", &["mcp/*", "chat", "portmoot/*"]),
            ("scout", &["mcp/proposal:*", "chat"]),
        ]);
        let home = home.env("CONSOLE_SECRET", "hush-console");
        let config = format!(
            "[console]\nenabled = true\nproof = \"1ms\"\n[login]\nenabled = true\naccess = \"{access}\"\n[topics.main]\n\
             [profiles.ops]\ncapabilities = [\"mcp/*\", \"chat\", \"portmoot/*\"]\n\
             [issuers.corp]\nissuer = \"{}\"\nclient_id = \"console\"\nclient_secret_env = \"CONSOLE_SECRET\"\n\
             console_scopes = [\"openid\"]\n\
             [[issuers.corp.map]]\nwhen = {{ groups = \"ops\" }}\nprofile = \"ops\"\n{people}public_url = \"{url}\"\n",
            provider.issuer()
        );
        home.write("portmoot.toml", &config);
        let listen = format!("127.0.0.1:{port}");
        let words = ["serve", "--listen", &listen, "--config", "portmoot.toml"];
        let gateway = Gateway::serve(home.command(&words));
        Self {
            provider,
            stage: Stage { gateway, home },
            url,
            config,
        }
    }

    /// Types a name at the provider, and says there that the gateway may know it.
    fn says_who(browser: &Browser, name: &str) {
        browser.fill("[name=login]", name);
        browser.fill("[name=password]", "any");
        browser.click(".login-submit");
    }

    fn consents(browser: &Browser) {
        browser.wait(CONSENT, || browser.count(CONSENT) == 1);
        browser.click(".login-submit");
    }

    fn console(&self, path: &str) -> String {
        format!("{}/console{path}", self.url)
    }

    /// The entries of this kind, once one has these words.
    fn recorded(&self, kind: &str, words: &str) -> String {
        let path = format!("/api/v1/audit?kinds={kind}");
        until(words, || {
            let log = self.stage.ask("ann", "GET", &path, &Value::Null).body;
            log.contains(words).then_some(log)
        })
    }
}

#[test]
fn a_person_signs_in_at_an_identity_provider_and_proves_there_who_it_is() {
    let corp = Corp::start(600, "10m");
    let mut judge = Judge::new();
    judge.browser.go(&corp.console("/audit"));
    judge.browser.sees(CORP);
    judge.judge("sign-in with places");
    judge.browser.click(CORP);
    Corp::says_who(&judge.browser, "ann");
    Corp::consents(&judge.browser);
    // By way of the public name to the person's own one, and on to the page that was wanted.
    judge.browser.reads("form.who", "corp:ann");
    judge.browser.reads("h1", "Audit");
    let address = judge.browser.address();
    assert!(
        address.starts_with("http://pm-") && address.ends_with("/console/audit"),
        "{address}"
    );
    let own = address.strip_suffix("/audit").unwrap();
    corp.recorded("portmoot/console", "signed in at the console by corp");
    // An act that asks again: the provider asks anew, although it knows the browser.
    judge.browser.go(&format!("{own}/access/scout"));
    judge
        .browser
        .fill("[data-testid=capability]", "portmoot/servers");
    judge.browser.fill("[name=reason]", "today");
    judge
        .browser
        .run("document.querySelector('[data-testid=give]').form.submit()");
    judge.browser.click("[data-testid=confirm]");
    judge.browser.sees("[data-testid=again]");
    judge.judge("proof at a place");
    judge
        .browser
        .run("document.querySelector('[data-testid=again]').removeAttribute('target')");
    judge.browser.click("[data-testid=again]");
    judge.browser.click(CORP);
    Corp::says_who(&judge.browser, "ann");
    judge.browser.wait("the end", || {
        judge
            .browser
            .address()
            .starts_with(&format!("{own}/proved"))
            && judge.browser.text("[data-enter]").is_some()
    });
    judge.judge("not proved: a proof counts for no time");
    corp.stage
        .home
        .write("portmoot.toml", &corp.config.replace("\"1ms\"", "\"1h\""));
    corp.stage.gateway.signal("HUP");
    until("it counts for longer", || {
        judge.browser.go(&format!("{own}/proved"));
        judge.browser.text("[data-testid=proved]")
    });
    judge.judge("proved");
    // That would take the tokens of the further sign-in with it.
    assert_eq!(corp.provider.asked("/token/revocation"), 0);
    assert_eq!(judge.faults, Vec::<String>::new());
    // The provider's own pages load a font, and have no icon.
    let mut complaints = judge.browser.complaints();
    let foreign = [
        "https://fonts.googleapis.com".to_owned(),
        corp.provider.issuer(),
    ];
    complaints.retain(|one| !foreign.iter().any(|place| one.starts_with(place)));
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn a_person_signs_in_at_an_identity_provider_without_a_script() {
    let corp = Corp::start(600, "10m");
    let browser = Browser::without_scripts();
    browser.go(&corp.console(""));
    browser.click(CORP);
    Corp::says_who(&browser, "ann");
    Corp::consents(&browser);
    // The code is in the address, and typed.
    browser.wait("the own name", || browser.address().contains("localhost"));
    let address = browser.address();
    browser.fill("#code", &address);
    browser.click("button.main");
    browser.reads("form.who", "corp:ann");
    browser.click("form.who button");
    browser.sees("#code");
    // Who has no place here learns why.
    browser.go(&format!("{}/session/end", corp.provider.issuer()));
    browser.click("[name=logout]");
    browser.reads("body", "Sign-out Success");
    browser.go(&corp.console(""));
    browser.click(CORP);
    Corp::says_who(&browser, "bob");
    Corp::consents(&browser);
    browser.reads(
        "[data-testid=problem]",
        "no rule of [issuers.corp] gives them a place",
    );
    corp.recorded("portmoot/console", "a sign-in by corp: `bob` signed in");
}

#[test]
fn a_session_goes_on_with_renewed_tokens_until_its_provider_refuses() {
    let corp = Corp::start(4, "10m");
    let browser = Browser::open();
    browser.go(&corp.console("/servers"));
    browser.click(CORP);
    Corp::says_who(&browser, "ann");
    Corp::consents(&browser);
    browser.reads("form.who", "corp:ann");
    // The stream of the page has it renewed: for the code once, and each time before it ends.
    until("it is renewed twice", || {
        (corp.provider.asked("/token") >= 3).then_some(())
    });
    browser.reads("form.who", "corp:ann");
    let refused = json!({
        "op": "fault", "path": "/token", "kind": "answer", "status": 400, "body": "{\"error\":\"invalid_grant\"}",
    });
    corp.provider.control(&refused);
    browser.reads("label", "Code or token");
    corp.recorded(
        "portmoot/console",
        "corp did not renew a sign-in at the console",
    );
}

/// Types a code of the gateway into its own page. The page before it has a field of the same name.
#[track_caller]
fn types_at_own_page(browser: &Browser, code: &Value) {
    let of_page = |what: &str| format!("form[action*=authorize] {what}");
    browser.fill(&of_page("#code"), code.as_str().unwrap());
    browser.click(&of_page("button.main"));
}

#[test]
fn a_person_signs_in_at_the_gateways_own_authorization_server() {
    let corp = Corp::start(600, "4s");
    let browser = Browser::open();
    browser.go(&corp.console("/servers"));
    browser.click(OWN);
    let url = corp.stage.gateway.url();
    let token = crate::ws::token("ann");
    let run = |words: &[&str]| {
        let more = ["--url", &*url, "--token", &*token, "--json"];
        let ran = corp.stage.home.run(&[words, &more].concat()).expect(0);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let code = run(&["login", "code", "ann"])["code"].clone();
    types_at_own_page(&browser, &code);
    browser.reads("main", "The gateway’s console");
    browser.click("button[value=allow]");
    browser.reads("form.who", "ann");
    corp.recorded("portmoot/console", "signed in at the console by portmoot");
    corp.recorded("portmoot/login", "refreshed: ");
    browser.reads("form.who", "ann");
    let clients = run(&["clients", "ls"]).to_string();
    assert!(clients.contains("portmoot-console"), "{clients}");
    // Signed out, it has no sign-in.
    browser.click("form.who button");
    browser.reads("label", "Code or token");
    until("it is given up", || {
        let clients = run(&["clients", "ls"]).to_string();
        (!clients.contains("portmoot-console")).then_some(())
    });
    // A sign-in that an operator ends takes the session with it.
    browser.go(&corp.console("/servers"));
    browser.click(OWN);
    let code = run(&["login", "code", "ann"])["code"].clone();
    types_at_own_page(&browser, &code);
    browser.click("button[value=allow]");
    browser.reads("form.who", "ann");
    run(&["clients", "revoke", "portmoot-console"]);
    browser.reads("label", "Code or token");
}
