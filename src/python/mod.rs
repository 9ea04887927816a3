//! The Python interface: a thin layer that checks arguments, leaves the interpreter and calls the
//! core.

mod arguments;
mod audit;
mod channel;
mod columns;
mod cover;
mod details;
mod distances;
mod embedding;
mod errors;
mod graph;
mod guarantee;
mod language_model;
mod lookup;
mod mechanism;
mod mechanisms;
mod noise;
mod numbers;
mod poincare;
mod records;
mod rows;
mod run;
mod source;
mod space;
mod spec;
mod text;
mod tokenize;
mod transport;
mod warned;

use pyo3::prelude::*;

/// The extension module.
#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        audit::{binomial_bounds, certify, closed_forms, largest_loss, student_tail},
        channel::{PyChannel, PyNgramPrior, PyPosterior},
        columns::privatize_strings,
        cover::PyCover,
        embedding::PyEmbedding,
        graph::{PyWordGraph, read_edges},
        guarantee::{PyCertificate, PyGuarantee},
        mechanism::PyMechanism,
        mechanisms::multivariate_laplace::laplace_perturb,
        mechanisms::tem::{
            check_index, open_space, reopen, save_space, space_cover, tem_build_lists,
            tem_probabilities_after,
        },
        mechanisms::{mechanism_base, mechanism_cover},
        noise::{hyperbolic_laplace, multivariate_laplace},
        numbers::PyNumber,
        poincare::{PyTraining, poincare_reconstruction},
        records::{PyBlock, PyDocument, PyFields, PyTexts, field_steps, privatize_json},
        source::open_words,
        spec::{prepare_recommended, read_policies, read_spec, spec_keys},
        text::PyReplacements,
        tokenize::tokenize,
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
