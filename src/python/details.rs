//! The properties of each mechanism besides its ε, for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::mechanisms::tem_within;
use crate::distance::search::Search;
use crate::mechanism::finite_law::FiniteLaw;
use crate::mechanism::mahalanobis::Mahalanobis;
use crate::{HyperbolicLaplace, Mechanism, MultivariateLaplace, NeighborLists, NeighborResponse};

/// Sets the properties that a mechanism's class in Python shows.
pub(super) fn mechanism_details(
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    macro_rules! set {
        ($($name:ident = $value:expr;)*) => {{
            $(details.set_item(stringify!($name), $value)?;)*
        }};
    }
    if let Some(tem) = tem_within(mechanism) {
        let after = match mechanism.in_order() {
            Some(_) => ", given what was released before",
            None => "",
        };
        set! {
            nominal = tem.nominal();
            gamma = tem.gamma();
            language = tem.language().map(|base| format!("{}{after}", base.source()));
            cached_bytes = tem.cache_bytes().1;
            certified = tem.certificate().map(|c| c.epsilon);
            lists_k = tem.lists().map(NeighborLists::k);
        }
    } else if let Some(laplace) = mechanism.downcast_ref::<MultivariateLaplace>() {
        let (name, candidates) = match laplace.search() {
            Search::Hnsw { ef } => ("hnsw", Some(ef)),
            Search::Exact => ("exact", None),
        };
        set! { search = name; ef = candidates; tuning = laplace.tuning(); mixing = 0.0; }
    } else if let Some(laplace) = mechanism.downcast_ref::<HyperbolicLaplace>() {
        let noise = laplace.noise();
        set! {
            nominal = noise.epsilon();
            base = noise.base().name();
        }
    } else if let Some(law) = mechanism.downcast_ref::<FiniteLaw>() {
        set! { local = law.loss().map(|loss| loss.local); }
    } else if let Some(mahalanobis) = mechanism.downcast_ref::<Mahalanobis>() {
        let noise = mahalanobis.noise();
        set! {
            nominal = noise.nominal();
            mixing = noise.mixing();
            tuning = mahalanobis.tuning();
        }
    } else if let Some(response) = mechanism.downcast_ref::<NeighborResponse>() {
        set! { score = response.score(); }
    }
    Ok(())
}
