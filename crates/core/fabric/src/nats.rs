//! Log and bus on NATS: the one module that names its client.
//!
//! Core messages, and requests with headers; of JetStream one stream, in files, for all records of
//! a cluster.

mod answers;
mod facts;
mod page;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use answers::{Made, STORED_BYTES_MAX};
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Request, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use page::{Came, Follows, Reply, Wanted};
use platform::Mutex;

use crate::bus::{Bus, BusError, BusMessage, BusSubscription, Waiting};
use crate::cluster_subjects::ClusterSubjects;
use crate::log::{
    Append, Appended, FRAME_BYTES_MAX, Log, LogError, Ongoing, PAGE_BYTES_MAX, PAGE_RECORDS_MAX,
    Page, Record, Sequence, TRY_MAX,
};
use crate::subject::{SubjectError, SubjectName, SubjectPattern};

/// The oldest server that reads several records in one request.
pub const SERVER_MIN: (u64, u64) = (2, 11);
/// The time in which a stream is made or found: the servers may have to agree on their leader.
const MAKE_MAX: Duration = Duration::from_secs(10);
/// The time between two looks whether a silent connection is alive. Two of them unanswered end it.
const LOOK: Duration = Duration::from_secs(2);
/// The longest pause between two tries to connect again.
const RECONNECT_MAX: Duration = Duration::from_secs(1);

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
const MESSAGE_ID: &str = "Nats-Msg-Id";
const STREAM: &str = "Nats-Stream";
const SUBJECT: &str = "Nats-Subject";
const SEQUENCE: &str = "Nats-Sequence";
const BEFORE: &str = "Nats-Last-Sequence";
const PENDING: &str = "Nats-Num-Pending";
const LATE: &str = "no answer in time";

/// A way to the servers of a cluster.
#[derive(Clone, Default)]
pub struct NatsConfig {
    /// The cluster's name: one token of a subject.
    pub cluster: String,
    /// URLs of servers, `nats://` or `tls://`.
    pub servers: Vec<String>,
    /// The file with the user's credentials.
    pub credentials: Option<PathBuf>,
    /// The file with the authorities that vouch for the servers.
    pub ca: Option<PathBuf>,
    /// The files with the user's certificate and its key.
    pub client: Option<UserFiles>,
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs can have passwords.
        write!(
            f,
            "NatsConfig({}, {} servers)",
            self.cluster,
            self.servers.len()
        )
    }
}

/// The files of a client certificate.
#[derive(Debug, Clone)]
pub struct UserFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A cluster that cannot be reached, or is not fit.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// The name of the cluster is no token.
    #[error("the cluster's name is no token of a subject: {0}")]
    Name(#[from] SubjectError),
    /// The name of the cluster has several tokens.
    #[error("the cluster's name has a dot")]
    Dotted,
    /// A URL has a user or password, which the client would pass over.
    #[error("a server's URL has a user or password: use a credentials file or a certificate")]
    Password,
    /// A file cannot be used.
    #[error("the credentials cannot be read: {0}")]
    Credentials(std::io::Error),
    /// No server is reached, or none admits the user.
    #[error("no NATS server is reached: {0}")]
    Unreachable(String),
    /// The server is older than [`SERVER_MIN`].
    #[error("the NATS server is {0}; 2.11 or newer is needed, 2.15 recommended")]
    Old(String),
    /// The server keeps no streams.
    #[error("JetStream is not enabled at the NATS server")]
    NoJetStream,
    /// Several replicas are wished, and the server stands alone.
    #[error(
        "the NATS server is alone, and keeps one replica: set `replicas = 1`, or use three servers"
    )]
    Alone,
    /// The stream cannot be made.
    #[error("the stream cannot be made: {0}")]
    Stream(#[from] LogError),
    /// A stream of this name has a property with which it cannot be the log.
    #[error("the stream {stream} cannot be the log: {property}")]
    Unfit {
        /// The stream's name.
        stream: String,
        /// The property.
        property: &'static str,
    },
}

/// The stream that was found or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFacts {
    /// The number of servers that store each record.
    pub replicas: u8,
}

/// The rights that a user has at the servers, as far as they were seen to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NatsRights {
    /// Messages between nodes: to publish and to subscribe.
    pub bus: bool,
    /// Records of the stream: to append.
    pub append: bool,
    /// Records of the stream: to read.
    pub read: bool,
    /// Old records of the stream: to remove.
    pub purge: bool,
}

/// A connection to the servers of a cluster.
#[derive(Debug)]
pub struct Nats {
    client: Client,
    stream: String,
    subjects: ClusterSubjects,
    records: SubjectPattern,
    subscriptions: Arc<Subscriptions>,
}

