//! Numbers of operations as text.

use const_hex::Buffer;

/// The number of an operation as its spans have it: 32 hexadecimal digits, without an allocation, as each
/// traced call has two spans.
#[derive(Debug, Clone)]
pub struct OperationDigits(Buffer<16>);

impl OperationDigits {
    /// The digits of this number.
    #[must_use]
    pub fn of(operation: u128) -> Self {
        let mut digits = Buffer::new();
        digits.format(&operation.to_be_bytes());
        Self(digits)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_all_its_digits() {
        for number in [0, 0x1f, u128::MAX, 0x0123_4567_89ab_cdef << 64] {
            let expected = format!("{number:032x}");
            assert_eq!(OperationDigits::of(number).as_str(), expected);
        }
    }
}
