//! A build without the feature `hnsw`.

use fastdx::distance::search::{HnswParameters, Search};
use fastdx::{Control, Error, Metric, MultivariateLaplace, Randomness};

use crate::common::embedding;

#[test]
fn the_graph_search_is_refused_by_its_name() {
    let e = embedding(20, 2, 1.0, Metric::Euclidean, 1);
    let refused = |error: Error| assert!(error.to_string().contains("feature `hnsw`"), "{error}");
    let parameters = HnswParameters::default();
    refused(e.build_hnsw(parameters, &Control::new()).unwrap_err());
    let madlib = MultivariateLaplace::new(e, 1.0, Randomness::new(None)).unwrap();
    refused(madlib.with_search(Search::Hnsw { ef: 24 }).unwrap_err());
}
