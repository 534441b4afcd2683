//! DynamoDB's rules for `ExclusiveStartKey`, which the emulator does not have: the place lies within the key condition.

use serde_json::Value;

/// Why DynamoDB refuses the query.
pub(super) fn refusal(action: &str, query: &Value) -> Option<&'static str> {
    let start = query["ExclusiveStartKey"].as_object().filter(|_| action == "Query")?;
    if start.values().any(|value| value["S"] == "") {
        return Some("The provided starting key is invalid: a key attribute cannot contain an empty string value.");
    }
    let condition = query["KeyConditionExpression"].as_str()?.replace(" AND ", " and ");
    let words: Vec<&str> = condition.split(' ').collect();
    let named = |word: &str| query["ExpressionAttributeNames"][word].as_str().and_then(|name| start.get(name));
    let given = |word: &str| &query["ExpressionAttributeValues"][word];
    for (place, operator) in words.iter().enumerate() {
        let (left, right) = (place.checked_sub(1).map(|before| words[before]), words.get(place + 1));
        let (Some(found), Some(right)) = (left.and_then(named), right) else { continue };
        let within = match *operator {
            "=" if found != given(right) => {
                return Some("The provided starting key is invalid: it is of another partition.");
            }
            "BETWEEN" => {
                let last = words.get(place + 3).expect("BETWEEN has two bounds");
                !precedes(found, given(right)) && !precedes(given(last), found)
            }
            "<" => precedes(found, given(right)),
            ">" => precedes(given(right), found),
            "<=" => !precedes(given(right), found),
            ">=" => !precedes(found, given(right)),
            _ => true,
        };
        if !within {
            return Some("The provided starting key is outside query boundaries based on provided conditions");
        }
    }
    None
}

fn precedes(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| value["N"].as_str().and_then(|text| text.parse::<f64>().ok());
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one < other,
        _ => one["S"].as_str() < other["S"].as_str(),
    }
}
