import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import type { Credential } from './account-passkey.ts'

const ORIGIN = 'https://web.whatsapp.com'
export const RP_ID = 'whatsapp.com'

/**
 * The passkey's counter after this use. Null if the assertion is not valid for this passkey, challenge and WhatsApp's
 * page.
 */
export async function checkAssertion(text: Buffer, challenge: string, credential: Credential): Promise<number | null> {
  // Loaded when it is needed, because most networks never ask for a passkey.
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  try {
    const given = JSON.parse(text.toString()) as AuthenticationResponseJSON
    const { id, publicKey, counter } = credential
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...given, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: ORIGIN,
      expectedRPID: RP_ID,
      credential: { id, publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')), counter },
      requireUserVerification: true,
    })
    const isSameUser = given.id === id && given.rawId === id
    return verified && authenticationInfo.userVerified && isSameUser ? authenticationInfo.newCounter : null
  } catch {
    return null
  }
}
