import { NO_PACE, type Pace } from '../../../domain/pace.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { minuteOf, paceRequestSchema, paceSchema, paceView } from '../../resources/pace.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from './instance-params.ts'

export function getPace(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/pace',
    {
      schema: {
        operationId: 'getPace',
        summary: 'Read how slowly an instance sends',
        tags: ['Instances'],
        params: instanceParams,
        response: { 200: dataOf(paceSchema, 'The pace.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      return { data: paceView((await store.paces.find(id))?.pace ?? NO_PACE) }
    },
  )
}

export function setPace(api: Api, { store, now }: ApiContext): void {
  api.put(
    '/instances/:id/pace',
    {
      schema: {
        operationId: 'setPace',
        summary: 'Set how slowly an instance sends',
        description:
          'Replaces the pace. Null or an absent field switches that limit off; without `timeZone` it is UTC. The pace applies to messages that were ' +
          'never handed to WhatsApp, including those that wait now. Commands, such as reactions, are not messages. ' +
          'While messages wait, those to contacts are sent before those to strangers. A message that waits says so ' +
          'in `waitingFor`.',
        tags: ['Instances'],
        params: instanceParams,
        body: paceRequestSchema,
        response: { 200: dataOf(paceSchema, 'The new pace.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { perMinute = null, newRecipientsPerDay = null, quietHours = null } = request.body
      const timeZone = request.body.timeZone ?? 'UTC'
      const typing = request.body.typing ?? false
      if (!isTimeZone(timeZone))
        throw new Refusal('invalid_request', '"timeZone" must be the name of a time zone, such as "America/Sao_Paulo".')
      if (quietHours !== null && quietHours.from === quietHours.until)
        throw new Refusal('invalid_request', '"quietHours" must not begin and end at the same time.')
      const pace: Pace = {
        perMinute,
        newRecipientsPerDay,
        timeZone,
        typing,
        quietHours: quietHours && { from: minuteOf(quietHours.from), until: minuteOf(quietHours.until) },
      }
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      noteForAudit(request, { pace: JSON.stringify(paceView(pace)) })
      orNotFound((await store.paces.set(id, pace, now())) || null)
      return { data: paceView(pace) }
    },
  )
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== null
  } catch {
    return false
  }
}
