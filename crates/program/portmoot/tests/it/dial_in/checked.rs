//! A dial-in server with `validate = true`: what does not fit its tools' schemas does not reach it.

use super::*;

#[test]
fn calls_of_a_dialed_in_server_are_checked_too() {
    let setup = start("validate = true\n", "");
    let mut worker = Worker(Socket::enter(&setup.gateway, "worker", "?echo=false"));
    let strict = json!({ "type": "object", "required": ["n"] });
    let looped = json!({ "type": "object", "allOf": [{ "$ref": "#" }] });
    worker.greet(&[
        json!({ "name": "one", "inputSchema": strict }),
        json!({ "name": "two", "inputSchema": looped }),
    ]);
    setup.wait_listed(&["one"]);
    let ann = setup.client("ann");
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let unfit = ann.call("worker_one", json!({}));
    assert!(
        unfit["isError"] == true && unfit.to_string().contains("required property"),
        "{unfit}"
    );
    // The next request that it gets is the one that fits.
    let call = begin(&ann, "worker_one", json!({ "n": 1 }));
    let asked = worker.next_request();
    assert_eq!(
        asked["payload"]["params"]["arguments"],
        json!({ "n": 1 }),
        "{asked}"
    );
    worker.answer_text(&asked, "done");
    assert_eq!(*text(&call.next()), "done");
}
