//! Estimates word frequencies from many outputs: the maximum likelihood, by the iterative Bayesian
//! update.
//!
//! Let o be the shares of the outputs. Expectation maximisation (Agrawal and Aggarwal 2001, "On the
//! design and quantification of privacy preserving data mining algorithms") maps frequencies x to x
//! ∘ K(o / Kᵀx). Each round is at least as likely as the one before. One round takes one pass over
//! K: a row K\[w,·\] gives the new x_w and its part of the next Kᵀx.
//!
//! The likeliest frequencies also fit the noise. So held-out outputs choose the number of rounds.
//! One half of the documents is fitted, and the fit to all stops after the round at which the other
//! half is likeliest.

use super::Channel;
use crate::support::error::{Error, Result};
use crate::support::parallel::{Control, for_all, install, map_all};
use crate::support::simd::vectorised;

/// Maximum number of rounds.
const ROUNDS: usize = 100;
/// Number of rounds without a gain on the held-out outputs after which the search stops.
const PATIENCE: usize = 3;
/// Number of parts that rows are divided into, for any number of threads: sums of floats must not
/// depend on it.
const PARTS: usize = 32;
/// Rows that are read together: they share one pass over the sums of outputs.
const ROWS_PER_PASS: usize = 4;

/// Estimated frequencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Frequencies {
    /// The frequency of each known word; sums to 1.
    pub words: Vec<f64>,
    /// The frequency of unknown words among those that an output replaces.
    pub unknown: f64,
    /// Number of rounds.
    pub rounds: usize,
}

impl Channel {
    /// Estimates the frequencies of words from counts of each output, in one half of the documents and in the
    /// other. Begins at the frequencies `start`, where a word at 0 stays, and `unknown`, that of unknown words:
    /// 0 if outputs hide none. `memory` bytes of the law are kept between rounds, the rest is recomputed in
    /// each. `control` counts rounds.
    ///
    /// # Errors
    /// [`Error::Parameter`] for counts or a start that do not fit, no outputs, a law that fails;
    /// [`Error::Interrupted`].
    pub fn frequencies(
        &self,
        counts: [&[f64]; 2],
        start: &[f64],
        unknown: f64,
        memory: usize,
        control: &Control,
    ) -> Result<Frequencies> {
        self.check_one_law()?;
        let start = self.prior(Some(start))?;
        let words = self.words();
        let whole = |counts: &&[f64]| {
            counts.len() == words && counts.iter().all(|c| *c >= 0.0 && c.is_finite())
        };
        let all: Vec<f64> = counts[0]
            .iter()
            .zip(counts[1])
            .map(|(a, b)| a + b)
            .collect();
        if !counts.iter().all(whole) || all.iter().sum::<f64>() <= 0.0 {
            let expected = format!("two lists of {words} numbers, at least 0, and not all 0");
            return Err(Error::parameter("counts", expected, "others"));
        }
        if !(0.0..1.0).contains(&unknown) {
            return Err(Error::parameter(
                "unknown",
                "at least 0 and below 1",
                unknown,
            ));
        }
        let matrix = Matrix::of(self, &start, unknown > 0.0, &all, memory, control)?;
        let mut begin: Vec<f64> = matrix
            .inputs
            .iter()
            .map(|&w| start[w as usize] * (1.0 - unknown))
            .collect();
        if matrix.unknown.is_some() {
            begin.push(unknown);
        }
        let [fitted, held_out] = counts.map(|counts| matrix.seen(counts));
        let rounds = matrix.rounds_for(&begin, &fitted, &held_out, control)?;
        let x = matrix.fitted(begin, &matrix.seen(&all), rounds, control)?;
        let mut found = Frequencies {
            words: vec![0.0; words],
            unknown: matrix.unknown.as_ref().map_or(0.0, |_| x[x.len() - 1]),
            rounds,
        };
        let known: f64 = x.iter().sum::<f64>() - found.unknown;
        for (&w, p) in matrix.inputs.iter().zip(&x) {
            found.words[w as usize] = if known > 0.0 { p / known } else { 0.0 };
        }
        Ok(found)
    }
}

