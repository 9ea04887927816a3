//! The state that all requests share: policies, limits and accounts. Requests are admitted,
//! checked, charged and drawn here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Uri};
use bytes::Bytes;
use fastdx::support::parallel::stay_on_this_thread;
use fastdx::text::padded;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answers::Answers;
use crate::drawing::DrawingThreads;
use crate::keys::Keys;
use crate::ledger::{Ledger, Refusal};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::policy::{Policies, Policy};
use crate::reply::Failure;
use crate::work::{BATCH, CheckedRequest, Drawn, SHORT, caught, draw, price};

/// The shared state of the service.
pub struct Service {
    pub policies: ArcSwapOption<Policies>,
    /// The keys that are accepted; `None` accepts every client.
    pub keys: Option<Keys>,
    /// The header in which a proxy names the account that pays.
    pub account_header: Option<HeaderName>,
    pub ledger: Option<Ledger>,
    /// Answers kept for repeated requests.
    pub answers: Arc<Answers>,
    pub metrics: Arc<Metrics>,
    pub limits: Limits,
    /// Permits for further requests.
    pub room: Arc<Semaphore>,
    /// Permits for further connections.
    pub connections: Arc<Semaphore>,
    /// The threads that draw batches.
    pub drawing: DrawingThreads,
    /// Whether the service is stopping.
    pub draining: AtomicBool,
}

/// The policy that the query of lines names: `policy=NAME` and nothing else.
pub fn policy_of(uri: &Uri) -> Result<Option<&str>, Failure> {
    match uri.query().unwrap_or_default() {
        "" => Ok(None),
        query => match query.strip_prefix("policy=") {
            Some(name) => Ok(Some(name)),
            None => Err(Failure::invalid("the query takes policy=NAME alone")),
        },
    }
}

impl Service {
    /// Builds the policies of a configuration; they are not in use yet.
    pub fn make(&self, config: &fastdx::policy::Policies) -> Result<Policies, String> {
        let policies = Policies::make(config)?;
        self.affordable(&policies)?;
        Ok(policies)
    }

    /// Checks that the ledger, if there is one, can charge for each policy.
    pub fn affordable(&self, policies: &Policies) -> Result<(), String> {
        if self.ledger.is_none() {
            return Ok(());
        }
        for policy in policies.named.values() {
            let refuse = |why: &str| Err(format!("policies.{}: with a ledger: {why}", policy.name));
            if policy.spans_only {
                return refuse("spans_only releases words unprotected, which no budget pays for");
            }
            // The price of an empty text: shows problems of the policy itself.
            policy.text.price("").0.map(|_| ()).or_else(refuse)?;
        }
        Ok(())
    }

    /// Warms policies up, then uses them for all new requests.
    /// If that fails, the old ones stay in use.
    pub fn put_to_use(&self, policies: Policies) -> Result<Arc<Policies>, String> {
        policies.warm()?;
        let policies = Arc::new(policies);
        self.policies.store(Some(policies.clone()));
        Ok(policies)
    }

    pub fn current(&self) -> Result<Arc<Policies>, Failure> {
        let not_yet = || Failure::new("starting", "the policies are not loaded yet");
        self.policies.load_full().ok_or_else(not_yet)
    }

    pub fn policy(&self, name: Option<&str>) -> Result<Arc<Policy>, Failure> {
        let unknown = || {
            let message = match name {
                Some(_) => "there is no policy of this name: GET /v1/policies has them",
                None => "policy is missing, and there is no default one",
            };
            Failure::new("no_policy", message)
        };
        self.current()?.get(name).cloned().ok_or_else(unknown)
    }

    /// The account that pays; empty without accounts.
    pub fn account(&self, headers: &HeaderMap) -> Result<String, Failure> {
        let mut account = String::new();
        if let Some(keys) = &self.keys {
            let given = headers
                .get(AUTHORIZATION)
                .map_or(&[][..], HeaderValue::as_bytes);
            let key = given.strip_prefix(b"Bearer ").unwrap_or_default();
            let Some(found) = keys.account(key) else {
                self.metrics.refused("key");
                let message = "Authorization must be \"Bearer \" and a key";
                return Err(Failure::new("no_key", message));
            };
            account = found.to_owned();
        }
        if let Some(name) = &self.account_header {
            let mut given = headers.get_all(name).iter();
            match (given.next().map(HeaderValue::to_str), given.next()) {
                (Some(Ok(of_proxy)), None) if !of_proxy.is_empty() => {
                    account = crate::ledger::account(of_proxy);
                }
                _ => {
                    let message = "the header that names the account must appear once";
                    return Err(Failure::new("no_account", message));
                }
            }
        }
        Ok(account)
    }

