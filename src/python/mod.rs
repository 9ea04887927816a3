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
mod gzip;
mod hyperbolic_space;
mod language_model;
mod law_rows;
mod lookup;
mod mechanism;
mod mechanisms;
mod noise;
mod numbers;
mod poincare;
mod quality;
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

use crate::guarantee::Unchanged;
use crate::mechanism::published;
use crate::mechanism::tem::recommended;

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("MOST_UNCHANGED", Unchanged::REFUSED_MEAN)?;
    m.add("CARD", crate::policy::CARD)?;
    m.add("TOKENIZER", crate::policy::TOKENIZER)?;
    m.add("RECOMMENDED_EPSILON", recommended::EPSILON)?;
    m.add_class::<embedding::PyEmbedding>()?;
    m.add_class::<graph::PyWordGraph>()?;
    m.add_class::<cover::PyCover>()?;
    m.add_class::<mechanism::PyMechanism>()?;
    m.add_class::<channel::PyChannel>()?;
    m.add_function(wrap_pyfunction!(channel::row_means, m)?)?;
    m.add_class::<channel::PyNgramPrior>()?;
    m.add_class::<channel::PyPosterior>()?;
    m.add("LEAST_EXPONENT", published::LEAST_EXPONENT)?;
    m.add_class::<law_rows::PyLawRows>()?;
    m.add_function(wrap_pyfunction!(law_rows::nearest_words, m)?)?;
    m.add_function(wrap_pyfunction!(law_rows::partition_words, m)?)?;
    m.add_class::<text::PyReplacements>()?;
    m.add_class::<numbers::PyNumber>()?;
    m.add_class::<numbers::PyDate>()?;
    m.add_class::<gzip::PyGunzip>()?;
    m.add_class::<records::PyFields>()?;
    m.add_class::<records::PyDocument>()?;
    m.add_class::<records::PyBlock>()?;
    m.add("JsonError", m.py().get_type::<records::JsonError>())?;
    m.add_function(wrap_pyfunction!(records::field_steps, m)?)?;
    m.add_class::<records::PyTexts>()?;
    m.add_function(wrap_pyfunction!(records::privatize_json, m)?)?;
    m.add_function(wrap_pyfunction!(spec::prepare_recommended, m)?)?;
    m.add_function(wrap_pyfunction!(spec::read_spec, m)?)?;
    m.add_function(wrap_pyfunction!(spec::read_policies, m)?)?;
    m.add_function(wrap_pyfunction!(spec::spec_keys, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::tem::check_index, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::tem::open_space, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::tem::reopen, m)?)?;
    m.add_function(wrap_pyfunction!(source::open_words, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::finite_law::certify_law, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::tem::save_space, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::tem::space_cover, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::tem::tem_build_lists, m)?)?;
    m.add_function(wrap_pyfunction!(
        mechanisms::tem::tem_probabilities_after,
        m
    )?)?;
    m.add_function(wrap_pyfunction!(mechanisms::mechanism_base, m)?)?;
    m.add_function(wrap_pyfunction!(mechanisms::mechanism_cover, m)?)?;
    m.add_function(wrap_pyfunction!(
        mechanisms::multivariate_laplace::laplace_perturb,
        m
    )?)?;
    m.add_function(wrap_pyfunction!(
        mechanisms::multivariate_laplace::laplace_search_quality,
        m
    )?)?;
    m.add_class::<guarantee::PyGuarantee>()?;
    m.add_class::<quality::PySearchQuality>()?;
    m.add_class::<hyperbolic_space::PyMetropolisSample>()?;
    m.add_class::<poincare::PyTraining>()?;
    m.add_class::<guarantee::PyCertificate>()?;
    m.add_function(wrap_pyfunction!(arrow::privatize_arrow, m)?)?;
    m.add_function(wrap_pyfunction!(audit::certify, m)?)?;
    m.add_function(wrap_pyfunction!(audit::closed_form, m)?)?;
    m.add_function(wrap_pyfunction!(audit::closed_forms, m)?)?;
    m.add_function(wrap_pyfunction!(audit::inputs, m)?)?;
    m.add_function(wrap_pyfunction!(audit::likeliest_inputs, m)?)?;
    m.add_function(wrap_pyfunction!(audit::largest_loss, m)?)?;
    m.add_function(wrap_pyfunction!(audit::near_losses, m)?)?;
    m.add_function(wrap_pyfunction!(audit::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(audit::binomial_bounds, m)?)?;
    m.add_function(wrap_pyfunction!(tokenize::tokenize, m)?)?;
    m.add_function(wrap_pyfunction!(transport::utility_bound, m)?)?;
    m.add_class::<transport::PyTransport>()?;
    m.add_class::<transport::PyNearestDocuments>()?;
    m.add_function(wrap_pyfunction!(transport::optimal_transport, m)?)?;
    m.add_function(wrap_pyfunction!(transport::earth_movers_distance, m)?)?;
    m.add_function(wrap_pyfunction!(transport::pairwise_emd, m)?)?;
    m.add_function(wrap_pyfunction!(transport::nearest_documents, m)?)?;
    m.add_function(wrap_pyfunction!(graph::read_edges, m)?)?;
    m.add_function(wrap_pyfunction!(poincare::poincare_reconstruction, m)?)?;
    m.add_function(wrap_pyfunction!(noise::multivariate_laplace, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::hyperbolic_laplace, m)?)?;
    m.add_function(wrap_pyfunction!(
        hyperbolic_space::hyperbolic_metropolis,
        m
    )?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::ball_distance, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::mobius_add, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::exp_map, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::log_map, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::to_lorentz, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::lorentz_inner, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::lorentz_distance, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::from_lorentz, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic_space::clamp, m)?)
}