/// The rows of K of all words that may be inputs, at the observed outputs.
struct Matrix<'a> {
    channel: &'a Channel,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// Whether each input is released unchanged.
    shown: Vec<bool>,
    /// The law of an unknown word's output.
    unknown: Option<Vec<f32>>,
    /// The cached rows: those of the first inputs.
    kept: Vec<f32>,
    rows_kept: usize,
}

impl<'a> Matrix<'a> {
    fn of(
        channel: &'a Channel,
        start: &[f64],
        unknown: bool,
        seen: &[f64],
        memory: usize,
        control: &Control,
    ) -> Result<Self> {
        let positive = |numbers: &[f64]| -> Vec<u32> {
            let ids = (0u32..).zip(numbers);
            ids.filter(|(_, n)| **n > 0.0).map(|(id, _)| id).collect()
        };
        let (inputs, outputs) = (positive(start), positive(seen));
        let mut shown = vec![false; start.len()];
        channel
            .shown()
            .iter()
            .for_each(|&id| shown[id as usize] = true);
        let gathered = |law: &[f64]| outputs.iter().map(|&y| law[y as usize] as f32).collect();
        let unknown = unknown.then(|| gathered(&channel.unknown_law()));
        let rows_kept = (memory / (4 * outputs.len().max(1))).min(inputs.len());
        let mut matrix = Matrix {
            channel,
            shown: inputs.iter().map(|&w| shown[w as usize]).collect(),
            unknown,
            kept: Vec::new(),
            rows_kept,
            inputs,
            outputs,
        };
        let width = matrix.outputs.len();
        let mut kept = vec![0.0; rows_kept * width];
        install(rows_kept * start.len(), 0, || {
            let parts = kept.chunks_mut(64 * width).enumerate();
            for_all(parts, |(part, rows)| {
                control.check()?;
                let from = 64 * part;
                matrix.write(from..from + rows.len() / width, rows)
            })
        })??;
        matrix.kept = kept;
        Ok(matrix)
    }

    /// Computes some rows.
    fn write(&self, rows: std::ops::Range<usize>, out: &mut [f32]) -> Result<()> {
        let width = self.outputs.len();
        let mut into = out.chunks_exact_mut(width);
        let words = self.channel.words();
        let ids = &self.inputs[rows.clone()];
        let mut at = rows.start;
        self.channel.source.each_law(ids, words, |w, law, _, _| {
            let Some(row) = into.next() else { return };
            for (p, &y) in row.iter_mut().zip(&self.outputs) {
                *p = match self.shown[at] {
                    true => f32::from(u8::from(y == w)),
                    false => law[y as usize] as f32,
                };
            }
            at += 1;
        })
    }

    /// The shares of the outputs.
    fn seen(&self, counts: &[f64]) -> Vec<f64> {
        let total: f64 = counts.iter().sum();
        let shares = self.outputs.iter().map(|&y| counts[y as usize] / total);
        shares.map(|o| if total > 0.0 { o } else { 0.0 }).collect()
    }

