import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkText } from '../../input.ts'
import { callsRequestSchema, callsSchema } from '../../resources/calls.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from '../instances/instance-params.ts'

export function getCalls(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/calls',
    {
      schema: {
        operationId: 'getCalls',
        summary: 'Read what happens to phone calls',
        tags: ['Connection'],
        params: instanceParams,
        response: { 200: dataOf(callsSchema, 'What happens to phone calls.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      return { data: orNotFound(await store.connections.find(id)).calls }
    },
  )
}

export function setCalls(api: Api, { store }: ApiContext): void {
  api.put(
    '/instances/:id/calls',
    {
      schema: {
        operationId: 'setCalls',
        summary: 'Set what happens to phone calls',
        description:
          'A rejected phone call also stops ringing on the phone. A phone call that Pombal learns of more than 5 minutes ' +
          'after it began is left alone. The text goes through the ordinary queue, at most once an hour to one person, and ' +
          'not to groups.',
        tags: ['Connection'],
        params: instanceParams,
        body: callsRequestSchema,
        response: { 200: dataOf(callsSchema, 'What happens to phone calls from now on.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { reject, text = null } = request.body
      if (text !== null) {
        if (!reject) throw new Refusal('invalid_request', '"text" is only for rejected calls: set "reject" to true.')
        checkText(text)
      }
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      noteForAudit(request, { reject: String(reject) })
      orNotFound((await store.connections.setCalls(id, { reject, text })) || null)
      return { data: { reject, text } }
    },
  )
}