/// Subscriptions that are open, to note what the client itself dropped.
#[derive(Debug, Default)]
struct Subscriptions(Mutex<Vec<Weak<Waiting>>>);

impl Subscriptions {
    fn add(&self, waiting: &Arc<Waiting>) {
        let mut open = self.0.lock();
        open.retain(|one| one.strong_count() > 0);
        open.push(Arc::downgrade(waiting));
    }

    /// The client does not say whose message it dropped: each subscription may miss one.
    fn all_dropped(&self) {
        for waiting in self.0.lock().iter().filter_map(Weak::upgrade) {
            waiting.dropped(1);
        }
    }
}

impl Nats {
    /// Connects. A connection that is lost later is made again in the background.
    ///
    /// # Errors
    /// [`NatsError`] when no server is reached, or the files or the server are not fit.
    pub async fn connect(config: &NatsConfig) -> Result<Self, NatsError> {
        if config.cluster.contains('.') {
            return Err(NatsError::Dotted);
        }
        let subjects = ClusterSubjects::of(&config.cluster)?;
        if config.servers.iter().any(|url| url.contains('@')) {
            return Err(NatsError::Password);
        }
        let subscriptions = Arc::<Subscriptions>::default();
        let options = options(config, subjects.root(), Arc::clone(&subscriptions)).await?;
        let client = options
            .connect(&config.servers)
            .await
            .map_err(|why| NatsError::Unreachable(why.to_string()))?;
        let version = client.server_info().version;
        if !is_new(&version) {
            return Err(NatsError::Old(version.chars().take(40).collect()));
        }
        Ok(Self {
            client,
            stream: format!("PM_{}", config.cluster),
            records: subjects.journals().all_below(),
            subjects,
            subscriptions,
        })
    }

    /// The subjects of the cluster.
    #[must_use]
    pub fn subjects(&self) -> &ClusterSubjects {
        &self.subjects
    }

    /// Whether a server is reached now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Makes the stream, if it is not there, with this number of replicas.
    ///
    /// # Errors
    /// [`NatsError`] when it cannot be made, or is there and could lose records.
    pub async fn make_stream(&self, replicas: u8) -> Result<StreamFacts, NatsError> {
        let wish = self.wish(replicas);
        let mut made = answers::made(&self.api("STREAM.CREATE", wish, MAKE_MAX).await?)?;
        if made == Made::Other {
            let info = self.api("STREAM.INFO", String::new(), MAKE_MAX).await?;
            made = answers::made(&info)?;
        }
        if made == Made::Alone {
            return Err(NatsError::Alone);
        }
        let unfit = |property| NatsError::Unfit {
            stream: self.stream.clone(),
            property,
        };
        let Made::Stream(config) = made else {
            return Err(unfit("its configuration"));
        };
        match config.unfit(&self.stream, self.records.as_str()) {
            Some(property) => Err(unfit(property)),
            None => Ok(StreamFacts {
                replicas: config.num_replicas,
            }),
        }
    }

    fn wish(&self, replicas: u8) -> String {
        serde_json::json!({
            "name": self.stream,
            "subjects": [self.records.as_str()],
            "retention": "limits",
            "storage": "file",
            "discard": "new",
            "num_replicas": replicas,
            "max_msg_size": STORED_BYTES_MAX,
            "duplicate_window": answers::DUPLICATES_NS,
            "allow_direct": true,
            "deny_delete": true,
        })
        .to_string()
    }

    /// A request to JetStream about the stream.
    async fn api(&self, verb: &str, body: String, within: Duration) -> Result<Bytes, LogError> {
        let subject = format!("$JS.API.{verb}.{}", self.stream);
        let request = Request::new().payload(body.into()).timeout(Some(within));
        let asked = self.client.send_request(subject, request);
        match tokio::time::timeout(within, asked).await {
            Ok(Ok(answer)) => Ok(answer.payload),
            Ok(Err(why)) => Err(LogError::Unavailable(why.to_string())),
            Err(_) => Err(LogError::Unavailable(LATE.to_owned())),
        }
    }

