//! `fastdx-serve`, fastdx as a service: privatises texts over HTTP under the operator's named policies.
//!
//! No message, log line or metric contains a text, word or key. Errors state only positions, and a
//! panic's own message is never printed.

#![forbid(unsafe_code)]

mod answers;
mod body;
mod drawing;
mod keys;
mod ledger;
mod limits;
mod lines;
mod listen;
mod metrics;
mod policy;
mod reply;
mod routes;
mod service;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::http::HeaderName;
use clap::Parser;
use fastdx::guarantee::Unchanged;
use fastdx::policy::{self as specs, Spec};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, oneshot};

use crate::answers::Answers;
use crate::drawing::DrawingThreads;
use crate::keys::Keys;
use crate::ledger::Ledger;
use crate::limits::{Limits, number, seconds, whole};
use crate::listen::{BoundSocket, serve, tls};
use crate::metrics::Metrics;
use crate::policy::Policies;
use crate::service::Service;

/// Requests allocate often and briefly, on all threads. The C library's allocator, above all
/// musl's, is slower.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Metric differential privacy for text over HTTP
#[derive(Debug, Parser)]
#[command(version, name = "fastdx-serve")]
struct Flags {
    /// File of policies (TOML); SIGHUP reads it again
    #[arg(long, value_name = "FILE", conflicts_with = "epsilon")]
    config: Option<PathBuf>,
    /// One policy: the recommended one at this ε; without it and --config, the recommended policy
    #[arg(long, value_name = "E", value_parser = number)]
    epsilon: Option<f64>,
    /// Print every policy's guarantee and exit; refuse policies that release most common words
    /// unchanged
    #[arg(long)]
    check: bool,
    /// Let --check pass --epsilon although most common words come back unchanged
    #[arg(long, requires = "epsilon")]
    allow_unchanged: bool,
    /// HOST:PORT or unix:PATH, as often as needed
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:8080")]
    listen: Vec<String>,
    /// Certificate chain (PEM), for TCP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// API keys: lines of an account and its key. Without it, every client is accepted
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Header in which a trusted proxy names the account that pays
    #[arg(long, value_name = "NAME")]
    account_header: Option<HeaderName>,
    /// File that releases are charged to (SQLite, that of fastdx.budget.Ledger)
    #[arg(long, value_name = "FILE", requires = "budget")]
    ledger: Option<PathBuf>,
    /// Total budget of an account, in ε·words
    #[arg(long, value_name = "B", value_parser = number, requires = "ledger")]
    budget: Option<f64>,
    /// Threads that answer; by default one per core
    #[arg(long, value_name = "N", value_parser = whole)]
    threads: Option<usize>,
    #[command(flatten)]
    limits: Limits,
    /// Seconds that an answer is kept for its Idempotency-Key
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    answers_time: Duration,
    /// Maximum bytes of kept answers
    #[arg(long, value_name = "N", value_parser = whole, default_value_t = 64 << 20)]
    answers_bytes: usize,
}

fn say(what: &str) {
    use std::io::Write;
    let what = plain(what);
    // A full or missing log must not end the service.
    let _ = writeln!(std::io::stderr(), "fastdx-serve: {what}");
}

/// Removes the number that Rust adds to the system's message, such as "(os error 2)".
fn plain(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += part
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '-')
            .strip_prefix(')')
            .unwrap_or(part);
    }
    out
}

fn main() -> ExitCode {
    harden();
    open_many();
    let flags = Flags::parse();
    match run(flags) {
        Ok(code) => code,
        Err(what) => {
            say(&what);
            ExitCode::from(2)
        }
    }
}

/// Raises the limit on open files, and so on connections, as far as the system allows: shells often
/// set a lower one.
fn open_many() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = maximum;
    // If that is refused, keep the current limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

/// Keeps private data inside the process: neither a panic's message nor a core dump shows it.
fn harden() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map_or(String::new(), |l| format!(" at {}:{}", l.file(), l.line()));
        say(&format!("a panic was caught{place}"));
    }));
    let (current, maximum) = (Some(0), Some(0));
    let _ = setrlimit(Resource::Core, Rlimit { current, maximum });
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

fn read(flags: &Flags) -> Result<specs::Policies, String> {
    match (&flags.config, flags.epsilon) {
        (Some(path), _) => specs::Policies::read(path).map_err(|error| error.to_string()),
        (None, epsilon) => {
            let mut spec = Spec::recommended();
            spec.epsilon = epsilon.or(spec.epsilon);
            Ok(specs::Policies::of(specs::Policy {
                spec,
                allow_unchanged: flags.allow_unchanged,
                ..specs::Policy::default()
            }))
        }
    }
}

fn run(flags: Flags) -> Result<ExitCode, String> {
    let config = read(&flags)?;
    // Build policies before the ledger is opened and before anything listens.
    let policies = Policies::make(&config)?;
    if flags.check {
        return check(&policies);
    }
    let keys = flags.keys.as_deref().map(Keys::read).transpose()?;
    if flags.ledger.is_some() && keys.is_none() && flags.account_header.is_none() {
        return Err("--ledger needs --keys or --account-header: it charges accounts".into());
    }
    let ledger = match (&flags.ledger, flags.budget) {
        (Some(path), Some(budget)) => Some(Ledger::open(path, budget)?),
        _ => None,
    };
    let tls = match (&flags.tls_cert, &flags.tls_key) {
        (Some(certificates), Some(key)) => Some(tls(certificates, key)?),
        _ => None,
    };
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = flags.threads.unwrap_or_else(cores).clamp(1, 1024);
    let service = Arc::new(Service {
        policies: ArcSwapOption::empty(),
        keys,
        account_header: flags.account_header.clone(),
        ledger,
        answers: Answers::new(flags.answers_bytes, flags.answers_time)?,
        metrics: Metrics::new().map_err(|e| e.to_string())?.into(),
        room: Arc::new(Semaphore::new(flags.limits.max_requests)),
        connections: Arc::new(Semaphore::new(flags.limits.max_connections)),
        drawing: DrawingThreads::start(threads)?,
        limits: flags.limits.clone(),
        draining: AtomicBool::new(false),
    });
    service.affordable(&policies)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads);
    let runtime = runtime.enable_all().build().map_err(|e| e.to_string())?;
    let code = runtime.block_on(main_task(flags, policies, service, tls));
    // Requests that outlast the drain time are dropped.
    runtime.shutdown_background();
    code
}

