//! Runs the code blocks of README.md, docs/getting-started.md and other pages on the running stack.
//!
//! The blocks of a page run unchanged and in order, in one shell per page.
//!
//! There are only three differences from a person's shell: a placeholder (`NAME=…`) gets a value; the working
//! directory imitates the repository's root, so that nobody's files are overwritten; and `cargo lambda` runs the
//! existing programs there, on a free port.

mod getting_started;
mod readme;
mod root;
mod shell;

use std::time::{Duration, Instant};

use local::Stack;

use self::{root::Root, shell::Shell};

/// The limit for operations that are slow on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// The expected effect of a block.
struct Expected {
    /// The beginning of the block's first line.
    begins: &'static str,
    then: Then,
}

enum Then {
    /// Not run, for this reason.
    NotRun(&'static str),
    Run {
        /// Texts that its output contains.
        shows: &'static [&'static str],
        /// A later command, and texts that its output contains within [`PATIENCE`].
        after: Option<(&'static str, &'static [&'static str])>,
    },
    /// Runs a program of its own instead of the shell.
    Program(fn(&Stack, &Root, &str)),
}

const fn not_run(begins: &'static str, why: &'static str) -> Expected {
    Expected { begins, then: Then::NotRun(why) }
}

/// The block succeeds and its output contains these texts.
const fn shows(begins: &'static str, shows: &'static [&'static str]) -> Expected {
    Expected { begins, then: Then::Run { shows, after: None } }
}

/// The block succeeds, and then the command's output contains these texts.
const fn then(begins: &'static str, command: &'static str, shows: &'static [&'static str]) -> Expected {
    Expected { begins, then: Then::Run { shows: &[], after: Some((command, shows)) } }
}

struct Block {
    /// The line number of its first line, for messages.
    line: usize,
    language: String,
    code: String,
}

impl Block {
    fn first_line(&self) -> &str {
        self.code.lines().next().unwrap_or_default()
    }
}

/// All blocks with the language of a program; the others show output, a drawing, or data. JSON must be valid.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block { line: number + 1, language: language.to_owned(), code: String::new() });
            }
            (Some(_end), Some(_block)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.code.push_str(line);
                block.code.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of code has no end");
    for block in blocks.iter().filter(|block| block.language == "json") {
        let read = serde_json::from_str::<serde_json::Value>(&block.code);
        assert!(read.is_ok(), "line {}: `{}` is not JSON: {read:?}", block.line, block.first_line());
    }
    blocks.retain(|block| !["", "json", "mermaid"].contains(&block.language.as_str()));
    blocks
}

struct Page<'a> {
    name: &'static str,
    stack: &'a Stack,
    root: &'a Root,
    shell: Shell,
    steps: std::vec::IntoIter<(Block, &'static Expected)>,
}

impl<'a> Page<'a> {
    /// # Panics
    /// If a block has no expectation, or an expectation has no block.
    fn open(name: &'static str, expected: &'static [Expected], stack: &'a Stack, root: &'a Root) -> Self {
        let text = std::fs::read_to_string(root.original(name)).unwrap();
        let blocks = blocks(&text);
        let mut missing = expected.iter();
        for block in &blocks {
            let place = format!("{name}, line {}: `{}`", block.line, block.first_line());
            let next = missing.next();
            let fits = next.is_some_and(|expected| block.first_line().starts_with(expected.begins));
            assert!(
                fits,
                "{place} is not what is expected here, which is {:?}: a block that was added or changed needs its \
                 expectation in tests/tests/end_to_end/pages/",
                next.map(|expected| expected.begins)
            );
        }
        if let Some(expected) = missing.next() {
            panic!("{name} has no block any more that begins with {:?}: its expectation can go", expected.begins);
        }
        let steps: Vec<_> = blocks.into_iter().zip(expected).collect();
        Self { name, stack, root, shell: Shell::start(root), steps: steps.into_iter() }
    }

    /// Runs the blocks up to and including the first that begins with this text.
    async fn through(&mut self, begins: &str) {
        while let Some((block, expected)) = self.steps.next() {
            let last = block.first_line().starts_with(begins);
            self.step(&block, expected).await;
            if last {
                return;
            }
        }
        panic!("{} has no block that begins with {begins:?}", self.name);
    }

    async fn play_the_rest(mut self) {
        while let Some((block, expected)) = self.steps.next() {
            self.step(&block, expected).await;
        }
    }

    async fn step(&mut self, block: &Block, expected: &Expected) {
        let place = format!("{}, line {}: `{}`", self.name, block.line, block.first_line());
        match &expected.then {
            Then::NotRun(why) => println!("not run: {place}: {why}"),
            Then::Program(run) => run(self.stack, self.root, &block.code),
            Then::Run { shows, after } => {
                assert_eq!(block.language, "sh", "{place}: this is nothing for the shell");
                let begun = Instant::now();
                let output = self.shell.run(&with_values(&block.code), &place).await;
                println!("{:5.1} s  {place}", begun.elapsed().as_secs_f64());
                for part in *shows {
                    assert!(output.contains(part), "{place} does not show {part:?}: {output}");
                }
                if let Some((command, shows)) = after {
                    self.until(command, shows, &place).await;
                }
            }
        }
    }

    /// Repeats a command until its output contains all of these texts.
    async fn until(&mut self, command: &str, shows: &[&str], place: &str) {
        let begun = Instant::now();
        loop {
            let output = self.shell.run(command, place).await;
            if shows.iter().all(|part| output.contains(part)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{place}, then `{command}` does not show {shows:?}: {output}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}

/// Replaces placeholders: by the shell's own variable, or by a value that is valid nowhere.
fn with_values(code: &str) -> String {
    let line = |line: &str| {
        let Some((name, rest)) = line.split_once('=') else { return line.to_owned() };
        let value = rest.split([' ', '#']).next().unwrap_or_default();
        let variable = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if variable && value.ends_with('…') { format!("{name}=${{{name}:-none}}") } else { line.to_owned() }
    };
    code.lines().map(|code| line(code) + "\n").collect()
}

/// Runs all pages. The deployment of docs/getting-started.md mostly waits, so the other pages run in the meantime.
pub(crate) async fn do_as_they_say(stack: &Stack) {
    let root = Root::like_this_repository(stack.state_dir());
    let mut getting_started = Page::open("docs/getting-started.md", getting_started::EXPECTED, stack, &root);
    let pages: Vec<_> =
        readme::EXPECTED.iter().map(|&(name, expected)| Page::open(name, expected, stack, &root)).collect();
    let others = async {
        for page in pages {
            page.play_the_rest().await;
        }
    };
    tokio::join!(getting_started.through(getting_started::DEPLOYS), others);
    getting_started.play_the_rest().await;
}

#[test]
fn a_placeholder_gets_a_value_and_nothing_else_does() {
    let page = "KEY=…      # a key\nSID=AC…\nTEXT=\"a…\"\necho … KEY=…\nSTACK=switchboard\n";
    let run = "KEY=${KEY:-none}\nSID=${SID:-none}\nTEXT=\"a…\"\necho … KEY=…\nSTACK=switchboard\n";
    assert_eq!(with_values(page), run);
}

#[test]
fn the_blocks_of_a_page_are_its_programs() {
    let blocks = blocks("# A\n\n```sh\nmake run\n```\n\n```\nprinted\n```\n```json\n{}\n```\n```ts\nlet a;\n```\n");
    let seen: Vec<_> = blocks.iter().map(|block| (block.line, block.language.as_str(), block.first_line())).collect();
    assert_eq!(seen, [(4, "sh", "make run"), (14, "ts", "let a;")]);
}
