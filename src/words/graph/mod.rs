//! Words and the shortest paths between them: a hierarchy itself as the metric.
//!
//! **A metric in exact arithmetic.** Weights are multiples of one step, a power of two. Sums along
//! paths are therefore exact from either end, and the proof has no rounding. Other weights are
//! rounded *down* to multiples. This only shrinks distances, so a guarantee proved with them also
//! holds for the given weights.
//!
//! **Few distances.** With unit weights there are a few dozen distances and thousands of words.
//! TEM's law is then drawn in two steps: a distance, by the number of words there, and one of these
//! words. Graphs with many distances use whole rows.
//!
//! **Any metric.** [`WordGraph::from_distances`] takes a table: an edge between any two words.

mod edges;
mod file;
mod hypernyms;
mod table;

pub use edges::{Edges, ThirdColumn};
pub use table::MAX_TABLE_WORDS;

use std::sync::Arc;

use crate::cover::Cover;
use crate::guarantee::Certificate;
use crate::support::adjacency::{Adjacency, NONE};
use crate::support::arithmetic::gcd;
use crate::support::error::{Error, Result};
use crate::support::parallel::Control;
use crate::words::claims::Claims;
use crate::words::space::MetricSpace;
use crate::words::vocabulary::Vocabulary;
use table::Table;

/// The largest number of distances that are few.
const MAX_FEW: u64 = 4096;
/// The largest distance allowed, so that sums of distances stay finite.
const LONGEST: f64 = 1e290;

/// A finite metric space: words, and the lengths of shortest paths in an undirected graph.
///
/// ```
/// use std::sync::Arc;
/// use fastdx::words::graph::{Edges, WordGraph};
/// use fastdx::{Mechanism, MetricSpace, Randomness, Tem};
/// let mut edges = Edges::new();
/// for (word, hypernym) in [("dog", "animal"), ("cat", "animal"), ("animal", "thing")] {
///     edges.push(word, hypernym).unwrap();
/// }
/// let graph = WordGraph::new(&edges, None, None)?;
/// assert_eq!(graph.distance(0, 2), 2.0); // dog, animal, cat
/// let tem = Tem::new(Arc::new(graph), 2.0, Default::default(), Randomness::new(None))?;
/// assert_eq!(tem.guarantee().metric, "shortest-path");
/// # Ok::<(), fastdx::Error>(())
/// ```
#[derive(Clone)]
pub struct WordGraph {
    /// The words, nodes 0 to V - 1. Paths may pass through further nodes.
    vocabulary: Vocabulary,
    /// Each edge once, the smaller id first, ascending; lengths in steps.
    edges: Vec<(u32, u32, u64)>,
    graph: Adjacency<u64>,
    step: f64,
    /// The distance between words without a path, in steps.
    far: u64,
    /// The component of every node.
    components: Vec<u32>,
    /// The way of every node to the root of its tree, in a graph without cycles.
    ups: Option<Arc<[Up]>>,
    few_distances: bool,
    /// An edge between any two words, and no shorter way.
    table: Option<Arc<Table>>,
    claims: Claims,
}

/// The way of a node to the root of its tree.
#[derive(Clone, Copy, Default)]
struct Up {
    parent: u32,
    depth: u32,
    steps: u64,
}

impl std::fmt::Debug for WordGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordGraph")
            .field("words", &self.vocabulary.len())
            .field("edges", &self.edges.len())
            .finish_non_exhaustive()
    }
}