    async fn try_append(&self, append: &Append) -> Appended {
        if append.bytes.len() > FRAME_BYTES_MAX {
            return Appended::Refused(format!("more than {FRAME_BYTES_MAX} bytes"));
        }
        if !self.is_connected() {
            return Appended::Unknown("no server is reached".to_owned());
        }
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED, append.expected.to_string());
        headers.insert(EXPECTED_STREAM, self.stream.as_str());
        headers.insert(MESSAGE_ID, append.id.to_string());
        let request = Request::new()
            .payload(append.bytes.clone())
            .headers(headers)
            .timeout(Some(TRY_MAX));
        let subject = append.subject.as_str().to_owned();
        match self.client.send_request(subject, request).await {
            Ok(answer) => answers::appended(&answer.payload, &self.stream, append.expected),
            Err(why) => Appended::Unknown(why.to_string()),
        }
    }

    async fn append_or_look(&self, append: &Append) -> Appended {
        match self.try_append(append).await {
            Appended::Fenced(Some(last)) => self.by_name(append, last).await,
            answer => answer,
        }
    }

    /// Looks whether the record that follows the expected one is this one. A server that stands
    /// alone looks at the expectation before it looks at the name, and none knows a name for ever.
    async fn by_name(&self, append: &Append, last: Sequence) -> Appended {
        let pattern = SubjectPattern::from(&append.subject);
        let from = append.expected + 1;
        let page = match self.page(&pattern, from, 1).await {
            Ok(page) => page,
            Err(why) => return Appended::Unknown(why.to_string()),
        };
        match page.records.first() {
            Some(next) if next.id == Some(append.id) => Appended::At(next.sequence),
            Some(_) => Appended::Fenced(Some(last)),
            // One that was passed over is not this one.
            None if page.next > from => Appended::Fenced(Some(last)),
            None => Appended::Unknown("the record that fences is not there yet".to_owned()),
        }
    }

    /// Records of a pattern from a sequence on.
    async fn page(
        &self,
        pattern: &SubjectPattern,
        from: Sequence,
        records: usize,
    ) -> Result<Page, LogError> {
        let body = serde_json::json!({
            "seq": from.max(1),
            "next_by_subj": pattern.as_str(),
            "batch": records,
            "max_bytes": PAGE_BYTES_MAX,
        });
        let wanted = Wanted {
            stream: &self.stream,
            pattern,
            from,
            is_batch: true,
        };
        let subject = format!("$JS.API.DIRECT.GET.{}", self.stream);
        let came = self.get(subject, body.to_string(), &wanted).await?;
        Ok(came.page(from))
    }

    /// Records by direct get: a server answers a batch with one message each, and then its end.
    async fn get(
        &self,
        subject: String,
        body: String,
        wanted: &Wanted<'_>,
    ) -> Result<Came, LogError> {
        if !self.is_connected() {
            return Err(LogError::Unavailable("no server is reached".to_owned()));
        }
        let unavailable = |why: String| LogError::Unavailable(why);
        let inbox = self.client.new_inbox();
        let subscribed = self.client.subscribe(inbox.clone()).await;
        let mut replies = subscribed.map_err(|why| unavailable(why.to_string()))?;
        let sent = self.client.publish_with_reply(subject, inbox, body.into());
        sent.await.map_err(|why| unavailable(why.to_string()))?;
        collect(wanted, &mut replies).await
    }
}

async fn options(
    config: &NatsConfig,
    root: &SubjectName,
    subscriptions: Arc<Subscriptions>,
) -> Result<ConnectOptions, NatsError> {
    let mut options = ConnectOptions::new()
        .name("portmoot")
        .custom_inbox_prefix(format!("_INBOX.{root}"))
        .ping_interval(LOOK)
        .connection_timeout(TRY_MAX)
        .request_timeout(Some(TRY_MAX))
        .reconnect_delay_callback(pause)
        .event_callback(move |event| {
            noted(&event, &subscriptions);
            std::future::ready(())
        });
    if let Some(path) = &config.credentials {
        let read = options.credentials_file(path).await;
        options = read.map_err(NatsError::Credentials)?;
    }
    if let Some(path) = &config.ca {
        options = options.add_root_certificates(path.clone());
    }
    if let Some(files) = &config.client {
        options = options.add_client_certificate(files.certificate.clone(), files.key.clone());
    }
    Ok(options)
}

fn pause(tries: usize) -> Duration {
    let tries = u32::try_from(tries).unwrap_or(u32::MAX);
    (Duration::from_millis(20).saturating_mul(tries)).min(RECONNECT_MAX)
}

fn noted(event: &Event, subscriptions: &Subscriptions) {
    match event {
        Event::SlowConsumer(_) => subscriptions.all_dropped(),
        Event::Connected => tracing::info!("connected to a NATS server"),
        Event::Disconnected => tracing::warn!("the connection to the NATS server is lost"),
        other => tracing::warn!("NATS: {other}"),
    }
}

fn is_new(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= SERVER_MIN,
        _ => false,
    }
}

/// Takes in what comes until the answer is whole.
async fn collect(wanted: &Wanted<'_>, replies: &mut Subscriber) -> Result<Came, LogError> {
    let mut came = Came::default();
    while let Some(message) = replies.next().await {
        let headers = message.headers.unwrap_or_default();
        let header = |name: &str| headers.get_last(name).map(|value| value.as_str());
        let reply = Reply {
            status: message.status.map(|status| status.as_u16()),
            stream: header(STREAM),
            subject: header(SUBJECT),
            sequence: header(SEQUENCE),
            before: header(BEFORE),
            pending: header(PENDING),
            id: header(MESSAGE_ID),
            bytes: message.payload,
        };
        if wanted.take(&mut came, reply)? == Follows::Nothing {
            return Ok(came);
        }
    }
    Err(LogError::Unavailable("the connection ended".to_owned()))
}

