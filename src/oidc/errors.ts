const MAX_CAUSES = 5
const MAX_REASON_LENGTH = 400

export class ProviderUnreachable extends Error {
  override readonly name = 'ProviderUnreachable'
}

export function isUnreachable(error: unknown): boolean {
  return causesOf(error).some(cause => cause instanceof ProviderUnreachable || cause.name === 'TimeoutError')
}

/** Messages and codes of the error and its causes. Claims, which some causes contain, are left out. */
export function reasonOf(error: unknown): string {
  const reasons = causesOf(error).map(cause => {
    const { code, error: oauthCode } = cause as { code?: unknown; error?: unknown }
    return [cause.message, code, oauthCode].filter(part => typeof part === 'string' && part !== '').join(', ')
  })
  return reasons.join('; ').slice(0, MAX_REASON_LENGTH)
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = []
  for (let cause = error; cause instanceof Error && causes.length < MAX_CAUSES; cause = cause.cause) causes.push(cause)
  return causes
}
