// A call's facts in words.

/** The person's number, or why there is none. */
export function callerOf({ direction, caller_phone_number: caller, called_phone_number: called }) {
  const number = direction === 'outbound' ? called : caller;
  if (!number) return 'Unknown caller';
  return /^\+?\d/.test(number) || number.startsWith('sip:') ? number : 'Number withheld';
}
