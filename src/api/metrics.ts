import type { Api, ApiContext } from './context.ts'

/** What a scraper reads; the scope it is registered in asks for the admin key. */
export function registerMetrics(admin: Api, { metrics }: ApiContext): void {
  admin.get('/metrics', { schema: { hide: true }, config: { quiet: true } }, async (_request, reply) => {
    const { contentType, text } = await metrics()
    return reply.type(contentType).send(text)
  })
}
