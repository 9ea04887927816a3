//! `cargo run --release -p fastdx-bench`: the nanoseconds that each step of a private text takes, beside
//! the least that its memory traffic costs on the same machine.
//!
//! One thread, the built-in vocabulary, texts of 200 words by 1/(rank + 2.7), a million words a run. Every
//! mechanism has drawn the texts before. Steps are differences of whole runs:
//!
//! - *find words*: the tokeniser by itself.
//! - *look up*: words and ids, less the tokeniser.
//! - *put together*: text by a mechanism that returns every word, less the two above.
//! - *draw*: the ids by themselves.
//! - *the rest*: text by the mechanism, less all of the above.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use fastdx::policy::{Parts, Spaces};
use fastdx::support::parallel::pool_of;
use fastdx::support::random::Key;
use fastdx::text::{Policy, TextPrivatizer, word_ids, words};
use fastdx::{
    Control, Embedding, Guarantee, Mechanism, MetricSpace, Randomness, Result, Spec, Tem,
};
use rand::{Rng, RngExt};

const TEXTS: usize = 5_000;
const WORDS: usize = 200;
const RUNS: usize = 7;

/// Returns every word as it is: text without draws. All else is the Tem's.
struct Identity(Tem);

impl Mechanism for Identity {
    fn space(&self) -> &dyn MetricSpace {
        self.0.space()
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee {
            void: Some("it returns every word"),
            ..self.0.guarantee()
        }
    }
    fn epsilon(&self) -> f64 {
        f64::INFINITY
    }
    fn with_epsilon(&self, epsilon: f64) -> Result<Arc<dyn Mechanism>> {
        Mechanism::with_epsilon(&self.0, epsilon)
    }
    fn excluding(&self, ids: &[u32]) -> Result<Arc<dyn Mechanism>> {
        Mechanism::excluding(&self.0, ids)
    }
    fn excluded(&self) -> Vec<u32> {
        Vec::new()
    }
    fn randomness(&self) -> &Randomness {
        self.0.randomness()
    }
    fn draw(&self, ids: &[u32], _: &Key, out: &mut [u32], _: &Control) -> Result<()> {
        out.copy_from_slice(ids);
        Ok(())
    }
}

/// Returns the median nanoseconds per item of a call for `items` items.
fn nanoseconds(items: usize, mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed().as_secs_f64() * 1e9 / items as f64
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[RUNS / 2]
}

/// Measures a read at a random place of `bytes` bytes. Reads do not wait for each other.
fn random_read(bytes: usize, rng: &mut impl Rng) -> f64 {
    let table = vec![1u32; bytes / 4];
    let places: Vec<u32> = (0..1 << 20)
        .map(|_| rng.random_range(0..table.len() as u32))
        .collect();
    let sum = || {
        places
            .iter()
            .fold(0, |sum: u32, &i| sum.wrapping_add(table[i as usize]))
    };
    nanoseconds(places.len(), || _ = black_box(sum()))
}

fn main() {
    pool_of(1).expect("a thread").install(measure);
}

fn measure() {
    let embedding = Arc::new(Embedding::default_english().expect("built in"));
    let vocabulary = embedding.vocabulary();
    let mut rng = Randomness::new(Some(1))
        .next_key()
        .expect("a seed")
        .stream(0);
    let mut sums = Vec::new();
    let mut total = 0.0;
    for rank in 1..=vocabulary.len() {
        total += 1.0 / (rank as f64 + 2.7);
        sums.push(total);
    }
    let ids: Vec<u32> = (0..TEXTS * WORDS)
        .map(|_| {
            let u = rng.random::<f64>() * total;
            sums.partition_point(|&sum| sum < u).min(sums.len() - 1) as u32
        })
        .collect();
    let joined = |ids: &[u32]| {
        let words: Vec<&str> = ids.iter().map(|&id| vocabulary.word(id)).collect();
        words.join(" ")
    };
    let texts: Vec<String> = ids.chunks(WORDS).map(joined).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let per_word = bytes as f64 / ids.len() as f64;

    let count = ids.len();
    let tokenise = nanoseconds(count, || {
        texts
            .iter()
            .for_each(|text| _ = black_box(words(text).count()));
    });
    let found = nanoseconds(count, || {
        let ids = |text| {
            word_ids(vocabulary, text)
                .filter_map(|(_, id)| id)
                .map(u64::from)
        };
        texts
            .iter()
            .for_each(|text| _ = black_box(ids(text).sum::<u64>()));
    });
    let control = Control::new();
    let of_texts = |mechanism: Arc<dyn Mechanism>| {
        let private = TextPrivatizer::new(mechanism, Policy::default()).unwrap();
        let draw = || _ = black_box(private.privatize_texts(&texts, &control).expect("texts"));
        for _ in 0..4 {
            draw();
        }
        nanoseconds(count, draw)
    };
    let os = || Randomness::new(None);
    let tem = || Tem::new(embedding.clone(), 3.0, Default::default(), os()).expect("Tem");
    let same = of_texts(Arc::new(Identity(tem())));

    // The least: bytes read, read and written, and reads at random places.
    let read = nanoseconds(count, || {
        let sum = |text: &str| text.bytes().map(u64::from).sum::<u64>();
        texts.iter().for_each(|text| _ = black_box(sum(text)));
    });
    let copied = nanoseconds(count, || {
        let copies: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
        black_box(copies);
    });
    let index = random_read(vocabulary.len() * 32, &mut rng);
    // Draws of one word stand together, so its table is in the cache; outputs go to their places.
    let tables = random_read(vocabulary.len() * 4, &mut rng) + random_read(2 << 20, &mut rng);
    let bits = {
        let mut words = vec![0u64; count];
        let key = Randomness::new(None).next_key().expect("the system");
        let mut stream = key.stream(0);
        nanoseconds(count, || {
            stream.fill_bytes(bytemuck::cast_slice_mut(&mut words))
        })
    };

    println!("| ns a word | find words | look up | put together | draw | the rest | all | least |");
    println!("|---|---|---|---|---|---|---|---|");
    let least = read + index + copied + tables + bits;
    println!(
        "| at least, by memory | {read:.1} | {index:.1} | {copied:.1} | {:.1} | – | {least:.0} | |",
        tables + bits
    );
    let built = Spec::recommended().build(Parts::default(), &mut Spaces::default(), &control);
    let recommended = built.expect("built in").text.mechanism().clone();
    let mechanisms: [(&str, Arc<dyn Mechanism>); 2] = [
        ("Tem, ε = 3", Arc::new(tem())),
        ("the recommended policy", recommended),
    ];
    for (name, mechanism) in mechanisms {
        let all = of_texts(mechanism.clone());
        let draw = nanoseconds(count, || {
            _ = black_box(mechanism.privatize_ids(&ids).expect("ids"))
        });
        let rest = all - same - draw;
        println!(
            "| {name} | {tokenise:.0} | {:.0} | {:.0} | {draw:.0} | {rest:.0} | {all:.0} | {:.1} × |",
            found - tokenise,
            same - found,
            all / least
        );
    }
    println!(
        "\nA word has {per_word:.1} bytes with the space behind it. *At least*: to read the text; a \
         random place of the vocabulary's index; to copy the text; a random place of a word's table and \
         one of the outputs, and 64 random bits. *The rest* is below 0 where steps that run together share what they read."
    );
}
