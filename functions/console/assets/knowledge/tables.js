// A table as text, in parts that the API takes.

/** The API takes 5,000 rows and 4 MB; a smaller part shows progress. */
const ROWS = 500;
const LETTERS = 1_000_000;

/** The text of a file; the API says the same of other encodings. */
export function textOf(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('The table is not UTF-8 text; save it as "CSV UTF-8".');
  }
}

/**
 * Sends a table in parts and tells the sums after each: `{done, all, loaded, rows, wrong}`, where `rows` were not taken and `wrong` says why.
 * Rows have their numbers in the whole table, and an id that an earlier part has is refused as the API refuses it within a part.
 */
export async function load(table, send, told) {
  const parts = inParts(table);
  const sum = { done: 0, all: parts.length, loaded: 0, rows: 0, wrong: [] };
  /** Rows by the ids that were taken. */
  const taken = new Map();
  told({ ...sum });
  for (const { text, before } of parts) {
    const [header = '', ...lines] = linesOf(text);
    const idOf = ids(header);
    const rows = lines.map((line, place) => ({ line, id: idOf(line), row: before + place + 2 }));
    const fresh = rows.filter(({ id }) => !taken.has(id));
    const twins = rows.filter(({ id }) => taken.has(id));
    sum.wrong.push(...twins.map(({ id, row }) => ({ row, field: 'id', problem: `is that of row ${taken.get(id)} too, or the rows are the same; give each its own id` })));
    sum.rows += twins.length;
    if (fresh.length > 0 || twins.length === 0) {
      const answer = await send(twins.length > 0 ? [header, ...fresh.map(({ line }) => line)].join('\n') : text);
      const numbered = (row) => fresh[row - 2]?.row ?? row;
      const wrong = answer.refused.map(({ row, field, problem }) => ({ row: numbered(row), field, problem: problem.replace(/^is that of row (\d+)/, (_, earlier) => `is that of row ${numbered(earlier)}`) }));
      const refused = new Set(wrong.map(({ row }) => row));
      // The API cuts long lists of problems. Of the rows behind a cut it does not say which were taken.
      const known = answer.refused_rows > refused.size ? Math.max(...refused) : Infinity;
      for (const { id, row } of fresh) if (id && row < known && !refused.has(row)) taken.set(id, row);
      sum.loaded += answer.loaded;
      sum.rows += answer.refused_rows;
      sum.wrong.push(...wrong);
    }
    sum.done += 1;
    told({ ...sum });
  }
}

/** `{text, before}` of each part, with the header; `before`: rows of earlier parts. A line break within quotes ends no row. */
export function inParts(table, { rows = ROWS, letters = LETTERS } = {}) {
  const lines = linesOf(table.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n').replace(/^\s*\n/, ''));
  const [header = '', ...rest] = lines;
  if (rest.length === 0) return [{ text: header, before: 0 }];
  const parts = [];
  let part = [];
  let size = 0;
  let before = 0;
  const end = () => {
    parts.push({ text: [header, ...part].join('\n'), before });
    before += part.length;
    part = [];
    size = 0;
  };
  for (const line of rest) {
    if (part.length > 0 && (part.length >= rows || size + line.length > letters)) end();
    part.push(line);
    size += line.length;
  }
  end();
  return parts;
}

/** Without blank ones. */
function linesOf(table) {
  return split(table, '\n', delimiterOf(table)).filter((line) => line.trim() !== '');
}

/** The text between `ends`, none of which is within quotes. As the API reads, a quote opens only where a cell begins, and two are one. */
function split(text, ends, delimiter) {
  const found = [];
  let from = 0;
  let begins = true;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') continue;
      if (text[at + 1] === '"') at += 1;
      else quoted = false;
    } else {
      quoted = begins && sign === '"';
      begins = sign === delimiter || sign === '\n';
      if (sign === ends) {
        found.push(text.slice(from, at));
        from = at + 1;
      }
    }
  }
  return [...found, text.slice(from)];
}

/** The most frequent in the header outside quotes, as the API chooses it. */
function delimiterOf(table) {
  const counts = { ',': 0, ';': 0, '\t': 0 };
  let quoted = false;
  for (const sign of table) {
    if (sign === '"') quoted = !quoted;
    else if (sign === '\n' && !quoted) break;
    else if (sign in counts && !quoted) counts[sign] += 1;
  }
  return Object.keys(counts).reduce((best, sign) => (counts[sign] > counts[best] ? sign : best));
}

/** Gives a row's id; empty without one. */
function ids(header) {
  const delimiter = delimiterOf(header);
  const cells = (line) => split(line, delimiter, delimiter).map((cell) => cell.replace(/^"([^]*)"$/, '$1').trim());
  const column = cells(header).findIndex((name) => name.toLowerCase() === 'id');
  return (line) => (column === -1 ? '' : cells(line)[column]);
}
