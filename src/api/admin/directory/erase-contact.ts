import { Type } from 'typebox'
import { isChat, parseRecipient } from '../../../domain/recipients/recipient.ts'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { erasedContactSchema } from '../../resources/conversation/directory.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { lastDigits, noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

export const contactParams = Type.Object({
  id: instanceIdSchema,
  contact: Type.String({
    maxLength: 64,
    description: 'A number, a LID (`digits@lid`), or any other value that an event gives as the `chat` of a person.',
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
          'Erases what is stored of one person: messages in both directions, the content of their events, received ' +
          'files, the name, cached look-ups, and the person in events about groups. In groups, the messages of the person ' +
          'are erased, with the reactions of the instance to them and the records of its deletions of them. Replies to them ' +
          'stay without the quotation, and read marks without the person.\n\n' +
          'These stay:\n' +
          '- files that were sent to the person, or attached to replies in groups, until they expire\n' +
          '- the member lists of groups, as WhatsApp reports them\n' +
          '- the Signal keys for this person\n' +
          '- mentions of the person, and what other people, and the owner on another device, quote',
        tags: ['Message log'],
        params: contactParams,
        response: { 200: dataOf(erasedContactSchema, 'What was erased.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id, contact } = request.params
      checkContact(contact)
      noteForAudit(request, { contact: lastDigits(contact) })
      const instance = await getInstanceOrRefuse(store, id)
      return { data: await store.retention.eraseContact(instance.id, contact, store.clock.now()) }
    },
  )
}

/** @throws Refusal `invalid_request` unless it names a person */
export function checkContact(contact: string): void {
  if (!isChat(contact) || parseRecipient(contact)?.kind === 'group')
    throw invalid('contact', 'must be a number or a LID')
}
