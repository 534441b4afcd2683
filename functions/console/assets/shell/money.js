// Amounts of money in words.

/** US dollars: `$0.118`, `$12.40`; a dash if unknown. */
export function dollars(amount) {
  if (amount === null || amount === undefined) return '–';
  const digits = amount !== 0 && amount < 1 ? 4 : 2;
  return amount.toLocaleString('en', { style: 'currency', currency: 'USD', maximumFractionDigits: digits });
}
