//! The search index: a segment per service, and one for built-in tools.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt, future, stream};

use super::{
    capabilities,
    listed::{ListedTool, Source},
    own_tools::OwnTools,
};
use crate::{
    Deadline, Result,
    models::{ListedServiceTool, Service, ServiceId, Timestamp, folded_name},
    ranking::{Collection, Postings, PostingsBuilder, Term, near_words, words},
    store::Services,
    tool::ToolSpec,
};

const READ_AT_ONCE: usize = 16;
/// Upper bound of a DynamoDB index's delay behind its table. A service read sooner after its update is read again.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// Weight of a word, by field.
const IN_NAME: u16 = 4;
const IN_TITLE: u16 = 3;
const IN_KEYWORDS: u16 = 3;
const IN_SERVICE: u16 = 2;
const ELSEWHERE: u16 = 1;

/// Unknown words of a query that are compared with the index.
const MOST_UNKNOWN: usize = 12;

/// Words without information about a tool, in the form of [`words`].
const STOP_WORDS: &str = "about all am an and any are as at be by can could do doe for from have how if in into is it like make \
                          me my need of on or our please should so some somebody something that the their them then there \
                          thi to tool us use want we what when which will with would you your";

/// The searchable tools of one service, or the built-in ones.
#[derive(Debug)]
pub struct Segment {
    /// `None` for built-in tools.
    pub service: Option<Service>,
    /// `None` if they could not be read.
    pub triggers: Option<TriggerKinds>,
    pub tools: Vec<ListedTool>,
    words: Postings,
    settled: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TriggerKinds {
    pub webhook: bool,
    pub polling: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ToolIndex {
    /// All services, also inactive ones.
    pub services: Arc<Vec<Service>>,
    pub segments: Vec<Arc<Segment>>,
}

#[derive(Debug, Default)]
pub struct Ranked<'a> {
    pub found: Vec<(&'a Segment, &'a ListedTool)>,
    /// Unknown words of the query with their replacements; empty if no word is similar.
    pub corrected: Vec<(String, Vec<String>)>,
    pub not_compared: usize,
    /// Whether the query has words other than stop words.
    pub has_words: bool,
}

impl Segment {
    /// Indexes the active tools of a service; `triggers` is `None` if they could not be read.
    pub fn of_service(service: Service, tools: Vec<ListedServiceTool>, triggers: Option<TriggerKinds>) -> Self {
        let mut segment = SegmentBuilder::default();
        for tool in tools.into_iter().filter(|tool| tool.is_active) {
            let parameters = tool.parameter_names.join(" ");
            let description = tool.description.clone();
            let about = [&service.name, &service.categories.join(" ")].map(String::as_str).join(" ");
            let keywords = tool.keywords.join(" ");
            segment.add(ListedTool::of_service(tool), &about, &keywords, &description, &parameters);
        }
        let settled = Timestamp::now() > service.updated_at.plus(SETTLES_WITHIN) && triggers.is_some();
        segment.finish(Some(service), triggers, settled)
    }

    pub(super) fn of_organization(own: &OwnTools) -> Self {
        let mut segment = SegmentBuilder::default();
        for tool in &own.tools {
            let spec = &tool.tool.spec;
            segment.add(tool.listed(), "", "", &spec.description, &parameter_names(spec));
        }
        segment.finish(None, Some(TriggerKinds::default()), true)
    }

    fn of_built_in<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let mut segment = SegmentBuilder::default();
        for spec in specs {
            segment.add(built_in(spec), "", "", &spec.description, &parameter_names(spec));
        }
        segment.finish(None, Some(TriggerKinds::default()), true)
    }

    fn holds_for(&self, service: &Service) -> bool {
        let same = |of: &Service| of.edition == service.edition && of.updated_at == service.updated_at;
        self.settled && self.service.as_ref().is_some_and(same)
    }
}

