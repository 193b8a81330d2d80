import { Type } from 'typebox'
import { shareCalls } from '../kit/share-calls.ts'
import type { Api, ApiContext } from './context.ts'
import { unavailable } from './http/error-handler.ts'
import { oneOf } from './resources/schema-kit.ts'

export function registerHealth(api: Api, context: ApiContext): void {
  api.get(
    '/healthz',
    {
      schema: {
        operationId: 'healthz',
        summary: 'Is the process alive?',
        tags: ['Operation'],
        security: [],
        response: { 200: Type.Object({ status: oneOf(['ok']) }, { description: 'The process is alive.' }) },
      },
      config: { quiet: true, alwaysServed: true },
    },
    async () => ({ status: 'ok' as const }),
  )

  const isReady = shareCalls(async () => context.isReady())
  api.get(
    '/readyz',
    {
      schema: {
        operationId: 'readyz',
        summary: 'Can the service accept and deliver?',
        tags: ['Operation'],
        security: [],
        response: { 200: Type.Object({ status: oneOf(['ready']) }, { description: 'The service is ready.' }) },
      },
      config: { quiet: true, alwaysServed: true },
    },
    async () => {
      if (!(await isReady())) throw unavailable()
      return { status: 'ready' as const }
    },
  )
}
