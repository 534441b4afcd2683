import assert from 'node:assert/strict';

/**
 * Fails if `read` takes more than 5 s of CPU time for `make(250_000)`: ten times what the slowest reader takes whose cost grows with the
 * length, and a quarter of what one takes whose cost grows with its square. A busy machine changes neither.
 */
export function isReadInTime(name, make, read) {
  const text = make(250_000);
  const began = process.cpuUsage();
  read(text);
  const { user, system } = process.cpuUsage(began);
  const seconds = (user + system) / 1e6;
  assert.ok(seconds < 5, `${name}: ${seconds} s`);
}