impl WordGraph {
    /// Creates the graph of `edges` with their weights; without weights, each edge has weight 1.
    /// Among several edges between the same words the shortest counts. With `only`, only these
    /// words are inputs and outputs, in this order; paths still pass through the others.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no word, a word of `only` without an edge, a weight that is
    /// negative or not finite, or a number of weights other than one per edge.
    pub fn new(edges: &Edges, weights: Option<&[f64]>, only: Option<&[&str]>) -> Result<Self> {
        if edges.words().is_empty() {
            return Err(Error::parameter("edges", "at least one", 0));
        }
        let names = edges.words();
        let (vocabulary, (nodes, count)) = match only {
            None => {
                let nodes = (0..names.len() as u32).collect();
                (Vocabulary::new(names)?, (nodes, names.len()))
            }
            Some(only) => (Vocabulary::new(only)?, numbered(edges, only)?),
        };
        let weights = weights.unwrap_or(edges.weights());
        let pairs = edges.pairs();
        if !weights.is_empty() && weights.len() != pairs.len() {
            let expected = format!("one number an edge, {}", pairs.len());
            return Err(Error::parameter("weights", expected, weights.len()));
        }
        if let Some(at) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            let got = format!("{} for edge {at} (counted from 0)", weights[at]);
            return Err(Error::parameter("weights", "at least 0 and finite", got));
        }
        let step = step_of(weights, count);
        let length = |i: usize| match weights.get(i) {
            // A quotient by a power of two is exact, except for the smallest floats.
            Some(weight) => (weight / step).floor() as u64,
            None => 1,
        };
        let edges = pairs.iter().enumerate();
        let edges = edges.map(|(i, &(u, v))| {
            let (u, v) = (nodes[u as usize], nodes[v as usize]);
            (u.min(v), u.max(v), length(i))
        });
        let graph = Self::from_parts(vocabulary, count, edges.collect(), step);
        match graph.is_bounded() {
            true => Ok(graph),
            false => Err(Error::parameter(
                "weights",
                format!("small enough for distances of at most {LONGEST:e}"),
                format!("a path of {}", graph.far as f64 * step),
            )),
        }
    }

    /// Creates the complete graph with these distances: a row a word, V² numbers, any metric. Checks
    /// the triangle inequality for all words. Numbers are rounded up to multiples of a power of two,
    /// less than 2⁻²⁹ of the largest.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no word or more than [`MAX_TABLE_WORDS`], and for distances that
    /// are no metric, which names the words; [`Error::DuplicateWord`]; [`Error::Shape`] for a number
    /// of distances other than V²; [`Error::Interrupted`].
    pub fn from_distances(words: &[&str], distances: &[f64], control: &Control) -> Result<Self> {
        let graph = Self::from_checked(words, distances)?;
        if let Some(table) = &graph.table {
            table.check(&graph.vocabulary, control)?;
        }
        Ok(graph)
    }

    /// The same without a check of the triangle inequality, for distances that were checked before.
    pub(crate) fn from_checked(words: &[&str], distances: &[f64]) -> Result<Self> {
        let vocabulary = Vocabulary::new(words)?;
        let table = Table::new(&vocabulary, distances)?;
        Ok(WordGraph {
            vocabulary,
            edges: Vec::new(),
            graph: Adjacency::new(words.len(), &[]),
            step: table.step,
            far: table.longest.into(),
            components: vec![0; words.len()],
            ups: None,
            few_distances: false,
            table: Some(Arc::new(table)),
            claims: Claims::default(),
        })
    }

    /// Whether it was made from a table of distances, which no file holds.
    pub fn is_table(&self) -> bool {
        self.table.is_some()
    }

    /// Creates a graph from edges whose lengths in steps leave room for sums: less than 2⁶¹ /
    /// nodes.
    fn from_parts(
        vocabulary: Vocabulary,
        nodes: usize,
        mut edges: Vec<(u32, u32, u64)>,
        step: f64,
    ) -> Self {
        edges.sort_unstable();
        edges.dedup_by_key(|e| (e.0, e.1));
        let graph = Adjacency::new(nodes, &edges);
        let longest = edges.iter().map(|e| e.2).max().unwrap_or(0);
        let unit = edges.iter().fold(0, |a, e| gcd(a, e.2)).max(1);
        let mut components = vec![u32::MAX; nodes];
        let mut ups = vec![Up::default(); nodes];
        let mut roots = Vec::new();
        for root in 0..nodes as u32 {
            if components[root as usize] != u32::MAX {
                continue;
            }
            let component = roots.len() as u32;
            let mut todo = vec![root];
            components[root as usize] = component;
            while let Some(node) = todo.pop() {
                let above = ups[node as usize];
                for &(next, length) in graph.of(node) {
                    if components[next as usize] == u32::MAX {
                        components[next as usize] = component;
                        ups[next as usize] = Up {
                            parent: node,
                            depth: above.depth + 1,
                            steps: above.steps + length,
                        };
                        todo.push(next);
                    }
                }
            }
            roots.push(root);
        }
        let forest = edges.len() + roots.len() == nodes;
        let widest = widest(&graph, &roots, forest);
        WordGraph {
            vocabulary,
            edges,
            graph,
            step,
            far: widest + longest.max(unit),
            components,
            ups: forest.then(|| ups.into()),
            few_distances: widest / unit < MAX_FEW,
            table: None,
            claims: Claims::default(),
        }
    }

    /// Whether sums of distances stay finite.
    fn is_bounded(&self) -> bool {
        self.far as f64 * self.step <= LONGEST
    }

    /// The number of words.
    #[allow(clippy::len_without_is_empty)] // there is always a word
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The number of edges, each counted once.
    pub fn edges(&self) -> usize {
        match self.is_table() {
            true => self.len() * (self.len() - 1) / 2,
            false => self.edges.len(),
        }
    }

    /// The distance between words that no path joins. It exceeds every distance along a path: it is
    /// the largest diameter of a component (on graphs with cycles, an upper bound of at most twice
    /// that) plus the longest edge.
    pub fn unreachable_distance(&self) -> Option<f64> {
        let apart = (1..self.len() as u32).any(|word| !self.joined(0, word));
        apart.then_some(self.far as f64 * self.step)
    }

    /// Returns the same graph with one more certificate.
    pub(crate) fn certified(&self, certificate: Certificate) -> Self {
        let mut graph = self.clone();
        graph.claims.certificates.push(certificate);
        graph
    }

    /// Returns the same graph with a cover that its file will hold, or without one.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a cover of other words or edges.
    pub fn with_cover(mut self, cover: Option<Arc<Cover>>) -> Result<Self> {
        if let Some(cover) = &cover {
            cover.check_space(&self)?;
        }
        self.claims.cover = cover;
        Ok(self)
    }

    /// The cover that was loaded from its file or set by [`with_cover`](Self::with_cover).
    pub fn cover(&self) -> Option<&Arc<Cover>> {
        self.claims.cover.as_ref()
    }

    fn joined(&self, a: u32, b: u32) -> bool {
        self.components[a as usize] == self.components[b as usize]
    }

    /// The distance in steps.
    fn steps(&self, a: u32, b: u32) -> u64 {
        if !self.joined(a, b) {
            return self.far;
        }
        match (&self.table, &self.ups) {
            (Some(table), _) => table.steps(a as usize, b as usize).into(),
            (None, Some(ups)) => steps_in_tree(ups, a, b),
            (None, None) => self.graph.distances(a, Some(b))[b as usize],
        }
    }
}

