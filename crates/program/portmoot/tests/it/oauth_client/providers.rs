//! Authorization servers of other people that compare redirect URIs byte for byte: `servers login`
//! signs in, a call goes through.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use harness::{Running, deps, repository};
use serde_json::{Value, json};
use url::{Position, Url};

use super::text;
use crate::home::Home;
use crate::http::Connection;
use crate::shared_accounts::Asking;
use crate::shared_accounts::person::Person;
use crate::support::{Client, Gateway, until};

/// A gateway with the server `notes`, which has an authorization server of its own.
struct Site {
    home: Home,
    gateway: Gateway,
    _server: Running,
}

impl Site {
    fn start(mut server: Command) -> Site {
        server.stderr(Stdio::null());
        let server = Running::start(server, "listening on http://");
        let home = Home::new();
        let key = home.write("key", &"5ea1ed0f".repeat(8));
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let url = server.url();
        let config = format!(
            "[server]\nkey_file = {key:?}\n[topics.main]\n[servers.notes]\nurl = {url:?}\n"
        );
        let gateway = Gateway::start(&home, &config);
        Site {
            home,
            gateway,
            _server: server,
        }
    }

    /// Python with these arguments of the script.
    fn of_python(arguments: &[&str]) -> Site {
        let mut command = Command::new(deps().python());
        command
            .arg(repository().join("tests/third-party/authorizes.py"))
            .args(arguments);
        Site::start(command)
    }

    fn of_typescript() -> Site {
        let mut command = Command::new(deps().node());
        command.arg(repository().join("tests/third-party/authorizes.mjs"));
        command.env("DEPS_MODULES", deps().npm(""));
        Site::start(command)
    }

    /// Signs in by the command, with a browser on the same machine. Returns the port at which the
    /// command waited.
    #[track_caller]
    fn sign_in(&self) -> u16 {
        let asking = Asking::begin(&self.home, &["servers", "login", "notes", "--no-browser"]);
        let back = Person::default().open(&asking.url);
        let back = Url::parse(&back).unwrap_or_else(|_| panic!("{} led to {back}", asking.url));
        let address = format!("127.0.0.1:{}", back.port().unwrap());
        let path = &back[Position::BeforePath..Position::AfterQuery];
        let page = Connection::open(&address).exchange("GET", path, &[], "");
        let ended = asking.end();
        assert!(
            page.body.contains("You are signed in"),
            "{page:?} {}",
            ended.stderr
        );
        ended.expect(0);
        back.port().unwrap()
    }

    /// Calls the tool, which says which client of the authorization server asks. Its name is known
    /// at once.
    #[track_caller]
    fn hello(&self) -> String {
        text(&Client::plain(&self.gateway).call("notes_hello", json!({}))).to_owned()
    }

    #[track_caller]
    fn account(&self) -> Value {
        let printed = self
            .home
            .run(&["servers", "auth", "notes", "--json"])
            .expect(0)
            .stdout;
        let printed: Value = serde_json::from_str(&printed).unwrap();
        printed["accounts"][0].clone()
    }

    /// A sign-in, a call, a restart, a second sign-in by the same client at the same port.
    #[track_caller]
    fn serves_a_person(&mut self) {
        let port = self.sign_in();
        let client_id = self.account()["client_id"].as_str().unwrap().to_owned();
        assert_eq!(self.hello(), format!("hello {client_id}"));
        self.gateway.signal("KILL");
        self.gateway.wait();
        self.gateway = Gateway::start_with(&self.home, &["--config", "portmoot.toml"]);
        assert_eq!(self.hello(), format!("hello {client_id}"));
        self.home.run(&["servers", "logout", "notes"]).expect(0);
        assert_eq!(
            (self.sign_in(), &self.account()["client_id"]),
            (port, &json!(client_id))
        );
        assert_eq!(self.hello(), format!("hello {client_id}"));
    }
}

#[test]
fn fastmcp_with_its_own_provider_signs_the_operator_in() {
    Site::of_python(&["fastmcp"]).serves_a_person();
}

#[test]
fn the_python_sdk_with_its_own_authorization_routes_signs_the_operator_in() {
    Site::of_python(&["sdk"]).serves_a_person();
}

#[test]
fn the_demonstration_provider_of_the_typescript_sdk_signs_the_operator_in() {
    Site::of_typescript().serves_a_person();
}

#[test]
fn the_token_endpoint_of_the_python_sdk_renews_what_it_gave() {
    let site = Site::of_python(&["sdk", "2"]);
    site.sign_in();
    let first = site.account();
    assert_eq!(first["renews"], true, "{first}");
    until("the token is renewed", || {
        site.hello();
        (site.account()["since"] != first["since"]).then_some(())
    });
}
