// JSON as it is typed: its value, the place of each part, and the first mistake, also while it is unfinished.

/** Lists and objects in each other. */
const DEEPEST = 200;
const CLOSES = { '{': '}', '[': ']' };
const BLANK = /[ \t\n\r]*/y;
const WORD = /[^\s,:{}[\]"]+/y;

/**
 * `{value, parts, problem}`. `parts` has each value by its JSON pointer: `{start, end, name, first, last}`, where `name` is the place of the
 * member's name, and `first` and `last` are the beginning and the end of the parts in it. `problem` is `{at, message}`, or null for JSON.
 * A text with a mistake has the value of its readable parts.
 */
export function readJson(text) {
  const reader = new Reader(text);
  const value = reader.whole();
  const { parts, problem } = reader;
  return { value: problem ? value : JSON.parse(text), parts, problem };
}

class Reader {
  parts = new Map();
  problem = null;
  #text;
  #at = 0;
  /** The closing brackets that are still to come. */
  #open = [];

  constructor(text) {
    this.#text = text;
  }

  whole() {
    this.#blank();
    if (this.#ended()) return this.#wrong('There is no definition yet. It begins with {.');
    const value = this.#value('', null);
    this.#blank();
    if (!this.#ended()) this.#wrong('Nothing may follow the end of the definition.');
    return value;
  }

  #ended() {
    return this.#at >= this.#text.length;
  }

  #wrong(message, at = this.#at) {
    this.problem ??= { at: Math.min(at, this.#text.length), message };
  }

  #skip(pattern) {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [''];
    this.#at += found.length;
    return found;
  }

  #blank() {
    this.#skip(BLANK);
  }

  #value(pointer, name) {
    const part = { start: this.#at, end: this.#at, name, first: null, last: null };
    this.parts.set(pointer, part);
    const begins = this.#text[this.#at];
    const value = begins in CLOSES ? this.#container(pointer, part, begins) : begins === '"' ? this.#string() : this.#word();
    part.end = this.#at;
    return value;
  }

  #string() {
    const start = this.#at;
    this.#at += 1;
    while (!this.#ended() && this.#text[this.#at] !== '"' && this.#text[this.#at] !== '\n') this.#at += this.#text[this.#at] === '\\' && this.#text[this.#at + 1] !== '\n' ? 2 : 1;
    this.#at = Math.min(this.#at, this.#text.length);
    if (this.#text[this.#at] !== '"') {
      this.#wrong('This text has no quote at its end.', start);
      return this.#text.slice(start + 1, this.#at).trimEnd();
    }
    this.#at += 1;
    const raw = this.#text.slice(start, this.#at);
    const value = parsed(raw);
    if (value === undefined) this.#wrong('This text has a character that JSON writes in another way: \\" for a quote, \\\\ for a backslash, \\n for a new line.', start);
    return value ?? raw.slice(1, -1);
  }

  #word() {
    const start = this.#at;
    const word = this.#skip(WORD);
    // A character that stands nowhere in JSON.
    if (!word) this.#at += 1;
    const value = parsed(word);
    if (value === undefined) this.#wrong(word ? 'This is no value. A text stands in double quotes.' : 'A value is missing here.', start);
    return value === undefined ? word : value;
  }

  /** The members of an object, or the items of a list. */
  #container(pointer, part, begins) {
    const closes = CLOSES[begins];
    const isObject = begins === '{';
    const value = isObject ? {} : [];
    const start = this.#at;
    let [count, comma] = [0, null];
    this.#at += 1;
    if (this.#open.length >= DEEPEST) {
      this.#wrong('Lists and objects stand too deep in each other.', start);
      this.#at = this.#text.length;
      return value;
    }
    this.#open.push(closes);
    for (;;) {
      this.#blank();
      const next = this.#text[this.#at];
      if (next === closes) {
        if (comma !== null) this.#wrong('Nothing follows this comma. Leave it out.', comma);
        this.#at += 1;
        break;
      }
      if (this.#ended() || (this.#open.includes(next) && next !== ',')) {
        this.#wrong(`This ${begins} has no ${closes}.`, start);
        break;
      }
      if (next === '}' || next === ']') {
        this.#wrong(`This ${next} closes nothing.`);
        this.#at += 1;
        continue;
      }
      if (next === ',') {
        if (count === 0 || comma !== null) this.#wrong('Nothing stands before this comma.');
        comma = this.#at;
        this.#at += 1;
        continue;
      }
      if (count > 0 && comma === null) this.#wrong('A comma is missing here.', part.last);
      comma = null;
      part.first ??= this.#at;
      if (isObject) this.#member(pointer, value);
      else this.#item(pointer, value, count);
      count += 1;
      part.last = this.#at;
    }
    this.#open.pop();
    return value;
  }

  #item(pointer, items, count) {
    if (this.#text[this.#at] === ':') {
      this.#wrong('A list has no names. Put { and } around the names and their values.');
      this.#at += 1;
      return;
    }
    items.push(this.#value(`${pointer}/${count}`, null));
  }

  #member(pointer, members) {
    const start = this.#at;
    const isText = this.#text[start] === '"';
    const name = isText ? this.#string() : this.#skip(WORD);
    if (!isText) this.#wrong('A name in double quotes is missing here.', start);
    const place = { start, end: this.#at };
    this.#blank();
    if (this.#text[this.#at] === ':') this.#at += 1;
    else this.#wrong('A colon and a value are missing after this name.', place.start);
    // A bracket that is no name.
    if (this.#at === start) this.#at += 1;
    this.#blank();
    const below = `${pointer}/${escaped(name)}`;
    if (this.#ended() || ',}]'.includes(this.#text[this.#at])) {
      this.#wrong('The value of this name is missing.', place.start);
      this.parts.set(below, { start: this.#at, end: this.#at, name: place, first: null, last: null });
      this.#at = Math.max(place.end, this.#text.slice(0, this.#at).trimEnd().length);
      return;
    }
    if (this.#text[this.#at] !== ':') members[name] = this.#value(below, place);
  }
}

/** A name as a step of a JSON pointer. */
export function escaped(name) {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The value of JSON; undefined for another text. */
export function parsed(raw) {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

/** `{line, column}` of a place, from 1. */
export function lineOf(text, at) {
  const before = text.slice(0, at);
  return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') };
}
