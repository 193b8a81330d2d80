import { type Static, Type } from 'typebox'
import { nullable } from '../schema-kit.ts'

export const signInOptionsSchema = Type.Object(
  {
    oidc: nullable(
      Type.Object(
        { name: Type.String({ description: 'What the provider is called.', examples: ['Keycloak'] }) },
        { title: 'SignInProvider', description: 'The OpenID Connect provider; null if none is configured.' },
      ),
    ),
  },
  { title: 'SignInOptions' },
)

export const begunSignInSchema = Type.Object(
  { url: Type.String({ description: 'The page of the provider to open.' }) },
  { title: 'BegunSignIn' },
)

export type SignInOptionsView = Static<typeof signInOptionsSchema>
export type BegunSignInView = Static<typeof begunSignInSchema>
