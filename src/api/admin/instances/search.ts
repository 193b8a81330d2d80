import { Type } from 'typebox'
import type { InstanceId } from '../../../domain/ids.ts'
import type { Held } from '../../../store/instances/instances.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText } from '../../input.ts'
import { type FoundView, foundSchema } from '../../resources/found.ts'
import { instanceView } from '../../resources/instance.ts'
import { pageOf } from '../../resources/page.ts'

const MAX_TEXT_LENGTH = 100
const ID = /^(msg|evt)_[0-9a-z]{26}$/
const NUMBER = /^[1-9][0-9]{6,14}$/

export function search(api: Api, { store }: ApiContext): void {
  /** A received message is shown by its event. */
  async function locate(held: Held, instanceId: InstanceId): Promise<Pick<FoundView, 'kind' | 'id'> | null> {
    if (held.kind === 'number') return { kind: 'number', id: held.number }
    if (held.kind === 'event' || (await store.messages.find(instanceId, held.id)))
      return { kind: held.kind, id: held.id }
    const [event] = await store.messages.listEvents(instanceId, held.id)
    return event ? { kind: 'event', id: event.id } : null
  }

  api.get(
    '/search',
    {
      schema: {
        operationId: 'search',
        summary: 'Find a message, an event or a number in all instances',
        description:
          'By a whole message ID, event ID or number. A number is found where the instance has it as a contact, or ' +
          'looked it up on WhatsApp recently. At most 20 instances. For the name or number of an instance, use ' +
          '`search` of `listInstances`.',
        tags: ['Instances'],
        querystring: Type.Object({ text: Type.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH }) }),
        response: { 200: pageOf(foundSchema, 'Where it was found. Empty for anything else.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const { text } = request.query
      checkFilterText('text', text)
      const held = parseHeld(text.trim())
      if (held === null) return { data: [], nextCursor: null }
      const ids = await store.instances.listHolding(held, request.account?.instances)
      const found = await Promise.all(
        ids.map(async id => {
          const [instance, location] = await Promise.all([store.instances.find(id), locate(held, id)])
          return instance && location ? [{ ...location, instance: instanceView(instance) }] : []
        }),
      )
      return { data: found.flat(), nextCursor: null }
    },
  )
}

function parseHeld(text: string): Held | null {
  if (ID.test(text)) return { kind: text.startsWith('msg') ? 'message' : 'event', id: text }
  const number = text.replace(/[\s()+.-]/g, '')
  return NUMBER.test(number) ? { kind: 'number', number } : null
}
