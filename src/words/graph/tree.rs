//! Counts and picks the words of a forest by their distance from a word, without a row of all
//! distances: a centroid decomposition (Jordan 1869).
//!
//! Every word lies in the parts of at most 1 + log₂ V centroids. Two words w and y share some of
//! these; exactly one centroid c separates them, and there d(w,y) = d(w,c) + d(c,y). So the words
//! at distance r from w are found at the centroids c of w. They are the words of c's part at
//! distance r - d(w,c) from c, except those in the branch of w.

use super::paths::Adjacency;

const NOBODY: u32 = u32::MAX;

/// The centroids of a forest. Distances are in units.
#[derive(Clone, Debug, Default)]
pub(super) struct CentroidTree {
    parts: Vec<Part>,
    /// The centroids of every word, outermost first, itself last: part, distance.
    path_starts: Vec<u32>,
    paths: Vec<(u32, u32)>,
}

/// The part of the forest that a centroid belongs to.
#[derive(Clone, Debug)]
struct Part {
    /// The part's words by (distance from the centroid, branch): word and branch. A branch is the
    /// part in which the word lies after the centroid is removed.
    words: Vec<(u32, u32)>,
    /// The start of each distance from the centroid in `words`, and the end.
    starts: Vec<u32>,
    /// Number of the part's words at each distance from the centroid of the enclosing part.
    above: Vec<u32>,
}

impl Part {
    fn at(&self, distance: u32) -> &[(u32, u32)] {
        match self.starts.get(distance as usize..distance as usize + 2) {
            Some(&[start, end]) => &self.words[start as usize..end as usize],
            _ => &[],
        }
    }
}

impl CentroidTree {
    /// Creates the decomposition of a graph without cycles. Nodes from `words` on are passed
    /// through but not counted. Returns `None` if distances vary so much that counting words at
    /// each would take far more than V log V memory.
    pub(super) fn new(graph: &Adjacency, unit: u64, words: usize) -> Option<Self> {
        let count = graph.words();
        let mut parts: Vec<Part> = Vec::with_capacity(count);
        let mut paths: Vec<Vec<(u32, u32)>> = vec![Vec::new(); count];
        let mut taken = vec![false; count];
        let mut sizes = vec![0u32; count];
        // A word of each remaining part, and the enclosing part.
        let mut seen = vec![false; count];
        let mut tasks: Vec<(u32, u32)> = Vec::new();
        for root in 0..count as u32 {
            if seen[root as usize] {
                continue;
            }
            let reached = walk(graph, root, &taken, unit);
            reached.iter().for_each(|r| seen[r.0 as usize] = true);
            tasks.push((root, NOBODY));
        }
        let mut entries_left = 8 * count * (1 + count.max(1).ilog2() as usize) + 4096;
        while let Some((start, around)) = tasks.pop() {
            let centroid = centroid(graph, start, &taken, &mut sizes, unit);
            let this = parts.len() as u32;
            let reached = walk(graph, centroid, &taken, unit);
            let mut above = Vec::new();
            for &(word, _, distance) in &reached {
                let counted = u32::from((word as usize) < words);
                if let Some(&(part, outer)) = paths[word as usize].last() {
                    debug_assert_eq!(part, around);
                    let outer = outer as usize;
                    if above.len() <= outer {
                        above.resize(outer + 1, 0);
                    }
                    above[outer] += counted;
                }
                paths[word as usize].push((this, distance));
            }
            let furthest = reached.iter().map(|r| r.2).max().unwrap_or(0) as usize;
            entries_left = entries_left.checked_sub(furthest + above.len())?;
            taken[centroid as usize] = true;
            for &(next, _) in graph.of(centroid) {
                if !taken[next as usize] {
                    tasks.push((next, this));
                }
            }
            let inside = reached.into_iter().filter(|r| (r.0 as usize) < words);
            let words = inside.map(|(w, _, d)| (w, d)).collect();
            parts.push(Part {
                words,
                starts: Vec::new(),
                above,
            });
        }
        // All parts are known now, so branches are too: a word's branch is the next part on its
        // path.
        for (part, this) in parts.iter_mut().zip(0u32..) {
            let mut words: Vec<(u32, u32, u32)> = part
                .words
                .iter()
                .map(|&(word, distance)| {
                    let path = &paths[word as usize];
                    // Paths ascend: a part is created before the parts inside it.
                    let level = path.partition_point(|p| p.0 < this);
                    (distance, path.get(level + 1).map_or(NOBODY, |p| p.0), word)
                })
                .collect();
            words.sort_unstable();
            let furthest = words.last().map_or(0, |w| w.0);
            part.starts = (0..=furthest + 1)
                .map(|d| words.partition_point(|w| w.0 < d) as u32)
                .collect();
            part.words = words.into_iter().map(|(_, b, w)| (w, b)).collect();
        }
        let mut path_starts = vec![0];
        for path in &paths {
            path_starts.push(path_starts[path_starts.len() - 1] + path.len() as u32);
        }
        Some(CentroidTree {
            parts,
            path_starts,
            paths: paths.concat(),
        })
    }

