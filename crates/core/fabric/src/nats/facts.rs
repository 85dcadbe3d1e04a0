//! Facts about the servers, for a person who looks at a cluster. Nothing is changed.

use std::time::Duration;

use async_nats::Request;
use async_nats::client::RequestErrorKind;
use bytes::Bytes;

use super::answers::{self, Found};
use super::{Nats, NatsError, NatsRights, StreamFacts};
use crate::bus::{Bus as _, Delivery};
use crate::log::{Append, Appended, Log as _, LogError, MessageId, TRY_MAX};
use crate::seal::Incarnation;
use crate::subject::{SubjectError, SubjectName, SubjectPattern};

/// A place of a stream that no journal reaches: a server refuses an append after it.
const NEVER: u64 = 1 << 60;
/// The time in which a message comes back from the bus.
const ECHO_MAX: Duration = Duration::from_secs(2);

impl Nats {
    /// The version of the server that is reached.
    #[must_use]
    pub fn version(&self) -> String {
        let version = self.client.server_info().version;
        version
            .chars()
            .filter(|one| !one.is_control())
            .take(40)
            .collect()
    }

    /// The stream's name.
    #[must_use]
    pub fn stream_name(&self) -> &str {
        &self.stream
    }

    /// The stream, if it is there.
    ///
    /// # Errors
    /// [`NatsError`] when the servers do not say, or it is not fit.
    pub async fn stream(&self) -> Result<Option<StreamFacts>, NatsError> {
        let subject = format!("$JS.API.STREAM.INFO.{}", self.stream);
        let request = Request::new().timeout(Some(TRY_MAX));
        let answer = match self.client.send_request(subject, request).await {
            Ok(answer) => answer.payload,
            Err(why) if why.kind() == RequestErrorKind::NoResponders => {
                return Err(NatsError::NoJetStream);
            }
            Err(why) => return Err(LogError::Unavailable(why.to_string()).into()),
        };
        let config = match answers::found(&answer)? {
            Found::Stream(config) => config,
            Found::None => return Ok(None),
            Found::NoJetStream => return Err(NatsError::NoJetStream),
        };
        match config.unfit(&self.stream, self.records.as_str()) {
            Some(property) => Err(NatsError::Unfit {
                stream: self.stream.clone(),
                property,
            }),
            None => Ok(Some(StreamFacts {
                replicas: config.num_replicas,
            })),
        }
    }

    /// The rights of the user, tried without storing anything. The stream has to be there.
    ///
    /// # Errors
    /// [`SubjectError`] when a subject would be none.
    pub async fn rights(&self) -> Result<NatsRights, SubjectError> {
        let subjects = self.subjects();
        let echo = subjects.root().with_name("echo")?;
        let record = subjects.journals().with_name("none")?;
        let append = Append {
            subject: record.clone(),
            expected: NEVER,
            id: MessageId::random(),
            bytes: Bytes::new(),
        };
        let nothing = SubjectPattern::from(&record.with_name("none")?);
        let (bus, appended, read, purged) = tokio::join!(
            self.echoes(&echo),
            self.append(&append),
            self.last(&record),
            self.purge(&nothing, 2)
        );
        Ok(NatsRights {
            bus,
            append: !matches!(appended, Appended::Unknown(_)),
            read: read.is_ok(),
            purge: purged.is_ok(),
        })
    }

    /// Whether a message to this subject comes back.
    async fn echoes(&self, subject: &SubjectName) -> bool {
        let sent = Bytes::from(Incarnation::random().to_string());
        let Ok(mut messages) = self.subscribe(&subject.into()).await else {
            return false;
        };
        if self.publish(subject, sent.clone()).await.is_err() {
            return false;
        }
        let came = async {
            while let Some(delivery) = messages.next().await {
                if matches!(delivery, Delivery::Message(message) if message.bytes == sent) {
                    return true;
                }
            }
            false
        };
        tokio::time::timeout(ECHO_MAX, came).await.unwrap_or(false)
    }
}
