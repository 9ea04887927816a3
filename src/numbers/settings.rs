//! [`Number`] and [`Date`] as data: the tables that a [`Spec`](crate::Spec) holds.

use serde_json::{Map, Value};

use super::calendar::Civil;
use super::{Date, DateSettings, Number, NumberSettings, Scale};
use crate::support::error::{Error, Result};

fn wrong(name: &'static str, expected: &str, value: &Value) -> Error {
    let got = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "another string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    };
    Error::parameter(name, expected, got)
}

fn real(name: &'static str, value: &Value) -> Result<f64> {
    let number = value.as_f64();
    number.ok_or_else(|| wrong(name, "a number", value))
}

fn named<T: std::str::FromStr<Err = Error>>(name: &'static str, value: &Value) -> Result<T> {
    let text = value
        .as_str()
        .ok_or_else(|| wrong(name, "a string", value))?;
    text.parse()
}

fn day(name: &'static str, value: &Value) -> Result<Civil> {
    let parsed = value.as_str().and_then(|text| {
        let (year, rest) = text.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        let two = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        let four = year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit());
        let all = four && two(month) && two(day);
        let date = Civil::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
        all.then_some(date)
    });
    parsed.ok_or_else(|| wrong(name, "a day such as \"2026-05-03\"", value))
}

fn unknown(name: &'static str, keys: &str, key: &str) -> Error {
    Error::parameter(
        name,
        format!("made of the keys {keys}"),
        format!("the key {key:?}"),
    )
}

/// The table of a value, without what is null: a number alone is ε.
fn table(name: &'static str, value: &Value) -> Result<Map<String, Value>> {
    let mut table = match value {
        Value::Object(table) => table.clone(),
        Value::Number(_) => Map::from_iter([("epsilon".to_owned(), value.clone())]),
        _ => return Err(wrong(name, "a number, ε, or a table", value)),
    };
    table.retain(|_, value| !value.is_null());
    Ok(table)
}

fn missing(name: &'static str) -> Error {
    Error::parameter(name, "made with an epsilon", "none")
}

/// Puts the table's name before the name of the parameter in an error.
fn within(table: &str, error: Error) -> Error {
    const NAMES: [(&str, &str, &str); 10] = [
        ("epsilon", "numbers.epsilon", "dates.epsilon"),
        ("scale", "numbers.scale", "dates.scale"),
        ("unit", "numbers.unit", "dates"),
        ("low", "numbers.low", "dates.low"),
        ("high", "numbers.high", "dates.high"),
        ("smallest", "numbers.smallest", "dates.smallest"),
        ("decimal", "numbers.decimal", "dates.decimal"),
        ("order", "numbers.order", "dates.order"),
        ("number", "numbers", "numbers"),
        ("date", "dates", "dates"),
    ];
    let of_table = |(own, numbers, dates)| (own, if table == "numbers" { numbers } else { dates });
    let renamed = |error: Error, (own, name)| error.renamed(own, name);
    NAMES.map(of_table).into_iter().fold(error, renamed)
}

impl Number {
    /// Creates it from a table, or from ε alone.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names the key.
    pub fn of_value(value: &Value) -> Result<Self> {
        let mut table = table("number", value)?;
        let epsilon = table.remove("epsilon").ok_or_else(|| missing("number"))?;
        let mut settings = NumberSettings::new(real("epsilon", &epsilon)?, Scale::Log);
        for (key, value) in &table {
            match &**key {
                "scale" => settings.scale = named("scale", value)?,
                "unit" => settings.unit = Some(real("unit", value)?),
                "low" => settings.low = Some(real("low", value)?),
                "high" => settings.high = Some(real("high", value)?),
                "smallest" => settings.smallest = Some(real("smallest", value)?),
                "decimal" => {
                    settings.decimal = match value.as_str() {
                        Some(".") => '.',
                        Some(",") => ',',
                        _ => return Err(wrong("decimal", "'.' or ','", value)),
                    }
                }
                _ => {
                    let keys = "epsilon, scale, unit, low, high, smallest, decimal";
                    return Err(unknown("number", keys, key));
                }
            }
        }
        Number::new(&settings)
    }

    /// [`of_value`](Self::of_value) with errors that name the key within `numbers`.
    ///
    /// # Errors
    /// The errors of [`of_value`](Self::of_value).
    pub fn of_spec(value: &Value) -> Result<Self> {
        Self::of_value(value).map_err(|error| within("numbers", error))
    }

    /// All of its settings.
    pub fn value_of(&self) -> Value {
        serde_json::to_value(self.settings()).unwrap_or_default()
    }
}

impl Date {
    /// Creates it from a table, or from ε alone.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names the key.
    pub fn of_value(value: &Value) -> Result<Self> {
        let mut table = table("date", value)?;
        let epsilon = table.remove("epsilon").ok_or_else(|| missing("date"))?;
        let mut settings = DateSettings::new(real("epsilon", &epsilon)?);
        for (key, value) in &table {
            match &**key {
                "low" => settings.low = day("low", value)?,
                "high" => settings.high = day("high", value)?,
                "order" => settings.order = Some(named("order", value)?),
                _ => return Err(unknown("date", "epsilon, low, high, order", key)),
            }
        }
        Date::new(&settings)
    }

    /// [`of_value`](Self::of_value) with errors that name the key within `dates`.
    ///
    /// # Errors
    /// The errors of [`of_value`](Self::of_value).
    pub fn of_spec(value: &Value) -> Result<Self> {
        Self::of_value(value).map_err(|error| within("dates", error))
    }

    /// All of its settings.
    pub fn value_of(&self) -> Value {
        serde_json::to_value(self.settings()).unwrap_or_default()
    }
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
        for (value, said) in [
            (json!("x"), "numbers must be"),
            (json!({}), "numbers must be made with an epsilon"),
            (json!({"epsilon": -1}), "numbers.epsilon"),
            (json!({"epsilon": 1, "scale": "x"}), "numbers.scale"),
            (json!({"epsilon": 1, "scale": "linear"}), "numbers.low"),
            (json!({"epsilon": 1, "low": 5, "high": 4}), "numbers.high"),
            (json!({"epsilon": 1, "high": 0.001}), "numbers.high"),
            (json!({"epsilon": 1, "unit": 0}), "numbers.unit"),
            (json!({"epsilon": 1e-5}), "numbers.epsilon"),
            (json!({"epsilon": 1, "decimal": ";"}), "numbers.decimal"),
            (
                json!({"epsilon": 1, "nonsense": 1}),
                "numbers must be made of the keys",
            ),
            (
                json!({"epsilon": 1, "scale": "linear", "low": 0, "high": 1, "smallest": 1}),
                "numbers.smallest",
            ),
            (
                json!({"epsilon": 1, "scale": "linear", "low": 0.1, "high": 0.2}),
                "numbers.unit",
            ),
        ] {
            let error = Number::of_spec(&value).unwrap_err().to_string();
            assert!(error.starts_with(said), "{value}: {error}");
        }
        for (value, said) in [
            (json!(true), "dates must be"),
            (json!({"epsilon": 1, "low": "2020-02-30"}), "dates.low"),
            (json!({"epsilon": 1, "high": "1800-01-01"}), "dates.high"),
            (json!({"epsilon": 1, "order": "ymd"}), "dates.order"),
            (
                json!({"epsilon": 1, "unit": "month"}),
                "dates must be made of",
            ),
        ] {
            let error = Date::of_spec(&value).unwrap_err().to_string();
            assert!(error.starts_with(said), "{value}: {error}");
        }
    }
}
