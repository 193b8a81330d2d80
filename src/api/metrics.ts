import type { Api, ApiContext } from './context.ts'

/** The metrics for a scraper. The surrounding scope requires the admin key. */
export function registerMetrics(admin: Api, { metrics }: ApiContext): void {
  admin.get('/metrics', { schema: { hide: true }, config: { quiet: true } }, async (_request, reply) => {
    const { contentType, text } = await metrics()
    return reply.type(contentType).send(text)
  })
}
