import { shareCalls } from '../../../kit/share-calls.ts'
import type { Api, ApiContext } from '../../context.ts'
import { auditCheckSchema } from '../../resources/people/audit.ts'
import { dataOf } from '../../resources/schema-kit.ts'

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
