//! χ² of draws against a law, for tests.

/// χ² of the counts of draws, and its degrees of freedom. Outputs are put together, the likeliest
/// first, until 20 draws are expected of them.
pub(super) fn chi_squared(law: &[f64], counts: &[u32]) -> (f64, f64) {
    let draws = f64::from(counts.iter().sum::<u32>());
    let mut order: Vec<usize> = (0..law.len()).collect();
    order.sort_by(|&a, &b| law[b].total_cmp(&law[a]));
    let (mut chi2, mut freedom) = (0.0, -1.0);
    let (mut expected, mut found) = (0.0, 0.0);
    for y in order {
        expected += law[y] * draws;
        found += f64::from(counts[y]);
        if expected >= 20.0 {
            chi2 += (found - expected) * (found - expected) / expected;
            freedom += 1.0;
            (expected, found) = (0.0, 0.0);
        }
    }
    (chi2, freedom)
}