pub(super) fn built_in(spec: &ToolSpec) -> ListedTool {
    ListedTool::of_spec(spec, Source::BuiltIn, BUILT_IN.to_owned(), BUILT_IN.to_owned())
}

pub(super) const BUILT_IN: &str = "built-in";

fn parameter_names(spec: &ToolSpec) -> String {
    spec.parameters.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct SegmentBuilder {
    tools: Vec<ListedTool>,
    words: PostingsBuilder,
}

impl SegmentBuilder {
    fn add(&mut self, tool: ListedTool, about: &str, keywords: &str, description: &str, parameters: &str) {
        if !self.words.next_text() {
            tracing::error!("a tool is left out of the search: there are more than can be numbered");
            return;
        }
        for (text, times) in [(&tool.name, IN_NAME), (&tool.title, IN_TITLE)] {
            self.words.add(&apart(text), times);
        }
        self.words.add(keywords, IN_KEYWORDS);
        self.words.add(about, IN_SERVICE);
        for text in [description, &apart(parameters), &tool.category] {
            self.words.add(text, ELSEWHERE);
        }
        self.tools.push(tool);
    }

    fn finish(self, service: Option<Service>, triggers: Option<TriggerKinds>, settled: bool) -> Segment {
        Segment { service, triggers, tools: self.tools, words: self.words.finish(), settled }
    }
}

/// Splits names into words: `channelId` becomes `channel Id`.
fn apart(name: &str) -> String {
    let mut apart = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for letter in name.chars() {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            apart.push(' ');
        }
        apart.push(letter);
        before = letter;
    }
    apart
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split_ascii_whitespace().any(|stop| stop == word)
}

pub(super) struct Shelf {
    built_in: Arc<Segment>,
    of_services: HashMap<ServiceId, Arc<Segment>>,
}

impl Shelf {
    pub(super) fn of_built_in<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> Self {
        Self { built_in: Arc::new(Segment::of_built_in(specs)), of_services: HashMap::new() }
    }

    pub(super) async fn refresh(&mut self, services: &Services, deadline: Deadline) -> Result<ToolIndex> {
        let all = services.all().await?;
        let active: Vec<&Service> = all.iter().filter(|service| service.is_active).collect();
        let ids: HashSet<ServiceId> = active.iter().map(|service| service.id).collect();
        self.of_services.retain(|id, _| ids.contains(id));
        let holds = |service: &Service| self.of_services.get(&service.id).is_some_and(|of| of.holds_for(service));
        let changed: Vec<Service> =
            active.iter().filter(|service| !holds(service)).map(|service| (*service).clone()).collect();
        if !changed.is_empty() {
            self.read(services, changed, deadline).await?;
        }
        let mut segments: Vec<Arc<Segment>> =
            active.iter().filter_map(|service| self.of_services.get(&service.id).cloned()).collect();
        segments.push(self.built_in.clone());
        Ok(ToolIndex { services: Arc::new(all), segments })
    }

    async fn read(&mut self, services: &Services, changed: Vec<Service>, deadline: Deadline) -> Result<()> {
        let names: Vec<String> = changed.iter().map(|service| service.name.clone()).collect();
        let ids: Vec<ServiceId> = changed.iter().map(|service| service.id).collect();
        let tools = stream::iter(ids).map(|id| services.tools_of(id)).buffered(READ_AT_ONCE).try_collect::<Vec<_>>();
        let (tools, capabilities) = future::join(tools, capabilities(services, &names, deadline)).await;
        for (service, tools) in changed.into_iter().zip(tools?) {
            let triggers = capabilities.as_ref().map(|all| {
                let of_service = all.get(&folded_name(&service.name));
                of_service.map_or(TriggerKinds::default(), |of| TriggerKinds {
                    webhook: of.supports_webhooks,
                    polling: of.supports_polling,
                })
            });
            let id = service.id;
            self.of_services.insert(id, Arc::new(Segment::of_service(service, tools, triggers)));
        }
        Ok(())
    }
}

