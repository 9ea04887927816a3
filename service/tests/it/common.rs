//! A service that runs beside the test, and a client that can misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use fastdx::Embedding;

/// A running service; killed when it is dropped.
pub struct Running {
    pub child: Child,
    pub address: String,
    log: Arc<Mutex<String>>,
    folder: Option<tempfile::TempDir>,
}

/// A received answer.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the body is complete.
    pub whole: bool,
}

impl Got {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON of each line.
    pub fn lines(&self) -> Vec<serde_json::Value> {
        let text = self.text();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }
}

/// The head of a request whose lines come in chunks.
pub const CHUNKED_LINES: &str = "POST /v1/privatize HTTP/1.1\r\nhost: x\r\n\
    content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
/// A line in a chunk of its own.
pub const TEA: &str = "6\r\n\"tea\"\n\r\n";

fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastdx-serve"));
    command
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command that should end by itself; returns its status and its output.
pub fn ended(flags: &[&str]) -> (ExitStatus, String, String) {
    let out = command(flags).output().expect("run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status, text(&out.stdout), text(&out.stderr))
}

impl Running {
    /// Starts the service with one policy, named `default`, at ε = 3 on the [few](FEW) words.
    pub fn english(more: &[&str]) -> Self {
        Self::with("[policies.default]\nepsilon = 3.0\n", more)
    }

    /// Starts the service with a file of policies on the [few](FEW) words.
    pub fn configured(text: &str) -> Self {
        Self::with(text, &[])
    }

    /// The same with further options.
    pub fn with(text: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = few(&folder.path().join("policies.toml"), text);
        let mut service = Self::start(&[&["--config", &file], more].concat());
        service.folder = Some(folder);
        service
    }

    /// Writes another file of policies in the place of the first, and has it read.
    pub fn configure(&self, text: &str) {
        let folder = self.folder.as_ref().unwrap();
        few(&folder.path().join("policies.toml"), text);
        self.signal(libc::SIGHUP);
    }

    /// Starts the service on a free port, and waits until it is ready.
    pub fn start(flags: &[&str]) -> Self {
        Self::of(command(&[&["--listen", "127.0.0.1:0"], flags].concat()))
    }

    /// Starts the service from a shell that runs a command before.
    pub fn after(before: &str, flags: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_fastdx-serve");
        let line = format!("{before}; exec {program} --epsilon 3 --listen 127.0.0.1:0 {flags}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).stderr(Stdio::piped());
        Self::of(shell)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("start");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let kept = log.clone();
        let mut next = move || -> Option<String> {
            let line = lines.next()?.ok()?;
            *kept.lock().unwrap() += &format!("{line}\n");
            Some(line)
        };
        let mut address = String::new();
        loop {
            let line = next().unwrap_or_else(|| panic!("{}", log.lock().unwrap()));
            if let Some(place) = line.strip_prefix("fastdx-serve: listening on ")
                && !place.starts_with("unix:")
            {
                address = place.to_owned();
            }
            if line.contains(": ready") {
                break;
            }
        }
        std::thread::spawn(move || while next().is_some() {});
        Running {
            child,
            address,
            log,
            folder: None,
        }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log contains `what` at least this many times.
    pub fn says(&self, what: &str, times: usize) {
        wait(|| self.log().matches(what).count() >= times);
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain system call on a child of this test.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Connects and sends the beginning of a request.
    pub fn begin(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes.as_ref()).unwrap();
        stream
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("connect");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Sends raw bytes, and reads an answer, if there is one.
    pub fn raw(&self, bytes: &[u8]) -> Option<Got> {
        let mut stream = self.connect();
        // The service may close the connection during the write.
        let _ = stream.write_all(bytes);
        read(&mut BufReader::new(stream))
    }

    /// Sends raw bytes and closes its side: a client that broke off.
    pub fn cut(&self, bytes: &[u8]) -> Option<Got> {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        read(&mut BufReader::new(stream))
    }

    /// A value from `/metrics`, by name and labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let found = lines.find(|(found, _)| *found == name);
        let (_, value) = found.unwrap_or_else(|| panic!("{name}: {text}"));
        value.parse().unwrap()
    }

    pub fn get(&self, path: &str) -> Got {
        self.ask("GET", path)
    }

    /// Sends a request without a body.
    pub fn ask(&self, method: &str, path: &str) -> Got {
        let end = "HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let request = format!("{method} {path} {end}");
        self.raw(request.as_bytes()).expect("an answer")
    }

    pub fn post(&self, path: &str, headers: &str, body: &[u8]) -> Got {
        self.raw(&posted(path, headers, body)).expect("an answer")
    }

    pub fn privatize(&self, body: impl ToString) -> Got {
        self.send("", body.to_string().as_bytes())
    }

    /// Sends texts under headers, each of which ends with CRLF.
    pub fn send(&self, headers: &str, body: &[u8]) -> Got {
        self.post("/v1/privatize", headers, body)
    }

    /// Sends lines.
    pub fn lines(&self, headers: &str, body: &str) -> Got {
        let kind = "content-type: application/x-ndjson\r\n";
        self.send(&format!("{headers}{kind}"), body.as_bytes())
    }

    /// Tells the service to stop, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        self.child.wait().expect("wait")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request with a body; each header in `headers` ends with CRLF.
pub fn posted(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Checks that a text holds a part.
pub fn holds(text: impl AsRef<str>, part: &str) {
    let text = text.as_ref();
    assert!(text.contains(part), "{part:?} in {text}");
}

/// Waits for a condition; gives up after a long time.
pub fn wait(mut until: impl FnMut() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "it did not come about"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads an answer; `None` if the connection ends before the answer's head does.
pub fn read(stream: &mut impl BufRead) -> Option<Got> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let status = head.get(9..12)?.parse().ok()?;
    let header = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|value| value.trim().to_owned())
    };
    let mut body = Vec::new();
    let mut whole = true;
    if let Some(length) = header("content-length:") {
        body = vec![0; length.parse().ok()?];
        whole = stream.read_exact(&mut body).is_ok();
    } else if header("transfer-encoding:").is_some() {
        whole = loop {
            let mut size = String::new();
            let _ = stream.read_line(&mut size);
            let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
                break false;
            };
            let mut piece = vec![0; size + 2];
            if stream.read_exact(&mut piece).is_err() {
                break false;
            }
            if size == 0 {
                break true;
            }
            body.extend_from_slice(&piece[..size]);
        };
    }
    Some(Got {
        status,
        head,
        body,
        whole,
    })
}

pub fn write(path: &Path, text: &str) -> String {
    std::fs::write(path, text).expect("write");
    path.to_str().expect("UTF-8").to_owned()
}

/// The file of the first 2,000 built-in words, of which everything is computed at once.
static FEW: LazyLock<&str> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/few.fdx");
    let few = Embedding::default_english().unwrap().first(2000).unwrap();
    few.save(Path::new(path)).unwrap();
    path
});

/// Writes a file of policies. Each policy whose ε has a line of its own takes the [few](FEW) words.
pub fn few(path: &Path, text: &str) -> String {
    let index = format!("\nindex = {:?}\nepsilon", *FEW);
    write(path, &text.replace("\nepsilon", &index))
}
