//! Builds and searches graphs with the crate hnsw_rs.
//!
//! **Points.** hnsw_rs copies what is inserted and compares slices of one type. Here the slices are
//! bytes: a word is its id in [`WORD`] bytes. A point is its coordinates, 4 or 8 bytes each, so its
//! length never equals [`WORD`]. [`Words`] looks up the vector of an id, so vectors stand in memory
//! once, or in the mapped file.
//!
//! **Building.** Words are inserted one after the other: parallel inserts build a different graph
//! each time and lose links. Some words still cannot be reached from the entry, such as copies of
//! each other or words with few links. These are then linked to a near word that can be reached.
//!
//! **Loading.** hnsw_rs creates a graph by inserting, or from two files of its own format. So
//! [`Searcher::new`] writes these files from our checked lists into a temporary folder, and hnsw_rs
//! reads them. The layout is that of hnsw_rs 0.3.5, which is why `Cargo.toml` pins that version.

use std::fs::{DirBuilder, File};
use std::io::{BufWriter, Write};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;

use hnsw_rs::anndists::dist::distances::Distance;
use hnsw_rs::hnsw::Hnsw as Graph;
use hnsw_rs::hnswio::HnswIo;

use super::{HnswParameters, LAYERS, Lists, Rows, mark_reached};
use crate::error::{Error, Result};
use crate::metric::{Metric, squared_f32};
use crate::parallel::{Control, install};
use crate::random::uniform_below;

/// Bytes of a word: its id and one more, a length that no coordinates have.
const WORD: usize = 5;

fn bytes_of(id: u32) -> [u8; WORD] {
    let [a, b, c, d] = id.to_le_bytes();
    [a, b, c, d, 0]
}

/// The distance function that hnsw_rs calls, for words and points.
struct Words {
    rows: Rows,
    /// Whether squares of distances neither underflow nor overflow in f32.
    squared: bool,
}

impl Words {
    fn new(rows: Rows) -> Self {
        let largest = || rows.vectors.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let squared = rows.metric == Metric::Euclidean && (1e-10..1e15).contains(&largest());
        Words { rows, squared }
    }

    /// The row of a word; `None` for coordinates.
    fn row(&self, data: &[u8]) -> Option<&[f32]> {
        match *data {
            [a, b, c, d, _] => Some(self.rows.row(u32::from_le_bytes([a, b, c, d]))),
            _ => None,
        }
    }

    fn between(&self, a: &[f32], b: &[f32]) -> f32 {
        match self.squared {
            true => squared_f32(a, b),
            false => self.rows.metric.distance(a, b) as f32,
        }
    }

    /// Points have f32 coordinates if squares are used.
    fn from(&self, point: &[u8], row: &[f32]) -> f32 {
        if point.len() == size_of_val(row) {
            let single = bytemuck::try_cast_slice(point);
            single.map_or(f32::INFINITY, |single| squared_f32(single, row))
        } else {
            let double = bytemuck::try_cast_slice::<u8, f64>(point);
            let metric = self.rows.metric;
            double.map_or(f32::INFINITY, |double| metric.distance(double, row) as f32)
        }
    }
}

impl Distance<u8> for Words {
    fn eval(&self, a: &[u8], b: &[u8]) -> f32 {
        let distance = match (self.row(a), self.row(b)) {
            (Some(a), Some(b)) => self.between(a, b),
            (None, Some(row)) => self.from(a, row),
            (Some(row), None) => self.from(b, row),
            (None, None) => f32::INFINITY,
        };
        // hnsw_rs panics on NaN: treat a point outside the metric's space as far from every word.
        if distance >= 0.0 {
            distance
        } else {
            f32::INFINITY
        }
    }
}

/// A graph of hnsw_rs, with the reader that it borrows from if it was loaded.
struct LoadedGraph {
    graph: ManuallyDrop<Graph<'static, u8, Words>>,
    _reader: Option<Arc<HnswIo>>,
}