    /// A place among the requests in progress.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.room.clone().try_acquire_owned().map_err(|_| {
            self.metrics.refused("busy");
            Failure::new("busy", "too many requests at once")
        })
    }

    /// Whether the service takes requests.
    pub fn ready(&self) -> Result<(), Failure> {
        if self.draining.load(Relaxed) {
            return Err(Failure::new("ending", "the service is ending"));
        }
        self.current().map(|_| ())
    }

    /// Waits for a complete body.
    pub async fn whole(&self, body: Body) -> Result<Bytes, Failure> {
        let body = Limited::new(body, self.limits.max_body).collect();
        match tokio::time::timeout(self.limits.body_time, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(e)) if e.is::<LengthLimitError>() => {
                Err(self.too_large(format!("a body has at most {} bytes", self.limits.max_body)))
            }
            Ok(Err(_)) => Err(Failure::malformed("the body broke off")),
            Err(_) => {
                self.metrics.refused("slow");
                Err(Failure::new("slow", "the body did not arrive in time"))
            }
        }
    }

    /// Counts a request that exceeds a limit; returns its failure.
    pub fn too_large(&self, message: String) -> Failure {
        self.metrics.refused("size");
        Failure::new("too_large", message)
    }

    /// Charges for a unit of work, then draws.
    /// A [`Failure`] releases nothing.
    pub async fn release(
        self: &Arc<Self>,
        account: &str,
        work: CheckedRequest,
    ) -> Result<Drawn, Failure> {
        let start = Instant::now();
        let pad = work.policy.pad;
        let done = self.release_at_once(account, work).await;
        if let Some(pad) = pad {
            // The timer's thread waits for all of them, so no worker thread waits for this one.
            tokio::time::sleep_until(padded(start, Instant::now(), pad).into()).await;
        }
        done
    }

    async fn release_at_once(
        self: &Arc<Self>,
        account: &str,
        work: CheckedRequest,
    ) -> Result<Drawn, Failure> {
        if let Some(ledger) = &self.ledger {
            let (amount, note) = price(&work)?;
            if let Some(note) = note {
                let left = ledger.charge(account, amount, note).await;
                left.map_err(|refusal| self.refuse(amount, refusal))?;
            }
        }
        let (texts, policy) = (work.texts, work.policy.clone());
        let done = match work.bytes {
            bytes if bytes <= SHORT => {
                // A hand-off would cost more than the draw. Without a pool of its own, the
                // thread draws by the common one: slower.
                let _ = stay_on_this_thread();
                self.ended(caught(|| draw(work)))
            }
            bytes if bytes <= BATCH => self.ended(self.drawing.run(|| draw(work)).await),
            _ => self.apart(|| draw(work)).await,
        }??;
        let counts = [1, texts, done.counts.words];
        self.metrics.released(&policy.name, counts);
        Ok(done)
    }

    fn refuse(&self, amount: f64, refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Spent { left } => {
                self.metrics.refused("budget");
                let message = format!("the release costs {amount}, and {left} is left");
                Failure {
                    left: Some(left),
                    ..Failure::new("budget", message)
                }
            }
            Refusal::Failed => {
                let message = "the ledger could not be written: nothing was released";
                Failure::new("ledger", message)
            }
        }
    }

    /// Runs a long task on a thread for such tasks.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let done = tokio::task::spawn_blocking(|| caught(work)).await;
        self.ended(done.unwrap_or(None))
    }

    /// The result of work that ended; counts the panic of work without one.
    fn ended<T>(&self, done: Option<T>) -> Result<T, Failure> {
        done.ok_or_else(|| {
            self.metrics.panics.inc();
            Failure::internal()
        })
    }
}
