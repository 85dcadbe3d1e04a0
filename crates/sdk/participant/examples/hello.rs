//! Joins a topic, says hello, and prints what others say. Stops after the first answer.
#![allow(clippy::print_stdout)]

use portmoot_participant::{Event, Participant, ParticipantSpec, visible};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // PORTMOOT_URL, PORTMOOT_TOKEN, PORTMOOT_TOPIC
    let me = Participant::connect(ParticipantSpec::from_env()).await?;
    let others: Vec<String> = me.others().into_iter().map(|seen| seen.id).collect();
    println!("here as {}, with {}", me.you().id, others.join(", "));
    me.chat("hello from Rust")?;
    let mut events = me.events();
    while let Some(event) = events.next().await {
        if let Event::Chat { from, text, .. } = event {
            println!("{from}: {}", visible::line(&text));
            break;
        }
    }
    me.close().await;
    Ok(())
}
