import { Type } from 'typebox'
import { parseRecipient } from '../../../domain/recipients/recipient.ts'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { lastDigits, noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

const paramsSchema = Type.Object({
  id: instanceIdSchema,
  contact: Type.String({ maxLength: 64, description: 'A number, or a LID (`digits@lid`).' }),
})

const erasedSchema = Type.Object({
  data: Type.Object({
    messages: Type.Integer({ description: 'Erased messages and commands, sent and received, also those in groups.' }),
    events: Type.Integer({ description: 'Events that have lost their content: `data` has only `id` and `erased`.' }),
    files: Type.Integer({ description: 'Erased files that the contact had sent.' }),
    kept: Type.Integer({
      description:
        'Messages that were kept: they are queued, were sent less than 25 hours ago, or their events are still being ' +
        'posted. If it is not 0, repeat the call a day later.',
    }),
  }),
})

export function eraseContact(api: Api, { store }: ApiContext): void {
  api.delete(
    '/instances/:id/contacts/:contact',
    {
      schema: {
        operationId: 'eraseContact',
        summary: 'Erase a contact',
        description:
          'Erases what is stored of one person: messages in both directions, the content of their events, received files, ' +
          'the name, and cached look-ups. A file that was sent to the person stays until it expires. The instance still ' +
          'has the keys of WhatsApp for this person.',
        tags: ['Message log'],
        params: paramsSchema,
        response: { 200: erasedSchema },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id, contact } = request.params
      const kind = parseRecipient(contact)?.kind
      if (kind !== 'number' && kind !== 'lid') throw invalid('contact', 'must be a number or a LID')
      noteForAudit(request, { contact: lastDigits(contact) })
      const instance = await getInstanceOrRefuse(store, id)
      return { data: await store.retention.eraseContact(instance.id, contact, store.clock.now()) }
    },
  )
}
