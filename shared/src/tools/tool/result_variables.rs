//! Names for results of tools as variables of a call: `Hello {{ look_up_customer.name }}`.

use serde_json::{Map, Value};

use crate::{clients::vapi::variables::is_reserved, models::ToolName};

/// The name of a tool's variable: letters, digits and `_`, not one of VAPI's, not in use.
pub fn name(tool: &ToolName, used: &Map<String, Value>) -> String {
    let mut name = tool.as_str().replace('-', "_");
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "tool_");
    }
    if is_reserved(&name) {
        name.push_str("_result");
    }
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !used.contains_key(name));
    free.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_tools_and_never_one_of_vapis() {
        let mut used = Map::new();
        for (tool, expected) in [
            ("look_up_customer", "look_up_customer"),
            ("look-up-customer", "look_up_customer_2"),
            ("customer", "customer_result"),
            ("phonenumber", "phonenumber_result"),
            ("2nd_try", "tool_2nd_try"),
        ] {
            let name = name(&tool.parse().unwrap(), &used);
            assert_eq!(name, expected);
            used.insert(name, Value::Null);
        }
    }
}
