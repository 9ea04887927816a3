//! The Python interface: a thin layer that checks arguments, leaves the interpreter and calls the
//! core.

mod arguments;
mod arrow;
mod audit;
mod capsules;
mod channel;
mod cover;
mod details;
mod distances;
mod embedding;
mod errors;
mod graph;
mod guarantee;
mod hyperbolic_space;
mod language_model;
mod law_rows;
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
    use super::arrow::privatize_arrow;
    #[pymodule_export]
    use super::audit::{
        binomial_bounds, certify, closed_forms, inputs, largest_loss, likeliest_inputs,
        near_losses, simulate, student_tail,
    };
    #[pymodule_export]
    use super::channel::{PyChannel, PyNgramPrior, PyPosterior};
    #[pymodule_export]
    use super::cover::PyCover;
    #[pymodule_export]
    use super::embedding::PyEmbedding;
    #[pymodule_export]
    use super::graph::{PyWordGraph, read_edges};
    #[pymodule_export]
    use super::guarantee::{PyCertificate, PyGuarantee};
    #[pymodule_export]
    use super::hyperbolic_space::{
        PyMetropolisSample, ball_distance, clamp, exp_map, hyperbolic_laplace,
        hyperbolic_metropolis, log_map, mobius_add,
    };
    #[pymodule_export]
    use super::law_rows::{PyLawRows, nearest_words, partition_words};
    #[pymodule_export]
    use super::mechanism::PyMechanism;
    #[pymodule_export]
    use super::mechanisms::finite_law::certify_law;
    #[pymodule_export]
    use super::mechanisms::multivariate_laplace::laplace_perturb;
    #[pymodule_export]
    use super::mechanisms::tem::{
        check_index, open_space, reopen, save_space, space_cover, tem_build_lists,
        tem_probabilities_after,
    };
    #[pymodule_export]
    use super::mechanisms::{mechanism_base, mechanism_cover};
    #[pymodule_export]
    use super::noise::multivariate_laplace;
    #[pymodule_export]
    use super::numbers::PyNumber;
    #[pymodule_export]
    use super::poincare::{PyTraining, poincare_reconstruction};
    #[pymodule_export]
    use super::records::{PyBlock, PyDocument, PyFields, PyTexts, field_steps, privatize_json};
    #[pymodule_export]
    use super::source::open_words;
    #[pymodule_export]
    use super::spec::{prepare_recommended, read_policies, read_spec, spec_keys};
    #[pymodule_export]
    use super::text::PyReplacements;
    #[pymodule_export]
    use super::tokenize::tokenize;
    #[pymodule_export]
    use super::transport::{
        PyNearestDocuments, PyTransport, earth_movers_distance, nearest_documents,
        optimal_transport, pairwise_emd, utility_bound,
    };
    #[pymodule_export]
    const CARD: u32 = crate::policy::CARD;
    #[pymodule_export]
    const LEAST_EXPONENT: f64 = crate::mechanism::published::LEAST_EXPONENT;
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
