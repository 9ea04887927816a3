//! A batch job: one text per line, from standard input to standard output.
//!
//! ```sh
//! cargo run --release --example batch -- 6 < texts.txt > private.txt
//! ```
//!
//! The argument is ε, per unit of Euclidean distance. The guarantee goes to standard error. Memory
//! use does not grow with the input, if lines are of limited length.

use std::error::Error;
use std::io::{BufRead, BufWriter, Write, stdin, stdout};
use std::sync::Arc;

use fastdx::cover::offensive;
use fastdx::text::{Policy, TextPrivatizer};
use fastdx::{Control, Embedding, Randomness, Tem, WordMetric};

/// Texts per call: enough for all threads.
const TEXTS: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let epsilon: f64 = match std::env::args().nth(1) {
        Some(written) => written.parse()?,
        None => return Err("ε is missing: batch EPSILON".into()),
    };
    let embedding = Embedding::default_english()?;
    let vocabulary = WordMetric::vocabulary(&embedding);
    let unwanted: Vec<u32> = offensive()
        .iter()
        .filter_map(|w| vocabulary.id(w))
        .collect();
    let tem = Tem::new(
        Arc::new(embedding),
        epsilon,
        Default::default(),
        Randomness::new(None),
    )?
    .excluding(&unwanted)?;
    let private = TextPrivatizer::new(Arc::new(tem), Policy::default())?;
    eprintln!("{}", private.guarantee());

    let control = Control::new();
    let mut out = BufWriter::new(stdout().lock());
    let mut lines = stdin().lock().lines();
    loop {
        let texts: Vec<String> = lines.by_ref().take(TEXTS).collect::<Result<_, _>>()?;
        if texts.is_empty() {
            break;
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for text in private.privatize_texts(&texts, &control)?.0 {
            writeln!(out, "{text}")?;
        }
    }
    Ok(out.flush()?)
}
