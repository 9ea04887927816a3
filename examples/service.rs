//! A minimal service: one text per line over TCP, one private text per line back.
//!
//! ```sh
//! cargo run --release --example service -- 2.6 127.0.0.1:7070
//! echo "A cup of coffee, please!" | nc -N 127.0.0.1 7070
//! ```
//!
//! A service with limits, keys, a ledger and metrics is `service/` (docs/service.md). Neither a
//! text nor an error in one is ever printed.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use fastdx::policy::{Parts, Spaces};
use fastdx::text::TextPrivatizer;
use fastdx::{Control, Spec};

/// Maximum bytes of a text; a client that sends more is cut off.
const LONGEST: u64 = 1 << 16;
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(epsilon), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("two arguments: EPSILON ADDRESS".into());
    };
    let spec = Spec {
        epsilon: Some(epsilon.parse()?),
        ..Spec::recommended()
    };
    let built = spec.build(Parts::default(), &mut Spaces::default(), &Control::new())?;
    // Shared by all threads: draws of two threads never use the same randomness.
    let private = Arc::new(built.text);
    let listener = TcpListener::bind(address)?;
    eprintln!("{}\n{}", listener.local_addr()?, private.guarantee());
    for stream in listener.incoming() {
        let (stream, private) = (stream?, Arc::clone(&private));
        std::thread::spawn(move || answer(&stream, &private));
    }
    Ok(())
}

/// Answers a connection until it ends, is silent for too long, or sends invalid text.
fn answer(stream: &TcpStream, private: &TextPrivatizer) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut lines, mut out) = (BufReader::new(stream), stream);
    loop {
        let mut text = String::new();
        (&mut lines).take(LONGEST).read_line(&mut text)?;
        let Some(text) = text.strip_suffix('\n') else {
            return Ok(());
        };
        let released = private.privatize(text).map_err(std::io::Error::other)?;
        writeln!(out, "{released}")?;
    }
}
