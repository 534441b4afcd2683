/**
 * How many times longer `read` takes for 32 times as much of `make(size)`: about 32 if the cost grows with the length, 1,000 if with its
 * square. The best of some tries counts, for others use the machine, too.
 */
export function growth(make, read, size) {
  const best = (text) => {
    const tries = [1, 2, 3, 4, 5].map(() => {
      const began = performance.now();
      read(text);
      return performance.now() - began;
    });
    return Math.min(...tries);
  };
  const [short, long] = [make(size), make(32 * size)];
  read(long);
  return best(long) / Math.max(best(short), 0.2);
}
