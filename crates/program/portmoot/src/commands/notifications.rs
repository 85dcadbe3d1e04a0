//! Command `notifications test`: sends a notification by one route. It needs no running gateway.

use notify::config::{NotifyRoute, NotifyWay};
use notify::{Notification, NotifyClient, NotifyFault};
use platform::{random, unix_ms};
use serde_json::json;
use url::Url;

use crate::cli::{ConfigArgs, NotificationsCommand};
use crate::commands::config::{load, read_secrets, sources};
use config::{Loaded, Secrets};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

pub(crate) async fn run(command: NotificationsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        NotificationsCommand::Test { route, config } => test(&route, &config, output).await,
    }
}

async fn test(name: &str, args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let mut loaded = load(&sources(args), output)?;
    named(&loaded, name)?;
    read_secrets(&mut loaded, &Secrets::default(), output)?;
    let route = named(&loaded, name)?;
    let client = NotifyClient::new(route.way.clone(), None);
    let notification = Notification::test(route.link.as_ref().map(Url::as_str));
    let id = format!("msg_{:032x}", u128::from_le_bytes(random()));
    let sent = client.send(&notification, &id, unix_ms() / 1000).await;
    let to = whereto(route);
    match sent {
        Ok(answer) if output.json => {
            output.result_json(&json!({ "route": name, "to": to, "id": id, "answer": answer }));
            Ok(Exit::Ok)
        }
        Ok(answer) => {
            output.result(&format!("{to} has taken the notification: {answer}"));
            Ok(Exit::Ok)
        }
        Err(fault) => {
            let message = format!("the notification did not arrive: {fault}");
            let failure = Failure::new(Exit::Failed, "not_notified", message);
            Err(match hint(route, &fault) {
                Some(hint) => failure.hint(hint),
                None => failure,
            })
        }
    }
}

/// The files that were read, for people.
fn files(loaded: &Loaded) -> String {
    let files = loaded.files.iter().map(|file| file.display().to_string());
    let files: Vec<String> = files.collect();
    if files.is_empty() {
        "no file".to_owned()
    } else {
        files.join(", ")
    }
}

fn named<'c>(loaded: &'c Loaded, name: &str) -> Result<&'c NotifyRoute, Failure> {
    let mut routes = loaded.config.notifications.iter();
    routes.find(|route| &*route.name == name).ok_or_else(|| {
        let routes = loaded.config.notifications.iter();
        let known: Vec<&str> = routes.map(|route| &*route.name).collect();
        let has = match known.as_slice() {
            [] => "has none".to_owned(),
            known => format!("has {}", known.join(", ")),
        };
        let hint = format!(
            "read: {}, which {has}; name the file that `serve` was given with --config FILE; docs/notifications.md shows how to write one",
            files(loaded)
        );
        let message = format!("there is no route of notifications `{name}`");
        Failure::new(Exit::NotFound, "unknown_route", message).hint(hint)
    })
}

/// The program or the host: the rest of an address may be a secret.
fn whereto(route: &NotifyRoute) -> String {
    match &route.way {
        NotifyWay::Exec(words) => {
            let program = words.first().map_or("", String::as_str);
            format!("the program `{program}`")
        }
        NotifyWay::Request(target) => target.url.host_str().unwrap_or_default().to_owned(),
    }
}

/// Advice about a notification that did not arrive, if there is any.
fn hint(route: &NotifyRoute, fault: &NotifyFault) -> Option<&'static str> {
    match (&route.way, fault) {
        (NotifyWay::Exec(_), _) => Some(
            "the program gets PATH, HOME, the locale and the desktop's variables alone, and the notification on its stdin",
        ),
        (NotifyWay::Request(_), NotifyFault::Dial(_)) => {
            Some("a name of a private address needs `allow_private`")
        }
        (NotifyWay::Request(_), NotifyFault::Redirected(_)) => {
            Some("write the address to which it redirects")
        }
        (NotifyWay::Request(_), NotifyFault::Status(500..)) => {
            Some("the host was reached, and failed: its own log says why")
        }
        (NotifyWay::Request(_), NotifyFault::Status(_)) => Some(
            "the host was reached, and refused: check the path and the secret of the route's `url`",
        ),
        (NotifyWay::Request(_), _) => None,
    }
}