impl Drop for LoadedGraph {
    /// hnsw_rs drops its graphs with rayon. Outside our pool this would use rayon's global pool,
    /// which does not survive a fork.
    fn drop(&mut self) {
        // SAFETY: this is `drop`, after which nothing uses the field.
        let mut graph = Some(unsafe { ManuallyDrop::take(&mut self.graph) });
        if install(1, 0, || drop(graph.take())).is_err() {
            std::mem::forget(graph);
        }
    }
}

pub(super) fn require() -> Result<()> {
    Ok(())
}

/// Builds a graph of the words; returns its lists.
pub(super) fn build(rows: &Rows, parameters: HnswParameters, control: &Control) -> Result<Lists> {
    control.check()?;
    let words = rows.vectors.len() / rows.dim;
    check_size(words)?;
    let HnswParameters {
        m,
        ef_construction,
        seed,
    } = parameters;
    let graph = Graph::new(m, words, LAYERS, ef_construction, Words::new(rows.clone()));
    let loaded = LoadedGraph {
        graph: ManuallyDrop::new(graph),
        _reader: None,
    };
    let mut order: Vec<u32> = (0..words as u32).collect();
    let mut rng = crate::Randomness::new(Some(seed)).next_key()?.stream(0);
    for i in (1..words).rev() {
        order.swap(i, uniform_below(&mut rng, i as u32 + 1) as usize);
    }
    for id in order {
        control.check()?;
        loaded.graph.insert_slice((&bytes_of(id), id as usize));
        control.advance(1);
    }
    let (entry, mut layers) = lists(&loaded.graph, words);
    repair(&loaded.graph, entry, &mut layers[0], ef_construction);
    Ok(flat(entry, layers))
}

/// hnsw_rs counts words in an i32.
fn check_size(words: usize) -> Result<()> {
    match i32::try_from(words) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooLarge {
            what: "the words of an HNSW graph".into(),
            needed: words as u64,
            limit: i32::MAX as u64,
        }),
    }
}

/// The neighbours of every word by layer, lowest layer first.
type Layers = Vec<Vec<Vec<u32>>>;

/// The entry and the lists of a graph. Above the lowest layer, only lists that a search can reach
/// are kept.
fn lists(graph: &Graph<'static, u8, Words>, words: usize) -> (u32, Layers) {
    let index = graph.get_point_indexation();
    let top = usize::from(graph.get_max_level_observed());
    let mut layers = vec![vec![Vec::new(); words]; top + 1];
    for point in (0..=top).flat_map(|layer| index.get_layer_iterator(layer)) {
        let near = point.get_neighborhood_id();
        for (layer, near) in layers.iter_mut().zip(near) {
            let ids = near.iter().map(|near| near.get_origin_id() as u32);
            layer[point.get_origin_id()] = ids.collect();
        }
    }
    // The entry is the first inserted word of the highest layer.
    let first = index.get_layer_iterator(top).next();
    let entry = first.map_or(0, |point| point.get_origin_id() as u32);
    let mut reached = vec![false; words];
    reached[entry as usize] = true;
    for layer in layers[1..].iter_mut().rev() {
        let starts: Vec<u32> = (0..words as u32)
            .filter(|&id| reached[id as usize])
            .collect();
        for start in starts {
            mark_reached(&mut reached, start, |id| &layer[id as usize]);
        }
        for (list, _) in layer
            .iter_mut()
            .zip(&reached)
            .filter(|(_, reached)| !**reached)
        {
            list.clear();
        }
    }
    (entry, layers)
}

