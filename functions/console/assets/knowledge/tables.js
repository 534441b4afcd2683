// A table as text, in parts that the API takes.

/** The API takes 5,000 rows and 4 MB; a smaller part shows progress. */
const ROWS = 500;
const LETTERS = 1_000_000;

/** `{text, before}` of each part, with the header; `before`: rows of earlier parts. A line break within quotes ends no row. */
export function inParts(table, { rows = ROWS, letters = LETTERS } = {}) {
  const lines = linesOf(table.replace(/^\uFEFF/, ''));
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
  const lines = [];
  let open = '';
  for (const line of table.split(/\r\n|\n|\r/)) {
    open = open === '' ? line : `${open}\n${line}`;
    if ((open.split('"').length - 1) % 2 === 1) continue;
    if (open.trim() !== '') lines.push(open);
    open = '';
  }
  if (open.trim() !== '') lines.push(open);
  return lines;
}
