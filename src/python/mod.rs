//! The Python interface: a thin layer that checks arguments, leaves the interpreter and calls the
//! core.

mod arguments;
mod audit;
mod channel;
mod cover;
mod embedding;
mod errors;
mod graph;
mod guarantee;
mod language_model;
mod mechanism;
mod mechanisms;
mod noise;
mod numbers;
mod poincare;
mod records;
mod run;
mod source;
mod space;
mod spec;
mod text;
mod transport;
mod warned;

use pyo3::prelude::*;

/// The extension module.
#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        audit::{binomial_bounds, certify, check_index, closed_forms, largest_loss, student_tail},
        channel::{PyChannel, PyNgramPrior, PyPosterior},
        cover::PyCover,
        embedding::PyEmbedding,
        graph::{PyWordGraph, read_edges},
        guarantee::{PyCertificate, PyGuarantee},
        mechanism::PyMechanism,
        mechanisms::{
            laplace_perturb, tem_base, tem_build_lists, tem_probabilities_after, tem_save,
        },
        noise::{hyperbolic_laplace, multivariate_laplace},
        numbers::PyNumber,
        poincare::{PyTraining, poincare_reconstruction},
        records::{PyBlock, PyDocument, PyFields, field_steps},
        source::{open_space, open_words, space_cover},
        space::{PySpace, checked_graph, unpacked_space},
        spec::{prepare_recommended, read_policies, read_spec, spec_keys},
        text::{PyReplacements, privatize_strings, tokenize},
        transport::{
            PyNearestDocuments, PyTransport, earth_movers_distance, nearest_documents,
            optimal_transport, pairwise_emd, utility_bound,
        },
    };

    #[pymodule_export]
    const CARD: u32 = crate::policy::CARD;
    #[pymodule_export]
    const MOST_UNCHANGED: f64 = crate::guarantee::Unchanged::REFUSED_MEAN;
    #[pymodule_export]
    const RECOMMENDED_EPSILON: f64 = crate::mechanism::tem::recommended::EPSILON;
    #[pymodule_export]
    const TOKENIZER: u32 = crate::policy::TOKENIZER;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        m.add("__version__", env!("CARGO_PKG_VERSION"))?;
        m.add("JsonError", m.py().get_type::<super::records::JsonError>())
    }
}