/// Links each word that cannot be reached from the entry to the nearest reachable word that the
/// graph finds, or else to the entry.
fn repair(graph: &Graph<'static, u8, Words>, entry: u32, lowest: &mut [Vec<u32>], ef: usize) {
    let mut reached = vec![false; lowest.len()];
    mark_reached(&mut reached, entry, |id| &lowest[id as usize]);
    for id in 0..lowest.len() as u32 {
        if reached[id as usize] {
            continue;
        }
        // A search starts where the upper layers lead it, possibly at a word that cannot be
        // reached.
        let found = graph.search(&bytes_of(id), ef, ef);
        let mut near = found.iter().map(|near| near.get_origin_id());
        let from = near.find(|&near| reached[near]).unwrap_or(entry as usize);
        lowest[from].push(id);
        lowest[id as usize].push(from as u32);
        mark_reached(&mut reached, id, |id| &lowest[id as usize]);
    }
}

fn flat(entry: u32, layers: Layers) -> Lists {
    let words = layers[0].len();
    let (mut starts, mut neighbors) = (Vec::new(), Vec::new());
    for layer in layers {
        for near in layer {
            starts.push(neighbors.len() as u64);
            neighbors.extend(near);
        }
        starts.push(neighbors.len() as u64);
    }
    Lists {
        entry,
        words,
        starts: starts.into(),
        neighbors: neighbors.into(),
    }
}

/// A graph that hnsw_rs searches.
pub(crate) struct Searcher {
    loaded: LoadedGraph,
    rows: Rows,
    entry: u32,
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Searcher").finish_non_exhaustive()
    }
}

