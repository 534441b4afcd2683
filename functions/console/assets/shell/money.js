// Amounts of money in words.

/** US dollars with the digits that matter: `$0.118`, `$12.40`; a dash where nothing is known. */
export function dollars(amount) {
  if (amount === null || amount === undefined) return '–';
  const digits = amount !== 0 && amount < 1 ? 4 : 2;
  return `$${amount.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, '$1')}`;
}
