//! Requests to a PDP and to its service for access requests.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use oauth::dialer::{AllowedAddresses, Dialer, FetchRequest, Fetched, parse_url};
use tls::ClientTls;
use url::Url;

use crate::answer::{AccessAnswer, RequestableDenial, read_evaluation};
use crate::config::AuthzenService;
use crate::fault::AuthzenFault;
use crate::question::AccessQuestion;
use crate::task::{AccessApproval, AccessTask, RequestStatus, read_task};

/// The longest answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The least time between two looks at a task, whatever the service says.
pub const POLL_MIN: Duration = Duration::from_secs(1);
/// The most time between two looks at a task, unless the service wants more.
pub const POLL_MAX: Duration = Duration::from_secs(60);

const JSON: &str = "application/json";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client of one service. It follows no redirect, and sends its token to the origins that the
/// operator configured alone.
#[derive(Debug)]
pub struct AuthzenClient {
    dialer: Dialer,
    service: AuthzenService,
    reach: AllowedAddresses,
    authorization: Option<HeaderValue>,
}

/// A task, and the time after which the service wants to be asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolledTask {
    /// The task.
    pub task: AccessTask,
    /// The service's `Retry-After`, at least [`POLL_MIN`].
    pub again_after: Option<Duration>,
}

impl AuthzenClient {
    /// A client of a service.
    #[must_use]
    pub fn new(service: AuthzenService) -> Self {
        let reach = AllowedAddresses::of(&service.evaluation_url, &service.allowed);
        let authorization = service.token.as_ref().and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose())).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Self {
            dialer: Dialer::new(ClientTls::of_machine()),
            service,
            reach,
            authorization,
        }
    }

    /// The host that is asked.
    #[must_use]
    pub fn host(&self) -> &str {
        self.service.evaluation_url.host_str().unwrap_or_default()
    }

    /// Whether access can be requested at all.
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        self.service.request_url.is_some()
    }

    /// Asks for a decision.
    ///
    /// # Errors
    /// [`AuthzenFault`]: there is no decision then.
    pub async fn evaluate(
        &self,
        question: &AccessQuestion,
        approval: Option<&AccessApproval>,
    ) -> Result<AccessAnswer, AuthzenFault> {
        let url = self.service.evaluation_url.as_str();
        let body = question.evaluation(approval);
        let fetched = self.post(url, body, None).await?;
        expect(&fetched, &[StatusCode::OK])?;
        read_evaluation(&fetched.body)
    }

    /// Requests access to what was denied. The same key with the same body is the same request.
    ///
    /// # Errors
    /// [`AuthzenFault`].
    pub async fn request(
        &self,
        question: &AccessQuestion,
        denial: &RequestableDenial,
        key: &str,
    ) -> Result<PolledTask, AuthzenFault> {
        let configured = self.service.request_url.as_ref();
        let configured = configured.ok_or(AuthzenFault::Malformed(
            "it offers a request, and no `request_url` is configured",
        ))?;
        let url = match &denial.endpoint {
            Some(endpoint) => self.own(endpoint, "access_request.endpoint")?,
            None => configured.clone(),
        };
        let body = question.access_request(denial);
        let fetched = self.post(url.as_str(), body, Some(key)).await?;
        expect(&fetched, &[StatusCode::CREATED, StatusCode::ACCEPTED])?;
        let polled = self.polled(&fetched)?;
        if polled.task.status == RequestStatus::Pending && polled.task.status_endpoint.is_none() {
            return Err(AuthzenFault::Malformed("there is no `status_endpoint`"));
        }
        Ok(polled)
    }

    /// Looks at a task.
    ///
    /// # Errors
    /// [`AuthzenFault`].
    pub async fn status(&self, endpoint: &str) -> Result<PolledTask, AuthzenFault> {
        let url = self.own(endpoint, "task.status_endpoint")?;
        let fetch = self.authorized(FetchRequest::get(url.as_str())?);
        let fetched = self.dialer.fetch(fetch, &self.reach).await?;
        expect(&fetched, &[StatusCode::OK])?;
        self.polled(&fetched)
    }

    /// Cancels a task that no one needs any more.
    ///
    /// # Errors
    /// [`AuthzenFault`].
    pub async fn cancel(&self, endpoint: &str) -> Result<(), AuthzenFault> {
        let url = self.own(endpoint, "links.cancel")?;
        let body = json::object(|body| {
            body.text("reason", "decided_elsewhere");
        });
        let fetched = self.post(url.as_str(), body, None).await?;
        expect(&fetched, &[StatusCode::OK, StatusCode::CONFLICT])
    }

    /// A task of an answer, whose addresses are the service's own.
    fn polled(&self, fetched: &Fetched) -> Result<PolledTask, AuthzenFault> {
        let task = read_task(&fetched.body)?;
        if let Some(endpoint) = &task.status_endpoint {
            self.own(endpoint, "task.status_endpoint")?;
        }
        if let Some(endpoint) = &task.cancel {
            self.own(endpoint, "links.cancel")?;
        }
        Ok(PolledTask {
            task,
            again_after: retry_after(&fetched.headers),
        })
    }

    /// An address that the service names: the token goes there, so it must be of the origin that the
    /// operator configured for requests.
    fn own(&self, address: &str, what: &'static str) -> Result<Url, AuthzenFault> {
        let url = parse_url(address)?;
        let configured = self.service.request_url.as_ref().map(Url::origin);
        if configured == Some(url.origin()) {
            return Ok(url);
        }
        Err(AuthzenFault::Elsewhere(what))
    }

    async fn post(
        &self,
        url: &str,
        body: Vec<u8>,
        key: Option<&str>,
    ) -> Result<Fetched, AuthzenFault> {
        let mut fetch = self.authorized(FetchRequest::post(url, JSON, Bytes::from(body))?);
        if let Some(key) = key.and_then(|key| HeaderValue::try_from(key).ok()) {
            fetch = fetch.header(IDEMPOTENCY_KEY, key);
        }
        Ok(self.dialer.fetch(fetch, &self.reach).await?)
    }

    fn authorized(&self, fetch: FetchRequest) -> FetchRequest {
        let fetch = fetch.bytes_max(ANSWER_BYTES_MAX);
        match &self.authorization {
            Some(value) => fetch.header(AUTHORIZATION, value.clone()),
            None => fetch,
        }
    }
}

fn expect(fetched: &Fetched, allowed: &[StatusCode]) -> Result<(), AuthzenFault> {
    if allowed.contains(&fetched.status) {
        return Ok(());
    }
    Err(AuthzenFault::Status(fetched.status.as_u16()))
}

/// The seconds of `Retry-After`, at least [`POLL_MIN`]. A date is not read.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).max(POLL_MIN))
}
