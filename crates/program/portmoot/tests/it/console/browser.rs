//! Debian's Chromium, driven over WebDriver. Nothing waits for a time: a page is looked at until it
//! shows what is expected.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::http::TIMEOUT;
use crate::support::signal;

/// Debian's Chromium without the parts that show windows: it starts sooner and needs less of the machine.
/// Where it is not installed, Chromium itself shows its pages to no one.
const HEADLESS_SHELL: &str = "/usr/lib/chromium/chromium-headless-shell";

/// Time between two looks at a page.
const PAUSE: Duration = Duration::from_millis(60);

/// A browser with a profile of its own. Dropping it ends it.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Option<Client>,
    driver: Child,
    _profile: tempfile::TempDir,
}

/// Whether pages may run scripts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scripts {
    Run,
    Never,
}

/// Starts of chromedriver before a test gives up. It chooses a port of IPv4 and ends if the same one of
/// IPv6 is taken.
const DRIVER_STARTS_MAX: usize = 5;

/// Starts chromedriver on a free port.
///
/// # Panics
/// If it is not installed, or does not start.
fn driver() -> (Child, u16) {
    let started = (0..DRIVER_STARTS_MAX).find_map(|_| start_driver());
    started.expect("chromedriver starts on a free port")
}

/// Starts chromedriver; `None` if it ends at once.
fn start_driver() -> Option<(Child, u16)> {
    let started = Command::new("chromedriver")
        .args(["--port=0", "--log-level=SEVERE"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut driver = started.unwrap_or_else(|error| {
        panic!("these tests need Chromium, whose driver cannot be started ({error}): apt-get install -y --no-install-recommends chromium chromium-driver")
    });
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| {
        let line = line.unwrap();
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    let Some(port) = port else {
        // It has closed its output, and ends.
        driver.wait().unwrap();
        return None;
    };
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

impl Browser {
    pub(crate) fn open() -> Browser {
        Browser::with(Scripts::Run)
    }

    /// A browser in which no script runs.
    pub(crate) fn without_scripts() -> Browser {
        Browser::with(Scripts::Never)
    }

    fn with(scripts: Scripts) -> Browser {
        let (driver, port) = driver();
        let profile = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let capabilities = capabilities(profile.path());
        let client = runtime.block_on(async {
            ClientBuilder::new(HttpConnector::new())
                .capabilities(capabilities)
                .connect(&format!("http://127.0.0.1:{port}"))
                .await
        });
        let browser = Browser {
            runtime,
            client: Some(client.unwrap()),
            driver,
            _profile: profile,
        };
        if scripts == Scripts::Never {
            let never = json!({ "value": true });
            browser.devtools("Emulation.setScriptExecutionDisabled", never);
        }
        browser
    }

    /// Shows pages this wide, in the light or the dark scheme.
    pub(crate) fn looks(&self, width: u32, scheme: &str) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", size);
        self.devtools("Emulation.setScrollbarsHidden", json!({ "hidden": true }));
        let scheme = json!({ "name": "prefers-color-scheme", "value": scheme });
        // What is looked at next is not on its way from one colour to another.
        let still = json!({ "name": "prefers-reduced-motion", "value": "reduce" });
        let media = json!({ "features": [scheme, still] });
        self.devtools("Emulation.setEmulatedMedia", media);
    }

    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }

    pub(crate) fn go(&self, url: &str) {
        self.runtime.block_on(self.client().goto(url)).unwrap();
    }

    pub(crate) fn back(&self) {
        self.runtime.block_on(self.client().back()).unwrap();
    }

    pub(crate) fn address(&self) -> String {
        self.runtime
            .block_on(self.client().current_url())
            .unwrap()
            .to_string()
    }

    /// The result of a script.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.run_with(script, Value::Null)
    }

    /// The result of a script that gets this value.
    pub(crate) fn run_with(&self, script: &str, value: Value) -> Value {
        self.runtime
            .block_on(self.client().execute(script, vec![value]))
            .unwrap()
    }

    /// The visible text of the first element, if there is one.
    pub(crate) fn text(&self, what: &str) -> Option<String> {
        self.runtime.block_on(async {
            let found = self.client().find(Locator::Css(what)).await.ok()?;
            found.text().await.ok()
        })
    }

    /// An attribute of the first element.
    pub(crate) fn attribute(&self, what: &str, name: &str) -> Option<String> {
        self.runtime.block_on(async {
            let found = self.client().find(Locator::Css(what)).await.ok()?;
            found.attr(name).await.ok()?
        })
    }

    /// Waits for an element.
    #[track_caller]
    pub(crate) fn sees(&self, what: &str) {
        self.wait(what, || self.text(what).is_some());
    }

    /// Waits until the text of an element contains this one.
    #[track_caller]
    pub(crate) fn reads(&self, what: &str, text: &str) {
        self.wait(&format!("{text:?} in {what}"), || {
            self.text(what).is_some_and(|seen| seen.contains(text))
        });
    }

    /// Waits for something at this page.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + TIMEOUT;
        while !is_so() {
            assert!(
                Instant::now() < end,
                "no {what} at this page:\n{}",
                self.body()
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// The visible text of the page.
    pub(crate) fn body(&self) -> String {
        self.text("body").unwrap_or_default()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        let found = self.client().find_all(Locator::Css(what));
        self.runtime.block_on(found).unwrap().len()
    }

    /// Waits for an element, and does something with it. An element that is exchanged meanwhile is
    /// looked for again.
    #[track_caller]
    fn with_element(&self, what: &str, act: impl AsyncFn(&Element) -> Result<(), CmdError>) {
        self.wait(what, || {
            self.runtime.block_on(async {
                let Ok(found) = self.client().find(Locator::Css(what)).await else {
                    return false;
                };
                act(&found).await.is_ok()
            })
        });
    }

    /// Presses the mouse on an element.
    #[track_caller]
    pub(crate) fn click(&self, what: &str) {
        self.with_element(what, async |found| found.click().await);
    }

    /// Presses the mouse on an element, if it is there now.
    pub(crate) fn click_if_there(&self, what: &str) {
        self.runtime.block_on(async {
            if let Ok(found) = self.client().find(Locator::Css(what)).await {
                // It may be exchanged meanwhile.
                let _ = found.click().await;
            }
        });
    }

    /// Types into an element.
    #[track_caller]
    pub(crate) fn fill(&self, what: &str, text: &str) {
        self.with_element(what, async |found| found.send_keys(text).await);
    }

    /// Empties a field.
    #[track_caller]
    pub(crate) fn empty(&self, what: &str) {
        self.with_element(what, async |found| found.clear().await);
    }

    /// Presses keys where the focus is.
    pub(crate) fn keys(&self, keys: &str) {
        let press = |keys: KeyActions, value| {
            keys.then(KeyAction::Down { value })
                .then(KeyAction::Up { value })
        };
        let pressed = keys.chars().fold(KeyActions::new("keys".to_owned()), press);
        let sent = self.client().perform_actions(pressed);
        self.runtime.block_on(sent).unwrap();
    }

    /// Sends a command of the DevTools protocol.
    pub(crate) fn devtools(&self, command: &'static str, params: Value) -> Value {
        let sent = self.client().issue_cmd(DevTools { command, params });
        self.runtime.block_on(sent).unwrap()
    }

    /// Complaints of the browser: refusals of the page's policy, errors of scripts.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let sent = self.client().issue_cmd(Log);
        let log = self.runtime.block_on(sent).unwrap();
        let entries = log.as_array().unwrap().iter();
        let is_trouble = |entry: &&Value| entry["level"] == "SEVERE" || entry["level"] == "WARNING";
        entries
            .filter(is_trouble)
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Keeps a picture of the page as an artefact of the run.
    pub(crate) fn picture(&self, name: &str) -> Vec<u8> {
        let whole = json!({ "captureBeyondViewport": true, "format": "png" });
        let shot = self.devtools("Page.captureScreenshot", whole);
        let bytes = data_of(shot["data"].as_str().unwrap());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), &bytes).unwrap();
        bytes
    }
}

fn data_of(base64_text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(base64_text)
        .unwrap()
}

fn capabilities(profile: &Path) -> Map<String, Value> {
    let args = [
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-gpu".to_owned(),
        "--lang=en-GB".to_owned(),
        "--window-size=1280,900".to_owned(),
        format!("--user-data-dir={}", profile.display()),
    ];
    let mut options = json!({ "args": args });
    let mut name = "chrome";
    if Path::new(HEADLESS_SHELL).exists() {
        options["binary"] = json!(HEADLESS_SHELL);
        name = "chrome-headless-shell";
    }
    let all = json!({ "browserName": name, "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
    all.as_object().unwrap().clone()
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let _ = self.runtime.block_on(client.close());
        }
        signal(self.driver.id(), "TERM");
        let _ = self.driver.wait();
    }
}

/// A command of the DevTools protocol.
#[derive(Debug)]
struct DevTools {
    command: &'static str,
    params: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/goog/cdp/execute"))
    }

    fn method_and_body(&self, _: &url::Url) -> (Method, Option<String>) {
        let body = json!({ "cmd": self.command, "params": self.params });
        (Method::POST, Some(body.to_string()))
    }
}

/// Asks for the log of the page.
#[derive(Debug)]
struct Log;

impl WebDriverCompatibleCommand for Log {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/se/log"))
    }

    fn method_and_body(&self, _: &url::Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "type": "browser" }).to_string()))
    }
}
