//! Repeatable random numbers.

/// `SplitMix64`, from its seed.
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, less than 1.
    #[expect(clippy::cast_precision_loss, reason = "a chance needs no more than 52 bits")]
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 12) as f64 / (1_u64 << 52) as f64
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % bound as u64).unwrap_or_default()
    }
}
