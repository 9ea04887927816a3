//! Sockets: TCP, TLS, Unix; time limits; draining.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use pin_project::pin_project;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use crate::held::{Connection, Late};

/// Maximum number of headers in a request, and their bytes.
const HEADERS: usize = 64;
const HEADER_BYTES: usize = 32 << 10;
/// Maximum number of simultaneous requests on one HTTP/2 connection.
const STREAMS: u32 = 128;
/// Bytes of a body that HTTP/2 receives before it is read. The connection's window is that of all
/// streams together, so streams without room never block those with room.
const WINDOW: u32 = 128 << 10;
/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A future that catches panics: its output is `None` after a panic.
#[pin_project]
pub struct Caught<F>(#[pin] F);

impl<F: Future> Caught<F> {
    /// Catches the panics of `inner`.
    pub fn new(inner: F) -> Self {
        Caught(inner)
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.project().0;
        // A future that panicked is not polled again, so no half-finished state is visible.
        match std::panic::catch_unwind(AssertUnwindSafe(|| inner.poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

/// The address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// HOST:PORT.
    Tcp(String),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl std::str::FromStr for ListenAddress {
    type Err = std::convert::Infallible;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        Ok(match given.strip_prefix("unix:") {
            Some(path) => ListenAddress::Unix(path.into()),
            None => ListenAddress::Tcp(given.to_owned()),
        })
    }
}

/// Time limits of connections.
#[derive(Clone, Debug)]
pub struct Times {
    /// For the head of a request to arrive, and for a TLS handshake.
    pub head: Duration,
    /// For a connection to be idle, or a client not to read its answer.
    pub idle: Duration,
    /// For requests to end after the service is told to stop.
    pub drain: Duration,
}

/// A bound socket.
pub enum BoundSocket {
    /// TCP.
    Tcp(TcpListener),
    /// A socket in the file system, removed at exit.
    Unix(UnixListener, PathBuf),
}

impl BoundSocket {
    /// Binds the address.
    ///
    /// # Errors
    /// A message if the address is in use, for example by another instance, or cannot be bound.
    pub async fn to(place: &ListenAddress) -> Result<Self, String> {
        match place {
            ListenAddress::Tcp(address) => {
                let at = |e: std::io::Error| match e.kind() {
                    std::io::ErrorKind::InvalidInput => {
                        format!("--listen must be HOST:PORT or unix:PATH, got {address}")
                    }
                    _ => format!("{address}: {e}"),
                };
                let mut last = Err(format!("{address}: it names no address"));
                for address in tokio::net::lookup_host(address).await.map_err(at)? {
                    last = bind(address).map(BoundSocket::Tcp).map_err(at);
                    if last.is_ok() {
                        break;
                    }
                }
                last
            }
            ListenAddress::Unix(path) => unix(path),
        }
    }

    /// Whether other machines may be able to reach it.
    pub fn is_beyond_this_machine(&self) -> bool {
        match self {
            BoundSocket::Tcp(socket) => {
                let address = socket.local_addr();
                address.map_or(true, |a| !a.ip().to_canonical().is_loopback())
            }
            BoundSocket::Unix(..) => false,
        }
    }

    /// The address in messages.
    pub fn name(&self) -> String {
        match self {
            BoundSocket::Tcp(socket) => socket
                .local_addr()
                .map_or_else(|e| e.to_string(), |a| a.to_string()),
            BoundSocket::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }
}

fn bind(address: std::net::SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address.is_ipv4() {
        true => tokio::net::TcpSocket::new_v4(),
        false => tokio::net::TcpSocket::new_v6(),
    }?;
    // After a restart the port can be reused at once; a second instance is still refused.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn unix(path: &Path) -> Result<BoundSocket, String> {
    let at = |e: std::io::Error| format!("{}: {e}", path.display());
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let alive = std::os::unix::net::UnixStream::connect(path).is_ok();
        if !found.file_type().is_socket() || alive {
            return Err(format!(
                "{}: it is there already, and in use",
                path.display()
            ));
        }
        // A killed instance left this file.
        std::fs::remove_file(path).map_err(at)?;
    }
    let socket = UnixListener::bind(path).map_err(at)?;
    // For the owner and the group, such as a proxy in front.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(at)?;
    Ok(BoundSocket::Unix(socket, path.to_owned()))
}

/// TLS 1.2 and 1.3 with a certificate chain and its key, both PEM.
///
/// # Errors
/// A message for a file that cannot be read or has other content.
pub fn tls(certificates: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let at = |path: &Path, what: &str| format!("{}: {what}", path.display());
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| match e {
            rustls::pki_types::pem::Error::Io(e) => at(certificates, &e.to_string()),
            _ => at(certificates, "it is no chain of certificates in PEM"),
        })?;
    if chain.is_empty() {
        return Err(at(certificates, "it holds no certificate in PEM"));
    }
    // Errors of a key do not show its content.
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| match e {
        rustls::pki_types::pem::Error::Io(e) => at(key, &e.to_string()),
        _ => at(key, "it holds no private key in PEM"),
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|_| {
            let what = format!("it does not go with the key of {}", key.display());
            at(certificates, &what)
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The service that connections call.
pub trait Serve: Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Maximum bytes of a request's body.
    fn largest_body(&self) -> usize;

    /// The counter of open connections.
    fn connections(&self) -> &AtomicU64;

    /// Answers a request.
    fn call(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Infallible>> + Send;
}

/// The data for serving connections.
struct Connections<S> {
    service: Arc<S>,
    builder: auto::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    times: Times,
    end: watch::Receiver<bool>,
    /// Closed when no connection is left.
    _open: mpsc::Sender<()>,
}

impl<S> Clone for Connections<S> {
    fn clone(&self) -> Self {
        Connections {
            service: self.service.clone(),
            builder: self.builder.clone(),
            tls: self.tls.clone(),
            times: self.times.clone(),
            end: self.end.clone(),
            _open: self._open.clone(),
        }
    }
}

/// Serves until `end` completes; then waits for requests in progress, up to the drain time. Returns
/// whether all of them ended by themselves.
pub async fn serve<S: Serve>(
    service: Arc<S>,
    sockets: Vec<BoundSocket>,
    tls: Option<TlsAcceptor>,
    times: Times,
    most: usize,
    mut end: watch::Receiver<bool>,
) -> bool {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head)
        .max_headers(HEADERS)
        .max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES as u32)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(STREAMS * WINDOW)
        .keep_alive_interval(times.idle)
        .keep_alive_timeout(times.head);
    let drain = times.drain;
    let (open, mut closed) = mpsc::channel(1);
    let connections = Connections {
        service,
        builder,
        tls,
        times,
        end: end.clone(),
        _open: open,
    };
    let room = Arc::new(Semaphore::new(most));
    let mut accepting = Vec::new();
    let mut paths = Vec::new();
    for socket in sockets {
        let (connections, room) = (connections.clone(), room.clone());
        let end = end.clone();
        if let BoundSocket::Unix(_, path) = &socket {
            paths.push(path.clone());
        }
        accepting.push(tokio::spawn(accept(socket, connections, room, end)));
    }
    let _ = end.wait_for(|end| *end).await;
    for task in accepting {
        let _ = task.await;
    }
    for path in paths {
        let _ = std::fs::remove_file(path);
    }
    drop(connections);
    tokio::time::timeout(drain, closed.recv()).await.is_ok()
}

async fn accept<S: Serve>(
    socket: BoundSocket,
    connections: Connections<S>,
    room: Arc<Semaphore>,
    mut end: watch::Receiver<bool>,
) {
    loop {
        // Without room, further connections wait in the system's queue.
        let permit = tokio::select! {
            permit = room.clone().acquire_owned() => permit,
            _ = end.wait_for(|end| *end) => return,
        };
        let Ok(permit) = permit else { return };
        let failed = tokio::select! {
            _ = end.wait_for(|end| *end) => return,
            taken = take(&socket, &connections, permit) => taken.is_err(),
        };
        if failed {
            // For example, no file descriptors are left: connections that end return some.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn take<S: Serve>(
    socket: &BoundSocket,
    connections: &Connections<S>,
    permit: OwnedSemaphorePermit,
) -> std::io::Result<()> {
    let connections = connections.clone();
    match socket {
        BoundSocket::Tcp(socket) => {
            let (stream, peer) = socket.accept().await?;
            stream.set_nodelay(true)?;
            let peer = peer.ip().to_canonical().to_string();
            tokio::spawn(async move {
                let Some(tls) = connections.tls.clone() else {
                    return connections.serve(stream, peer, permit).await;
                };
                let hello = tokio::time::timeout(connections.times.head, tls.accept(stream));
                if let Ok(Ok(stream)) = hello.await {
                    connections.serve(stream, peer, permit).await;
                }
            });
        }
        BoundSocket::Unix(socket, _) => {
            let (stream, _) = socket.accept().await?;
            tokio::spawn(async move { connections.serve(stream, String::new(), permit).await });
        }
    }
    Ok(())
}

impl<S: Serve> Connections<S> {
    async fn serve<T>(self, stream: T, peer: String, _permit: OwnedSemaphorePermit)
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let service = self.service.clone();
        service.connections().fetch_add(1, Relaxed);
        Caught::new(self.until_its_end(stream, peer)).await;
        service.connections().fetch_sub(1, Relaxed);
    }

    async fn until_its_end<T>(mut self, stream: T, peer: String)
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_read_timeout(Some(self.times.idle));
        stream.set_write_timeout(Some(self.times.idle));
        let held = Connection::new(peer, self.service.largest_body());
        let answer = {
            let (service, held) = (self.service.clone(), held.clone());
            service_fn(move |request| service.clone().call(request, held.clone()))
        };
        let stream = TokioIo::new(Box::pin(stream));
        let connection = self.builder.serve_connection(stream, answer).into_owned();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            // Errors of a connection are the client's, and nobody reads a report.
            _ = connection.as_mut() => return,
            _ = self.end.wait_for(|end| *end) => {}
            late = held.late(self.times.idle) => if late == Late::Unread {
                return;
            },
        }
        connection.as_mut().graceful_shutdown();
        held.touch();
        tokio::select! {
            _ = connection => {}
            _ = held.late(self.times.head) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Caught;

    #[tokio::test]
    async fn panics_are_caught_and_the_rest_goes_on() {
        assert_eq!(Caught::new(async { 7 }).await, Some(7));
        let broken = async {
            tokio::task::yield_now().await;
            panic!("a panic of the tests");
        };
        assert_eq!(Caught::new(broken).await, None::<()>);
    }
}