/// The distance in steps of two nodes of one tree, by way of the node where their ways up meet.
fn steps_in_tree(ups: &[Up], mut a: u32, mut b: u32) -> u64 {
    let up = |node: u32| ups[node as usize];
    let both = up(a).steps + up(b).steps;
    while a != b {
        match up(a).depth < up(b).depth {
            true => b = up(b).parent,
            false => a = up(a).parent,
        }
    }
    both - 2 * up(a).steps
}

/// The step that lengths are multiples of. It is the largest power of two that divides all weights,
/// if the sum along any path then fits.
fn step_of(weights: &[f64], words: usize) -> f64 {
    let largest = weights.iter().fold(0.0f64, |a, &w| a.max(w));
    if largest == 0.0 {
        return 1.0;
    }
    // Lengths below 2^(61 - log₂ V): sums of V of them fit, and twice that.
    let bits = 61 - i32::try_from(usize::BITS - words.leading_zeros()).unwrap_or(61);
    let finest = largest.log2().floor() as i32 + 1 - bits;
    let finest = 2f64.powi(finest.clamp(-1000, 1000));
    if weights.iter().any(|w| (w / finest).fract() != 0.0) {
        return finest;
    }
    let zeros = weights.iter().filter(|w| **w > 0.0);
    let zeros = zeros.map(|w| ((w / finest) as u64).trailing_zeros()).min();
    finest * (1u64 << zeros.unwrap_or(0)) as f64
}

