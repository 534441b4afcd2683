//! The names of an enum's variants, which are stored, shown and given in requests.

pub use declare::Names;

/// A text that names no variant. Shown as `must be one of …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownName(pub &'static str);

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
    #[serde(rename_all = "snake_case")]
    enum Fruit {
        #[serde(alias = "pome", alias = "pommeDeTerre")]
        RedApple,
        #[serde(rename = "none")]
        Nothing,
        Pear,
        #[serde(other)]
        #[names(never_given)]
        Other,
    }

    #[test]
    fn names_are_those_of_serde() {
        assert_eq!(Fruit::NAMES, ["red_apple", "none", "pear", "other"]);
        for (fruit, name) in Fruit::ALL.into_iter().zip(Fruit::NAMES) {
            assert_eq!((fruit.as_str(), fruit.to_string().as_str(), json!(fruit)), (name, name, json!(name)));
            assert_eq!(serde_json::from_value::<Fruit>(json!(name)).unwrap(), fruit);
        }
    }

    #[test]
    fn a_given_name_is_one_of_the_known() {
        for given in ["red_apple", "pome", "pommeDeTerre"] {
            assert_eq!(given.parse(), Ok(Fruit::RedApple), "{given}");
        }
        assert_eq!(Fruit::named("none"), Some(Fruit::Nothing));
        for given in ["other", "plum", "Pear", ""] {
            let problem = given.parse::<Fruit>().unwrap_err().to_string();
            assert_eq!(problem, "must be one of red_apple, none, pear", "{given}");
        }
    }
}
