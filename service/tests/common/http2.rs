//! A misbehaving HTTP/2 client: it sends and reads frames as a test tells it to.

#![allow(dead_code, missing_docs)] // each test file uses a part of it

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::Running;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub struct Http2 {
    stream: TcpStream,
    next: u32,
}

/// A received frame.
pub struct Frame {
    pub kind: u8,
    /// Whether it is the last frame of its stream.
    pub ends: bool,
    pub payload: Vec<u8>,
}

impl Http2 {
    /// Connects; each stream of answers may have `window` bytes.
    pub fn connect(service: &Running, window: u32) -> Self {
        let stream = service.connect();
        let mut client = Http2 { stream, next: 1 };
        client.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let window = [&[0, 4][..], &window.to_be_bytes()].concat();
        client.send(SETTINGS, 0, 0, &window).unwrap();
        // Before that, the connection accepts little.
        while client.read(Duration::from_secs(30)).unwrap().kind != WINDOW_UPDATE {}
        client
    }

    fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub fn send(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> std::io::Result<()> {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.raw(&[&head, payload].concat())
    }

    /// Sends a request with a body and its length; returns the number of its stream.
    pub fn post(&mut self, path: &str, body: &[u8]) -> u32 {
        self.ask("POST", path, body)
    }

    /// [`post`](Self::post) by another method.
    pub fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> u32 {
        let length = body.len().to_string();
        let all = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "x"),
            (":path", path),
            ("content-length", &*length),
        ];
        let mut headers = Vec::new();
        for (name, value) in all {
            // A literal without an index: short lengths take one byte.
            headers.push(0);
            for text in [name, value] {
                assert!(text.len() < 127);
                headers.push(text.len() as u8);
                headers.extend_from_slice(text.as_bytes());
            }
        }
        let stream = self.next;
        self.next += 2;
        self.send(HEADERS, END_HEADERS, stream, &headers).unwrap();
        self.send(DATA, END_STREAM, stream, body).unwrap();
        stream
    }

    /// Sends a PING; an error if the connection has ended.
    pub fn ping(&mut self) -> std::io::Result<()> {
        self.send(PING, 0, 0, b"12345678")
    }

    /// Waits up to `time` for the next frame. If the connection has ended, the error is
    /// `UnexpectedEof` or a reset.
    pub fn read(&mut self, time: Duration) -> std::io::Result<Frame> {
        self.stream.set_read_timeout(Some(time))?;
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload)?;
        Ok(Frame {
            kind: head[3],
            ends: head[4] & END_STREAM != 0,
            payload,
        })
    }

    /// Sends PINGs until the connection ends, at most for `time`; returns the kinds of the received
    /// frames if it ended.
    pub fn ping_until_it_ends(&mut self, time: Duration) -> Option<Vec<u8>> {
        let start = std::time::Instant::now();
        let mut kinds = Vec::new();
        while start.elapsed() < time {
            if self.ping().is_err() {
                return Some(kinds);
            }
            loop {
                match self.read(Duration::from_millis(100)) {
                    Ok(frame) => kinds.push(frame.kind),
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(_) => return Some(kinds),
                }
            }
        }
        None
    }
}
