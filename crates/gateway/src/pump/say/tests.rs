//! What is said while others look.

use std::time::Instant;

use auth::{Participant, Sealer};
use model::TopicName;
use room::RoomConfig;
use tokio::runtime::Handle;

use super::*;
use crate::audit::Recorder;
use crate::bounds::{Bounds, Held};
use crate::config::{Limits, McpCalls};
use crate::ground::Ground;
use crate::pump::Plan;

/// A topic in which `ann` may do everything.
fn topic() -> (Arc<Pump>, Arc<Caller>) {
    let (limits, name) = (Limits::default(), TopicName::new("main").unwrap());
    let bounds = Bounds::new(&limits, Held::new(limits.held_bytes_max));
    let plan = Plan {
        name: name.clone(),
        list_wait: Duration::ZERO,
        away: Duration::ZERO,
        limits: topic::Limits::default(),
        room: RoomConfig { history: 0, ping_ms: 60_000 },
        proposal_ttl: Duration::from_secs(600),
        hold: Duration::ZERO,
        mcp_calls: McpCalls::None,
        journal: None,
        audit: Recorder::default(),
        bounds: Arc::clone(&bounds),
    };
    let pump = Pump::new(Arc::new(Ground::new(Sealer::new(&[7; 32], None))), plan);
    let capabilities = Arc::new(Capabilities::full());
    let id = ParticipantId::new("ann").unwrap();
    let topics = vec![name.clone()];
    let ann = Participant { id, capabilities: Arc::clone(&capabilities), topics, rate: None };
    let caller = Arc::new(Caller::modern(pump.ground().link(), Arc::new(ann), &name, None, &bounds));
    pump.join(&caller, &capabilities, None).unwrap();
    (pump, caller)
}

#[tokio::test]
async fn whoever_hears_a_proposal_finds_it() {
    let (pump, ann) = topic();
    let text = r#"{"protocol":"mcpx/v0.1","id":"p1","from":"ann","to":["bob"],"kind":"mcp/proposal:tools/call:dig","payload":{"method":"tools/call","params":{"name":"dig","arguments":{}}}}"#;
    let (envelope, runtime) = (Envelope::read(text.into()).unwrap(), Handle::current());
    std::thread::scope(|threads| {
        // Nobody hears anything before the topic is let go.
        let said = pump.topic();
        let speaks = threads.spawn(|| {
            let _in_runtime = runtime.enter();
            pump.speak(&ann, &envelope)
        });
        let end = Instant::now() + Duration::from_secs(10);
        while pump.opening.try_lock().is_some() && Instant::now() < end {
            std::thread::yield_now();
        }
        assert!(pump.opening.try_lock().is_none(), "it is being said");
        drop(said);
        // It may have been heard from now on.
        assert!(pump.proposal_of("p1").is_some());
        speaks.join().unwrap().unwrap();
    });
}