    fn path(&self, word: u32) -> &[(u32, u32)] {
        let range = self.path_starts[word as usize]..self.path_starts[word as usize + 1];
        &self.paths[range.start as usize..range.end as usize]
    }

    /// The distance of two words, if a path joins them.
    pub(super) fn distance(&self, a: u32, b: u32) -> Option<u32> {
        // The last centroid that both share separates them.
        let shared = self.path(a).iter().zip(self.path(b));
        let shared = shared.take_while(|(a, b)| a.0 == b.0);
        shared.last().map(|(a, b)| a.1 + b.1)
    }

    /// Counts the words at every distance from a word, up to the largest.
    pub(super) fn counts(&self, word: u32, counts: &mut Vec<u32>) {
        counts.clear();
        let path = self.path(word);
        for (i, &(part, distance)) in path.iter().enumerate() {
            let starts = &self.parts[part as usize].starts;
            let reach = distance as usize + starts.len() - 1;
            if counts.len() < reach {
                counts.resize(reach, 0);
            }
            let counts = &mut counts[distance as usize..];
            for (count, bounds) in counts.iter_mut().zip(starts.windows(2)) {
                *count += bounds[1] - bounds[0];
            }
            // The word's own branch is counted at an inner centroid.
            if let Some(&(branch, _)) = path.get(i + 1) {
                for (count, own) in counts.iter_mut().zip(&self.parts[branch as usize].above) {
                    *count -= own;
                }
            }
        }
        while counts.last() == Some(&0) {
            counts.pop();
        }
    }

    /// Returns the word with number `index` among those at a distance from a word.
    pub(super) fn pick(&self, word: u32, distance: u32, mut index: u32) -> Option<u32> {
        let path = self.path(word);
        for (i, &(part, there)) in path.iter().enumerate() {
            let Some(rest) = distance.checked_sub(there) else {
                continue;
            };
            let words = self.parts[part as usize].at(rest);
            let own = match path.get(i + 1) {
                Some(&(branch, _)) => {
                    let start = words.partition_point(|w| w.1 < branch);
                    start..words.partition_point(|w| w.1 <= branch)
                }
                None => 0..0,
            };
            let others = words.len() - own.len();
            if (index as usize) < others {
                let skipped = if (index as usize) < own.start {
                    0
                } else {
                    own.len()
                };
                return Some(words[index as usize + skipped].0);
            }
            index -= others as u32;
        }
        None
    }
}

/// Returns the words that `start` reaches without passing a taken one: word, predecessor, distance.
fn walk(graph: &Adjacency, start: u32, taken: &[bool], unit: u64) -> Vec<(u32, u32, u32)> {
    let mut words = vec![(start, NOBODY, 0)];
    let mut at = 0;
    while let Some(&(word, from, distance)) = words.get(at) {
        at += 1;
        for &(next, length) in graph.of(word) {
            if next != from && !taken[next as usize] {
                words.push((next, word, distance + (length / unit) as u32));
            }
        }
    }
    words
}

/// Finds the word whose removal leaves no part with more than half of the words.
fn centroid(graph: &Adjacency, start: u32, taken: &[bool], sizes: &mut [u32], unit: u64) -> u32 {
    let words = walk(graph, start, taken, unit);
    words.iter().for_each(|w| sizes[w.0 as usize] = 1);
    let half = words.len() as u32 / 2;
    let mut best = start;
    for &(word, from, _) in words.iter().rev() {
        let size = sizes[word as usize];
        // The first from the end with more than half of the words: each of its branches has at most
        // half.
        if size > half {
            best = word;
            break;
        }
        if from != NOBODY {
            sizes[from as usize] += size;
        }
    }
    best
}
