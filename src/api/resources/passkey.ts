import { type Static, Type } from 'typebox'
import type { PasskeyAssertion, PasskeyStep } from '../../domain/connection/passkey.ts'
import { moment, nullable, oneOf, toIso } from './schema-kit.ts'

const BASE64URL = '^[A-Za-z0-9_-]+$'
const MAX_ID_LENGTH = 1_400
const MAX_PART_LENGTH = 4_096

const requestSchema = Type.Object(
  {
    challenge: Type.String({ description: 'Base64url.', examples: ['2pM4mWc7b8Jr0nq1S7yN3gUj0S1b2cTn5cYd8V4y6kA'] }),
    rpId: Type.String({ examples: ['whatsapp.com'] }),
    allowCredentials: Type.Array(
      Type.Object({
        id: Type.String({ description: 'Base64url.' }),
        type: Type.Literal('public-key'),
        transports: Type.Optional(Type.Array(Type.String())),
      }),
      { description: 'The passkeys that may answer. Empty: any passkey of the account.' },
    ),
    userVerification: oneOf(['required', 'preferred', 'discouraged']),
  },
  { title: 'PasskeyRequest', description: 'The options for `navigator.credentials.get`, as WhatsApp sent them.' },
)

/** What a person has to do while a number is linked with a passkey. */
export const passkeySchema = nullable(
  Type.Object(
    {
      stage: oneOf(['assertion', 'code'], {
        description: '`assertion`: the passkey has to answer. `code`: a person has to compare the code with the phone.',
      }),
      request: nullable(requestSchema),
      code: nullable(
        Type.String({ description: 'In the stage `code`: the phone must show the same code.', examples: ['7KQ2M9XA'] }),
      ),
      expiresAt: moment('After this time an answer is refused.'),
    },
    {
      title: 'PasskeyStep',
      description: 'What WhatsApp asks for while a number is linked with a passkey. Null if it asks for nothing now.',
    },
  ),
)

const part = (description: string, maxLength = MAX_PART_LENGTH) =>
  Type.String({ minLength: 1, maxLength, pattern: BASE64URL, description: `${description} Base64url.` })

export const assertionSchema = Type.Object(
  {
    id: part('The ID of the passkey.', MAX_ID_LENGTH),
    rawId: part('The same ID.', MAX_ID_LENGTH),
    type: Type.Literal('public-key'),
    response: Type.Object({
      clientDataJSON: part('The client data that the browser wrote, which the passkey has signed.'),
      authenticatorData: part("The authenticator's data."),
      signature: part('The signature.'),
      userHandle: Type.Optional(
        nullable(
          Type.String({ maxLength: MAX_ID_LENGTH, pattern: '^[A-Za-z0-9_-]*$', description: 'Base64url, or null.' }),
        ),
      ),
    }),
  },
  {
    title: 'PasskeyAssertion',
    description:
      'What the passkey answered on https://web.whatsapp.com. It is stored encrypted until the connection reads it, ' +
      'for 60 s at most, passed on to WhatsApp once, and erased.',
  },
)

/** The fields that WhatsApp gets. A browser's `credential.toJSON()` has more, and leaves out a `userHandle` that is null. */
export function assertionOf({ id, rawId, type, response }: Static<typeof assertionSchema>): PasskeyAssertion {
  const { clientDataJSON, authenticatorData, signature, userHandle = null } = response
  return { id, rawId, type, response: { clientDataJSON, authenticatorData, signature, userHandle } }
}

type PasskeyView = Static<typeof passkeySchema>

export function passkeyView(step: PasskeyStep | null): PasskeyView {
  return step && { ...step, expiresAt: toIso(step.expiresAt) }
}
