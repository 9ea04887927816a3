//! How far words are apart, exactly: metrics on vectors, the nearest word, the words nearby.

pub mod metric;
pub mod neighbors;
pub mod search;
