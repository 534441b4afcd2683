import assert from 'node:assert/strict';

/**
 * Fails if `read` takes more than 5 s of CPU time for `make(250_000)`. The slowest linear reader takes 0.6 s, a quadratic one about 40 s,
 * so a busy machine changes no result.
 */
export function isReadInTime(name, make, read) {
  const text = make(250_000);
  const began = process.cpuUsage();
  read(text);
  const { user, system } = process.cpuUsage(began);
  const seconds = (user + system) / 1e6;
  assert.ok(seconds < 5, `${name}: ${seconds} s`);
}
