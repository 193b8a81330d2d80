import { Type } from 'typebox'
import { currentState } from '../../../domain/connection/connection.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkNumber } from '../../input.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { NumberChecks } from './number-checks.ts'

const MAX_NUMBERS = 50
const DEFAULT_PER_DAY = 500

const checkedSchema = Type.Object({
  number: Type.String({ description: 'The number, as in the call.' }),
  exists: nullable(
    Type.Boolean({ description: 'Whether the number is on WhatsApp; null if that could not be established.' }),
  ),
  chat: nullable(
    Type.String({ description: 'The number as WhatsApp knows it, for the `to` of a message; null unless it exists.' }),
  ),
})

export function checkNumbers(api: Api, { store, settings, now }: ApiContext): void {
  const checks = new NumberChecks({ store, perDay: settings.numberChecksPerDay ?? DEFAULT_PER_DAY, now })
  api.post(
    '/numbers/check',
    {
      schema: {
        operationId: 'checkNumbers',
        summary: 'Check whether numbers are on WhatsApp',
        description:
          'Answers after at most 10 s. Earlier answers of WhatsApp are used for 7 days, or for an hour if the number was ' +
          'not on WhatsApp and has not written since. Other numbers count against a budget per instance and day.',
        tags: ['Directory'],
        body: Type.Object({
          numbers: Type.Array(Type.String({ maxLength: 64, examples: ['5511987654321'] }), {
            minItems: 1,
            maxItems: MAX_NUMBERS,
            description: 'With the country code, digits only.',
          }),
        }),
        response: { 200: dataOf(Type.Array(checkedSchema), 'One entry for each number, in the order of the call.') },
      },
      config: { scope: 'send', refusals: ['invalid_request', 'lookup_budget_spent'] },
    },
    async request => {
      const { numbers } = request.body
      for (const [index, number] of numbers.entries()) checkNumber(`numbers.${index}`, number)
      const { instanceId } = request
      const connection = await store.connections.find(instanceId)
      const isConnected = connection !== null && currentState(connection, true, now()) === 'connected'
      const found = await checks.check(instanceId, [...new Set(numbers)], isConnected)
      const data = numbers.map(number => {
        const known = found.get(number)
        if (known === undefined) return { number, exists: null, chat: null }
        const chat = known.address?.replace(/@s\.whatsapp\.net$/, '') ?? null
        return { number, exists: known.address !== null, chat }
      })
      return { data }
    },
  )
}