impl ToolIndex {
    #[must_use]
    pub fn with(mut self, segment: Segment) -> Self {
        self.segments.push(Arc::new(segment));
        self
    }

    /// The tools among `among` that pass and match at least one word, best first. An empty query returns all passing tools, by
    /// name.
    pub fn rank<'a>(
        &self,
        query: &str,
        among: &[&'a Segment],
        passes: impl Fn(&Segment, &ListedTool) -> bool,
    ) -> Ranked<'a> {
        let mut ranked = Ranked::default();
        if query.trim().is_empty() {
            let all = among.iter().flat_map(|segment| segment.tools.iter().map(|tool| (*segment, tool)));
            ranked.found = all.filter(|(segment, tool)| passes(segment, tool)).collect();
            ranked.found.sort_by(|(_, one), (_, other)| (&one.name, one.source).cmp(&(&other.name, other.source)));
            return ranked;
        }
        let wanted = self.wanted(query, &mut ranked);
        let collection = self.collection();
        let named = query.trim().to_lowercase();
        let mut found: Vec<(f32, &Segment, &ListedTool)> = Vec::new();
        for segment in among.iter().copied() {
            let mut scores = vec![0.0; segment.tools.len()];
            for (word, rarity) in &wanted {
                if let Some(term) = segment.words.term(word) {
                    segment.words.score(term, *rarity, collection, &mut scores);
                }
            }
            for (tool, score) in segment.tools.iter().zip(scores) {
                let is_named = tool.name.eq_ignore_ascii_case(&named);
                if (score > 0.0 || is_named) && passes(segment, tool) {
                    // An exact name comes first.
                    found.push((if is_named { f32::MAX } else { score }, segment, tool));
                }
            }
        }
        found.sort_by(|(score, _, tool), (other_score, _, other)| {
            other_score.total_cmp(score).then_with(|| (&tool.name, tool.source).cmp(&(&other.name, other.source)))
        });
        ranked.found = found.into_iter().map(|(_, segment, tool)| (segment, tool)).collect();
        ranked
    }

    fn wanted(&self, query: &str, ranked: &mut Ranked<'_>) -> Vec<(String, f32)> {
        let mut asked: Vec<String> = Vec::new();
        words(&apart(query), |word| {
            if !is_stop_word(word) && !asked.iter().any(|other| other == word) {
                asked.push(word.to_owned());
            }
        });
        ranked.has_words = !asked.is_empty();
        let collection = self.collection();
        let (known, mut unknown): (Vec<String>, Vec<String>) =
            asked.into_iter().partition(|word| self.texts_with(word) > 0);
        let worth = |word: &str| collection.rarity(self.texts_with(word));
        let mut wanted: Vec<(String, f32)> = known.into_iter().map(|word| (word.clone(), worth(&word))).collect();
        ranked.not_compared = unknown.len().saturating_sub(MOST_UNKNOWN);
        unknown.truncate(MOST_UNKNOWN);
        if unknown.is_empty() {
            return wanted;
        }
        let vocabulary = self.segments.iter().flat_map(|segment| segment.words.vocabulary());
        let near = near_words(&unknown, vocabulary);
        for (unknown, near) in unknown.into_iter().zip(near) {
            for (word, counts) in &near {
                if !wanted.iter().any(|(other, _)| other == word) {
                    wanted.push(((*word).to_owned(), worth(word) * counts));
                }
            }
            ranked.corrected.push((unknown, near.into_iter().map(|(word, _)| word.to_owned()).collect()));
        }
        wanted
    }

    fn collection(&self) -> Collection {
        self.segments.iter().fold(Collection::default(), |all, segment| all.and(segment.words.collection()))
    }

    fn texts_with(&self, word: &str) -> usize {
        self.segments.iter().filter_map(|segment| segment.words.term(word)).map(Term::texts).sum()
    }
}

#[cfg(test)]
mod tests;
