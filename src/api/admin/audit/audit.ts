import { Type } from 'typebox'
import { shareCalls } from '../../../kit/share-calls.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText, parseMoment } from '../../input.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { auditCheckSchema, auditRecordSchema, auditRecordView } from '../../resources/people/audit.ts'
import { dataOf, moment } from '../../resources/schema-kit.ts'

const MAX_FILTER_LENGTH = 100
const filter = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: MAX_FILTER_LENGTH, description }))

const querySchema = Type.Object({
  ...pageQuery,
  by: filter('Only records of this actor, as in `by` of a record.'),
  action: filter('Only records of this `operationId`.'),
  instanceId: filter('Only records about this instance, which may be deleted.'),
  since: Type.Optional(moment('From this time on.')),
  until: Type.Optional(moment('Before this time.')),
})

export function listAudit(api: Api, { store }: ApiContext): void {
  api.get(
    '/audit',
    {
      schema: {
        operationId: 'listAudit',
        summary: 'List who did what',
        description:
          'Newest first: calls of `/admin/v1` that changed something, changes of webhooks and endpoints under `/v1`, ' +
          'exports of contacts, sign-ins, what was done with linking links, and sessions that commands imported ' +
          'or exported. Failed sign-ins are recorded once in 10 minutes for each network ' +
          'address, and at most 60 an hour on each node; `notRecordedBefore` counts the others. Records are never ' +
          'changed or erased.',
        tags: ['Audit'],
        querystring: querySchema,
        response: { 200: pageOf(auditRecordSchema, 'One page of records.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const { by, action, instanceId, since, until } = request.query
      for (const [name, text] of Object.entries({ by, action, instanceId })) {
        if (text !== undefined) checkFilterText(name, text)
      }
      const page = await store.audit.list(pageRequest(request.query), {
        actor: by,
        action,
        instanceId,
        since: since === undefined ? undefined : parseMoment('since', since),
        until: until === undefined ? undefined : parseMoment('until', until),
      })
      return { data: page.data.map(auditRecordView), nextCursor: page.nextCursor }
    },
  )
}

export function checkAudit(api: Api, { store }: ApiContext): void {
  const verify = shareCalls(() => store.audit.verify())
  api.get(
    '/audit/check',
    {
      schema: {
        operationId: 'checkAudit',
        summary: 'Check that no audit record was changed or removed',
        description: 'Reads every record, which takes about a second for every ten thousand.',
        tags: ['Audit'],
        response: { 200: dataOf(auditCheckSchema, 'The result.') },
      },
    },
    async () => ({ data: await verify() }),
  )
}