/// The node of every word of the edges, and the number of nodes. Nodes are numbered with the words
/// of `only` first, in their order, then the others that have edges.
fn numbered(edges: &Edges, only: &[&str]) -> Result<(Vec<u32>, usize)> {
    let mut nodes = vec![u32::MAX; edges.words().len()];
    for (word, node) in only.iter().zip(0u32..) {
        let Some(at) = edges.id(word) else {
            let got = format!("{word:?}, which has no edge");
            return Err(Error::parameter("words", "words of the edges", got));
        };
        nodes[at as usize] = node;
    }
    let mut count = only.len();
    for at in edges.pairs().iter().flat_map(|&(u, v)| [u, v]) {
        if nodes[at as usize] == u32::MAX {
            nodes[at as usize] = count as u32;
            count += 1;
        }
    }
    Ok((nodes, count))
}

/// The largest distance within a component, or an upper bound of at most twice that.
fn widest(graph: &Adjacency<u64>, roots: &[u32], forest: bool) -> u64 {
    // One array for all components: each search resets the entries that it touched.
    let mut distances = vec![NONE; graph.nodes()];
    let mut furthest = |from: u32| {
        let mut best = (0, from);
        for word in graph.search(from, None, &mut distances) {
            let distance = std::mem::replace(&mut distances[word as usize], NONE);
            if distance != NONE {
                best = best.max((distance, word));
            }
        }
        best
    };
    let lone = |&&root: &&u32| graph.of(root).is_empty();
    let widths = roots.iter().filter(|root| !lone(root)).map(|&root| {
        let (there, end) = furthest(root);
        let (across, _) = furthest(end);
        // On a tree, the word farthest from any word is an end of a longest path.
        match forest {
            true => across,
            false => 2 * there.min(across),
        }
    });
    widths.max().unwrap_or(0)
}

impl MetricSpace for WordGraph {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn metric_name(&self) -> &'static str {
        match self.is_table() {
            true => "given",
            false => "shortest-path",
        }
    }

    fn distance(&self, a: u32, b: u32) -> f64 {
        self.steps(a, b) as f64 * self.step
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = self.vocabulary.hashed();
        hash.update(&self.step.to_le_bytes());
        for &(u, v, length) in &self.edges {
            hash.update(bytemuck::cast_slice(&[u, v]));
            hash.update(&length.to_le_bytes());
        }
        if let Some(table) = &self.table {
            hash.update(bytemuck::cast_slice(table.all()));
        }
        hash.digest()
    }

    fn distances(&self, a: u32, out: &mut [f64]) {
        if let Some(table) = &self.table {
            let row = out.iter_mut().zip(table.row(a as usize));
            return row.for_each(|(out, steps)| *out = f64::from(*steps) * self.step);
        }
        let far = self.far;
        for (out, steps) in out.iter_mut().zip(self.graph.distances(a, None)) {
            *out = if steps == NONE { far } else { steps } as f64 * self.step;
        }
    }

    fn certificates(&self) -> &[Certificate] {
        &self.claims.certificates
    }

    fn with_certificate(&self, certificate: Certificate) -> Option<Arc<dyn MetricSpace>> {
        Some(Arc::new(self.certified(certificate)))
    }

    fn distances_by_row(&self) -> bool {
        !self.is_table()
    }

    fn farthest(&self) -> f64 {
        if self.is_table() {
            return self.far as f64 * self.step;
        }
        let mut row = vec![0.0; self.len()];
        self.distances(0, &mut row);
        row.into_iter().fold(0.0, f64::max)
    }

    fn has_few_distances(&self) -> bool {
        self.few_distances
    }
}