impl Searcher {
    /// Creates hnsw_rs's graph from checked lists.
    pub(super) fn new(rows: Rows, parameters: HnswParameters, lists: &Lists) -> Result<Self> {
        check_size(lists.words)?;
        let folder = Folder::new()?;
        let words = Words::new(rows.clone());
        let dump = Dump {
            words: &words,
            parameters,
            lists,
        };
        folder.write("graph", |out| dump.graph(out))?;
        folder.write("data", |out| dump.data(out))?;
        let reader = Arc::new(HnswIo::new(&folder.path, NAME));
        // SAFETY: the graph borrows the reader for as long as it lives. `LoadedGraph` drops the
        // graph first and keeps the reader until then, in an `Arc`, which does not move its
        // contents.
        let forever: &'static HnswIo = unsafe { &*Arc::as_ptr(&reader) };
        let graph = forever.load_hnsw_with_dist(words).map_err(|e| Error::Io {
            path: folder.path.clone(),
            source: std::io::Error::other(e.to_string()),
        })?;
        let loaded = LoadedGraph {
            graph: ManuallyDrop::new(graph),
            _reader: Some(reader),
        };
        let entry = lists.entry;
        Ok(Searcher {
            loaded,
            rows,
            entry,
        })
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(super) fn entry(&self) -> u32 {
        self.entry
    }

    /// Calls `take` with up to `ef` words that the graph finds for a point.
    pub(super) fn candidates(&self, point: &[u8], ef: usize, mut take: impl FnMut(u32)) {
        let found = self.loaded.graph.search(point, ef, ef);
        found
            .iter()
            .for_each(|near| take(near.get_origin_id() as u32));
    }
}

/// The graph's files are NAME.hnsw.graph and NAME.hnsw.data.
const NAME: &str = "fastdx";

/// A temporary folder that only this process uses.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Result<Self> {
        let unique = getrandom::u64().map_err(|e| Error::System {
            what: "entropy",
            reason: e.to_string(),
        })?;
        let path = std::env::temp_dir().join(format!("fastdx-{unique:016x}"));
        #[cfg_attr(not(unix), allow(unused_mut))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(Error::io(&path))?;
        Ok(Folder { path })
    }

    fn write(
        &self,
        what: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = self.path.join(format!("{NAME}.hnsw.{what}"));
        let attempt = || {
            let mut out = BufWriter::with_capacity(1 << 20, File::create_new(&path)?);
            write(&mut out)?;
            out.flush()
        };
        attempt().map_err(Error::io(&path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Writes the files that hnsw_rs 0.3.5 loads a graph from (its `hnswio.rs`), in the machine's byte
/// order.
///
/// hnsw_rs reads a word's layer only at the entry, for the number of layers; for other words it is
/// part of a name. So all words except the entry are written with the lowest layer, whatever lists
/// they have.
struct Dump<'a> {
    words: &'a Words,
    parameters: HnswParameters,
    lists: &'a Lists,
}

impl Dump<'_> {
    const DESCRIPTION: u32 = 0x002a_6779;
    const LAYER: u32 = 0x000a_676f;
    const POINT: u32 = 0x000a_678f;
    const DATA: u32 = 0xa67f_0000;
    /// Neighbours are also identified by layer and index.
    const FULL: u8 = 1;

    fn top(&self) -> usize {
        self.lists.layers() - 1
    }

    /// The layer of a word and its index in that layer.
    fn place(&self, id: u32) -> (u8, i32) {
        let (entry, top) = (self.lists.entry, self.top());
        match id.cmp(&entry) {
            std::cmp::Ordering::Equal if top > 0 => (top as u8, 0),
            std::cmp::Ordering::Greater if top > 0 => (0, id as i32 - 1),
            _ => (0, id as i32),
        }
    }

    fn write_name(&self, out: &mut impl Write, id: u32) -> std::io::Result<()> {
        let (layer, place) = self.place(id);
        out.write_all(&(id as usize).to_ne_bytes())?;
        out.write_all(&[layer])?;
        out.write_all(&place.to_ne_bytes())
    }

    /// The words layer by layer.
    fn layers(&self) -> impl Iterator<Item = Vec<u32>> {
        let ids = 0..self.lists.words as u32;
        (0..LAYERS).map(move |layer| {
            let here = |id: &u32| usize::from(self.place(*id).0) == layer;
            match layer == 0 || layer == self.top() {
                true => ids.clone().filter(here).collect(),
                false => Vec::new(),
            }
        })
    }

    fn graph(&self, out: &mut impl Write) -> std::io::Result<()> {
        let HnswParameters {
            m, ef_construction, ..
        } = self.parameters;
        out.write_all(&Self::DESCRIPTION.to_ne_bytes())?;
        out.write_all(&[Self::FULL, m as u8])?;
        out.write_all(&1f64.to_ne_bytes())?;
        out.write_all(&[LAYERS as u8])?;
        for number in [ef_construction, self.lists.words, WORD] {
            out.write_all(&number.to_ne_bytes())?;
        }
        for name in [std::any::type_name::<Words>(), std::any::type_name::<u8>()] {
            out.write_all(&name.len().to_ne_bytes())?;
            out.write_all(name.as_bytes())?;
        }
        out.write_all(&[LAYERS as u8])?;
        for layer in self.layers() {
            out.write_all(&Self::LAYER.to_ne_bytes())?;
            out.write_all(&layer.len().to_ne_bytes())?;
            for id in layer {
                out.write_all(&Self::POINT.to_ne_bytes())?;
                self.write_name(out, id)?;
                self.write_neighbors(out, id)?;
            }
        }
        self.write_name(out, self.lists.entry)
    }

    fn write_neighbors(&self, out: &mut impl Write, id: u32) -> std::io::Result<()> {
        for layer in 0..LAYERS {
            let near: &[u32] = match layer <= self.top() {
                true => self.lists.of(layer, id),
                false => &[],
            };
            out.write_all(&near.len().to_ne_bytes())?;
            for &other in near {
                self.write_name(out, other)?;
                let distance = self.words.eval(&bytes_of(id), &bytes_of(other));
                out.write_all(&distance.to_ne_bytes())?;
            }
        }
        Ok(())
    }

    fn data(&self, out: &mut impl Write) -> std::io::Result<()> {
        out.write_all(&Self::DATA.to_ne_bytes())?;
        out.write_all(&WORD.to_ne_bytes())?;
        for id in self.layers().flatten() {
            out.write_all(&Self::DATA.to_ne_bytes())?;
            out.write_all(&u64::from(id).to_ne_bytes())?;
            out.write_all(&(WORD as u64).to_ne_bytes())?;
            out.write_all(&bytes_of(id))?;
        }
        Ok(())
    }
}
