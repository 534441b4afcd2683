// No answer from the service or the issuer.

export class Unreachable extends Error {
  constructor(cause) {
    super('The service cannot be reached. Check your connection, then try again.', { cause });
  }
}