/// An operation of the log that is answered within [`TRY_MAX`]. The client alone does not see to
/// it: where too much waits to be sent, it waits too.
async fn in_time<T>(operation: impl Future<Output = Result<T, LogError>>) -> Result<T, LogError> {
    let answered = tokio::time::timeout(TRY_MAX, operation).await;
    answered.unwrap_or_else(|_| Err(LogError::Unavailable(LATE.to_owned())))
}

/// An operation of the bus that is answered within [`TRY_MAX`].
async fn bus_in_time<T>(
    operation: impl Future<Output = Result<T, BusError>>,
) -> Result<T, BusError> {
    let answered = tokio::time::timeout(TRY_MAX, operation).await;
    answered.unwrap_or_else(|_| Err(BusError::Unavailable(LATE.to_owned())))
}

impl Log for Nats {
    fn append<'a>(&'a self, append: &'a Append) -> Ongoing<'a, Appended> {
        Box::pin(async move {
            let answered = tokio::time::timeout(TRY_MAX, self.append_or_look(append)).await;
            answered.unwrap_or_else(|_| Appended::Unknown(LATE.to_owned()))
        })
    }

    fn read<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
        from: Sequence,
    ) -> Ongoing<'a, Result<Page, LogError>> {
        Box::pin(in_time(self.page(pattern, from, PAGE_RECORDS_MAX)))
    }

    fn purge<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
        before: Sequence,
    ) -> Ongoing<'a, Result<(), LogError>> {
        Box::pin(async move {
            // Without a sequence the server would remove all.
            if before <= 1 {
                return Ok(());
            }
            let body = serde_json::json!({ "filter": pattern.as_str(), "seq": before });
            let asked = self.api("STREAM.PURGE", body.to_string(), TRY_MAX);
            answers::purged(&asked.await?)
        })
    }

    fn last<'a>(
        &'a self,
        subject: &'a SubjectName,
    ) -> Ongoing<'a, Result<Option<Record>, LogError>> {
        Box::pin(in_time(async move {
            let api = format!("$JS.API.DIRECT.GET.{}.{subject}", self.stream);
            let wanted = Wanted {
                stream: &self.stream,
                pattern: &subject.into(),
                from: 1,
                is_batch: false,
            };
            let came = self.get(api, String::new(), &wanted).await?;
            Ok(came.newest(subject))
        }))
    }
}

impl Bus for Nats {
    fn publish<'a>(
        &'a self,
        subject: &'a SubjectName,
        bytes: Bytes,
    ) -> Ongoing<'a, Result<(), BusError>> {
        Box::pin(bus_in_time(async move {
            if bytes.len() > FRAME_BYTES_MAX {
                return Err(BusError::TooLarge(bytes.len()));
            }
            // The client would keep it, and send it when it is no longer true.
            if !self.is_connected() {
                return Err(BusError::Unavailable("no server is reached".to_owned()));
            }
            let sent = self.client.publish(subject.as_str().to_owned(), bytes);
            sent.await
                .map_err(|why| BusError::Unavailable(why.to_string()))
        }))
    }

    fn subscribe<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
    ) -> Ongoing<'a, Result<BusSubscription, BusError>> {
        Box::pin(bus_in_time(async move {
            let unavailable = |why: String| BusError::Unavailable(why);
            let subscribed = self.client.subscribe(pattern.as_str().to_owned()).await;
            let messages = subscribed.map_err(|why| unavailable(why.to_string()))?;
            let flushed = self.client.flush().await;
            flushed.map_err(|why| unavailable(why.to_string()))?;
            let (subscription, waiting) = BusSubscription::new();
            self.subscriptions.add(&waiting);
            tokio::spawn(pass_on(messages, waiting));
            Ok(subscription)
        }))
    }
}

/// The way of messages to a subscriber, until one of both ends. A message that is too large, or
/// whose subject is none here, is dropped.
async fn pass_on(mut messages: Subscriber, waiting: Arc<Waiting>) {
    loop {
        let message = tokio::select! {
            () = waiting.ended() => return,
            message = messages.next() => message,
        };
        let Some(message) = message else {
            return waiting.end();
        };
        let subject = message.subject.as_str().parse();
        if let (Ok(subject), true) = (subject, message.payload.len() <= FRAME_BYTES_MAX) {
            waiting.push(BusMessage {
                subject,
                bytes: message.payload,
            });
        }
    }
}

#[cfg(test)]
mod tests;
