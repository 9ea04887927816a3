//! Integer functions, and exp by plain arithmetic.

/// The greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// exp(-x) for 0 ≤ x ≤ 42 with a relative error of 2⁻⁵¹, by plain arithmetic: the same on every
/// machine, and vectorised for many numbers in a row.
#[inline(always)]
pub(crate) const fn exp_minus(x: f64) -> f64 {
    const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Adding 1.5·2⁵² rounds to an integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // Taylor series to degree 13 on |r| ≤ 0.35: the remainder is below 2⁻⁵⁷.
    const TAYLOR: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (n * LN2_HIGH - x) + n * LN2_LOW;
    let mut p = TAYLOR[0];
    let mut i = 1;
    while i < TAYLOR.len() {
        p = p * r + TAYLOR[i];
        i += 1;
    }
    // p·2⁻ⁿ, by subtracting n from the exponent.
    f64::from_bits(p.to_bits().wrapping_sub(shifted.to_bits() << 52))
}
