import type { Api, ApiContext } from '../../../context.ts'
import { signInOptionsSchema } from '../../../resources/people/sign-in.ts'
import { dataOf } from '../../../resources/schema-kit.ts'

export function getSignInOptions(api: Api, { oidc }: ApiContext): void {
  api.get(
    '/sign-in',
    {
      schema: {
        operationId: 'getSignInOptions',
        summary: 'Read how people can sign in',
        tags: ['Panel'],
        security: [],
        response: { 200: dataOf(signInOptionsSchema, 'The ways to sign in besides the admin key and passwords.') },
      },
    },
    async () => ({ data: { oidc: oidc === null ? null : { name: oidc.name } } }),
  )
}
