//! JSON Feed, version 1 and 1.1.

use reqwest::Url;
use serde::Deserialize;

use super::entry::{Entry, Feed, MOST_CATEGORIES, MOST_READ, absolute};

const MOST_OBJECTS: usize = 10 * MOST_READ;

/// Only the fields that are used, so that the rest takes no memory.
#[derive(Deserialize)]
struct JsonFeed {
    #[serde(default)]
    version: String,
    title: Option<String>,
    home_page_url: Option<String>,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: Option<ItemId>,
    url: Option<String>,
    external_url: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    content_text: Option<String>,
    content_html: Option<String>,
    date_published: Option<String>,
    date_modified: Option<String>,
    author: Option<Author>,
    authors: Option<Vec<Author>>,
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ItemId {
    Text(String),
    Number(serde_json::Number),
}

#[derive(Deserialize)]
struct Author {
    name: Option<String>,
}

pub(super) fn parse(text: &str, at: &Url) -> Result<Feed, String> {
    // Each takes more memory than its two bytes.
    if text.bytes().filter(|byte| *byte == b'{').count() > MOST_OBJECTS {
        return Err(format!("it has more than {MOST_OBJECTS} objects"));
    }
    let feed: JsonFeed = serde_json::from_str(text).map_err(|error| format!("its JSON is no feed ({error})"))?;
    if !feed.version.contains("jsonfeed.org/version/") {
        return Err("its JSON has no version of JSON Feed".to_owned());
    }
    if feed.items.len() > MOST_READ {
        return Err(format!("it has more than {MOST_READ} entries"));
    }
    Ok(Feed {
        title: feed.title.unwrap_or_default(),
        link: absolute(&feed.home_page_url.unwrap_or_default(), at),
        entries: feed.items.into_iter().map(|item| entry(item, at)).collect(),
    })
}

fn entry(item: Item, at: &Url) -> Entry {
    let mut authors = item.authors.into_iter().flatten().chain(item.author);
    let mut tags = item.tags.unwrap_or_default();
    tags.truncate(MOST_CATEGORIES);
    Entry {
        id: match item.id {
            Some(ItemId::Text(id)) => id,
            Some(ItemId::Number(id)) => id.to_string(),
            None => String::new(),
        },
        title: item.title.unwrap_or_default(),
        link: absolute(&item.url.or(item.external_url).unwrap_or_default(), at),
        published: item.date_published.unwrap_or_default(),
        updated: item.date_modified.unwrap_or_default(),
        author: authors.find_map(|author| author.name).unwrap_or_default(),
        summary: item.summary.unwrap_or_default(),
        content: item.content_text.or(item.content_html).unwrap_or_default(),
        categories: tags,
    }
}
