import type { Api, ApiContext } from '../../context.ts'
import { contactsQuery, readContacts } from '../../list-directory.ts'
import { contactSchema } from '../../resources/conversation/directory.ts'
import { pageOf } from '../../resources/page.ts'

export function listContacts(api: Api, { store }: ApiContext): void {
  api.get(
    '/contacts',
    {
      schema: {
        operationId: 'listContacts',
        summary: 'List contacts',
        description:
          'The people whom the linked phone knows, and those who have written, by name. Nameless ones come last.',
        tags: ['Directory'],
        querystring: contactsQuery,
        response: { 200: pageOf(contactSchema, 'One page of contacts.') },
      },
      config: { scope: 'read', refusals: ['invalid_request'] },
    },
    request => readContacts(store.directory, request.instanceId, request.query),
  )
}
