// A call's facts in words.

/** The number, or why there is none. */
export function callerOf({ caller_phone_number: number }) {
  if (!number) return 'Unknown caller';
  return /^\+?\d/.test(number) || number.startsWith('sip:') ? number : 'Number withheld';
}
