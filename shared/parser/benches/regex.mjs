// A parser of tool calls by regular expressions, as common in JavaScript agents, for comparison in the benchmark.
// It reads only well-formed input and reports no errors.
//
// node regex.mjs <file> [seconds]  prints the bytes parsed per second.

import { readFileSync } from "node:fs";

const BLOCK = /```tool\s*\n([\s\S]*?)```/g;
const TEXT = String.raw`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\`(?:[^\`\\]|\\[\s\S])*\``;
const CALL = new RegExp(String.raw`(?:return\s+)?(?:await\s+)?(\w+)\(((?:[^()"'\`]|${TEXT})*)\)\s*;?`, "g");
const ARGUMENT = new RegExp(String.raw`\s*((?:[^,"'\`{}[\]]|${TEXT}|\{(?:[^{}"'\`]|${TEXT}|\{[^{}]*\})*\}|\[(?:[^[\]"'\`]|${TEXT}|\[[^[\]]*\])*\])+)\s*,?`, "gy");
const TOKEN = new RegExp(`${TEXT}|([{,]\\s*)([A-Za-z_$][\\w$]*)(\\s*:)`, "g");

function unquoted(text) {
  return text.slice(1, -1).replace(/\\(u\{([0-9A-Fa-f]+)\}|[\s\S])/g, (_, one, code) =>
    code ? String.fromCodePoint(parseInt(code, 16)) : ({ n: "\n", t: "\t", r: "\r" })[one] ?? one);
}

function value(text) {
  try {
    return JSON.parse(text);
  } catch {
    if (/^["'`]/.test(text)) return unquoted(text);
    const json = text.replace(TOKEN, (token, before, name, behind) =>
      name === undefined ? JSON.stringify(unquoted(token)) : `${before}"${name}"${behind}`);
    try {
      return JSON.parse(json);
    } catch {
      return text;
    }
  }
}

function values(text) {
  try {
    return JSON.parse(`[${text}]`);
  } catch {
    return Array.from(text.matchAll(ARGUMENT), (found) => value(found[1].trim()));
  }
}

export function parse(answer) {
  const calls = [];
  for (const [, block] of answer.matchAll(BLOCK)) {
    for (const [, name, written] of block.matchAll(CALL)) calls.push({ name, arguments: values(written) });
  }
  return calls;
}

const [, , file, seconds = "0.5"] = process.argv;
if (file) {
  const answer = readFileSync(file, "utf8");
  let best = Infinity;
  for (const end = performance.now() + 1000 * Number(seconds); performance.now() < end; ) {
    const begun = performance.now();
    parse(answer);
    best = Math.min(best, performance.now() - begun);
  }
  console.log(Math.round((Buffer.byteLength(answer) / best) * 1000));
}
