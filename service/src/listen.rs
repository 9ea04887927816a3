//! Sockets: TCP, TLS, Unix; time limits; draining.
//!
//! The service speaks HTTP/1.1 alone. A client of HTTP/2 can ask many times on one connection and read none
//! of the answers, which takes limits of its own; one of HTTP/1.1 waits for the end of each answer.

use std::net::IpAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::join_all;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use crate::routes::routes;
use crate::service::Service;

/// Maximum number of headers in a request, and their bytes.
const HEADERS: usize = 64;
const HEADER_BYTES: usize = 32 << 10;
/// Time for requests to end after the service is told to stop.
const DRAIN: Duration = Duration::from_secs(9);

/// The address of a client; none on a socket in the file system.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub Option<IpAddr>);

pub enum BoundSocket {
    Tcp(TcpListener),
    /// A socket in the file system, removed at exit.
    Unix(UnixListener, PathBuf),
}

impl BoundSocket {
    /// Binds HOST:PORT or unix:PATH.
    pub async fn to(place: &str) -> Result<Self, String> {
        if let Some(path) = place.strip_prefix("unix:") {
            return unix(path.as_ref());
        }
        // After a restart the port can be reused at once; a second instance is still refused.
        let bound = TcpListener::bind(place).await;
        bound.map(BoundSocket::Tcp).map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidInput => {
                format!("--listen must be HOST:PORT or unix:PATH, got {place}")
            }
            _ => format!("{place}: {e}"),
        })
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

    /// The next connection, and the address of its client.
    async fn accept(&self) -> std::io::Result<(Box<dyn Stream>, Peer)> {
        Ok(match self {
            BoundSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                stream.set_nodelay(true)?;
                (Box::new(stream), Peer(Some(peer.ip().to_canonical())))
            }
            BoundSocket::Unix(socket, _) => (Box::new(socket.accept().await?.0), Peer(None)),
        })
    }
}

/// The bytes of a connection: TCP, TLS or a socket in the file system.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

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
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// State that all connections share.
struct Connections {
    service: Arc<Service>,
    app: TowerToHyperService<Router>,
    http: http1::Builder,
    tls: Option<TlsAcceptor>,
}

/// Serves until `end`; then waits for requests in progress, for a limited time. Returns whether all of
/// them ended by themselves.
pub async fn serve(
    service: Arc<Service>,
    sockets: Vec<BoundSocket>,
    tls: Option<TlsAcceptor>,
    end: oneshot::Receiver<()>,
) -> bool {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(service.limits.head_time)
        .max_headers(HEADERS)
        .max_buf_size(HEADER_BYTES);
    let connections = Arc::new(Connections {
        app: TowerToHyperService::new(routes(service.clone())),
        service,
        http,
        tls,
    });
    let graceful = GracefulShutdown::new();
    let accepting = sockets.iter().map(|s| connections.accept(s, &graceful));
    tokio::select! {
        _ = join_all(accepting) => {}
        _ = end => {}
    }
    for socket in sockets {
        if let BoundSocket::Unix(_, path) = &socket {
            let _ = std::fs::remove_file(path);
        }
    }
    tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_ok()
}

impl Connections {
    async fn accept(self: &Arc<Self>, socket: &BoundSocket, graceful: &GracefulShutdown) {
        loop {
            let Ok((stream, peer)) = socket.accept().await else {
                // For example, no file descriptors are left: connections that end return some.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            // Without room this connection waits, and further ones in the system's queue.
            let room = self.service.connections.clone().acquire_owned().await;
            let Ok(room) = room else { return };
            let connection = self.clone().serve(stream, peer, room, graceful.watcher());
            tokio::spawn(connection);
        }
    }

    async fn serve(
        self: Arc<Self>,
        mut stream: Box<dyn Stream>,
        peer: Peer,
        _room: OwnedSemaphorePermit,
        watcher: Watcher,
    ) {
        let limits = &self.service.limits;
        if let (Some(tls), Peer(Some(_))) = (&self.tls, peer) {
            match tokio::time::timeout(limits.head_time, tls.accept(stream)).await {
                Ok(Ok(decrypted)) => stream = Box::new(decrypted),
                _ => return,
            }
        }
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.idle_time));
        let answer = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            self.app.call(request)
        });
        let stream = TokioIo::new(Box::pin(stream));
        // Errors of a connection are the client's, and nobody reads a report.
        let _ = watcher
            .watch(self.http.serve_connection(stream, answer))
            .await;
    }
}
