/** What WhatsApp asks the owner's passkey for: WebAuthn's options for `navigator.credentials.get`, binaries as base64url. */
export interface PasskeyRequest {
  challenge: string
  rpId: string
  allowCredentials: { id: string; type: 'public-key'; transports?: string[] }[]
  userVerification: 'required' | 'preferred' | 'discouraged'
}

/** What the passkey answers, binaries as base64url. Anybody who has it can link a device to the account until the request expires. */
export interface PasskeyAssertion {
  id: string
  rawId: string
  type: 'public-key'
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle: string | null }
}

/** The step of a linking with a passkey that a person has to take. */
export interface PasskeyStep {
  stage: 'assertion' | 'code'
  /** Set at the stage `assertion`. */
  request: PasskeyRequest | null
  /** Set at the stage `code`: eight characters that the phone must also show. */
  code: string | null
  expiresAt: number
}

export type PasskeyAnswer = { stage: 'assertion'; assertion: PasskeyAssertion } | { stage: 'code' }

/** An answer that the owner of the instance has not read after this time is void. */
export const PASSKEY_ANSWER_MS = 60_000

const BASE64URL = /^[A-Za-z0-9_-]+$/
const VERIFICATIONS = ['required', 'preferred', 'discouraged'] as const
/** How long WhatsApp's web client waits for an answer. */
const LONGEST_MS = 600_000

/** Reads WhatsApp's options. Null if they are not valid. `validMs` is at most ten minutes. */
export function parsePasskeyRequest(text: string): { request: PasskeyRequest; validMs: number } | null {
  let given: Record<string, unknown>
  try {
    given = Object(JSON.parse(text))
  } catch {
    return null
  }
  const { challenge, rpId, allowCredentials, userVerification, timeout } = given
  if (typeof challenge !== 'string' || !BASE64URL.test(challenge) || typeof rpId !== 'string') return null
  return {
    request: {
      challenge,
      rpId,
      allowCredentials: (Array.isArray(allowCredentials) ? allowCredentials : []).flatMap(toCredential),
      userVerification: VERIFICATIONS.find(one => one === userVerification) ?? 'required',
    },
    validMs: typeof timeout === 'number' && timeout > 0 ? Math.min(timeout, LONGEST_MS) : LONGEST_MS,
  }
}

function toCredential(given: unknown): PasskeyRequest['allowCredentials'] {
  const { id, transports } = Object(given) as Record<string, unknown>
  if (typeof id !== 'string' || !BASE64URL.test(id)) return []
  const known = Array.isArray(transports) ? transports.filter(one => typeof one === 'string') : []
  return [{ id, type: 'public-key', ...(known.length > 0 && { transports: known }) }]
}