    /// Computes Kᵀx. With the shares `o` and `p` = Kᵀx, also advances x by a round: x ∘ K(o / p).
    fn pass(
        &self,
        x: &mut [f64],
        by: Option<(&[f64], &[f64])>,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let width = self.outputs.len();
        let ratios: Option<Vec<f64>> = by.map(|(o, p)| {
            let ratio = |(o, p): (&f64, &f64)| if *o > 0.0 { o / p } else { 0.0 };
            o.iter().zip(p).map(ratio).collect()
        });
        let ratios = ratios.as_deref();
        let (known, last) = x.split_at_mut(self.inputs.len());
        let each = known.len().div_ceil(PARTS).next_multiple_of(64);
        let parts: Vec<Vec<f64>> = install(known.len() * width, 0, || {
            map_all(known.chunks_mut(each).enumerate(), |(part, x)| {
                let mut sums = vec![0.0; width];
                let mut fresh = Vec::new();
                for (block, x) in x.chunks_mut(64).enumerate() {
                    control.check()?;
                    let from = part * each + 64 * block;
                    let rows = self.rows(from..from + x.len(), &mut fresh)?;
                    let fours = rows
                        .chunks(ROWS_PER_PASS * width)
                        .zip(x.chunks_mut(ROWS_PER_PASS));
                    fours.for_each(|(rows, x)| step(rows, x, ratios, &mut sums));
                }
                Ok(sums)
            })
        })??;
        let mut sums = vec![0.0; width];
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(a, b)| *a += b);
        }
        if let Some(law) = &self.unknown {
            step(law, last, ratios, &mut sums);
        }
        Ok(sums)
    }

    /// Returns some rows, cached or recomputed.
    fn rows<'b>(
        &'b self,
        rows: std::ops::Range<usize>,
        fresh: &'b mut Vec<f32>,
    ) -> Result<&'b [f32]> {
        let width = self.outputs.len();
        if rows.end <= self.rows_kept {
            return Ok(&self.kept[rows.start * width..rows.end * width]);
        }
        fresh.resize(rows.len() * width, 0.0);
        self.write(rows, fresh)?;
        Ok(fresh)
    }

    /// The number of rounds of a fit to some outputs after which others are likeliest.
    fn rounds_for(
        &self,
        begin: &[f64],
        fitted: &[f64],
        held_out: &[f64],
        control: &Control,
    ) -> Result<usize> {
        let mut x = begin.to_vec();
        let mut p = self.pass(&mut x, None, control)?;
        let likelihood = |p: &[f64]| -> f64 {
            let each = held_out.iter().zip(p).filter(|(h, _)| **h > 0.0);
            each.map(|(h, p)| h * p.ln()).sum()
        };
        let (mut best, mut at) = (likelihood(&p), 0);
        for round in 1..=ROUNDS {
            p = self.pass(&mut x, Some((fitted, &p)), control)?;
            control.advance(1);
            let now = likelihood(&p);
            if now > best {
                (best, at) = (now, round);
            } else if round >= at + PATIENCE {
                break;
            }
        }
        Ok(at)
    }

    /// Frequencies after some rounds.
    fn fitted(
        &self,
        begin: Vec<f64>,
        seen: &[f64],
        rounds: usize,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let mut x = begin;
        if rounds == 0 {
            return Ok(x);
        }
        let mut p = self.pass(&mut x, None, control)?;
        for _ in 0..rounds {
            p = self.pass(&mut x, Some((seen, &p)), control)?;
            control.advance(1);
        }
        Ok(x)
    }
}

vectorised! {
    /// Advances x of up to four rows by a round, if there are ratios, and adds x_w·K\[w,·\] to the
    /// sums.
    fn step = step_portable(rows: &[f32], x: &mut [f64], ratios: Option<&[f64]>, sums: &mut [f64])
}

#[inline(always)]
fn step_portable(rows: &[f32], x: &mut [f64], ratios: Option<&[f64]>, sums: &mut [f64]) {
    let width = sums.len();
    if let Some(ratios) = ratios {
        for (row, x) in rows.chunks_exact(width).zip(&mut *x) {
            *x *= dot(row, ratios);
        }
    }
    if let ([a, b, c, d], true) = (&*x, rows.len() == ROWS_PER_PASS * width) {
        let (first, second) = rows.split_at(2 * width);
        let ((ra, rb), (rc, rd)) = (first.split_at(width), second.split_at(width));
        let each = sums.iter_mut().zip(ra).zip(rb).zip(rc).zip(rd);
        for ((((sum, ka), kb), kc), kd) in each {
            *sum +=
                a * f64::from(*ka) + b * f64::from(*kb) + (c * f64::from(*kc) + d * f64::from(*kd));
        }
        return;
    }
    for (row, x) in rows.chunks_exact(width).zip(x) {
        let each = sums.iter_mut().zip(row);
        each.for_each(|(sum, k)| *sum += *x * f64::from(*k));
    }
}

#[inline(always)]
fn dot(row: &[f32], ratios: &[f64]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let ((a, rest), (b, last)) = (row.as_chunks::<LANES>(), ratios.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for l in 0..LANES {
            sums[l] += f64::from(a[l]) * b[l];
        }
    }
    let end: f64 = rest.iter().zip(last).map(|(a, b)| f64::from(*a) * b).sum();
    sums.iter().sum::<f64>() + end
}
