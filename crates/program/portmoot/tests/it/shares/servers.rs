//! Plays against what servers have: questions, the queue to a child process, tasks.

use super::*;

const QUESTIONS: usize = 64;
const TASKS: usize = 256;

pub(super) fn questions(stage: &mut Stage) -> Held {
    let ask = |client: &Client| client.begin_call("tools_test_sampling", json!({ "prompt": "x" }));
    let clients = [(); 2].map(|()| stage.greedy("/mcp", json!({ "sampling": {} })));
    // Of several open calls in a session none is known to be the one that it asks for.
    let streams = clients.each_ref().map(|client| client.listen());
    let held: Vec<Events> = (0..QUESTIONS)
        .map(|number| ask(&clients[number % 2]))
        .collect();
    let mut asked = 0;
    until("all are asked", || {
        let received = streams.iter().chain(&held).flat_map(Events::so_far);
        asked += received
            .filter(|message| message["method"] == "sampling/createMessage")
            .count();
        (asked == QUESTIONS).then_some(())
    });
    let refused = ask(&clients[0]).next();
    assert!(
        refused["method"].is_null() && refused["id"].is_u64(),
        "it is not asked: {refused}"
    );
    assert!(
        refused.to_string().contains("too much is open"),
        "{refused}"
    );
    // The same server asks another.
    let other = Client::open(
        &stage.gateway,
        Some(&token(OTHER)),
        "/mcp",
        json!({ "sampling": {} }),
    );
    let call = ask(&other);
    let question = call.next_of("sampling/createMessage");
    let content = json!({ "type": "text", "text": "y" });
    other.answer(
        &question,
        json!({ "role": "assistant", "content": content, "model": "m" }),
    );
    let answer = call.next();
    assert!(
        answer["result"].is_object() && answer.to_string().contains('y'),
        "{answer}"
    );
    assert_eq!(other.delete(), 204);
    Box::new((clients, streams, held))
}

/// A child that reads nothing.
pub(super) fn queue_to_a_child(stage: &mut Stage) -> Held {
    let pid = stage.get(OTHER, "/api/v1/servers/more").json()["pid"]
        .as_u64()
        .unwrap();
    let signal = |name| crate::support::signal(u32::try_from(pid).unwrap(), name);
    signal("STOP");
    let mut socket = stage.enters(GREEDY);
    let text = "x".repeat(900 << 10);
    for number in 0..6 {
        socket.call(
            &format!("c{number}"),
            &["more"],
            "echo",
            json!({ "text": text }),
        );
    }
    let refused = socket.receive_until(|envelope| envelope["payload"]["error"].is_object());
    assert_eq!(
        refused["payload"]["error"]["data"]["code"], "upstream_busy",
        "{refused}"
    );
    // The call of another waits for the same child, and calls of other servers go on.
    let waits = stage.other.begin_call("more_echo", json!({ "text": "y" }));
    stage.open_at("more", 5);
    assert!(stage.other.call("tools_echo", json!({ "text": "z" }))["content"].is_array());
    signal("CONT");
    let answer = loop {
        let message = waits.next();
        if message["id"].is_u64() {
            break message;
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "y", "{answer}");
    Box::new(socket)
}

pub(super) fn tasks(stage: &mut Stage) -> Held {
    let begin = |client: &Client| {
        client.ask(
            "tools/call",
            json!({ "name": "jobs_job", "arguments": {}, "task": {} }),
        )
    };
    let client = stage.greedy("/mcp", json!({}));
    for number in 0..TASKS {
        let begun = begin(&client);
        assert!(begun["result"]["task"].is_object(), "{number}: {begun}");
    }
    assert_eq!(stage.jobs.calls("job"), TASKS);
    let refused = begin(&client);
    assert_eq!(code(&refused), "overloaded", "{refused}");
    let others = begin(&stage.other);
    assert!(others["result"]["task"].is_object(), "{others}");
    Box::new(client)
}
