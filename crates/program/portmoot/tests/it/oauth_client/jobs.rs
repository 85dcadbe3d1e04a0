//! Tasks of the service's users (2025-11-25), each with an id that no other has.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::tasks::RELATED;

/// How long `tasks/result` waits for the end of a task.
const WAIT: Duration = Duration::from_secs(30);

struct Job {
    user: String,
    status: &'static str,
    says: String,
}

/// The tasks by their ids.
#[derive(Default)]
pub(super) struct Jobs {
    held: Mutex<BTreeMap<String, Job>>,
    changed: Condvar,
    /// Methods with which a user asked for a task of another one.
    crossed: Mutex<Vec<String>>,
    /// Requests by method.
    asked: Mutex<Vec<String>>,
}

fn task(id: &str, job: &Job) -> Value {
    let at = "2026-11-22T05:00:00Z";
    json!({ "taskId": id, "status": job.status, "createdAt": at, "lastUpdatedAt": at, "ttl": 60_000 })
}

impl Jobs {
    /// Makes a task of a user; its result will say this.
    pub(super) fn begin(&self, user: &str, says: &str) -> Value {
        let mut held = self.held.lock().unwrap();
        let id = format!("task-{}", held.len() + 1);
        let job = Job {
            user: user.to_owned(),
            status: "working",
            says: says.to_owned(),
        };
        let made = json!({ "task": task(&id, &job) });
        held.insert(id, job);
        made
    }

    /// The result of a `tasks/` method for a user; the reason if there is none.
    pub(super) fn answer(&self, user: &str, method: &str, id: &str) -> Result<Value, &'static str> {
        self.asked.lock().unwrap().push(method.to_owned());
        let mut held = self.held.lock().unwrap();
        if method == "tasks/list" {
            let own = held.iter().filter(|(_, job)| job.user == user);
            return Ok(json!({ "tasks": own.map(|(id, job)| task(id, job)).collect::<Vec<_>>() }));
        }
        let job = held.get_mut(id).ok_or("no such task")?;
        if job.user != user {
            self.crossed
                .lock()
                .unwrap()
                .push(format!("{method} of {user} for {id} of {}", job.user));
            return Err("no such task");
        }
        match method {
            "tasks/cancel" if job.status != "working" => return Err("it is over"),
            "tasks/cancel" => job.status = "cancelled",
            "tasks/result" => {
                let runs = |held: &mut BTreeMap<String, Job>| held[id].status == "working";
                let (held, late) = self.changed.wait_timeout_while(held, WAIT, runs).unwrap();
                assert!(!late.timed_out(), "{id} does not end");
                let meta = json!({ (RELATED): { "taskId": id } });
                return Ok(
                    json!({ "content": [{ "type": "text", "text": held[id].says }], "_meta": meta }),
                );
            }
            _ => {}
        }
        Ok(task(id, &held[id]))
    }

    /// Ends all tasks that run.
    pub(super) fn finish(&self) {
        let mut held = self.held.lock().unwrap();
        held.values_mut()
            .filter(|job| job.status == "working")
            .for_each(|job| job.status = "completed");
        self.changed.notify_all();
    }

    /// How often a method came.
    pub(super) fn asked(&self, method: &str) -> usize {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|asked| *asked == method)
            .count()
    }

    /// What was asked for by the wrong user.
    pub(super) fn crossed(&self) -> Vec<String> {
        self.crossed.lock().unwrap().clone()
    }
}