/// Prints every policy's guarantee, with the measurements.
fn check(policies: &Policies) -> Result<ExitCode, String> {
    let mut refused = Ok(ExitCode::SUCCESS);
    for policy in policies.named.values() {
        let found = policy.unchanged()?;
        policy.bits()?;
        println!("{}: {}", policy.name, policy.guarantee());
        let Some(warning) = found.warning() else {
            continue;
        };
        let what = format!(
            "policies.{}: {}{warning}",
            policy.name,
            policy.without_history()
        );
        say(&format!("WARNING: {what}"));
        if found.mean > Unchanged::REFUSED_MEAN && !policy.allow_unchanged {
            let how = "allow_unchanged = true, or --allow-unchanged beside --epsilon, accepts that";
            refused = refused.and(Err(format!("{what} ({how})")));
        }
    }
    refused
}

/// Measures how often common words come back unchanged under each policy, and the bits that a release
/// tells, and prints both. This takes a while in large vocabularies, so it runs in the background.
fn say_measures(policies: &Policies) {
    for policy in policies.named.values() {
        match policy.unchanged() {
            Ok(found) => {
                let name = format!("policies.{}: {}", policy.name, policy.without_history());
                say(&format!("{name}{found}"));
                if let Some(warning) = found.warning() {
                    say(&format!("WARNING: {name}{warning}"));
                }
            }
            Err(what) => say(&what),
        }
    }
    // They take longer, so that nothing waits for them.
    for policy in policies.named.values() {
        match policy.bits() {
            Ok(found) => say(&format!("policies.{}: {found}", policy.name)),
            Err(what) => say(&what),
        }
    }
}

/// Returns a warning if other machines can reach a socket without a key, or in plain text.
fn exposed(socket: &BoundSocket, flags: &Flags) -> Option<String> {
    if !socket.is_beyond_this_machine() {
        return None;
    }
    let keys = (flags.keys.is_none()).then_some("without --keys everybody there may ask");
    let tls = (flags.tls_cert.is_none())
        .then_some("without --tls-cert everybody on the way can read the texts");
    let what: Vec<&str> = [keys, tls].into_iter().flatten().collect();
    let name = socket.name();
    (!what.is_empty()).then(|| format!("WARNING: other machines reach {name}: {}", what.join("; ")))
}

async fn main_task(
    flags: Flags,
    policies: Policies,
    service: Arc<Service>,
    tls: Option<tokio_rustls::TlsAcceptor>,
) -> Result<ExitCode, String> {
    let mut sockets = Vec::new();
    for place in &flags.listen {
        sockets.push(BoundSocket::to(place).await?);
    }
    for socket in &sockets {
        if let Some(what) = exposed(socket, &flags) {
            say(&what);
        }
        say(&format!("listening on {}", socket.name()));
    }
    let on = |kind| signal(kind).map_err(|e| e.to_string());
    let mut hangup = on(SignalKind::hangup())?;
    let mut terminate = on(SignalKind::terminate())?;
    let mut interrupt = on(SignalKind::interrupt())?;
    let (end, ended) = oneshot::channel();
    let serving = tokio::spawn(serve(service.clone(), sockets, tls, ended));
    let loading = service.clone();
    let loaded = tokio::task::spawn_blocking(move || loading.put_to_use(policies)).await;
    let loaded = loaded.map_err(|_| "the policies could not be warmed")??;
    say("ready");
    tokio::task::spawn_blocking(move || say_measures(&loaded));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => reload(&flags, &service).await,
        }
    }
    say("ending");
    service.draining.store(true, Ordering::Relaxed);
    let _ = end.send(());
    let whole = serving.await.unwrap_or(false);
    say(if whole {
        "ended"
    } else {
        "ended; some requests were broken off"
    });
    Ok(ExitCode::SUCCESS)
}

async fn reload(flags: &Flags, service: &Arc<Service>) {
    let config = read(flags);
    let loading = service.clone();
    let load = move || loading.put_to_use(loading.make(&config?)?);
    let loaded = match tokio::task::spawn_blocking(load).await {
        Ok(loaded) => loaded,
        Err(_) => Err("the policies could not be made".into()),
    };
    match loaded {
        Ok(policies) => {
            service.metrics.reloads.inc();
            say("the policies were read again");
            tokio::task::spawn_blocking(move || say_measures(&policies));
        }
        Err(what) => {
            service.metrics.reloads_refused.inc();
            say(&format!("the old policies stay: {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test of accepted policies has fewer words: the bits of all built-in words take seconds.
    #[test]
    fn only_the_flag_accepts_words_that_come_back_unchanged() {
        for (more, allowed) in [(&[][..], false), (&["--allow-unchanged"], true)] {
            let given = [&["fastdx-serve", "--epsilon", "12"], more].concat();
            let config = read(&Flags::try_parse_from(given).unwrap()).unwrap();
            let mut policies = config.policies.values();
            assert!(policies.all(|policy| policy.allow_unchanged == allowed));
        }
    }
}
