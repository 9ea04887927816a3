//! The Python face: a thin layer that checks arguments, leaves the interpreter, calls the core.

mod arguments;
mod attribution;
mod audit;
mod embedding;
mod errors;
mod graph;
mod guarantee;
mod hyperbolic;
mod mechanism;
mod multivariate_laplace;
mod noise;
mod poincare;
mod quality;
mod run;
mod tem;
mod transport;
mod words;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<embedding::PyEmbedding>()?;
    m.add_class::<graph::PyWordGraph>()?;
    m.add_class::<mechanism::PyMechanism>()?;
    m.add_class::<mechanism::PyReplacements>()?;
    m.add_class::<tem::PyTem>()?;
    m.add_function(wrap_pyfunction!(tem::check_index, m)?)?;
    m.add_class::<multivariate_laplace::PyMultivariateLaplace>()?;
    m.add_class::<guarantee::PyGuarantee>()?;
    m.add_class::<quality::PySearchQuality>()?;
    m.add_class::<hyperbolic::PyHyperbolicLaplace>()?;
    m.add_class::<hyperbolic::PyMetropolisSample>()?;
    m.add_class::<poincare::PyTraining>()?;
    m.add_class::<audit::PyCertificate>()?;
    m.add_function(wrap_pyfunction!(audit::certify, m)?)?;
    m.add_function(wrap_pyfunction!(audit::closed_form, m)?)?;
    m.add_function(wrap_pyfunction!(audit::tem_inputs, m)?)?;
    m.add_function(wrap_pyfunction!(audit::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(audit::binomial_bounds, m)?)?;
    m.add_class::<attribution::PyAttribution>()?;
    m.add_function(wrap_pyfunction!(attribution::tokenize, m)?)?;
    m.add_function(wrap_pyfunction!(transport::utility_bound, m)?)?;
    m.add_class::<transport::PyTransport>()?;
    m.add_class::<transport::PyNearestDocuments>()?;
    m.add_function(wrap_pyfunction!(transport::emd, m)?)?;
    m.add_function(wrap_pyfunction!(transport::earth_movers_distance, m)?)?;
    m.add_function(wrap_pyfunction!(transport::pairwise_emd, m)?)?;
    m.add_function(wrap_pyfunction!(transport::nearest_documents, m)?)?;
    m.add_function(wrap_pyfunction!(graph::read_edges, m)?)?;
    m.add_function(wrap_pyfunction!(poincare::poincare_reconstruction, m)?)?;
    m.add_function(wrap_pyfunction!(noise::multivariate_laplace, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::hyperbolic_laplace, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::hyperbolic_metropolis, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::ball_distance, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::mobius_add, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::exp_map, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::log_map, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::to_lorentz, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::from_lorentz, m)?)?;
    m.add_function(wrap_pyfunction!(hyperbolic::clamp, m)?)
}
