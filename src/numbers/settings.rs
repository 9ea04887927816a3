//! The settings of [`Number`] and [`Date`]: the tables that a [`Spec`](crate::Spec) holds.

use serde_json::{Map, Value};

use super::calendar::Civil;
use super::{Date, Number};
use crate::support::error::Result;
use crate::support::names::named;
use crate::support::table::{Field, Type, table, within, wrong};

/// The metric on numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// |ln x - ln x'|.
    #[default]
    Log,
    /// |x - x'|.
    Linear,
}

named!(Scale, "scale", Scale::Log => "log", Scale::Linear => "linear");

/// The order of a date's parts in 03/05/2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

named!(Order, "order", Order::Dmy => "dmy", Order::Mdy => "mdy");

table! {
    /// The settings of a [`Number`]. `None` is the default of each, but of ε, which must be given.
    NumberSettings, "number";
    /// ε per 1 of the metric.
    epsilon: Option<f64> = None;
    /// The metric.
    scale: Scale = Scale::Log;
    /// The step of the grid: by default 0.01 of ln x, or 1.
    unit: Option<f64> = None;
    /// The public range: by default ±10⁹ on the log scale; needed on the linear one.
    low: Option<f64> = None;
    /// See `low`.
    high: Option<f64> = None;
    /// On the log scale the smallest size beside zero: by default 0.01.
    smallest: Option<f64> = None;
    /// In text, the sign before decimals: a point, or a comma.
    decimal: char = '.';
}

table! {
    /// The settings of a [`Date`].
    DateSettings, "date";
    /// ε per day, which must be given.
    epsilon: Option<f64> = None;
    /// The public range.
    low: Civil = Civil { year: 1900, month: 1, day: 1 };
    /// See `low`.
    high: Civil = Civil { year: 2099, month: 12, day: 31 };
    /// In text, the order of 03/05/2026: without it such a date is a word.
    order: Option<Order> = None;
}

impl Field for Civil {
    fn read(name: &'static str, value: &Value) -> Result<Self> {
        let parsed = value.as_str().and_then(|text| {
            let (year, rest) = text.split_once('-')?;
            let (month, day) = rest.split_once('-')?;
            let date = Civil::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
            // As it is written, with all zeros.
            (date.to_string() == text && year.len() == 4).then_some(date)
        });
        parsed.ok_or_else(|| wrong(name, "a day such as \"2026-05-03\"", value))
    }

    fn written(&self) -> Option<Value> {
        Some(self.to_string().into())
    }
}

/// The table of a value: a number alone is ε.
fn table_of(name: &'static str, value: &Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(table) => Ok(table.clone()),
        Value::Number(_) => Ok(Map::from_iter([("epsilon".to_owned(), value.clone())])),
        _ => Err(wrong(name, "a number, ε, or a table", value)),
    }
}

macro_rules! data {
    ($($law:ident: $settings:ident, $own:literal;)*) => {$(
        impl $law {
            /// Creates it from a table, or from ε alone.
            ///
            /// # Errors
            /// [`Error::Parameter`](crate::Error::Parameter) that names the key.
            pub fn of_value(value: &Value) -> Result<Self> {
                Self::new(&$settings::from_map(&table_of($own, value)?)?)
            }

            /// All of its settings.
            pub fn value_of(&self) -> Value {
                self.settings().value()
            }
        }

        impl Field for $law {
            const TYPE: Type = Type::Figure;

            fn read(name: &'static str, value: &Value) -> Result<Self> {
                Self::of_value(value).map_err(|error| within(error, $own, name))
            }

            fn written(&self) -> Option<Value> {
                Some(self.value_of())
            }
        }
    )*};
}

data! {
    Number: NumberSettings, "number";
    Date: DateSettings, "date";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_read_and_written() {
        for value in [
            json!(10),
            json!({"epsilon": 2.0, "scale": "linear", "low": 0, "high": 100, "unit": 0.5, "decimal": ","}),
        ] {
            let number = Number::of_value(&value).unwrap();
            assert_eq!(Number::of_value(&number.value_of()).unwrap(), number);
        }
        for value in [
            json!(0.1),
            json!({"epsilon": 2.0, "low": "2020-01-01", "order": "mdy"}),
        ] {
            let date = Date::of_value(&value).unwrap();
            assert_eq!(Date::of_value(&date.value_of()).unwrap(), date);
        }
        // The wrong part of a table, and the words of its error.
        for (wrong, said) in [
            (json!("x"), "numbers must be a number, ε"),
            (json!({}), "epsilon is given"),
            (json!({"epsilon": -1}), "epsilon is"),
            (json!({"epsilon": 1, "scale": "x"}), "scale is"),
            (json!({"epsilon": 1, "scale": "linear"}), "low is"),
            (json!({"epsilon": 1, "low": 5, "high": 4}), "high is"),
            (json!({"epsilon": 1, "high": 0.001}), "high is"),
            (json!({"epsilon": 1, "unit": 0}), "unit is"),
            (json!({"epsilon": 1e-5}), "epsilon is"),
            (json!({"epsilon": 1, "decimal": ";"}), "decimal is"),
            (
                json!({"epsilon": 1, "nonsense": 1}),
                "numbers must be made of the keys",
            ),
            (
                json!({"epsilon": 1, "scale": "linear", "low": 0, "high": 1, "smallest": 1}),
                "smallest is",
            ),
            (
                json!({"epsilon": 1, "scale": "linear", "low": 0.1, "high": 0.2}),
                "unit is",
            ),
        ] {
            let error = Number::read("numbers", &wrong).unwrap_err().to_string();
            assert!(
                error.starts_with("numbers must be") && error.contains(said),
                "{error}"
            );
        }
        for (wrong, said) in [
            (json!(true), "dates must be a number, ε"),
            (json!({"epsilon": 1, "low": "2020-02-30"}), "low is"),
            (json!({"epsilon": 1, "high": "1800-01-01"}), "high is"),
            (json!({"epsilon": 1, "order": "ymd"}), "order is"),
            (
                json!({"epsilon": 1, "unit": "month"}),
                "dates must be made of",
            ),
        ] {
            let error = Date::read("dates", &wrong).unwrap_err().to_string();
            assert!(
                error.starts_with("dates must be") && error.contains(said),
                "{error}"
            );
        }
    }
}
