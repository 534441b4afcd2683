// Failures as sentences with the next step.

export class SignInNeeded extends Error {
  constructor() {
    super('Your sign-in has expired, or is not accepted any more. Sign in again; what you have written is kept.');
  }
}

/**
 * The API refused: `status`, `code` (may be empty) and the sentence; `decided` tells an earlier decision about a consent;
 * `diagnostics` are the mistakes of a definition, `fields` those of a body, `{field, problem}`.
 */
export class Refused extends Error {
  constructor(status, code, sentence, { decided = null, diagnostics = [], fields = [] } = {}) {
    super(sentence);
    this.status = status;
    this.code = code;
    this.decided = decided;
    this.diagnostics = diagnostics;
    this.fields = fields;
  }
}

/** From an answer: a problem document (RFC 9457), or a gateway's own form. */
export async function refusal(answer) {
  const text = await answer.text().catch(() => '');
  let body = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    // A proxy's page is not shown.
  }
  const diagnostics = Array.isArray(body.diagnostics) ? body.diagnostics : [];
  const fields = Array.isArray(body.errors) ? body.errors : [];
  const mistakes = diagnostics.length > 0 ? 'this version has mistakes, which are shown at their places' : '';
  const said = fields.map(({ field, problem }) => `${field} ${problem}`).join('; ') || body.detail || body.message || mistakes;
  const sentence = sentenceOf(said) || usual(answer.status);
  return new Refused(answer.status, body.code ?? '', [sentence, next(answer)].filter(Boolean).join(' '), { decided: body.decided, diagnostics, fields });
}

/** With the next step. */
export function failureOf({ message, code }) {
  const sentence = sentenceOf(message ?? '') || 'The answer could not be given.';
  const says = /\b(again|ask|wait|choose|sign|change|shorten)\b/i.test(sentence);
  return says || code === 'forbidden' ? sentence : `${sentence} Send the message again; what was done already is not done twice.`;
}

/** Capital and full stop. */
function sentenceOf(text) {
  const trimmed = String(text).trim();
  if (trimmed === '') return '';
  const begun = trimmed[0].toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

function usual(status) {
  if (status === 429) return 'Too much was asked at once.';
  if (status >= 500) return 'The service has a problem of its own.';
  return `The request was refused (${status}).`;
}

function next(answer) {
  const seconds = Number.parseInt(answer.headers.get('retry-after') ?? '', 10);
  if (seconds > 0) return `Try again in ${duration(seconds)}.`;
  if (answer.status === 429 || answer.status >= 500) return 'Try again in a moment.';
  return '';
}

function duration(seconds) {
  const units = [[86_400, 'day'], [3_600, 'hour'], [60, 'minute'], [1, 'second']];
  const [length, name] = units.find(([unit]) => seconds >= unit);
  const count = Math.ceil(seconds / length);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

/** The organizations to choose from, if the refusal asks for one; else null. */
export function organizationsIn(error) {
  if (!(error instanceof Refused) || error.status !== 400) return null;
  const listed = /header X-Organization: ([a-z0-9-]+(?:, [a-z0-9-]+)*)/.exec(error.message);
  return listed ? listed[1].split(', ') : null;
}
