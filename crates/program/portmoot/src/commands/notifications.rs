//! Command `notifications test`: sends a notification by one route. It needs no running gateway.

use notify::config::{NotifyRoute, NotifyWay};
use notify::{Notification, NotifyClient};
use platform::{random, unix_ms};
use serde_json::json;
use url::Url;

use crate::cli::{ConfigArgs, NotificationsCommand};
use crate::commands::config::{load, read_secrets, sources};
use config::{Config, Secrets};
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
    named(&loaded.config, name)?;
    read_secrets(&mut loaded, &Secrets::default(), output)?;
    let route = named(&loaded.config, name)?;
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
            Err(failure.hint(hint(route)))
        }
    }
}

fn named<'c>(config: &'c Config, name: &str) -> Result<&'c NotifyRoute, Failure> {
    let mut routes = config.notifications.iter();
    routes.find(|route| &*route.name == name).ok_or_else(|| {
        let routes = config.notifications.iter();
        let known: Vec<&str> = routes.map(|route| &*route.name).collect();
        let hint = match known.as_slice() {
            [] => "the configuration has none: docs/notifications.md shows how to write one"
                .to_owned(),
            known => format!("the configuration has {}", known.join(", ")),
        };
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

fn hint(route: &NotifyRoute) -> &'static str {
    match &route.way {
        NotifyWay::Exec(_) => {
            "the program gets PATH, HOME, the locale and the desktop's variables alone, and the notification on its stdin"
        }
        NotifyWay::Request(_) => {
            "a name of a private address needs `allow_private`; redirects are not followed"
        }
    }
}
